/**
 * What the requests of the HTTP API do with the sessions of a node.
 *
 * A key sees only the sessions that it created; others do not exist for it. Nodes share sessions by
 * an engine, a service that runs them: each node takes requests for all of them, but only the node
 * with the workspace of a session touches it (`places` of the runtime). The record of a session
 * says which key created it, where it works, and whether it is open. `seq` is the number of an
 * entry of its journal. A feed gives the new entries of an open session to its readers.
 */

import type { Limit } from '@pawl/agent/machine/settings';
import { turnRuns } from '@pawl/agent/machine/state';
import { attempt } from '@pawl/agent/platform/attempt';
import { systemClock } from '@pawl/agent/platform/clock';
import type { SessionInfo } from '@pawl/agent/ports/journal';
import type { Input } from '@pawl/agent/ports/session';
import { findWhole } from '@pawl/agent/session/rewind';
import { reasonText } from '@pawl/agent/session/turn';
import { ApiFault, toApiFault } from './api-fault.js';
import type { AuditLog } from './audit-log.js';
import {
  definedFields,
  type KeyUse,
  type Labels,
  type ServeKey,
  type SpendingLimits,
} from './keys.js';
import type {
  NodeRuntime,
  NodeSessionRecord,
  NodeSessionWish,
  NodeWorkspace,
  RecordStore,
} from './node-runtime.js';
import { approvalsIn, isBusyIn, type OpenSessions, type StreamSource } from './open-sessions.js';
import { asksModel, type ListedPage, type NewSessionRequest } from './request-shapes.js';
import { findSpentDay, type SpendingStore } from './spending.js';
import {
  collectPastWork,
  lostCommands,
  lostFiles,
  moveNotice,
  type NodeWorkspaces,
  type ReleasedWorkspace,
} from './workspaces.js';

type ServedParts = {
  readonly runtime: NodeRuntime;
  readonly records: RecordStore;
  readonly workspaces: NodeWorkspaces;
  readonly open: OpenSessions;
  readonly use: KeyUse;
  readonly audit: AuditLog;
  /** Absent: no key has limits of a day. */
  readonly spending: SpendingStore | undefined;
};

/** Records that are looked at together for their labels. */
const FILTERED_AT_ONCE = 1_000;

const INTERRUPTED = 'The node ended while a turn ran. The next input goes on with it.';

const isRemovedWorktree = (workspace: NodeWorkspace): boolean =>
  workspace.kind === 'worktree' && workspace.state === 'removed';

/** One method a request; then what they share. */
export class ServedSessions {
  readonly #parts: ServedParts;
  readonly #runtime: NodeRuntime;
  readonly #records: RecordStore;
  readonly #open: OpenSessions;

  constructor(parts: ServedParts) {
    this.#parts = parts;
    this.#runtime = parts.runtime;
    this.#records = parts.records;
    this.#open = parts.open;
  }

  /**
   * The session that an earlier request of the key with this id has created; otherwise a new one,
   * by `create`. Requests with one id come one after the other.
   */
  async #createOnce(
    key: ServeKey,
    requestId: string | null,
    create: () => Promise<object>,
  ): Promise<object> {
    if (requestId === null) return create();
    return this.#open.inOrder(`${key.name} ${requestId}`, async () => {
      const earlier = await this.#records.createdBy(key.name, requestId);
      return earlier === undefined ? create() : this.describe(key, earlier.sessionId);
    });
  }

  /** A new session in its workspace, if the key may open one. */
  async create(
    key: ServeKey,
    request: NewSessionRequest,
    requestId: string | null,
  ): Promise<object> {
    return this.#createOnce(key, requestId, () =>
      this.#withinLimit(key, () => this.#createNow(key, request, requestId)),
    );
  }

  /** On a fault the session is closed, and its workspace released. */
  async #createNow(
    key: ServeKey,
    request: NewSessionRequest,
    requestId: string | null,
  ): Promise<object> {
    const choices = chooseForKey(key, request);
    const labels = joinLabels(key, request);
    const workspaces = this.#parts.workspaces.forKey(key);
    const workspace = await workspaces.prepare(request.workspace);
    const record = {
      version: 1 as const,
      key: key.name,
      workspace,
      isOpen: false,
      notice: '',
      ...(Object.keys(labels).length === 0 ? {} : { labels }),
      ...(key.places === undefined ? {} : { isConfined: 'yes' as const }),
    };
    let sessionId = '';
    const created = await attempt(async () => {
      // a session that is never made is not counted, and its request can be sent again
      const wish = { workspace: workspace.path, ...choices };
      sessionId = await this.#runtime.create(wish, (id) =>
        this.#records.put({ ...record, sessionId: id }),
      );
      const id = requestId === null ? {} : { requestId };
      await this.#records.put({ ...record, sessionId, isOpen: true, ...id });
      await this.#refuseMore(key);
      await this.#open.attend(sessionId);
      return this.describe(key, sessionId);
    });
    if (created.kind === 'done') return created.value;
    // Nobody knows the session yet. The first failure is the one to report. A session that can't be
    // closed stays as it is, and a repeated request gets it.
    if (sessionId === '') await workspaces.release(workspace);
    else
      await attempt(async () => {
        await this.#runtime.close(sessionId);
        await this.#records.put({ ...record, sessionId });
        await this.#release(key, { ...record, sessionId });
      });
    throw created.fault;
  }

  async #withinLimit<T>(key: ServeKey, open: () => Promise<T>): Promise<T> {
    return this.#parts.use.withinSessionLimit(key, await this.#records.countOpen(key.name), open);
  }

  /** Nodes that share sessions may open some at once: each looks again when its session is counted. */
  async #refuseMore(key: ServeKey): Promise<void> {
    this.#parts.use.refuseSessions(key, await this.#records.countOpen(key.name));
  }

  /**
   * A page of the sessions of the key, the newest first. `next`: `before` of the next page; null
   * where there is none.
   */
  async list(
    key: ServeKey,
    { before, limit, label = {} }: ListedPage,
  ): Promise<{ readonly sessions: readonly object[]; readonly next: string | null }> {
    const count = Object.keys(label).length === 0 ? limit + 1 : FILTERED_AT_ONCE;
    const records: NodeSessionRecord[] = [];
    for (let from = before, more = true; more && records.length <= limit; ) {
      const read = await this.#records.ofKey(key.name, from, count);
      records.push(...read.filter((record) => carries(record, label)));
      more = read.length === count;
      from = read.at(-1)?.sessionId ?? null;
    }
    const page = records.slice(0, limit);
    const ids = page.map(({ sessionId }) => sessionId);
    const infos = new Map<string, SessionInfo>();
    for await (const info of this.#runtime.list(ids)) infos.set(info.sessionId, info);
    const sessions = page.flatMap(({ sessionId, isOpen, workspace, labels = {} }) => {
      const info = infos.get(sessionId);
      if (info === undefined) return []; // its journal was deleted
      const { createdAt, changedAt, parent, model, title } = info;
      const state = this.#open.feed(sessionId)?.status.state ?? null;
      const place = { isOpen, state, workspace, labels };
      return [{ sessionId, createdAt, changedAt, parent, model, title, ...place }];
    });
    return { sessions, next: records.length > limit ? (ids.at(-1) ?? null) : null };
  }

  async describe(key: ServeKey, sessionId: string): Promise<object> {
    const record = await this.#record(key, sessionId);
    const { header, seq, state } = await this.#runtime.state(sessionId);
    const { settings, usage } = state.session;
    const feed = this.#open.feed(sessionId);
    const approvals = feed?.status.approvals ?? approvalsIn(sessionId, state, new Map());
    // Without a feed here, a session of an engine may be at work all the same.
    const mayWork = feed !== null || !this.#runtime.endsWithNode;
    // Why it waits for the user; null in any other state.
    const reason = state.name === 'WaitingForUserInput' ? state.reason : null;
    const wasKilled = this.#runtime.endsWithNode && feed === null && turnRuns(state);
    const { places } = this.#runtime;
    const node = places === undefined ? {} : { node: await places.nodeOf(sessionId) };
    return {
      sessionId,
      isOpen: record.isOpen,
      seq,
      state: state.name,
      reason,
      message: wasKilled ? INTERRUPTED : reason === null ? '' : reasonText(reason),
      busy: mayWork && isBusyIn(state, approvals), // as `state`: the feed may be ahead of it
      interrupted: wasKilled,
      approvals,
      workspace: { ...record.workspace, ...node, isPresent: await this.#hasWorkspace(record) },
      notice: record.notice,
      labels: record.labels ?? {},
      model: settings.model,
      preset: settings.preset ?? null,
      usage,
      createdAt: header.createdAt,
      parent: header.parent,
    };
  }

  /**
   * Resolves when the input is durable. An input to a closed session opens it; without its
   * workspace it takes none. `code`: of the question that the client has shown; null if it did not
   * say.
   */
  async send(
    key: ServeKey,
    sessionId: string,
    input: Input,
    code: string | null,
  ): Promise<{ readonly seq: number }> {
    await this.#refuseUnpaid(key, sessionId, input);
    await this.#makeReady(key, sessionId);
    if (code !== null) this.#refuseOther(sessionId, input, code);
    const record = await this.#record(key, sessionId);
    const { clientRequestId: requestId } = input;
    // an input that is sent again has the notice that it had
    const noticed = record.noticed?.requestId === requestId ? record.noticed : undefined;
    const { notice } = noticed ?? record;
    const withNotice =
      notice !== '' && input.type === 'UserInput'
        ? { ...input, text: `${notice}\n\n${input.text}` }
        : null;
    const sent = await attempt(() => this.#runtime.send(sessionId, withNotice ?? input));
    if (sent.kind === 'fault') {
      // The input was checked: what the session refuses is another input with an id that it knows.
      if (sent.fault instanceof TypeError) throw new ApiFault('conflict', sent.fault.message);
      // An open session, or a known fault: the error itself says enough.
      if (this.#open.feed(sessionId) !== null || toApiFault(sent.fault) !== null) throw sent.fault;
      throw new ApiFault(
        'conflict',
        'The session was closed meanwhile. Send the input again to open it.',
      );
    }
    if (withNotice !== null && noticed === undefined)
      await this.#inOrder(sessionId, record.workspace, async () => {
        const { notice: now } = await this.#record(key, sessionId);
        await this.#update(sessionId, {
          ...(now === notice ? { notice: '' } : {}), // a move may have set another one
          ...(requestId === undefined ? {} : { noticed: { requestId, notice } }),
        });
      });
    return sent.value;
  }

  /**
   * Refuses an answer to a question that was not the one shown. Nothing can change between this
   * check and the answer: while the session is open, a call that waits stays the same call.
   */
  #refuseOther(sessionId: string, input: Input, code: string): void {
    if (input.type !== 'ApprovalAnswered') return;
    const { approvals = [] } = this.#open.feed(sessionId)?.status ?? {};
    const asked = approvals.find(
      ({ batchId, callId }) => batchId === input.batchId && callId === input.callId,
    );
    // one that is not asked any more is told by the session
    if (asked === undefined || asked.code === code) return;
    throw new ApiFault(
      'conflict',
      'The question is another one than you were shown: this answer changed nothing. Read it again.',
    );
  }

  /**
   * Throws if the key can't pay today for the request that the input asks for. An input that was
   * accepted before is answered as it was then.
   */
  async #refuseUnpaid(key: ServeKey, sessionId: string, input: Input): Promise<void> {
    const { spending } = this.#parts;
    if (spending === undefined || key.perDay === undefined || !asksModel(input)) return;
    await this.#record(key, sessionId);
    const { header, seq, state } = await this.#runtime.state(sessionId);
    const { contextTokens, settings } = state.session;
    // of another model, which has taken over, the prices are not known here
    const prices = settings.model === header.settings.model ? header.prices : null;
    const meter = { store: spending, now: () => systemClock.now() };
    const fault = await findSpentDay(meter, key, { contextTokens, prices });
    if (fault === null) return;
    const { clientRequestId: id } = input;
    const from = (header.parent?.seq ?? 0) + 1;
    if (id !== undefined && seq >= from)
      for await (const entry of this.#runtime.read(sessionId, from)) {
        if ('clientRequestId' in entry.event && entry.event.clientRequestId === id) return;
        if (entry.seq >= seq) break;
      }
    throw fault;
  }

  /** Makes sure that the workspace is there and the session open. */
  async #makeReady(key: ServeKey, sessionId: string): Promise<void> {
    const { workspace, isConfined } = await this.#record(key, sessionId);
    if (key.places !== undefined && isConfined === undefined) throw notConfined(key);
    // In order, and with the record of that time: earlier work may have changed it.
    await this.#inOrder(sessionId, workspace, async () => {
      const record = await this.#record(key, sessionId);
      const open = async (): Promise<void> => {
        await this.#restoreWorkspace(key, record);
        await this.#open.open(sessionId, key.name);
        if (record.isOpen) return;
        await this.#update(sessionId, { isOpen: true });
        const counted = await attempt(() => this.#refuseMore(key));
        if (counted.kind === 'done') return;
        await this.#open.close(sessionId);
        await this.#update(sessionId, { isOpen: false });
        throw counted.fault;
      };
      await (record.isOpen ? open() : this.#withinLimit(key, open));
    });
  }

  /**
   * Makes a worktree again that was removed with nothing lost: on this node, wherever it was.
   * Throws if a workspace of this node is gone. Does not touch one that is on another node.
   */
  async #restoreWorkspace(
    key: ServeKey,
    { sessionId, workspace }: NodeSessionRecord,
  ): Promise<void> {
    const otherNode = await this.#otherNode(sessionId);
    const workspaces = this.#parts.workspaces.forKey(key);
    if (otherNode !== null && !isRemovedWorktree(workspace))
      return workspaces.refuseTaken(workspace);
    // The same object, if nothing had to be made.
    const present = await workspaces.ensure(workspace);
    if (otherNode !== null) await this.#runtime.places?.moveHere(sessionId);
    if (present !== workspace) await this.#updateWorkspace(key.name, present);
  }

  /** A new session from the entries up to `seq`. It is closed until its first input. */
  async fork(
    key: ServeKey,
    sessionId: string,
    seq: number,
    requestId: string | null,
  ): Promise<object> {
    // an id of its own: that of an earlier creation is not a fork, nor that of another session
    const id = requestId === null ? null : `fork ${sessionId} ${requestId}`;
    return this.#createOnce(key, id, async () => {
      const { workspace } = await this.#record(key, sessionId);
      const { header, seq: last } = await this.#runtime.state(sessionId);
      const entries = () => this.#runtime.read(sessionId, 1);
      // of an open session entries are read for ever; without such an entry the fork is refused
      const whole = seq > last ? null : await findWhole({ header, entries }, seq);
      const fork = await this.#runtime.fork(sessionId, whole?.seq ?? seq);
      // in order: its worktree may be removed, or moved, meanwhile
      await this.#inOrder(sessionId, workspace, async () => {
        const { requestId: _, noticed: __, ...inherited } = await this.#record(key, sessionId);
        const fresh = { ...inherited, sessionId: fork, isOpen: false };
        await this.#records.put({ ...fresh, ...(id === null ? {} : { requestId: id }) });
      });
      return this.describe(key, fork);
    });
  }

  /**
   * Closes the session, and removes its worktree if nothing would be lost by it. Its journal stays.
   */
  async close(
    key: ServeKey,
    sessionId: string,
  ): Promise<{ readonly workspace: ReleasedWorkspace }> {
    const record = await this.#record(key, sessionId);
    return this.#inOrder(sessionId, record.workspace, async () => {
      if ((await this.#record(key, sessionId)).isOpen) await this.#open.close(sessionId);
      const closed = await this.#update(sessionId, { isOpen: false });
      return { workspace: await this.#release(key, closed) };
    });
  }

  /**
   * Removes the session's worktree, unless something would be lost, or somebody else works there.
   */
  async #release(
    key: ServeKey,
    { sessionId, workspace }: NodeSessionRecord,
  ): Promise<ReleasedWorkspace> {
    const keep = (why: string): ReleasedWorkspace => ({ kind: 'kept', path: workspace.path, why });
    if (workspace.kind === 'folder') return { kind: 'untouched' };
    const sharing = await this.#records.inWorktree(key.name, workspace.path);
    if (sharing.some(({ isOpen }) => isOpen)) return keep('another open session works in it');
    const otherNode = await this.#otherNode(sessionId);
    if (otherNode !== null) return keep(`it is on the node ${otherNode}`);
    const released = await this.#parts.workspaces.forKey(key).release(workspace);
    if (released.kind === 'removed')
      await this.#updateWorkspace(key.name, { ...workspace, state: 'removed' });
    return released;
  }

  /**
   * Gives a session whose worktree is gone a fresh one on this node, and tells what is lost. The
   * session moves here if the node with its workspace does not answer.
   */
  async move(key: ServeKey, sessionId: string): Promise<object> {
    const { workspace } = await this.#record(key, sessionId);
    return this.#inOrder(sessionId, workspace, async () => {
      const record = await this.#record(key, sessionId);
      const { workspace: gone } = record;
      if (gone.kind !== 'worktree')
        throw new ApiFault(
          'conflict',
          'Only a session in a worktree can be moved. Put its folder back.',
        );
      const otherNode = await this.#otherNode(sessionId);
      if (await this.#hasWorkspace(record)) throw nothingToMove(gone, otherNode);
      // What runs on another node is ended by `moveHere`.
      if (otherNode === null && record.isOpen) await this.#open.close(sessionId);
      const { seq } = await this.#runtime.state(sessionId);
      const past = await collectPastWork(this.#runtime.read(sessionId, 1), seq);
      const { workspace: fresh, setAside } = await this.#parts.workspaces
        .forKey(key)
        .renew(gone, past.commits);
      // Not before: a session that can't get a workspace here stays where it is.
      if (otherNode !== null)
        for (const one of await this.#records.inWorktree(key.name, fresh.path))
          await this.#runtime.places?.moveHere(one.sessionId);
      const lost = await lostFiles(past, fresh.path);
      const commands = lostCommands(past, fresh.commit);
      const notice = moveNotice({ commit: fresh.commit, files: lost, commands });
      for (const one of await this.#records.inWorktree(key.name, fresh.path))
        await this.#update(one.sessionId, { workspace: fresh, notice });
      return { sessionId, workspace: fresh, lost, commands, setAside, notice };
    });
  }

  /** What only the owner of the session may ask. */
  async own(key: ServeKey, sessionId: string, body: unknown): Promise<object> {
    await this.#record(key, sessionId);
    const { own } = this.#runtime;
    if (key.isOwner !== 'yes' || own === undefined)
      throw new ApiFault('notFound', 'There is no such request. docs/build/serve.md lists them.');
    return own(sessionId, body);
  }

  /** Where a stream gets its entries from. `after`: the last entry that the reader has. */
  async source(key: ServeKey, sessionId: string, after: number): Promise<StreamSource> {
    const { isOpen } = await this.#record(key, sessionId);
    const { seq: lastSeq, state } = await this.#runtime.state(sessionId);
    if (after > lastSeq)
      throw new ApiFault(
        'badRequest',
        `Last-Event-ID ${after} is after the last entry, ${lastSeq}. Begin with 0, or with ` +
          'an entry that you have.',
      );
    // One that was closed since it rested opens for its reader.
    const rests = this.#runtime.mayRest !== undefined && state.name === 'ShuttingDown';
    const request = { key: key.name, action: 'open', sessionId };
    const open = async () => {
      await this.#makeReady(key, sessionId);
      return null;
    };
    // Without its workspace it stays closed, and what there is can be read all the same.
    if (isOpen && rests) await attempt(() => this.#parts.audit.around(request, open));
    const feed = isOpen ? await this.#open.follow(sessionId) : this.#open.feed(sessionId);
    return { feed, lastSeq, read: (from) => this.#runtime.read(sessionId, from) };
  }

  /** Throws if the key has no such session. */
  async #record(key: ServeKey, sessionId: string): Promise<NodeSessionRecord> {
    const record = await this.#records.get(sessionId);
    if (record?.key === key.name) return record;
    throw new ApiFault('notFound', 'There is no such session. GET /v1/sessions lists yours.');
  }

  async #update(
    sessionId: string,
    changes: Partial<NodeSessionRecord>,
  ): Promise<NodeSessionRecord> {
    const record = await this.#records.get(sessionId);
    if (record === undefined) throw new Error(`there is no record of session ${sessionId}`);
    const changed = { ...record, ...changes };
    await this.#records.put(changed);
    return changed;
  }

  /** For all sessions that work there. */
  async #updateWorkspace(key: string, workspace: NodeWorkspace): Promise<void> {
    for (const { sessionId } of await this.#records.inWorktree(key, workspace.path))
      await this.#update(sessionId, { workspace });
  }

  /** Work that makes or removes a worktree runs in order, also if several sessions share it. */
  #inOrder<T>(sessionId: string, workspace: NodeWorkspace, work: () => Promise<T>): Promise<T> {
    return this.#open.inOrder(workspace.kind === 'worktree' ? workspace.path : sessionId, work);
  }

  /** The node with the session's workspace, if it is not this one. */
  async #otherNode(sessionId: string): Promise<string | null> {
    const { places } = this.#runtime;
    const node = (await places?.nodeOf(sessionId)) ?? null;
    return node === places?.node ? null : node;
  }

  /** Whether the node with the workspace works, and has it as far as that is known here. */
  async #hasWorkspace({ sessionId, workspace }: NodeSessionRecord): Promise<boolean> {
    const otherNode = await this.#otherNode(sessionId);
    if (otherNode !== null) return this.#runtime.places?.isUp(otherNode) ?? false;
    return isRemovedWorktree(workspace) || this.#parts.workspaces.isPresent(workspace);
  }
}

const notConfined = ({ name }: ServeKey): ApiFault =>
  new ApiFault(
    'notAllowed',
    `The session was created before the key ${name} had places that others do not see, and an answer could ` +
      'let it leave its sandbox. It can be read and closed; create a new one.',
  );

/** Whether the session has all these labels. */
const carries = ({ labels = {} }: NodeSessionRecord, label: Labels): boolean =>
  Object.entries(label).every(([name, value]) => labels[name] === value);

/** The labels of the key and of the request, which can't replace those of the key. */
const joinLabels = (
  { name: keyName, labels = {} }: ServeKey,
  { labels: more }: NewSessionRequest,
): Labels => {
  const taken = Object.keys(more).find((name) => Object.hasOwn(labels, name));
  if (taken === undefined) return { ...labels, ...more };
  throw new ApiFault(
    'notAllowed',
    `labels.${taken}: the operator has chosen this label for the key ${keyName}. Leave it out.`,
  );
};

/** The lower one of each limit. */
const lowerLimits = (
  { usd, tokens }: SpendingLimits,
  limits: NewSessionRequest['limits'],
): NewSessionRequest['limits'] => {
  const lower = (limit: number | undefined, wish: Limit | undefined): Limit | undefined =>
    limit === undefined || (typeof wish === 'number' && wish < limit) ? wish : limit;
  const spending = { usd: lower(usd, limits.usd), tokens: lower(tokens, limits.tokens) };
  return { ...limits, ...definedFields(spending) };
};

/** What a session of the key gets: a client can only choose what the operator has allowed. */
const chooseForKey = (
  { name, models, preset, perSession = {} }: ServeKey,
  request: NewSessionRequest,
): Omit<NodeSessionWish, 'workspace'> => {
  const { model, limits } = request;
  if (model !== undefined && models?.includes(model) !== true)
    throw new ApiFault(
      'notAllowed',
      `The key ${name} may not use the model ${model}. It may use ` +
        `${models === undefined ? 'that of the node: leave out model' : models.join(', ')}.`,
    );
  return {
    key: name,
    model: model ?? models?.[0] ?? null,
    // the only one that a client can ask for is the strictest
    preset: request.preset ?? preset ?? null,
    limits: lowerLimits(perSession, limits),
  };
};

const nothingToMove = (workspace: NodeWorkspace, otherNode: string | null): ApiFault => {
  const here = isRemovedWorktree(workspace)
    ? 'was removed with nothing lost, and the next input makes it again'
    : 'is there';
  const where = otherNode === null ? here : `is on the node ${otherNode}, which answers`;
  const message = `The workspace ${workspace.path} ${where}: nothing needs to be moved.`;
  return new ApiFault('conflict', message);
};
