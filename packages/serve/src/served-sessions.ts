/**
 * What the keys of a node do with its sessions.
 *
 * 1. A key sees only the sessions that it created; others do not exist for it.
 * 2. A session whose workspace is gone takes no input until it is moved.
 * 3. An input to a closed session opens it again.
 * 4. Whatever makes or removes a worktree happens in order, also if several sessions share it.
 * 5. If nodes share the sessions, each takes their requests, but only the node with a workspace touches it. A session is
 *    moved to the node that is asked to, if the one with its workspace does not answer.
 */

import { attempt } from '@pawl/agent/platform/attempt';
import type { SessionInfo } from '@pawl/agent/ports/journal';
import type { Input } from '@pawl/agent/ports/session';
import { reasonText } from '@pawl/agent/session/turn-result';
import { ApiFault, toApiFault } from './api-fault.js';
import type { KeyUse, ServeKey } from './keys.js';
import type { NodeRuntime, NodeSessionRecord, NodeWorkspace, RecordStore } from './node-runtime.js';
import { approvalsIn, isBusyIn, type OpenSessions, type StreamSource } from './open-sessions.js';
import type { NewSessionRequest } from './request-shapes.js';
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
    return use.withPlace(key, await this.#openOf(key), async () => {
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
    const { runtime, open } = this.#parts;
    const own = new Map((await this.#of(key)).map((record) => [record.sessionId, record]));
    const found: object[] = [];
    for await (const info of runtime.list()) {
      const record = own.get(info.sessionId);
      if (record === undefined) continue;
      const state = open.feed(info.sessionId)?.status.state ?? null;
      found.push({ ...listed(info), isOpen: record.isOpen, state, workspace: record.workspace });
    }
    return found;
  }

  async describe(key: ServeKey, sessionId: string): Promise<object> {
    const { runtime, open } = this.#parts;
    const record = await this.#owned(key, sessionId);
    const { isOpen, workspace, notice } = record;
    const { header, seq, state } = await runtime.state(sessionId);
    const { settings, usage } = state.session;
    const feed = open.feed(sessionId);
    const approvals = feed?.status.approvals ?? approvalsIn(state, new Map());
    const isBusy = feed?.isBusy ?? (!runtime.endsWithNode && isBusyIn(state, approvals));
    const reason = state.name === 'WaitingForUserInput' ? state.reason : null;
    const { places } = runtime;
    const node = places === undefined ? {} : { node: await places.nodeOf(sessionId) };
    return {
      sessionId,
      isOpen,
      seq,
      state: state.name,
      reason,
      message: reason === null ? '' : reasonText(reason),
      busy: isBusy,
      approvals,
      workspace: { ...workspace, ...node, isPresent: await this.#hasWorkspace(record) },
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
    const { runtime, open } = this.#parts;
    await this.#makeReady(key, await this.#owned(key, sessionId));
    const { notice } = await this.#owned(key, sessionId);
    const isTold = notice !== '' && input.type === 'UserInput';
    const told = isTold ? { ...input, text: `${notice}\n\n${input.text}` } : input;
    const sent = await attempt(() => runtime.send(sessionId, told));
    if (sent.kind === 'fault') {
      if (open.feed(sessionId) !== null || toApiFault(sent.fault) !== null) throw sent.fault;
      throw new ApiFault('conflict', 'The session was closed meanwhile. Send the input again to open it.');
    }
    if (isTold) await this.#change(sessionId, { notice: '' });
    return sent.value;
  }

  /** The new session is closed until its first input. */
  async fork(key: ServeKey, sessionId: string, seq: number): Promise<object> {
    const { runtime, records, use } = this.#parts;
    const { workspace, notice } = await this.#owned(key, sessionId);
    return use.withPlace(key, await this.#openOf(key), async () => {
      const forked = await runtime.fork(sessionId, seq);
      const own = { sessionId: forked, isOpen: false };
      await records.put({ version: 1, key: key.name, workspace, notice, ...own });
      return this.describe(key, forked);
    });
  }

  /** Closes the session, and removes its worktree if nothing would be lost by it. Its journal stays. */
  async close(key: ServeKey, sessionId: string): Promise<{ readonly workspace: ReleasedWorkspace }> {
    const { workspaces, open } = this.#parts;
    const record = await this.#owned(key, sessionId);
    return open.inOrder(orderOf(record), async () => {
      if ((await this.#owned(key, sessionId)).isOpen) await open.close(sessionId);
      const { workspace } = await this.#change(sessionId, { isOpen: false });
      if ((await this.#sharing(workspace.path)).some(({ isOpen }) => isOpen))
        return { workspace: { kind: 'kept', path: workspace.path, why: 'another open session works in it' } };
      const away = await this.#awayOn(sessionId);
      if (away !== null)
        return { workspace: { kind: 'kept', path: workspace.path, why: `it is on the node ${away}` } };
      const released = await workspaces.release(workspace);
      if (released.kind === 'removed' && workspace.kind === 'worktree')
        await this.#changeWorkspace({ ...workspace, state: 'removed' });
      return { workspace: released };
    });
  }

  /** Gives a session whose worktree is gone a fresh one on this node, and tells what is lost. */
  async move(key: ServeKey, sessionId: string): Promise<object> {
    const { runtime, workspaces, open } = this.#parts;
    const record = await this.#owned(key, sessionId);
    return open.inOrder(orderOf(record), async () => {
      const current = await this.#owned(key, sessionId);
      const { workspace } = current;
      if (workspace.kind !== 'worktree')
        throw new ApiFault('conflict', 'Only a session in a worktree can be moved. Put its folder back.');
      if (await this.#hasWorkspace(current)) throw await this.#nothingToMove(current);
      const away = await this.#awayOn(sessionId);
      if (away === null && current.isOpen) await open.close(sessionId);
      const { seq } = await runtime.state(sessionId);
      const past = await collectPastWork(runtime.read(sessionId, 1), seq);
      const { workspace: fresh, setAside } = await workspaces.renew(workspace, past.commits);
      // Not before: a session that can't get a workspace here stays where it is.
      if (away !== null)
        for (const { sessionId: id } of await this.#sharing(fresh.path)) await runtime.places?.moveHere(id);
      const { commit, path } = fresh;
      const lost = await lostFiles(past, path);
      const commands = lostCommands(past, commit);
      const notice = moveNotice({ commit, files: lost, commands });
      await this.#changeWorkspace(fresh);
      for (const { sessionId: id } of await this.#sharing(path)) await this.#change(id, { notice });
      return { sessionId, workspace: fresh, lost, commands, setAside, notice };
    });
  }

  async #nothingToMove({ sessionId, workspace }: NodeSessionRecord): Promise<ApiFault> {
    const away = await this.#awayOn(sessionId);
    const where = away === null ? 'is there' : `is on the node ${away}, which answers`;
    return new ApiFault('conflict', `The workspace ${workspace.path} ${where}: nothing needs to be moved.`);
  }

  /** Where a stream gets its entries from. `after`: the last entry that the reader has. */
  async source(key: ServeKey, sessionId: string, after: number): Promise<StreamSource> {
    const { runtime, open } = this.#parts;
    const { isOpen } = await this.#owned(key, sessionId);
    const { seq: lastSeq } = await runtime.state(sessionId);
    if (after > lastSeq)
      throw new ApiFault(
        'badRequest',
        `Last-Event-ID ${after} is after the last entry, ${lastSeq}. Begin with 0, or with an entry that you have.`,
      );
    const feed = isOpen ? await open.follow(sessionId) : open.feed(sessionId);
    return { feed, lastSeq, read: (from) => runtime.read(sessionId, from) };
  }

  async #of(key: ServeKey): Promise<readonly NodeSessionRecord[]> {
    return (await this.#parts.records.all()).filter((record) => record.key === key.name);
  }

  async #openOf(key: ServeKey): Promise<number> {
    return (await this.#of(key)).filter(({ isOpen }) => isOpen).length;
  }

  /** The sessions that work in a folder, open or not. */
  async #sharing(folder: string): Promise<readonly NodeSessionRecord[]> {
    return (await this.#parts.records.all()).filter(({ workspace }) => workspace.path === folder);
  }

  async #change(sessionId: string, changes: Partial<NodeSessionRecord>): Promise<NodeSessionRecord> {
    const { records } = this.#parts;
    const before = await records.get(sessionId);
    if (before === undefined) throw new Error(`there is no record of session ${sessionId}`);
    const after = { ...before, ...changes };
    await records.put(after);
    return after;
  }

  /** Rule 5. The node with the session's workspace, if it is another one. */
  async #awayOn(sessionId: string): Promise<string | null> {
    const { places } = this.#parts.runtime;
    const node = (await places?.nodeOf(sessionId)) ?? null;
    return node === places?.node ? null : node;
  }

  /** Whether the node with the workspace works, and has it as far as that is known here. */
  async #hasWorkspace({ sessionId, workspace }: NodeSessionRecord): Promise<boolean> {
    const away = await this.#awayOn(sessionId);
    if (away !== null) return this.#parts.runtime.places?.answers(away) ?? false;
    return this.#isUsable(workspace);
  }

  /** Rule 1. */
  async #owned(key: ServeKey, sessionId: string): Promise<NodeSessionRecord> {
    const record = await this.#parts.records.get(sessionId);
    if (record?.key !== key.name) throw noSession();
    return record;
  }

  async #isUsable(workspace: NodeWorkspace): Promise<boolean> {
    if (workspace.kind === 'worktree' && workspace.state === 'removed') return true; // it is made again
    return this.#parts.workspaces.isPresent(workspace);
  }

  /** Makes sure that the workspace is there and the session open. */
  async #makeReady(key: ServeKey, record: NodeSessionRecord): Promise<void> {
    const { runtime, workspaces, open, use } = this.#parts;
    const { places } = runtime;
    const { sessionId } = record;
    const work = (): Promise<void> =>
      open.inOrder(orderOf(record), async () => {
        const { workspace } = await this.#owned(key, sessionId);
        const away = await this.#awayOn(sessionId);
        const isRemoved = workspace.kind === 'worktree' && workspace.state === 'removed';
        if (away === null || isRemoved) {
          const ready = await workspaces.ensure(workspace);
          if (away !== null) await places?.moveHere(sessionId);
          if (ready !== workspace) await this.#changeWorkspace(ready);
        }
        await open.open(sessionId);
        if (!(await this.#owned(key, sessionId)).isOpen) await this.#change(sessionId, { isOpen: true });
      });
    if (record.isOpen) return work();
    return use.withPlace(key, await this.#openOf(key), work);
  }

  /** For all sessions that work there. */
  async #changeWorkspace(workspace: NodeWorkspace): Promise<void> {
    for (const { sessionId } of await this.#sharing(workspace.path))
      await this.#change(sessionId, { workspace });
  }
}
