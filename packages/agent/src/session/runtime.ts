/**
 * The sessions that are open in this process: `LocalRuntime` creates, resumes, forks and closes
 * them. Users of the library reach it through create-agent.ts; session.ts is one session, and
 * loop.ts its loop.
 */

import { JournalError } from '../journal/journal-error.js';
import { messagesOf } from '../machine/conversation.js';
import type { MachineUpgrade } from '../machine/event.js';
import { initialState, step } from '../machine/machine.js';
import { ranUntil } from '../machine/seen-files.js';
import type { Settings } from '../machine/settings.js';
import { type State, turnRuns } from '../machine/state.js';
import { attempt } from '../platform/attempt.js';
import type { Clock } from '../platform/clock.js';
import type { Grant } from '../policy/rules.js';
import type { FrozenPrompt, Journal, JournalStore, StartedBy } from '../ports/journal.js';
import type { Input, NewSession, Runtime, Watcher } from '../ports/session.js';
import {
  beginHeader,
  type Equipment,
  freezePrompt,
  gatherEquipment,
  type SessionDependencies,
} from './equipment.js';
import { notOpen } from './loop.js';
import { checkSettings } from './outside-values.js';
import { AgentSession, isIdle, type LocalOptions } from './session.js';
import type { SessionOrigin } from './session-settings.js';

type RuntimeDependencies = {
  readonly journals: JournalStore;
  readonly clock: Clock;
  /** Hash of the machine's transitions, for the headers of new journals. */
  readonly machine: string;
  /**
   * What a session of these settings works with; called once whenever a session is created or
   * opened.
   */
  equip(
    settings: Settings,
    sessionId: string,
    startedBy: StartedBy | null,
  ): Promise<SessionDependencies>;
  newSessionId(): string;
  /** A number from 0 to 1. */
  random(): number;
  /**
   * Told of faults that stop nothing: a watcher that threw, a background job that could not be
   * killed.
   */
  report(fault: Error): void;
};

type Opening = LocalOptions & {
  readonly watcher?: Watcher;
  /** Settings that change from now on, computed from those before. */
  readonly patch?: (settings: Settings, origin: SessionOrigin) => Partial<Settings>;
  /**
   * What the user has allowed, from now on. What the journal says of it never counts. Default:
   * nothing.
   */
  readonly grants?: readonly Grant[];
  /**
   * Open the session even if another process may have it open. That process stops before it writes
   * again.
   */
  readonly takeOver?: boolean;
  /** End a turn that was interrupted; nothing of it goes on but a rewind. Default: false. */
  readonly endsTurn?: boolean;
};

/**
 * Until when the session ran; null if it can't be read, and then the time of a turn goes on by the
 * clock.
 */
const lastTime = async (journal: Journal): Promise<number | null> => {
  const read = await attempt(async () => {
    // The last entry alone is read.
    for await (const { event } of journal.read(journal.seq)) return ranUntil(event);
    return null;
  });
  return read.kind === 'done' ? read.value : null;
};

/**
 * The fixed part of requests. Its tools are those of the session's start, until others have joined:
 * then `tools` names the blob with all of them.
 */
const frozenPrompt = async (journal: Journal, { tools }: Settings): Promise<FrozenPrompt> => {
  const frozen = await journal.frozen(); // the system prompt and the tools at the start
  if (tools === undefined) return frozen;
  const joined = await journal.blobs.get(tools);
  if (joined !== undefined) return { ...frozen, tools: joined };
  const { sessionId } = journal.header;
  throw new JournalError(
    'damaged',
    sessionId,
    `Session ${sessionId} can't go on: the blob ${tools}, the tools that it has, is missing. ` +
      'Restore the blobs from a backup, or begin a new session.',
  );
};

/**
 * The warning for a session that an earlier machine wrote, so that its entries no longer lead to
 * the same states: what it holds was collected from its events (`MachineUpgrade.session`).
 */
const READ_FROM_EVENTS =
  'An earlier version of Pawl wrote this session in a way that this one reads otherwise: its ' +
  'conversation, usage and ' +
  'running calls were taken over. Approvals that you gave for the session are asked for again.';

/**
 * The upgrade of a session that an earlier machine wrote and whose pending work was ended
 * (`#endWork`): so this machine goes on with the closed session `state`, and not with the work
 * that the upgrade names.
 */
const closedUpgrade = (
  upgrade: MachineUpgrade | undefined,
  { session }: State,
): MachineUpgrade | undefined => {
  if (upgrade?.session === undefined) return upgrade;
  const { conversation, queue, usage } = session;
  const work = { kind: 'closed' } as const;
  return {
    ...upgrade,
    session: { ...upgrade.session, messages: messagesOf(conversation), queue, usage, work },
  };
};

/** The runtime inside one process, with the sessions that are open in it. */
export class LocalRuntime implements Runtime {
  readonly #dependencies: RuntimeDependencies;
  readonly #open = new Map<string, AgentSession>();
  /** Those that are being opened. */
  readonly #opening = new Map<string, Promise<AgentSession>>();

  constructor(dependencies: RuntimeDependencies) {
    this.#dependencies = dependencies;
  }

  async create({
    settings,
    instructions,
    startedBy,
    ...local
  }: NewSession & LocalOptions): Promise<string> {
    const { journals, clock, machine, report } = this.#dependencies;
    checkSettings(settings); // throws
    const sessionId = this.#dependencies.newSessionId();
    const dependencies = await this.#dependencies.equip(settings, sessionId, startedBy ?? null);
    const prepared = await attempt(async () => {
      // What every request of the session begins with: the system prompt and the tools.
      const frozen = freezePrompt(instructions, dependencies.tools, settings);
      const prices = dependencies.model(settings.model).facts.prices;
      const session = { sessionId, createdAt: clock.now(), settings, startedBy, machine, prices };
      const header = await beginHeader(session, frozen, journals.blobs);
      const equipment = this.#gather(dependencies, frozen, local);
      return { journal: await journals.create(header), equipment };
    });
    if (prepared.kind === 'fault') return giveUp(prepared.fault, [dependencies]);
    const { journal, equipment } = prepared.value;
    const created = { journal, state: initialState(settings), tornTail: null };
    const opened = new AgentSession(created, equipment, local, report);
    this.#register(opened);
    opened.begin('startup'); // starts the user's hooks about the start
    return sessionId;
  }

  /** The session if it is open here, or is being opened; null otherwise. */
  opened(sessionId: string): AgentSession | Promise<AgentSession> | null {
    const open = this.#open.get(sessionId);
    if (open !== undefined && !open.isClosing) return open;
    return this.#opening.get(sessionId) ?? null;
  }

  /** Opens a session again and goes on where it was. */
  open(sessionId: string, opening: Opening = {}): Promise<AgentSession> {
    const opened = this.#openAgain(sessionId, opening);
    this.#opening.set(sessionId, opened);
    const forget = (): void => removeOwn(this.#opening, sessionId, opened);
    opened.then(forget, forget);
    return opened;
  }

  async #openAgain(
    sessionId: string,
    { watcher, patch, grants = [], takeOver = false, endsTurn = false, ...local }: Opening,
  ): Promise<AgentSession> {
    const before = this.#open.get(sessionId);
    // The lock of the journal is free when it has ended.
    if (before?.isClosing === true) await attempt(() => before.ended);
    const opened = await this.#dependencies.journals.open(sessionId, { takeOver });
    const { journal, tornTail, past } = opened;
    const origin = opened.isForeign === undefined ? 'own' : 'foreign';
    const toClose: Pick<SessionDependencies, 'close'>[] = [journal];
    const prepared = await attempt(async () => {
      const changes = patch?.(opened.state.session.settings, origin) ?? {};
      checkSettings(changes);
      const { startedBy = null } = journal.header;
      const settings = { ...opened.state.session.settings, ...changes };
      const dependencies = await this.#dependencies.equip(settings, sessionId, startedBy);
      toClose.push(dependencies);
      const equipment = this.#gather(dependencies, await frozenPrompt(journal, settings), local);
      const ends = origin === 'foreign' || (endsTurn && opened.state.name !== 'Rewinding');
      const state = ends ? await this.#endWork(journal, opened.state, watcher) : opened.state;
      return { changes, equipment, state };
    });
    if (prepared.kind === 'fault') return giveUp(prepared.fault, toClose);
    const { changes, equipment, state } = prepared.value;
    // The time from then until now does not count for the turn that goes on.
    const stoppedAt = turnRuns(state) ? (past?.lastAt ?? (await lastTime(journal))) : null;
    const start = { journal, state, tornTail };
    const session = new AgentSession(start, equipment, local, this.#dependencies.report);
    if (watcher !== undefined) session.watch(watcher);
    this.#register(session);
    session.begin('resume');
    const hasEnded = state !== opened.state;
    const isClosed = origin === 'foreign' || hasEnded;
    const upgrade = isClosed ? closedUpgrade(opened.upgrade, state) : opened.upgrade;
    const hasEndedTurn = origin === 'own' && hasEnded;
    await session.resume({ changes, grants }, { past, stoppedAt, upgrade, hasEndedTurn });
    if (upgrade?.session !== undefined) this.#dependencies.report(new Error(READ_FROM_EVENTS));
    return session;
  }

  /**
   * Ends what is pending in a session, as if it had been closed. None of it is performed.
   */
  async #endWork(journal: Journal, state: State, watcher: Watcher | undefined): Promise<State> {
    if (isIdle(state)) return state;
    const event = { type: 'ShutdownRequested', at: this.#dependencies.clock.now() } as const;
    const stepped = step(state, event);
    await journal.append([{ event, state: stepped.state }]);
    watcher?.({ seq: journal.seq, event, ...stepped });
    return stepped.state;
  }

  async send(sessionId: string, input: Input): ReturnType<Runtime['send']> {
    return this.find(sessionId).send(input);
  }

  read(sessionId: string, from = 1): ReturnType<Runtime['read']> {
    return (
      this.#open.get(sessionId)?.events(from) ?? this.#dependencies.journals.read(sessionId, from)
    );
  }

  watch(sessionId: string, watcher: Watcher): () => void {
    return this.find(sessionId).watch(watcher);
  }

  async state(sessionId: string): ReturnType<Runtime['state']> {
    const open = this.#open.get(sessionId);
    if (open === undefined) return this.#dependencies.journals.peek(sessionId);
    const { header, seq, current: state } = open;
    return { header, seq, state };
  }

  async fork(sessionId: string, seq: number): Promise<string> {
    const newSessionId = this.#dependencies.newSessionId();
    await this.#dependencies.journals.fork(
      sessionId,
      seq,
      newSessionId,
      this.#dependencies.clock.now(),
    );
    return newSessionId;
  }

  list(sessionIds?: readonly string[]): ReturnType<Runtime['list']> {
    return this.#dependencies.journals.list(sessionIds);
  }

  async close(sessionId: string): Promise<void> {
    await this.find(sessionId).shutDown();
  }

  /** The session itself; throws if it is not open in this process. */
  find(sessionId: string): AgentSession {
    const open = this.#open.get(sessionId);
    if (open === undefined) throw notOpen(sessionId);
    return open;
  }

  /** Keeps the session in the list of open ones until it ends. */
  #register(session: AgentSession): void {
    this.#open.set(session.id, session);
    const forget = (): void => removeOwn(this.#open, session.id, session);
    session.ended.then(forget, forget);
  }

  #gather(dependencies: SessionDependencies, frozen: FrozenPrompt, local: LocalOptions): Equipment {
    const { clock, random } = this.#dependencies;
    const { stoppingPolicy = null } = { ...dependencies, ...local };
    return gatherEquipment(dependencies, frozen, { clock, random, stoppingPolicy });
  }
}

/** Removes an entry, unless another one has taken its place. */
const removeOwn = <T>(entries: Map<string, T>, id: string, own: T): void => {
  if (entries.get(id) === own) entries.delete(id);
};

/** The first failure is the one to report; the rest is closed as well as it can be. */
const giveUp = async (
  fault: Error,
  opened: readonly Pick<SessionDependencies, 'close'>[],
): Promise<never> => {
  for (const one of opened) await attempt(() => one.close?.(true));
  throw fault;
};
