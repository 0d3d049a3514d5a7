import { reasonText } from '../api/turn-reason-text.js';
import type { SessionInfo } from '../ports/journal.js';
import type { Input } from '../ports/session-input-output.js';
import { attempt } from '../runtime/attempt.js';
import { ApiFault, apiFaultOf } from './http/api-fault.js';
import type { KeyUse } from './http/key-usage.js';
import type { ServeKey } from './http/keys.js';
import type { NodeRuntime } from './node-runtime.js';
import type { OpenSessions } from './open-sessions.js';
import type { NewSessionRequest } from './request-shapes.js';
import type { StreamSource } from './streams/event-stream.js';
import { approvalsIn } from './streams/pending-approvals.js';
import { isBusyIn } from './streams/session-feed.js';
import { collectPastWork, lostFiles, moveNotice } from './workspaces/lost-files.js';
import type { NodeWorkspaces, ReleasedWorkspace } from './workspaces/node-workspaces.js';
import type { NodeSessionRecord, NodeWorkspace, SessionRecords } from './workspaces/session-records.js';

/**
 * What the keys of a node do with its sessions.
 *
 * 1. A key sees only the sessions that it created; others do not exist for it.
 * 2. A session whose workspace is gone takes no input until it is moved.
 * 3. An input to a closed session opens it again.
 * 4. Whatever makes or removes a worktree happens in order, also if several sessions share it.
 */

export type ServedParts = {
  readonly runtime: NodeRuntime;
  readonly records: SessionRecords;
  readonly workspaces: NodeWorkspaces;
  readonly open: OpenSessions;
  readonly use: KeyUse;
};

const noSession = (): ApiFault =>
  new ApiFault('notFound', 'There is no such session. GET /v1/sessions lists yours.');

const listed = ({ sessionId, createdAt, changedAt, parent, model, title }: SessionInfo): object => ({
  sessionId,
  createdAt,
  changedAt,
  parent,
  model,
  title,
});

/** Rule 4. */
const orderOf = ({ sessionId, workspace }: NodeSessionRecord): string =>
  workspace.kind === 'worktree' ? workspace.path : sessionId;

export class ServedSessions {
  readonly #parts: ServedParts;

  constructor(parts: ServedParts) {
    this.#parts = parts;
  }

  async create(key: ServeKey, { workspace: wanted, preset, limits }: NewSessionRequest): Promise<object> {
    const { runtime, records, workspaces, open, use } = this.#parts;
    return use.withPlace(key, this.#openOf(key), async () => {
      const workspace = await workspaces.prepare(wanted);
      let sessionId = '';
      const made = await attempt(async () => {
        sessionId = await runtime.create({ workspace: workspace.path, preset, limits });
        await records.put({ version: 1, sessionId, key: key.name, workspace, isOpen: true, notice: '' });
        await open.attend(sessionId);
        return this.describe(key, sessionId);
      });
      if (made.kind === 'done') return made.value;
      // Nobody knows the session yet. The first failure is the one to report.
      if (sessionId !== '') await attempt(() => runtime.close(sessionId));
      await workspaces.release(workspace);
      throw made.fault;
    });
  }

  /** The sessions of the key, the most recently changed first. */
  async list(key: ServeKey): Promise<readonly object[]> {
    const { runtime, records, open } = this.#parts;
    const found: object[] = [];
    for await (const info of runtime.list()) {
      const record = records.get(info.sessionId);
      if (record?.key !== key.name) continue;
      const state = open.feed(info.sessionId)?.status.state ?? null;
      found.push({ ...listed(info), isOpen: record.isOpen, state, workspace: record.workspace });
    }
    return found;
  }

  async describe(key: ServeKey, sessionId: string): Promise<object> {
    const { runtime, open } = this.#parts;
    const { isOpen, workspace, notice } = this.#owned(key, sessionId);
    const { header, seq, state } = await runtime.state(sessionId);
    const { settings, usage } = state.session;
    const feed = open.feed(sessionId);
    const approvals = feed?.status.approvals ?? approvalsIn(state, new Map());
    const isBusy = feed?.isBusy ?? (!runtime.endsWithNode && isBusyIn(state, approvals));
    const reason = state.name === 'WaitingForUserInput' ? state.reason : null;
    return {
      sessionId,
      isOpen,
      seq,
      state: state.name,
      reason,
      message: reason === null ? '' : reasonText(reason),
      busy: isBusy,
      approvals,
      workspace: { ...workspace, isPresent: await this.#isUsable(workspace) },
      notice,
      model: settings.model,
      preset: settings.preset ?? null,
      usage,
      createdAt: header.createdAt,
      parent: header.parent,
    };
  }

  /** Rules 2 and 3. Resolves when the input is durable. */
  async send(key: ServeKey, sessionId: string, input: Input): Promise<{ readonly seq: number }> {
    const { runtime, records, open } = this.#parts;
    await this.#makeReady(key, this.#owned(key, sessionId));
    const { notice } = this.#owned(key, sessionId);
    const isTold = notice !== '' && input.type === 'UserInput';
    const told = isTold ? { ...input, text: `${notice}\n\n${input.text}` } : input;
    const sent = await attempt(() => runtime.send(sessionId, told));
    if (sent.kind === 'fault') {
      if (open.feed(sessionId) !== null || apiFaultOf(sent.fault) !== null) throw sent.fault;
      throw new ApiFault('conflict', 'The session was closed meanwhile. Send the input again to open it.');
    }
    if (isTold) await records.change(sessionId, { notice: '' });
    return sent.value;
  }

  /** The new session is closed until its first input. */
  async fork(key: ServeKey, sessionId: string, seq: number): Promise<object> {
    const { runtime, records, use } = this.#parts;
    const { workspace, notice } = this.#owned(key, sessionId);
    return use.withPlace(key, this.#openOf(key), async () => {
      const forked = await runtime.fork(sessionId, seq);
      const own = { sessionId: forked, isOpen: false };
      await records.put({ version: 1, key: key.name, workspace, notice, ...own });
      return this.describe(key, forked);
    });
  }

  /** Closes the session, and removes its worktree if nothing would be lost by it. Its journal stays. */
  async close(key: ServeKey, sessionId: string): Promise<{ readonly workspace: ReleasedWorkspace }> {
    const { records, workspaces, open } = this.#parts;
    const record = this.#owned(key, sessionId);
    return open.inOrder(orderOf(record), async () => {
      if (this.#owned(key, sessionId).isOpen) await open.close(sessionId);
      const { workspace } = await records.change(sessionId, { isOpen: false });
      if (records.sharing(workspace.path).some(({ isOpen }) => isOpen))
        return { workspace: { kind: 'kept', path: workspace.path, why: 'another open session works in it' } };
      const released = await workspaces.release(workspace);
      if (released.kind === 'removed' && workspace.kind === 'worktree')
        await this.#changeWorkspace({ ...workspace, state: 'removed' });
      return { workspace: released };
    });
  }

  /** Gives a session whose worktree is gone a fresh one, and tells what is lost. */
  async move(key: ServeKey, sessionId: string): Promise<object> {
    const { runtime, records, workspaces, open } = this.#parts;
    const record = this.#owned(key, sessionId);
    return open.inOrder(orderOf(record), async () => {
      const { workspace, isOpen } = this.#owned(key, sessionId);
      if (workspace.kind !== 'worktree')
        throw new ApiFault('conflict', 'Only a session in a worktree can be moved. Put its folder back.');
      if (await this.#isUsable(workspace))
        throw new ApiFault(
          'conflict',
          `The workspace ${workspace.path} is there: nothing needs to be moved.`,
        );
      if (isOpen) await open.close(sessionId);
      const { seq } = await runtime.state(sessionId);
      const past = await collectPastWork(runtime.read(sessionId, 1), seq);
      const { workspace: fresh, setAside } = await workspaces.renew(workspace, past.commits);
      const lost = await lostFiles(past, fresh.path);
      const notice = moveNotice(fresh.commit, lost);
      await this.#changeWorkspace(fresh);
      for (const { sessionId: id } of records.sharing(fresh.path)) await records.change(id, { notice });
      return { sessionId, workspace: fresh, lost, setAside, notice };
    });
  }

  /** Where a stream gets its entries from. `after`: the last entry that the reader has. */
  async source(key: ServeKey, sessionId: string, after: number): Promise<StreamSource> {
    const { runtime, open } = this.#parts;
    const { isOpen } = this.#owned(key, sessionId);
    const { seq: lastSeq } = await runtime.state(sessionId);
    if (after > lastSeq)
      throw new ApiFault(
        'badRequest',
        `Last-Event-ID ${after} is after the last entry, ${lastSeq}. Begin with 0, or with an entry that you have.`,
      );
    const feed = isOpen ? await open.follow(sessionId) : open.feed(sessionId);
    return { feed, lastSeq, read: (from) => runtime.read(sessionId, from) };
  }

  #openOf(key: ServeKey): number {
    return this.#parts.records.of(key.name).filter(({ isOpen }) => isOpen).length;
  }

  /** Rule 1. */
  #owned(key: ServeKey, sessionId: string): NodeSessionRecord {
    const record = this.#parts.records.get(sessionId);
    if (record?.key !== key.name) throw noSession();
    return record;
  }

  async #isUsable(workspace: NodeWorkspace): Promise<boolean> {
    if (workspace.kind === 'worktree' && workspace.state === 'removed') return true; // it is made again
    return this.#parts.workspaces.isPresent(workspace);
  }

  /** Makes sure that the workspace is there and the session open. */
  async #makeReady(key: ServeKey, record: NodeSessionRecord): Promise<void> {
    const { records, workspaces, open, use } = this.#parts;
    const { sessionId } = record;
    const work = (): Promise<void> =>
      open.inOrder(orderOf(record), async () => {
        const { workspace } = this.#owned(key, sessionId);
        const ready = await workspaces.ensure(workspace);
        if (ready !== workspace) await this.#changeWorkspace(ready);
        await open.open(sessionId);
        if (!this.#owned(key, sessionId).isOpen) await records.change(sessionId, { isOpen: true });
      });
    if (record.isOpen) return work();
    return use.withPlace(key, this.#openOf(key), work);
  }

  /** For all sessions that work there. */
  async #changeWorkspace(workspace: NodeWorkspace): Promise<void> {
    const { records } = this.#parts;
    for (const { sessionId } of records.sharing(workspace.path))
      await records.change(sessionId, { workspace });
  }
}
