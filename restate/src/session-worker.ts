/**
 * The sessions that this process works for, the dependencies of each, and its pieces of work.
 *
 * The engine keeps the journals of sessions and calls nodes for their work. Such a call, an
 * invocation, may be repeated, here or in another process (`isAgain`). work-services.ts answers it:
 * it takes the worker of the session (`Workers.of`), lets it do the work (`run`), passes on what
 * stops it (`stopWork`), and lets go of it (`forget`) when the engine has the result, which waits
 * here until then.
 */

import {
  type Action,
  attempt,
  type Blobs,
  createPerformers,
  createUserHookRuns,
  type Entry,
  type Equipment,
  type Event,
  gatherEquipment,
  type Header,
  isUnattended,
  type OnApplied,
  type PerformedSession,
  type Performers,
  type Posted,
  perform,
  prepare,
  recoverCalls,
  type SessionDependencies,
  type State,
  type StoppedCall,
  systemClock,
  type Tool,
  type UserHookRuns,
} from 'pawl/engine';
import type { AppliedEvent } from './apply-events.js';
import type { LiveChannel } from './live.js';
import type { Arrival, HooksRequest, ShownText, Work } from './session-records.js';
import type { SessionStates } from './session-states.js';
import type { SessionStore } from './session-store.js';
import { endedWork, failedWork, stoppingAction } from './started-work.js';

/**
 * Work begins once in this process. A call may be repeated after its work ended here, with a move
 * or the end of its session or because the engine lost the result: then it counts as begun. It does
 * not bring the worker from before a move back.
 */
export class Workers {
  readonly #world: WorkerWorld;
  /** `node`: where the session's workspace was when its worker was made. */
  readonly #workers = new Map<
    string,
    { readonly node: string; readonly opening: Promise<SessionWorker> }
  >();
  readonly #open = new Map<string, SessionWorker>();
  /** Calls whose work has ended here, and when. The engine may repeat them. */
  readonly #ended = new Map<string, number>();
  /** Calls that were stopped, and when: work that has not begun never does, or ends at once. */
  readonly #stops: Stops = new Map();
  readonly #idleMs: number;
  readonly #sweeping: NodeJS.Timeout;

  constructor(world: WorkerWorld, idleMs: number) {
    this.#world = world;
    this.#idleMs = idleMs;
    this.#sweeping = setInterval(() => this.#sweep(), idleMs / 2);
    this.#sweeping.unref();
  }

  get size(): number {
    return this.#open.size;
  }

  async of(sessionId: string, seq: number, node: string): Promise<SessionWorker> {
    const known = this.#workers.get(sessionId);
    if (known?.node === node) return known.opening;
    if (known !== undefined) {
      // work from before a move may come after work from after it
      const { node: current } = await this.#world.store.session(sessionId);
      if (current !== node) throw new Error(`the session was moved to the node ${current}`);
      if (this.#workers.get(sessionId) === known) void attempt(() => this.end(sessionId));
      return this.of(sessionId, seq, node);
    }
    const opening = SessionWorker.open(sessionId, seq, node, this.#world, this.#stops);
    this.#workers.set(sessionId, { node, opening });
    const opened = await attempt(() => opening);
    if (opened.kind === 'fault') {
      if (this.#workers.get(sessionId)?.opening === opening) this.#workers.delete(sessionId);
      throw opened.fault;
    }
    if (this.#workers.get(sessionId)?.opening === opening) this.#open.set(sessionId, opened.value);
    return opened.value;
  }

  /** The engine has the result of the call's work and all that came after it. */
  forget(sessionId: string, invocationId: string): void {
    this.#ended.set(invocationId, Date.now());
    this.#stops.delete(invocationId);
    this.known(sessionId)?.forget(invocationId);
  }

  /** Stops the work of a call, also if it begins later: its worker may still be opening. */
  stopWork(sessionId: string, invocationId: string, force: boolean): void {
    const isForced = force || this.#stops.get(invocationId)?.force === true;
    this.#stops.set(invocationId, { force: isForced, at: Date.now() });
    this.known(sessionId)?.find(invocationId)?.stop(force);
  }

  /** Whether the work of this call has ended here, and its worker does not have it any more. */
  hasEnded(invocationId: string): boolean {
    return this.#ended.has(invocationId);
  }

  known(sessionId: string): SessionWorker | undefined {
    return this.#open.get(sessionId);
  }

  shownText(sessionId: string, requestId: string): ShownText | null {
    return this.#open.get(sessionId)?.shownText(requestId) ?? null;
  }

  /** Ends a session here. Resolves with what its last hooks say. */
  async end(sessionId: string): Promise<readonly Posted[]> {
    const opening = this.#workers.get(sessionId)?.opening;
    this.#drop(sessionId);
    const opened = await attempt(async () => opening);
    // one that could not be opened has nothing to end
    return opened.kind === 'done' ? ((await opened.value?.end()) ?? []) : [];
  }

  async stop(): Promise<void> {
    clearInterval(this.#sweeping);
    const workers = [...this.#workers.values()];
    this.#open.clear();
    this.#workers.clear();
    await Promise.all(workers.map(({ opening }) => attempt(async () => (await opening).stop())));
  }

  #drop(sessionId: string): void {
    for (const id of this.#open.get(sessionId)?.invocations ?? []) this.#ended.set(id, Date.now());
    this.#open.delete(sessionId);
    this.#workers.delete(sessionId);
  }

  #sweep(): void {
    const now = Date.now();
    for (const [id, endedAt] of this.#ended)
      if (now - endedAt > RESULT_KEPT_MS) this.#ended.delete(id);
    for (const [id, { at }] of this.#stops) if (now - at > RESULT_KEPT_MS) this.#stops.delete(id);
    for (const [sessionId, worker] of this.#open) {
      worker.sweep(now);
      if (!worker.isIdle || now - worker.usedAt < this.#idleMs) continue;
      this.#drop(sessionId);
      void worker.close();
    }
  }
}

type Stops = Map<string, { readonly force: boolean; readonly at: number }>;

/** The facts that the dependencies of a session may depend on. */
export type EquippedSession = Pick<Header, 'settings' | 'sessionId' | 'startedBy'> & {
  /**
   * A new session declares the tools that it is equipped with; one that goes on may have declared
   * any of them.
   */
  readonly isNew: boolean;
  /** Whether the session's workspace is on this node; if not, only models are called here. */
  readonly isHere: boolean;
};

export type WorkerWorld = {
  readonly node: string;
  readonly store: SessionStore;
  readonly states: SessionStates;
  readonly live: LiveChannel;
  readonly blobs: Blobs;
  equip(session: EquippedSession): Promise<SessionDependencies>;
  report(fault: Error): void;
};

/**
 * An engine that was away asks again for work that has ended here, so a result stays this long if
 * nobody took it.
 */
export const RESULT_KEPT_MS = 600_000;
/** So many entries are read first, in search of those of the last batch. */
const BATCH_ENTRIES = 200;

type OpenedWorker = {
  readonly equipment: Equipment;
  readonly taken: Promise<void>;
  readonly stops: Stops;
  /** The last entry and the state when the session was equipped, or later ones. */
  readonly seq: number;
  readonly state: State;
};

/**
 * The dependencies of one session in this process, and its work here. Made again from the journal
 * whenever it is needed.
 */
class SessionWorker {
  readonly sessionId: string;
  readonly #world: WorkerWorld;
  readonly #equipment: Equipment;
  readonly #runs = new Map<string, WorkRun>();
  /** Runs that wait for the journal before they begin: the engine may ask again meanwhile. */
  readonly #beginning = new Map<string, Promise<WorkRun>>();
  readonly #stops: Stops;
  /** The last state that was seen here. */
  #last: { readonly seq: number; readonly state: State };
  /** It was ended here: nothing begins any more. */
  #isOver = false;
  /** Nothing is done before what earlier processes have left running is taken over. */
  readonly #taken: Promise<void>;
  readonly #hooks: SessionHooks;
  usedAt = Date.now();

  private constructor(
    sessionId: string,
    world: WorkerWorld,
    { equipment, taken, seq, state, stops }: OpenedWorker,
  ) {
    this.sessionId = sessionId;
    this.#world = world;
    this.#equipment = equipment;
    this.#taken = taken;
    this.#stops = stops;
    this.#last = { seq, state };
    this.#hooks = new SessionHooks(equipment, state, {
      postNow: (event) => this.#postNow(event, this.#last.seq),
      stateAfter: async (seq) => (await this.#stateAt(seq)).state,
      lastState: () => this.#last.state,
      report: (fault) => world.report(fault),
    });
  }

  /** Equips the session as its header says. `seq`: the journal is read up to there at least. */
  static async open(
    sessionId: string,
    seq: number,
    node: string,
    world: WorkerWorld,
    stops: Stops,
  ): Promise<SessionWorker> {
    const opened = await world.states.atLeast(sessionId, seq);
    const { header, past, state } = opened;
    const isHere = node === world.node;
    const [instructions = null, tools = null] = await Promise.all([
      world.blobs.get(header.instructions),
      world.blobs.get(header.tools),
    ]);
    if (instructions === null || tools === null)
      throw new Error(
        `the instructions of session ${sessionId} are not in the blob store of this node`,
      );
    const needs = await world.equip({ ...header, isNew: false, isHere });
    const { stoppingPolicy = null } = needs;
    const runtimeParts = { clock: systemClock, random: Math.random, stoppingPolicy };
    const gathered = gatherEquipment(needs, { instructions, tools }, runtimeParts);
    const equipment = isHere
      ? gathered
      : { ...gathered, tools: judgedThere(gathered.tools, sessionId, node, world.store) };
    for (const { path, sha256, lines } of past.seen.values())
      equipment.files.set(path, sha256, undefined, lines);
    const unattended = isUnattended(state.session.settings);
    const takeOver = () => needs.takeOver?.([], unattended);
    const taken = isHere && seq > 0 ? attempt(takeOver) : Promise.resolve(null);
    const quiet = taken.then((took) => {
      if (took?.kind === 'fault') world.report(took.fault);
    });
    const parts = { equipment, taken: quiet, stops, seq: opened.seq, state };
    return new SessionWorker(sessionId, world, parts);
  }

  get equipment(): Equipment {
    return this.#equipment;
  }

  /** Nothing runs here, not even in the background, and the engine has all results. */
  get isIdle(): boolean {
    const works = this.#runs.size + this.#beginning.size > 0 || !this.#hooks.isIdle;
    return !works && this.#equipment.jobs.list().length === 0;
  }

  /**
   * The run of an invocation: the running one, or a new one. `isAgain`: another process began it.
   */
  async run(invocationId: string, work: Work, isAgain: boolean): Promise<WorkRun> {
    this.usedAt = Date.now();
    const going = this.#runs.get(invocationId) ?? this.#beginning.get(invocationId);
    if (going !== undefined) return going;
    const beginning = this.#begin(invocationId, work, isAgain).finally(() =>
      this.#beginning.delete(invocationId),
    );
    this.#beginning.set(invocationId, beginning);
    return beginning;
  }

  async #begin(invocationId: string, work: Work, isAgain: boolean): Promise<WorkRun> {
    await this.#taken;
    const { header, state } = await this.#stateAt(work.seq);
    let current = state;
    const run = new WorkRun(work, {
      equipment: this.#equipment,
      journal: { header, read: () => this.#batchEntries(work), blobs: this.#world.blobs },
      userHooks: this.#hooks.runs,
      state: () => current,
      postNow: async (event) => {
        const posted = await this.#postNow(event, work.seq, work.machineVersion ?? 1);
        current = posted.state;
        return posted;
      },
      show: (event: Event) => this.#world.live.publish(this.sessionId, { kind: 'delta', event }),
      report: (fault) => this.#world.report(fault),
    });
    this.#runs.set(invocationId, run);
    const stopped = this.#stops.get(invocationId);
    if (this.#isOver || stopped !== undefined) run.stop(this.#isOver || stopped?.force === true);
    const begun = await attempt(async () => (isAgain ? this.#recover(run) : run.begin()));
    if (begun.kind === 'done') return run;
    this.#runs.delete(invocationId); // a repeated call would wait for it
    throw begun.fault;
  }

  /** The state after this entry, or a later one. */
  async #stateAt(seq: number): ReturnType<SessionStates['atLeast']> {
    const found = await this.#world.states.atLeast(this.sessionId, seq);
    if (found.seq >= this.#last.seq) this.#last = found;
    return found;
  }

  async #postNow(
    event: Posted,
    before: number,
    machineVersion?: number,
  ): ReturnType<WorkNeeds['postNow']> {
    const [applied] = await this.#world.store.post(this.sessionId, [event], machineVersion);
    const seq = applied !== undefined && 'seq' in applied ? applied.seq : before;
    return { applied, state: (await this.#stateAt(seq)).state };
  }

  /** Runs hooks that are no part of other work. Resolves with what they say. */
  runHooks(...args: Parameters<SessionHooks['run']>): ReturnType<SessionHooks['run']> {
    this.usedAt = Date.now();
    return this.#hooks.run(...args);
  }

  forget(invocationId: string): void {
    this.usedAt = Date.now(); // what follows from the result comes next
    this.#runs.delete(invocationId);
  }

  /** The calls whose work is here: it begins, runs, or has a result that the engine lacks. */
  get invocations(): readonly string[] {
    return [...this.#runs.keys(), ...this.#beginning.keys()];
  }

  find(invocationId: string): WorkRun | undefined {
    return this.#runs.get(invocationId);
  }

  shownText(requestId: string): WorkRun['shown'] {
    for (const run of this.#runs.values())
      if (run.isRunning && run.shown?.requestId === requestId) return run.shown;
    return null;
  }

  /** Stops running calls for the end of the session. */
  async stopCalls(): Promise<readonly StoppedCall[]> {
    const runs = [...this.#runs.values()].filter(
      ({ isRunning, work }) => isRunning && work.action.type === 'ExecuteTools',
    );
    const stopped = await Promise.all(runs.map((run) => run.stopForEnd()));
    return stopped.flat();
  }

  /** Ends the session here, then runs the hooks about its end. Resolves with what they say. */
  async end(): Promise<readonly Posted[]> {
    await this.#stopAll();
    await this.#hooks.runs?.end();
    await this.close();
    return this.#hooks.take();
  }

  /** Ends all work here; the session goes on elsewhere, or later. */
  async stop(): Promise<void> {
    await this.#stopAll();
    await this.close();
  }

  /** Background commands are killed. */
  async #stopAll(): Promise<void> {
    this.#isOver = true;
    for (const run of this.#runs.values()) run.stop(true);
    await this.#hooks.stopAll();
    for (const job of this.#equipment.jobs.list()) {
      const killed = await attempt(() => job.kill());
      if (killed.kind === 'fault') this.#world.report(killed.fault);
    }
  }

  /** Lets go of the session's resources. */
  async close(): Promise<void> {
    const closed = await attempt(() => this.#equipment.close?.(false));
    if (closed.kind === 'fault') this.#world.report(closed.fault);
  }

  sweep(now: number): void {
    for (const [id, run] of this.#runs)
      if (run.isForgotten(now, RESULT_KEPT_MS)) this.#runs.delete(id);
  }

  /** The entries from the reply that asked for the batch of this work on. */
  async *#batchEntries({ seq, action }: Work): AsyncGenerator<Entry> {
    const ids = batchCallIds(action);
    for (let count = BATCH_ENTRIES; ; count *= 2) {
      const from = Math.max(1, seq - count);
      const entries: Entry[] = [];
      for await (const entry of this.#world.store.entries(this.sessionId, from))
        entries.push(entry);
      if (from === 1 || entries.some(({ event }) => asksFor(event, ids))) return yield* entries;
    }
  }

  /** A process that did this work has died: nothing is repeated in silence. */
  async #recover(run: WorkRun): Promise<void> {
    const { action } = run.work;
    if (action.type === 'SendLlmRequest' || action.type === 'StartCompaction') {
      const message = 'the node that called the model has stopped, and its reply is lost';
      run.endWith(failedWork(action, { message, jitter: Math.random() }));
    } else if (action.type === 'RunHook') run.begin(await this.#interrupted(run.work, action));
    else if (action.type === 'ExecuteTools') await this.#recoverCall(run, action);
    else run.begin();
  }

  async #interrupted(
    { seq }: Work,
    action: Extract<Action, { readonly type: 'RunHook' }>,
  ): Promise<Action> {
    const interrupted = [...(action.interrupted ?? [])];
    for await (const { event } of this.#world.store.entries(this.sessionId, seq + 1))
      if (event.type === 'HookPrepared' && event.hookId === action.hookId)
        interrupted.push(event.effect);
    return { ...action, interrupted };
  }

  async #recoverCall(
    run: WorkRun,
    { batchId, calls }: Extract<Action, { readonly type: 'ExecuteTools' }>,
  ): Promise<void> {
    const begun = new Set<string>();
    // by the entries, whose machine this one may not be
    let last = run.work.seq;
    for await (const { seq, event } of this.#batchEntries(run.work)) {
      last = seq;
      if (event.type === 'ToolStarted' && event.batchId === batchId) begun.add(event.callId);
    }
    const running = calls.filter(({ callId }) => begun.has(callId));
    // its start is not in the journal, so it has not begun
    if (running.length === 0) return run.begin();
    // the hashes of a file come with the start of its call, after the work was asked for
    const { past } = await this.#stateAt(last);
    const journal = { read: () => this.#batchEntries(run.work), seq: last };
    const started = running.map((call) => ({ batchId, call }));
    recoverCalls(started, journal, run.performers.tools, { past, takingOver: this.#taken });
    run.begun();
  }
}

/** The calls of the batch that the work belongs to. */
const batchCallIds = (action: Action): readonly string[] => {
  if (action.type === 'ExecuteTools') return action.calls.map(({ callId }) => callId);
  return action.type === 'RunHook' ? action.callIds : [];
};

const asksFor = (event: Event, ids: readonly string[]): boolean =>
  event.type === 'LlmCompleted' &&
  ids.every((id) => event.calls.some(({ callId }) => callId === id));

/** Result of the work. `isOpen`: usage may still be reported. */
export type WorkResult = Arrival & { readonly isOpen: boolean };

type WorkNeeds = {
  readonly equipment: Equipment;
  readonly journal: PerformedSession['journal'];
  /** The session's hooks, which remember more than one piece of work. Null: there are none. */
  readonly userHooks: UserHookRuns | null;
  state(): State;
  /** Sends an event to the session at once and waits until it is durable. */
  postNow(
    event: Posted,
  ): Promise<{ readonly applied: AppliedEvent | undefined; readonly state: State }>;
  /** Shows an event that is not journaled. */
  show(event: Event): void;
  report(fault: Error): void;
};

const VOLATILE: ReadonlySet<Posted['type']> = new Set([
  'TextDelta',
  'ReasoningDelta',
  'ToolCallDelta',
  'ToolProgress',
]);

/** Wait for the usage of an aborted reply. */
const LATE_MS = 30_000;

const wait = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });

/**
 * One piece of work while this process does it: an action with performers of its own, and the
 * events they post.
 */
class WorkRun {
  readonly work: Work;
  readonly #needs: WorkNeeds;
  readonly #performers: Performers;
  readonly result: Promise<WorkResult>;
  #settle: () => void = () => undefined;
  #isBegun = false;
  /** It was stopped before it began. */
  #early: 'no' | 'soon' | 'force' = 'no';
  #posted: Posted[] = [];
  #text = '';
  #ended = false;
  #endedAt = 0;

  constructor(work: Work, needs: WorkNeeds) {
    this.work = work;
    this.#needs = needs;
    const ended = new Promise<void>((resolve) => {
      this.#settle = resolve;
    });
    this.result = ended.then(() => this.#take());
    this.#performers = createPerformers(needs.equipment, {
      journal: needs.journal,
      userHooks: needs.userHooks,
      opened: needs.state(),
      state: needs.state,
      post: (event, answer) => this.#post(event, answer),
      shutDown: () => undefined,
    });
  }

  get performers(): Performers {
    return this.#performers;
  }

  /** Whether it has ended so long ago that nobody asks for it again. */
  isForgotten(now: number, keptMs: number): boolean {
    return this.#ended && now - this.#endedAt > keptMs;
  }

  get isRunning(): boolean {
    return !this.#ended;
  }

  get shown(): ShownText | null {
    const { action } = this.work;
    if (action.type !== 'SendLlmRequest' || this.#text === '') return null;
    return { requestId: action.requestId, text: this.#text };
  }

  begin(action: Action = this.work.action): void {
    // only a call that is not forced has an outcome: cancelled before it had run
    if (this.#early === 'force' || (this.#early === 'soon' && action.type !== 'ExecuteTools')) {
      this.#end();
      return;
    }
    const state = this.#needs.state();
    prepare(action, state, this.#performers);
    perform(action, state, this.#performers);
    this.begun();
  }

  /** The performers have the work: they are stopped if it was stopped before. */
  begun(): void {
    this.#isBegun = true;
    if (this.#early !== 'no') this.stop(this.#early === 'force');
  }

  /** Ends the work with these events, without doing it. */
  endWith(posted: readonly Posted[]): void {
    this.#posted.push(...posted);
    this.#end();
  }

  /** Stops the work. Only a call may still report its outcome, unless it is forced. */
  stop(force: boolean): void {
    if (!this.#isBegun) {
      this.#early = force || this.#early === 'force' ? 'force' : 'soon';
      return;
    }
    const { action } = this.work;
    const stopping = stoppingAction(action, force);
    if (this.#ended || stopping === null) return;
    perform(stopping, this.#needs.state(), this.#performers);
    if (action.type === 'ExecuteTools') {
      if (force) this.#end();
    } else void this.#silence().then(() => this.#end());
  }

  /** Stops a call for the end of the session; its outcome is not posted but returned. */
  async stopForEnd(): Promise<readonly StoppedCall[]> {
    const stopped = await this.#performers.tools.stopForEnd();
    this.#end();
    stopped.reportUsage();
    return stopped.outcomes();
  }

  /** Events that are reported after the end. */
  async late(): Promise<readonly Posted[]> {
    await this.#silence();
    return this.#posted.splice(0);
  }

  async #silence(): Promise<void> {
    const { models, compactions, hooks, tools } = this.#performers;
    const all = Promise.all([
      models.stopAll(),
      compactions?.stopAll(),
      hooks.stopAll(),
      tools.stopAll(),
    ]);
    await Promise.race([all, wait(LATE_MS)]);
  }

  #take(): WorkResult {
    const posted = this.#posted.splice(0);
    const failed = posted.some(({ type }) => type === 'LlmFailed');
    const shown = failed ? this.shown : null;
    const last = posted.at(-1)?.type;
    const isOpen = this.work.action.type === 'SendLlmRequest' && last !== 'LlmCompleted';
    return { posted, at: this.#endedAt, ...(shown === null ? {} : { shown }), isOpen };
  }

  #post(event: Posted, told?: OnApplied): void {
    if (VOLATILE.has(event.type)) this.#show({ ...event, at: this.#needs.equipment.clock.now() });
    else if (told !== undefined) void this.#tell(event, told);
    else {
      this.#posted.push(event);
      if (endedWork(event) === this.work.workId) this.#end();
    }
  }

  #show(event: Event): void {
    if (event.type === 'TextDelta') this.#text += event.text;
    this.#needs.show(event);
  }

  /** The start of a call is in the journal already, unless its file had to be looked at first. */
  async #tell(event: Posted, answer: OnApplied): Promise<void> {
    const { action } = this.work;
    const isStart = event.type === 'ToolStarted';
    const isKept =
      isStart &&
      action.type === 'ExecuteTools' &&
      action.calls.every(({ traits }) => traits.effect !== 'probeable');
    if (isKept) {
      await Promise.resolve();
      answer(true, this.#needs.state());
      return;
    }
    const posted = await attempt(() => this.#needs.postNow(event));
    const isPosted = posted.kind === 'done';
    const applied = isPosted ? posted.value.applied : undefined;
    const accepted = applied !== undefined && 'accepted' in applied && applied.accepted;
    answer(accepted, isPosted ? posted.value.state : this.#needs.state());
    if (isPosted) {
      if (!accepted && isStart) this.#end();
      return;
    }
    this.#needs.report(posted.fault);
    const message = `it could not be begun: ${posted.fault.message}`;
    // a running call, or a hook, goes on without it and ends with an event of its own
    if (isStart || action.type === 'SendLlmRequest' || action.type === 'StartCompaction') {
      this.#posted.push(...failedWork(action, { message, jitter: Math.random() }));
      this.stop(true);
    }
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#endedAt = Date.now();
    this.#settle();
  }
}

type HooksWorld = {
  readonly postNow: WorkNeeds['postNow'];
  /** The state after this entry, or a later one. */
  stateAfter(seq: number): Promise<State>;
  /** The last state that work here has seen. */
  lastState(): State;
  report(fault: Error): void;
};

const STOPPING_MS = 1_000;

/**
 * The user's hooks of one session in this process. They are shared by all work, since they remember
 * more than one piece.
 */
class SessionHooks {
  readonly runs: UserHookRuns | null;
  readonly #world: HooksWorld;
  /** Verdicts of hooks that the engine does not know yet. */
  #reports: Posted[] = [];
  #running = 0;

  /** `opened`: the state when the session was equipped, or a later one. */
  constructor(equipment: Equipment, opened: State, world: HooksWorld) {
    this.#world = world;
    this.runs = createUserHookRuns(equipment, opened, (event, answer) => {
      // It is reported when the hooks end, unless a request waits for it.
      if (answer === undefined) this.#reports.push(event);
      else void this.#tell(event, answer);
    });
  }

  get isIdle(): boolean {
    return this.#running === 0;
  }

  /** Runs hooks that are no part of other work. Resolves with what they say. */
  async run(
    about: Exclude<HooksRequest['about'], { readonly moment: 'session-end' }>,
    seq: number,
  ): Promise<readonly Posted[]> {
    this.#running += 1;
    try {
      if (about.moment === 'ask-user')
        await this.runs?.asked(about.action, await this.#world.stateAfter(seq));
      else
        await this.runs?.begin(
          about.source,
          (await this.#world.stateAfter(seq)).session.settings.model,
        );
    } finally {
      this.#running -= 1;
    }
    return this.take();
  }

  /** Stops the hooks of all work. Those that tell the user something have a moment to end. */
  async stopAll(): Promise<void> {
    const stopped = this.runs?.stopAll();
    const patience = new Promise((resolve) => setTimeout(resolve, STOPPING_MS).unref());
    await Promise.race([stopped, patience]);
  }

  /** The verdicts of hooks since the last call. */
  take(): readonly Posted[] {
    return this.#reports.splice(0);
  }

  async #tell(event: Posted, answer: OnApplied): Promise<void> {
    const told = await attempt(() => this.#world.postNow(event));
    if (told.kind === 'done') {
      const { applied, state } = told.value;
      return answer(applied !== undefined && 'accepted' in applied && applied.accepted, state);
    }
    this.#world.report(told.fault);
    this.#reports.push(event); // the request goes without it, and the journal gets it later
    answer(false, this.#world.lastState());
  }
}

/** Tools whose inputs are judged where the workspace is: paths mean something only there. */
function judgedThere(
  tools: Equipment['tools'],
  sessionId: string,
  node: string,
  store: SessionStore,
): Equipment['tools'] {
  const judged = [...tools].map(([name, tool]): [string, Tool] => {
    const judge: Tool['judge'] = (input, workspace) =>
      store.call({
        service: `Tools-${node}`,
        handler: 'judge',
        parameter: { sessionId, tool: name, input, workspace },
      });
    return [name, { ...tool, judge }];
  });
  return new Map(judged);
}
