import {
  type Action,
  attempt,
  type Blobs,
  type Entry,
  type Equipment,
  type Event,
  gatherEquipment,
  type Header,
  type Posted,
  recoverCalls,
  type SessionDependencies,
  type State,
  type StoppedCall,
  systemClock,
} from 'pawl/engine';
import type { LiveChannel } from '../live/live-channel.js';
import type { Work } from '../session/session-records.js';
import type { SessionStates } from '../session/session-states.js';
import type { SessionStore } from '../session/session-store.js';
import { judgedThere } from './judged-there.js';
import { SessionHooks } from './session-hooks.js';
import { type WorkNeeds, WorkRun } from './work-run.js';

/** The dependencies of one session in this process, and its work here. Made again from the journal whenever it is needed. */

/** What the dependencies of a session may depend on. */
export type EquippedSession = Pick<Header, 'settings' | 'sessionId' | 'startedBy'> & {
  /** A new session declares the tools that it is equipped with; one that goes on may have declared any of them. */
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

/** An engine that was away asks again for work that has ended here, so a result stays this long if nobody took it. */
export const RESULT_KEPT_MS = 600_000;
/** Entries among which those of the last batch are. */
const BATCH_ENTRIES = 200;

type OpenedWorker = {
  readonly equipment: Equipment;
  readonly taken: Promise<void>;
  /** The state when the session was equipped, or a later one. */
  readonly state: State;
};

const lostReply = (requestId: string): Posted => ({
  type: 'LlmFailed',
  requestId,
  error: {
    kind: 'unreachable',
    message: 'the node that called the model has stopped, and its reply is lost',
    retryable: true,
    retryAfterMs: null,
  },
  usage: null,
  jitter: Math.random(),
});

const lostSummary = (compactionId: string): Posted => ({
  type: 'CompactionFailed',
  compactionId,
  message: 'the node that asked for the summary has stopped',
  usage: null,
});

export class SessionWorker {
  readonly sessionId: string;
  readonly #world: WorkerWorld;
  readonly #equipment: Equipment;
  readonly #runs = new Map<string, WorkRun>();
  /** Runs that wait for the journal before they begin: the engine may ask again meanwhile. */
  readonly #beginning = new Map<string, Promise<WorkRun>>();
  /** Nothing is done before what earlier processes have left running is taken over. */
  readonly #taken: Promise<void>;
  readonly #hooks: SessionHooks;
  usedAt = Date.now();

  private constructor(sessionId: string, world: WorkerWorld, { equipment, taken, state }: OpenedWorker) {
    this.sessionId = sessionId;
    this.#world = world;
    this.#equipment = equipment;
    this.#taken = taken;
    this.#hooks = new SessionHooks(equipment, state, {
      postNow: (event) => this.#postNow(event, 0),
      stateAfter: async (seq) => (await world.states.atLeast(sessionId, seq)).state,
      report: (fault) => world.report(fault),
    });
  }

  /** Equips the session as its header says. `seq`: the journal is read up to there at least. */
  static async open(
    sessionId: string,
    seq: number,
    node: string,
    world: WorkerWorld,
  ): Promise<SessionWorker> {
    const { header, past, state } = await world.states.atLeast(sessionId, seq);
    const isHere = node === world.node;
    const needs = await world.equip({ ...header, isNew: false, isHere });
    const [instructions = null, tools = null] = await Promise.all([
      world.blobs.get(header.instructions),
      world.blobs.get(header.tools),
    ]);
    if (instructions === null || tools === null)
      throw new Error(`the instructions of session ${sessionId} are not in the blob store of this node`);
    const { stoppingPolicy = null } = needs;
    const runtimeParts = { clock: systemClock, random: Math.random, stoppingPolicy };
    const gathered = gatherEquipment(needs, { instructions, tools }, runtimeParts);
    const equipment = isHere
      ? gathered
      : { ...gathered, tools: judgedThere(gathered.tools, sessionId, node, world.store) };
    for (const [path, sha256] of past.seen) equipment.files.set(path, sha256);
    const taken = isHere && seq > 0 ? attempt(() => needs.takeOver?.([])) : Promise.resolve(null);
    const quiet = taken.then((took) => {
      if (took?.kind === 'fault') world.report(took.fault);
    });
    return new SessionWorker(sessionId, world, { equipment, taken: quiet, state });
  }

  get equipment(): Equipment {
    return this.#equipment;
  }

  /** Nothing runs here, and the engine has all results. */
  get isIdle(): boolean {
    const works = this.#runs.size + this.#beginning.size > 0 || !this.#hooks.isIdle;
    return !works && this.#equipment.jobs.list().length === 0;
  }

  /** The run of an invocation: the one that goes on here, or a new one. `isAgain`: it was begun by another process. */
  async run(invocationId: string, work: Work, isAgain: boolean): Promise<WorkRun> {
    this.usedAt = Date.now();
    const going = this.#runs.get(invocationId) ?? this.#beginning.get(invocationId);
    if (going !== undefined) return going;
    const begun = this.#begin(invocationId, work, isAgain).finally(() =>
      this.#beginning.delete(invocationId),
    );
    this.#beginning.set(invocationId, begun);
    return begun;
  }

  async #begin(invocationId: string, work: Work, isAgain: boolean): Promise<WorkRun> {
    await this.#taken;
    const { state } = await this.#world.states.atLeast(this.sessionId, work.seq);
    let current = state;
    const run = new WorkRun(work, {
      equipment: this.#equipment,
      journal: { read: () => this.#lastEntries(work.seq), blobs: this.#world.blobs },
      userHooks: this.#hooks.runs,
      state: () => current,
      postNow: async (event) => {
        const posted = await this.#postNow(event, work.seq);
        current = posted.state;
        return posted;
      },
      show: (event: Event) => this.#world.live.publish(this.sessionId, { kind: 'delta', event }),
      report: (fault) => this.#world.report(fault),
    });
    this.#runs.set(invocationId, run);
    if (isAgain) await this.#recover(run);
    else run.begin();
    return run;
  }

  async #postNow(event: Posted, before: number): ReturnType<WorkNeeds['postNow']> {
    const [applied] = await this.#world.store.post(this.sessionId, [event]);
    const seq = applied !== undefined && 'seq' in applied ? applied.seq : before;
    return { applied, state: (await this.#world.states.atLeast(this.sessionId, seq)).state };
  }

  /** Runs hooks that are no part of other work. Resolves with what they say. */
  runHooks(...order: Parameters<SessionHooks['run']>): ReturnType<SessionHooks['run']> {
    this.usedAt = Date.now();
    return this.#hooks.run(...order);
  }

  /** The engine has the result of the work and all that came after it. */
  forget(invocationId: string): void {
    this.usedAt = Date.now(); // what follows from the result comes next
    this.#runs.delete(invocationId);
  }

  find(invocationId: string): WorkRun | undefined {
    return this.#runs.get(invocationId);
  }

  shownOf(requestId: string): WorkRun['shown'] {
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
    for (const [id, run] of this.#runs) if (run.isForgotten(now, RESULT_KEPT_MS)) this.#runs.delete(id);
  }

  async *#lastEntries(seq: number): AsyncGenerator<Entry> {
    yield* this.#world.store.entries(
      this.sessionId,
      Math.max(1, seq - BATCH_ENTRIES),
      Number.POSITIVE_INFINITY,
    );
  }

  /** A process that did this work has died: nothing is repeated in silence. */
  async #recover(run: WorkRun): Promise<void> {
    const { action, seq } = run.work;
    if (action.type === 'SendLlmRequest') run.endWith([lostReply(action.requestId)]);
    else if (action.type === 'StartCompaction') run.endWith([lostSummary(action.compactionId)]);
    else if (action.type === 'RunHook') run.begin(await this.#interrupted(action, seq));
    else if (action.type === 'ExecuteTools') await this.#recoverCall(run, action);
    else run.begin();
  }

  async #interrupted(action: Extract<Action, { readonly type: 'RunHook' }>, seq: number): Promise<Action> {
    const effects: NonNullable<typeof action.interrupted>[number][] = [];
    for await (const { event } of this.#lastEntries(seq))
      if (event.type === 'HookPrepared' && event.hookId === action.hookId) effects.push(event.effect);
    return { ...action, interrupted: effects };
  }

  async #recoverCall(
    run: WorkRun,
    { batchId, calls }: Extract<Action, { readonly type: 'ExecuteTools' }>,
  ): Promise<void> {
    const { past, state } = await this.#world.states.atLeast(this.sessionId, run.work.seq);
    const running = calls.filter(
      (call) =>
        state.name === 'ExecutingTools' &&
        state.calls.some(({ judged, status }) => judged.callId === call.callId && status === 'running'),
    );
    if (running.length === 0) return run.begin(); // its start is not in the journal, so it has not begun
    const journal = { read: () => this.#lastEntries(run.work.seq), seq: run.work.seq };
    const begun = running.map((call) => ({ batchId, call }));
    recoverCalls(begun, journal, run.performers.tools, { known: past, takingOver: this.#taken });
  }
}
