/**
 * Runs tool calls: performs ExecuteTools and CancelTools, and recovers the calls that were running
 * when a session was interrupted (recover-calls.ts decides about each).
 *
 * 1. The effect begins only after its ToolStarted is durable and the machine has accepted it.
 * 2. Each call ends with exactly one ToolCompleted, or with none after CancelTools(force): the
 *    machine has settled it, so it needs no outcome any more.
 * 3. A tool that ignores its deadline is abandoned after two grace periods, so that the batch
 *    always ends.
 * 4. The files that a call saw are journaled with its end. In a session that was opened again no
 *    tool runs before the files of earlier calls are loaded.
 *
 * A call starts in two steps: `announceStart` posts ToolStarted while the reply is not durable yet,
 * so that both cost one sync; the tool runs once ToolStarted is durable. Recovery after a crash
 * depends on the effect class of a call: `pure` changes nothing, `probeable` changes one file that
 * can be compared, and the effect of an `opaque` call is known to its tool alone.
 *
 * Three others take part in a call that changes something:
 *
 * - Hooks (formatters and commits) run after the batch, elsewhere. Here they only look: `before`
 *   and `after` let them read the workspace around the call, to know what it changed.
 * - Checkpoints (perform.ts): after `before`, what the call may change can be taken back. `after`
 *   tells which uncommitted text of the user is gone.
 * - User hooks are other programs. They run after the call and add remarks to its result.
 *
 * The sequence: hooks.before, ToolStarted, checkpoints.before, the tool, hooks.after,
 * checkpoints.after, user hooks, ToolCompleted. A call that has not run is withdrawn: hooks.after
 * and checkpoints.withdraw.
 *
 * From top to bottom: `ToolRuns`, the performer; `ToolRun`, one call from its preparation to its
 * outcome; the context of a tool; the deadline; and how the hooks look.
 */

import type { CallOutcome, SeenFile } from '../machine/call.js';
import type { StoppedCall } from '../machine/event.js';
import { getAllowance, spendingId } from '../machine/moves/request.js';
import type { Settings } from '../machine/settings.js';
import type { State } from '../machine/state.js';
import { attempt } from '../platform/attempt.js';
import { type Clock, createJoiner, type Joiner, waitAtMost } from '../platform/clock.js';
import { decide, levelOfCall } from '../policy/decide.js';
import { isReadingCommand, type JudgedCall, namesItsFiles } from '../policy/judged-call.js';
import { isSecretPath } from '../policy/paths.js';
import type { Hooks } from '../ports/hooks.js';
import type { Blobs } from '../ports/journal.js';
import type {
  FileHashes,
  FileMemory,
  InterruptedCall,
  Tool,
  ToolContext,
  ToolOutcome,
} from '../ports/tool.js';
import { type Equipment, type RunningSession, recordingMemory } from './equipment.js';
import type { OnApplied, Post } from './loop.js';
import { UNKNOWN_USAGE } from './model-call.js';
import { takeHashes, takeOutcome, uncountableText } from './outside-values.js';
import { BatchRoom, cutOutcome, redactBlobs, redactJoined, redactOutcome } from './result-text.js';
import type { UserHookRuns } from './user-hooks.js';

/**
 * Decides about a call that was running when the session ended: its outcome, or null to run it
 * again. `hashFile` hashes the file that the call was going to change.
 */
type Recover = (
  hashFile: () => Promise<FileHashes | undefined>,
  files: FileMemory,
) => Promise<ToolOutcome | null>;

/** Fills the session's memory of files. Never rejects. */
type LoadFiles = (files: FileMemory) => Promise<void>;

type Perform = () => Promise<ToolOutcome>;

/** A call that an earlier process started and that may still run. */
type EarlierCall = Extract<InterruptedCall, { kind: 'found' }>;

export class ToolRuns {
  readonly #equipment: Equipment;
  readonly #session: RunningSession;
  readonly #blobs: Blobs;
  readonly #runs = new Map<string, ToolRun>();
  /** Tools that have not returned, also those of abandoned calls. */
  readonly #returning = new Set<Promise<void>>();
  #loadingFiles: Promise<void> | null = null;
  #fileLoader: LoadFiles | null = null;
  /** The session is ending. */
  #closing = false;
  readonly #stopped = createStoppedCalls();
  readonly #batchRoom = new BatchRoom();

  constructor(equipment: Equipment, session: RunningSession) {
    this.#equipment = equipment;
    this.#session = session;
    this.#blobs = redactBlobs(equipment.redactor, session.journal.blobs);
  }

  /**
   * Posts ToolStarted, now or later, and runs the call once that is durable. A call is never
   * started twice.
   */
  announceStart(batchId: string, call: JudgedCall): 'posted' | 'later' {
    if (this.#runs.has(callKey(batchId, call.callId))) return 'posted';
    const run = this.#add(batchId, call);
    const tool = this.#equipment.tools.get(call.tool);
    // Both write to disk, before the start is journaled, that this process may start calls here.
    // Only then can a later process conclude from a missing record that a call never ran.
    tool?.announce?.(this.#settings().workspace);
    if (isRecorded(call)) this.#equipment.sentCalls?.announce(this.#settings().workspace);
    this.#observe(run);
    const started = { type: 'ToolStarted', batchId, callId: call.callId } as const;
    if (call.traits.effect !== 'probeable') {
      this.#session.post(started, this.#runWhenDurable(run));
      return 'posted';
    }
    void this.#hashFile(run).then((hashes) =>
      this.#session.post({ ...started, ...hashes }, this.#runWhenDurable(run)),
    );
    return 'later';
  }

  /** Sets the function that loads the files of earlier calls before the first tool runs. */
  loadFilesWith(load: LoadFiles): void {
    this.#fileLoader = load;
  }

  /** Recovers a call that was started before the session was resumed. */
  recover(batchId: string, call: JudgedCall, findOutcome: Recover): void {
    const run = this.#add(batchId, call);
    void this.#recover(run, findOutcome);
  }

  /**
   * Recovers a call by asking its tool: a running call is awaited, a call that never began starts,
   * and the outcome of any other is unknown.
   */
  recoverOpaque(batchId: string, call: JudgedCall): void {
    const run = this.#add(batchId, call);
    // Its tool may touch processes of the call, so the end of the session waits.
    this.#awaitAtEnd(this.#recoverOpaque(run));
  }

  /** With `force` the machine has settled the calls: they end at once and post nothing more. */
  cancel(
    batchId: string,
    callIds: readonly string[],
    { force }: { readonly force: boolean },
  ): void {
    for (const callId of callIds) {
      const run = this.#runs.get(callKey(batchId, callId));
      if (run === undefined) continue;
      if (force) this.#kill(run);
      else run.signal.abort('cancelled');
    }
  }

  get isIdle(): boolean {
    return this.#runs.size === 0;
  }

  /**
   * Stops all calls for the end of the session and waits a moment for their outcomes, which are not
   * posted. A call that has not started never does.
   */
  async stopForEnd(): Promise<StoppedCalls> {
    this.#closing = true;
    for (const run of this.#runs.values()) this.#stopForEnd(run);
    const ends = Promise.all([...this.#runs.values()].map(({ ended }) => ended));
    await waitAtMost(this.#equipment.clock, STOPPING_MS, ends);
    return this.#stopped;
  }

  /** Ends everything by force. Resolves when the last tool has returned. */
  async stopAll(): Promise<void> {
    this.#closing = true;
    for (const run of this.#runs.values()) this.#kill(run);
    await Promise.all(this.#returning);
  }

  #add(batchId: string, call: JudgedCall): ToolRun {
    const run = createRun(batchId, call, this.#equipment, this.#session.post);
    this.#runs.set(callKey(batchId, call.callId), run);
    if (this.#closing) this.#stopForEnd(run);
    return run;
  }

  /** For the end of the session: the outcome goes to `#stopped` and is not posted. */
  #stopForEnd(run: ToolRun): void {
    run.isStoppedForEnd = true;
    this.#endAtOnce(run);
  }

  /** For a call that the machine has settled: only its usage still counts. */
  #kill(run: ToolRun): void {
    run.isSettled = true;
    this.#endAtOnce(run);
  }

  #endAtOnce(run: ToolRun): void {
    run.deadline.disarm();
    run.joiner.drop();
    run.signal.abort('cancelled');
    run.force.abort('cancelled');
  }

  /** Removes a call that has ended or never began. */
  #remove(run: ToolRun): void {
    const key = callKey(run.batchId, run.call.callId);
    if (this.#runs.get(key) === run) this.#runs.delete(key);
    run.markEnded();
  }

  #createContext(run: ToolRun): ToolContext {
    const { sessionId } = this.#session.journal.header;
    const state = () => this.#session.state();
    return { sessionId, ...createContext(run, this.#equipment, state, this.#blobs) };
  }

  /** Lets the hooks read the workspace before a call takes effect. A cancel ends the wait. */
  #observe(run: ToolRun): void {
    const { call, signal } = run;
    const { hooks } = this.#equipment;
    const settings = this.#settings();
    if (signal.signal.aborted || !isWatched(hooks, settings, call)) return;
    const cancel = new Promise<void>((resolve) => {
      signal.signal.addEventListener('abort', () => resolve(), { once: true });
    });
    const read = attempt(() => hooks.before(call, settings)).then(() => undefined);
    run.observed = Promise.race([read, cancel]);
  }

  /** The hashes of the file that a probeable call is going to change: now, and after it. */
  async #hashFile(run: ToolRun): Promise<FileHashes | undefined> {
    const tool = this.#equipment.tools.get(run.call.tool);
    if (tool?.before === undefined) return undefined;
    const read = await attempt(() => tool.before?.(run.call.input, this.#createContext(run)));
    // Without a hash nothing is lost: the call itself reports the fault, and recovery treats it as
    // unknown.
    return read.kind === 'done' ? takeHashes(tool, read.value) : undefined;
  }

  /** The loop calls the result once ToolStarted is durable. */
  #runWhenDurable(run: ToolRun): OnApplied {
    return (accepted, state) => {
      if (accepted) return void this.#finish(run);
      this.#withdraw(run);
      // a full disk ends the session before the tool runs; else the machine has settled the call
      if (isRunningCall(state, run)) this.#stopped.add(run, CANCELLED_BEFORE_START);
      this.#remove(run);
    };
  }

  /**
   * For a call that has not run. Hooks read the workspace once more, so later changes do not count
   * as its work; at the end of the session no phase of them follows. Nobody waits for this.
   */
  #withdraw({ call, observed }: ToolRun): void {
    const { hooks } = this.#equipment;
    if (observed !== null && !this.#closing)
      void attempt(async () => hooks?.after(call, this.#settings()));
    this.#session.checkpoints.withdraw(call);
  }

  /** Reports the outcome that `findOutcome` finds; runs the call again if it finds none. */
  async #recover(run: ToolRun, findOutcome: Recover): Promise<void> {
    await this.loadFiles();
    const outcome = await findOutcome(
      () => this.#hashFile(run),
      recordingMemory(this.#equipment.files, run.seen, run.call.callId),
    );
    const { hooks } = this.#equipment;
    // The call took effect before the crash, so the hooks read its changes only now.
    if (outcome?.status === 'ok' && isWatched(hooks, this.#settings(), run.call))
      await attempt(() => hooks.after(run.call, this.#settings()));
    if (outcome !== null) return this.#report(run, outcome);
    this.#observe(run);
    await this.#finish(run);
  }

  async #recoverOpaque(run: ToolRun): Promise<void> {
    await this.loadFiles();
    const interruptedCall = await this.#findInterrupted(run);
    if (interruptedCall.kind === 'unknown')
      return this.#report(run, { status: 'lost', text: interruptedCall.text });
    if (interruptedCall.kind === 'found') {
      const { isRunning = false } = interruptedCall;
      // the earlier process has observed it, so `observeAfter` is to follow
      if (isRunning && isWatched(this.#equipment.hooks, this.#settings(), run.call))
        run.observed = Promise.resolve();
      return this.#finish(run, interruptedCall);
    }
    this.#observe(run);
    await this.#finish(run);
  }

  async #findInterrupted(run: ToolRun): Promise<InterruptedCall> {
    const tool = this.#equipment.tools.get(run.call.tool);
    const find = tool?.findInterrupted ?? findUnsent;
    const interruptedCall = await attempt(() => find(run.call.input, this.#createContext(run)));
    if (interruptedCall.kind === 'done') return interruptedCall.value;
    return { kind: 'unknown', text: `${CALL_UNKNOWN} (${interruptedCall.fault.message})` };
  }

  /** Loads the files of calls before a resume, once. No tool runs before. */
  async loadFiles(): Promise<void> {
    if (this.#fileLoader === null) return;
    this.#loadingFiles ??= this.#fileLoader(this.#equipment.files);
    await this.#loadingFiles;
  }

  /**
   * Runs a call whose ToolStarted is durable, and reports its outcome. `earlier`: waits for this
   * call instead of running the tool.
   */
  async #finish(run: ToolRun, earlier?: EarlierCall): Promise<void> {
    // these two checks save the tool a tick
    if (this.#fileLoader !== null) await this.loadFiles();
    if (run.observed !== null) await run.observed;
    if (earlier === undefined) {
      const level = levelOfCall(this.#settings().sandbox, run.call.facts.needs);
      await this.#session.checkpoints.before(run.batchId, run.call, level, run.signal.signal);
    }
    run.deadline = watchDeadline(
      run,
      earlier === undefined ? run.call.traits.deadlineMs : earlierLimitMs(earlier),
      this.#equipment.clock,
      this.#settings().graceMs,
    );
    const outcome = await this.#awaitOutcome(run, earlier?.finish);
    run.deadline.disarm();
    // Else it may have ended at any time since the crash, and others have changed files since.
    const endedJustNow = earlier === undefined || earlier.isRunning === true;
    const reported = await this.#withLostText(run, outcome, endedJustNow);
    await this.#report(run, reported, this.#session.userHooks);
  }

  /** The outcome, with a text about uncommitted changes of the user that the call has lost. */
  async #withLostText(
    run: ToolRun,
    outcome: ToolOutcome,
    endedJustNow: boolean,
  ): Promise<ToolOutcome> {
    if (outcome.ran === 'no') {
      this.#withdraw(run);
      return outcome;
    }
    const text = await this.#session.checkpoints.after(run.call, endedJustNow);
    return text === '' ? outcome : { ...outcome, text: `${outcome.text}\n[${text}]` };
  }

  async #awaitOutcome(run: ToolRun, interrupted?: Perform): Promise<ToolOutcome> {
    const tool = this.#equipment.tools.get(run.call.tool);
    if (tool === undefined)
      return { status: 'failed', ran: 'no', text: `there is no tool ${run.call.tool} any more` };
    const perform = interrupted ?? ((): Promise<ToolOutcome> => this.#runTool(tool, run));
    if (interrupted === undefined && run.signal.signal.aborted) return CANCELLED_BEFORE_START;
    // At the end of the session no phase of the hooks follows, so they need not read.
    const performed = this.#catchFault(run, tool, perform).finally(
      () => this.#closing || observeAfter(this.#equipment.hooks, this.#settings(), run),
    );
    this.#awaitAtEnd(performed);
    const first = await Promise.race([performed, run.gaveUp]);
    // An abandoned tool may still return and report its usage.
    void performed.then((late) => {
      if (late !== first) this.#countLate(run, late);
    });
    return first;
  }

  async #runTool(tool: Tool, run: ToolRun): Promise<ToolOutcome> {
    const context = this.#createContext(run);
    // a server may use the id of an earlier call again
    this.#equipment.files.hide?.(run.call.callId);
    // Without `findInterrupted`, recovery depends on this record of a sent call.
    if (tool.findInterrupted === undefined && isRecorded(run.call)) context.sending?.();
    return tool.run(run.call.input, context);
  }

  /** Runs the tool; an error becomes an outcome. */
  async #catchFault(run: ToolRun, tool: Tool, perform: Perform): Promise<ToolOutcome> {
    const ran = await attempt(perform);
    if (ran.kind === 'done') return this.#take(run, tool, ran.value);
    const status = run.signal.signal.aborted ? abortReason(run) : 'failed';
    return { status, text: `the tool itself failed: ${ran.fault.message}` };
  }

  /** Validates the outcome; reports usage that can't be counted. */
  #take({ batchId, call }: ToolRun, tool: Tool, returned: unknown): ToolOutcome {
    const { outcome, usageFault } = takeOutcome(tool, returned);
    if (usageFault === null) return outcome;
    const usageId = spendingId(batchId, call.callId);
    const fault = uncountableText(`the tool ${call.tool}`, usageFault);
    this.#session.post({ type: 'UsageReported', usageId, usage: UNKNOWN_USAGE, fault });
    return outcome;
  }

  /** Makes the end of the session wait for work, so that its usage still counts. */
  #awaitAtEnd(work: Promise<unknown>): void {
    const returned: Promise<void> = work.then(() => void this.#returning.delete(returned));
    this.#returning.add(returned);
  }

  /** The usage of an abandoned call still counts. */
  #countLate({ batchId, call }: ToolRun, { usage }: ToolOutcome): void {
    if (usage === undefined) return;
    this.#session.post({ type: 'UsageReported', usageId: spendingId(batchId, call.callId), usage });
  }

  #settings(): Settings {
    return this.#session.state().session.settings;
  }

  /** The outcome as the model sees it: without secrets, cut, and with remarks of user hooks. */
  async #finishOutcome(
    run: ToolRun,
    outcome: ToolOutcome,
    userHooks: UserHookRuns | null,
  ): Promise<CallOutcome> {
    const clean = redactOutcome(this.#equipment.redactor, outcome);
    const { outputCutBytes } = this.#settings();
    // All results of a batch share a limit: `take` counts this one and returns its share.
    const room = this.#batchRoom.take(run.batchId, clean, outputCutBytes, () =>
      endedTexts(this.#session.state()),
    );
    const cut = await cutOutcome(clean, room.limitBytes, this.#blobs, room.why);
    if (userHooks === null || run.isSettled) return cut;
    const { call, signal, force } = run;
    // After its deadline or a cancel the signal of the call is aborted already.
    const signals = signal.signal.aborted ? [force.signal] : [signal.signal, force.signal];
    return userHooks.afterTool(call, cut, signals);
  }

  /** The files that a call saw. A cut or redacted result shows no lines. */
  #seenFiles({ call, seen }: ToolRun, isWhole: boolean): readonly SeenFile[] {
    const { callId } = call;
    if (!isWhole) this.#equipment.files.hide?.(callId);
    return [...seen.values()].map(({ lines = [], ...file }) => {
      const [only, ...others] = lines;
      // all lines of the file: they are omitted then, as `SeenFile` says
      const isAll = only?.by === callId && only.first === 1 && only.last === undefined;
      if (isWhole && isAll && others.length === 0) return file;
      return { ...file, lines: isWhole ? lines : lines.filter(({ by }) => by !== callId) };
    });
  }

  /**
   * Ends a call. Of one that the machine has settled only the usage counts; the outcome of one that
   * was stopped for the end goes to `#stopped`; all others get their one ToolCompleted.
   */
  async #report(
    run: ToolRun,
    outcome: ToolOutcome,
    userHooks: UserHookRuns | null = null,
  ): Promise<void> {
    const { batchId, call } = run;
    const finished = run.isSettled ? outcome : await this.#finishOutcome(run, outcome, userHooks);
    this.#remove(run);
    if (run.isSettled) return this.#countLate(run, outcome);
    run.isSettled = true; // by what follows
    const isWhole = finished.text === outcome.text;
    const seen = run.seen.size === 0 ? [] : this.#seenFiles(run, isWhole);
    const whole = seen.length === 0 ? finished : { ...finished, seen };
    if (run.isStoppedForEnd)
      return this.#stopped.add(run, whole, () => this.#countLate(run, outcome));
    run.joiner.flush();
    this.#session.post({ type: 'ToolCompleted', batchId, callId: call.callId, outcome: whole });
  }
}

/** Why a call is to end: the reason of its abort signals. */
type AbortReason = 'cancelled' | 'timedOut';

// Only this file aborts, with one of the two reasons.
const abortReason = (run: ToolRun): AbortReason => run.signal.signal.reason as AbortReason;

/** The outcome of a call that the user or the end of a turn cancelled before its start. */
const CANCELLED_BEFORE_START: ToolOutcome = {
  status: 'cancelled',
  ran: 'no',
  text: 'cancelled before it had run',
};

/** Whether the start of a call is recorded on disk, since nothing else shows it after a crash. */
const isRecorded = ({ traits }: JudgedCall): boolean => traits.effect === 'opaque';

const CALL_UNKNOWN =
  'the session was interrupted while this call started or ran; check whether it took effect ' +
  'before you repeat it';

/** `findInterrupted` for a tool that has none: asks whether the call was sent. */
const findUnsent = async (_: unknown, { findSent }: ToolContext): Promise<InterruptedCall> =>
  (await findSent?.()) === 'notSent'
    ? { kind: 'neverBegan' }
    : { kind: 'unknown', text: CALL_UNKNOWN };

/** Whether the call runs for the machine, which therefore needs its outcome. */
const isRunningCall = (state: State, { batchId, call: { callId } }: ToolRun): boolean =>
  state.name === 'ExecutingTools' &&
  state.batchId === batchId &&
  state.calls.some(({ judged, status }) => judged.callId === callId && status === 'running');

/** Texts of the results that the running batch has so far, also from before a resume. */
const endedTexts = (state: State): readonly string[] =>
  state.name === 'ExecutingTools'
    ? state.calls.flatMap((call) => ('outcome' in call ? [call.outcome.text] : []))
    : [];

/** A call from its preparation to its outcome. */
type ToolRun = {
  readonly batchId: string;
  readonly call: JudgedCall;
  /** Asks the tool to end soon. */
  readonly signal: AbortController;
  /** Ends the tool at once. */
  readonly force: AbortController;
  /** Joins pieces of progress, so that few events show them. */
  readonly joiner: Joiner;
  /** The files that this call read or wrote, by real path. */
  readonly seen: Map<string, SeenFile>;
  deadline: DeadlineWatch;
  /** Resolves when `giveUp` abandons the call, which has ignored its deadline. */
  readonly gaveUp: Promise<ToolOutcome>;
  giveUp(outcome: ToolOutcome): void;
  /**
   * Resolves when the hooks have read the workspace before the call, as they will after it; null:
   * they do neither.
   */
  observed: Promise<void> | null;
  /** The machine has the outcome, or needs none: no outcome and no progress is posted. */
  isSettled: boolean;
  /** The end of the session has stopped the call, so its outcome is not posted. */
  isStoppedForEnd: boolean;
  /** Resolves when the call has ended, or never began. */
  readonly ended: Promise<void>;
  markEnded(): void;
};

/** Outcomes of the calls that the end of a session has stopped, or prevented. */
export type StoppedCalls = {
  /** Outcomes of the calls that have ended so far, without their usage. */
  outcomes(): readonly StoppedCall[];
  add(run: Pick<ToolRun, 'batchId' | 'call'>, outcome: CallOutcome, reportUsage?: () => void): void;
  /** Posts the usage of the calls, now and later, after the end of the session is posted. */
  reportUsage(): void;
};

const createStoppedCalls = (): StoppedCalls => {
  const stoppedCalls: StoppedCall[] = [];
  const reports: (() => void)[] = [];
  let isPosted = false;
  const reportUsage = (): void => {
    isPosted = true;
    for (const report of reports.splice(0)) report();
  };
  return {
    outcomes: () => [...stoppedCalls],
    add({ batchId, call }, { usage: _, ...outcome }, report) {
      stoppedCalls.push({ batchId, callId: call.callId, outcome });
      if (report !== undefined) reports.push(report);
      if (isPosted) reportUsage();
    },
    reportUsage,
  };
};

/**
 * How long the end of the session waits for the outcomes of the calls that it has stopped, in ms.
 */
const STOPPING_MS = 1_000;

const createRun = (
  batchId: string,
  call: JudgedCall,
  { clock, redactor }: Equipment,
  post: Post,
): ToolRun => {
  const { callId } = call;
  let giveUp: (outcome: ToolOutcome) => void = () => undefined;
  const gaveUp = new Promise<ToolOutcome>((resolve) => {
    giveUp = resolve;
  });
  let markEnded = (): void => undefined;
  const ended = new Promise<void>((resolve) => {
    markEnded = resolve;
  });
  const show = (_key: string, text: string): void => {
    if (!run.isStoppedForEnd) post({ type: 'ToolProgress', batchId, callId, text });
  };
  const joiner = redactJoined(redactor, createJoiner(clock, show), 'progress');
  const run: ToolRun = {
    batchId,
    call,
    joiner,
    gaveUp,
    giveUp,
    ended,
    markEnded,
    seen: new Map(),
    signal: new AbortController(),
    force: new AbortController(),
    deadline: NO_DEADLINE,
    observed: null,
    isSettled: false,
    isStoppedForEnd: false,
  };
  return run;
};

export const callKey = (batchId: string, callId: string): string => `${batchId} ${callId}`;

/** Whether no user can be asked for more than the sandbox allows. */
export const isUnattended = ({ onAsk, preset }: Settings): boolean =>
  onAsk !== 'ask' || preset === 'plan';

const createContext = (
  run: ToolRun,
  { files, jobs, sentCalls, userPlaces }: Equipment,
  state: () => State,
  blobs: Blobs,
): ToolContext => {
  const { batchId, call, signal, force, joiner } = run;
  const { callId, facts } = call;
  const { settings, grants } = state().session;
  const { workspace, sandbox } = settings;
  // a reading command gets its own level, whatever the settings are: its changes are not observed
  const level = isReadingCommand(call) ? 'reads' : levelOfCall(sandbox, facts.needs);
  const usualLevel = levelOfCall(sandbox, undefined);
  const isUsual = level === usualLevel || level === 'reads';
  // a rule or an earlier answer allows more than the usual level, or the user just now
  const widened = (): 'unasked' | 'byUser' =>
    decide(settings, grants, call).decision === 'allow' ? 'unasked' : 'byUser';
  return {
    workspace,
    batchId,
    callId,
    blobs,
    jobs,
    sandbox: level,
    ...(facts.shell === undefined ? {} : { shell: facts.shell }),
    ...(isUsual ? {} : { widened: widened() }),
    ...(isUnattended(settings) ? { unattended: true } : {}),
    ...(call.reply === undefined ? {} : { reply: call.reply }),
    paths: facts.paths,
    isSecret: (place) => isSecretPath(place, userPlaces, workspace),
    hosts: facts.hosts,
    signal: signal.signal,
    force: force.signal,
    files: recordingMemory(files, run.seen, callId, state),
    left: () => getAllowance(state().session, spendingId(batchId, callId)),
    progress: (text) => {
      if (!run.isSettled && typeof text === 'string') joiner.add('progress', text);
    },
    sending: () => sentCalls?.record(workspace, callKey(batchId, callId)),
    findSent: async () => (await sentCalls?.find(workspace, callKey(batchId, callId))) ?? 'unknown',
    whileAsking: (asked) => asked.finally(run.deadline.pause()),
    extend: () => run.deadline.extend(),
  };
};

// ---- The deadline ----

type DeadlineWatch = {
  /** Ends the watch: the call has ended, or ends anyhow. */
  disarm(): void;
  /**
   * Pauses the deadline until the returned function is called. No effect once the call was asked to
   * end: after a cancel the machine's grace timer ends it.
   */
  pause(): () => void;
  /** Restarts the deadline, up to LIMITS_MAX times its limit in all. */
  extend(): void;
};

/** For a call without a time limit, or one that has not started. */
const NO_DEADLINE: DeadlineWatch = {
  disarm: () => undefined,
  pause: () => () => undefined,
  extend: () => undefined,
};

/** A call that shows progress may take its time limit this many times. */
const LIMITS_MAX = 10;

/** The rest of an earlier call's limit. A limit that has passed is not the same as none (0). */
const earlierLimitMs = ({ leftMs }: EarlierCall): number =>
  leftMs === null ? 0 : Math.max(1, leftMs);

/**
 * Asks the call to end at its deadline, forces it a grace period later, and abandons it after
 * another one. With a deadline of 60 s and a grace period of 5 s: `signal` after 60 s, `force`
 * after 65 s, `giveUp` after 70 s. `deadlineMs` 0: there is none.
 */
export const watchDeadline = (
  run: Pick<ToolRun, 'call' | 'signal' | 'force' | 'giveUp'>,
  deadlineMs: number,
  clock: Clock,
  graceMs: number,
): DeadlineWatch => {
  if (deadlineMs <= 0) return NO_DEADLINE;
  const wholeMs = run.call.traits.deadlineMs; // a recovered call gets only the rest of it
  /** How long the call may run, and has run, without pauses. */
  let limitMs = deadlineMs;
  let ranMs = 0;
  let since = clock.now();
  let pauses = 0;
  let isOver = false;
  const abandon = (): void =>
    run.giveUp({
      status: 'timedOut',
      text: `time limit of ${Math.max(wholeMs, limitMs) / 1000} s reached; the tool did not stop`,
    });
  const forceEnd = (): void => {
    run.force.abort('timedOut');
    cancel = clock.after(graceMs, abandon);
  };
  const askToEnd = (): void => {
    run.signal.abort('timedOut');
    cancel = clock.after(graceMs, forceEnd);
  };
  const arm = (): void => {
    since = clock.now();
    cancel = clock.after(Math.max(0, limitMs - ranMs), ring);
  };
  const halt = (): void => {
    cancel();
    ranMs += clock.now() - since;
  };
  const ring = (): void => {
    halt();
    if (ranMs < limitMs)
      arm(); // `extend` has moved the limit meanwhile
    else askToEnd();
  };
  let cancel = clock.after(deadlineMs, ring);
  return {
    disarm() {
      isOver = true;
      cancel();
    },
    pause() {
      if (run.signal.signal.aborted) return () => undefined;
      if (pauses === 0) halt();
      pauses += 1;
      return () => {
        pauses -= 1;
        if (pauses === 0 && !isOver && !run.signal.signal.aborted) arm();
      };
    },
    extend() {
      if (run.signal.signal.aborted) return; // it is being ended
      const ran = pauses > 0 ? ranMs : ranMs + clock.now() - since;
      limitMs = Math.min(ran + wholeMs, LIMITS_MAX * wholeMs);
    },
  };
};

// ---- How the hooks look ----

/** Whether the hooks observe a call: it changes something, and they may run after it. */
const isWatched = (hooks: Hooks | null, settings: Settings, call: JudgedCall): hooks is Hooks =>
  hooks !== null && settings.hooks !== 'never' && call.traits.mutating;

/**
 * Lets the hooks read the workspace right after a call, if the user may change files before their
 * next phase: after a cancel no phase follows, and another call of the batch may wait for an
 * answer. The outcome waits for the reading, so the turn ends after it.
 */
const observeAfter = async (
  hooks: Hooks | null,
  settings: Settings,
  { call, signal, observed }: ToolRun,
): Promise<void> => {
  if (hooks === null || observed === null) return;
  const isCancelled = signal.signal.reason === 'cancelled';
  const mayFormat = settings.formatter !== 'off' && !namesItsFiles(call);
  if (isCancelled || mayFormat || settings.autoCommit === 'on')
    await attempt(() => hooks.after(call, settings));
};
