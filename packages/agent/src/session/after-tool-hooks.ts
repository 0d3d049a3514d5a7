/**
 * Runs phases of the hooks after tools: performs RunHook and AbortHook. A phase notices commits of
 * the calls, formats the files that they changed, or commits them (`HookPhase`). These are Pawl's
 * own hooks (`Hooks`), not the programs of the user (`UserHooks`).
 *
 * 1. A phase ends with exactly one HookCompleted or HookFailed, or with none after AbortHook.
 * 2. The usage of a phase is part of its HookCompleted, or is reported before its HookFailed, as
 *    far as it is known `graceMs` after its end. That of a stopped phase is reported when it is
 *    complete.
 * 3. A phase that only has to read is performed at once (`endEarly`, `Hooks.runNow`), before its
 *    action is durable. `start` then skips it.
 * 4. A phase journals an effect, such as a commit, before it has it (`HookContext.prepare`), so
 *    that it can be settled after a crash.
 * 5. A phase that takes too long is aborted and counts as failed. Only the end of the session waits
 *    for its remaining work.
 *
 * From top to bottom: `HookRuns`; the record of a batch, also read from the journal; and
 * `SideRequests`, with which a phase asks the model for a text, such as the subject of a commit.
 */

import type { Action } from '../machine/action.js';
import type { SeenFile } from '../machine/call.js';
import type { HookEffect } from '../machine/event.js';
import { hasMoneyLimit, sessionLimit } from '../machine/moves/budget.js';
import { noUsage, sumUsage, type Usage, type UsageCoverage } from '../machine/settings.js';
import type { SessionData } from '../machine/state.js';
import { type Attempt, attempt, attemptNow } from '../platform/attempt.js';
import { waitAtMost } from '../platform/clock.js';
import type { JudgedCall } from '../policy/judged-call.js';
import type { HookContext, HookReport, Hooks } from '../ports/hooks.js';
import type { Journal } from '../ports/journal.js';
import { type Equipment, type RunningSession, recordingMemory } from './equipment.js';
import type { Post } from './loop.js';
import {
  admitRequest,
  type OpenRequest,
  postUsage,
  type Reported,
  readStream,
  replyText,
  reportedBy,
  UNKNOWN_USAGE,
} from './model-call.js';
import { redactReport } from './result-text.js';

type RunHook = Extract<Action, { readonly type: 'RunHook' }>;

/** One phase that runs. */
type PhaseRun = {
  readonly action: RunHook;
  /** As it was when the phase started. */
  readonly session: SessionData;
  readonly abortion: AbortController;
  readonly sideRequests: SideRequests;
  /** Files that this phase wrote, by real path. */
  readonly seen: Map<string, SeenFile>;
  /** The machine knows the result, or no longer needs it. */
  isOver: boolean;
};

export class HookRuns {
  readonly #equipment: Equipment;
  readonly #session: RunningSession;
  readonly #remember: () => Promise<void>;
  readonly #runs = new Map<string, PhaseRun>();
  readonly #returning = new Set<Promise<void>>();
  #batchId = '';
  #batch: BatchRecord = emptyBatch();
  /** Id of the phase that ended before its action was durable: `start` skips it. */
  #endedHookId = '';

  /** `remember` fills the memory of files after a session was opened again. */
  constructor(equipment: Equipment, session: RunningSession, remember: () => Promise<void>) {
    this.#equipment = equipment;
    this.#session = session;
    this.#remember = remember;
  }

  /** Keeps the calls of a batch, because RunHook names them only by id. */
  keep(batchId: string, calls: readonly JudgedCall[]): void {
    if (this.#batchId !== batchId) this.#batch = emptyBatch();
    this.#batchId = batchId;
    for (const call of calls) this.#batch.calls.set(call.callId, call);
  }

  /**
   * Ends a phase that only has to read, before its action is durable. Such a phase is not started
   * later. Only CheckingGitCommits can be one; `runNow` returns null if it has to do more.
   */
  endEarly({ hookId, phase, callIds }: RunHook, { settings }: SessionData): void {
    const { hooks, redactor } = this.#equipment;
    const calls = callIds.flatMap((callId) => this.#batch.calls.get(callId) ?? []);
    if (phase !== 'CheckingGitCommits' || calls.length < callIds.length) return;
    const context = { workspace: settings.workspace, settings, calls };
    const ran = attemptNow(() => hooks?.runNow?.(phase, context) ?? null);
    if (ran.kind === 'fault' || ran.value === null) return; // `hooks.run` meets the fault again
    const report = redactReport(redactor, ran.value);
    this.#batch.reports.push(report);
    this.#endedHookId = hookId;
    this.#session.post({ type: 'HookCompleted', hookId, ...report, usage: null });
  }

  start(action: RunHook, session: SessionData): void {
    const { hookId } = action;
    const { hooks } = this.#equipment;
    if (hookId === this.#endedHookId) return;
    if (hooks === null) {
      this.#session.post({ type: 'HookFailed', hookId, message: 'no hook is connected' });
      return;
    }
    const run: PhaseRun = {
      action,
      session,
      sideRequests: new SideRequests(this.#equipment, session, hookId, this.#session.post),
      seen: new Map(),
      isOver: false,
      abortion: new AbortController(),
    };
    this.#runs.set(hookId, run);
    const returned: Promise<void> = this.#perform(hooks, run).then(() => {
      this.#returning.delete(returned);
    });
    this.#returning.add(returned);
  }

  abort(hookId: string): void {
    const run = this.#runs.get(hookId);
    if (run !== undefined) this.#stop(run);
  }

  /**
   * Aborts everything. Resolves when the last phase has returned and all its usage has been
   * reported.
   */
  async stopAll(): Promise<void> {
    for (const run of this.#runs.values()) this.#stop(run);
    await Promise.all(this.#returning);
  }

  #stop(run: PhaseRun): void {
    run.isOver = true;
    this.#runs.delete(run.action.hookId);
    run.abortion.abort();
    run.sideRequests.end();
  }

  async #perform(hooks: Hooks, run: PhaseRun): Promise<void> {
    const { hookId, phase } = run.action;
    const { graceMs } = run.session.settings;
    const deadlineMs = hooks.deadlinesMs[phase];
    const endWatch = this.#equipment.clock.after(deadlineMs, () => {
      if (run.isOver) return;
      this.#stop(run);
      const message = `it took longer than ${deadlineMs / 1000} s and was stopped`;
      this.#session.post({ type: 'HookFailed', hookId, message });
    });
    const ran = await attempt(async () =>
      redactReport(
        this.#equipment.redactor,
        await hooks.run(phase, await this.#createContext(run)),
      ),
    );
    endWatch();
    run.sideRequests.end();
    const silent = run.sideRequests.whenSilent();
    // The machine counts one report of a phase. Under a limit in dollars an unknown cost counts as
    // the most that the phase's requests can cost (`settledUsage` in request.ts).
    await (run.isOver ? silent : waitAtMost(this.#equipment.clock, graceMs, silent));
    this.#report(run, ran, run.sideRequests.reported);
  }

  /**
   * Posts the one event that ends the phase, or only the usage of a phase that the machine has
   * abandoned.
   */
  #report(run: PhaseRun, ran: Attempt<HookReport>, { usage, coverage }: Reported): void {
    const { hookId } = run.action;
    const completed = !run.isOver && ran.kind === 'done';
    if (!completed && usage !== null) postUsage(this.#session.post, hookId, { usage, coverage });
    if (run.isOver) return;
    run.isOver = true;
    this.#runs.delete(hookId);
    if (ran.kind === 'fault') {
      this.#session.post({ type: 'HookFailed', hookId, message: ran.fault.message });
      return;
    }
    this.#batch.reports.push(ran.value);
    const seen = [...run.seen.values()];
    const memory = seen.length === 0 ? {} : { seen };
    const part = coverage === 'partial' ? { coverage } : {};
    this.#session.post({ type: 'HookCompleted', hookId, ...ran.value, usage, ...part, ...memory });
  }

  async #createContext(run: PhaseRun): Promise<HookContext> {
    const { action, session, abortion, sideRequests } = run;
    const { calls, reports } = await this.#batchRecord(action);
    await this.#remember();
    const settling = this.#session.checkpoints.settleKilled();
    if (settling !== null) await settling;
    const { settings } = session;
    return {
      workspace: settings.workspace,
      settings,
      calls: action.callIds.flatMap((callId) => calls.get(callId) ?? []),
      reports: [...reports],
      interrupted: action.interrupted ?? null,
      prepare: (effect) => this.#journalEffect(run, effect),
      files: recordingMemory(this.#equipment.files, run.seen, action.hookId),
      signal: abortion.signal,
      write: (instructions, text) =>
        sideRequests.write(instructions, this.#equipment.redactor.clean(text)),
    };
  }

  /** Resolves when the effect is durable: only then the phase may have it. */
  #journalEffect(
    { action: { hookId }, abortion: { signal } }: PhaseRun,
    effect: HookEffect,
  ): Promise<void> {
    return new Promise((resolve, reject) => {
      const refuse = (): void => reject(new Error('the phase was stopped'));
      signal.addEventListener('abort', refuse, { once: true });
      if (signal.aborted) return refuse();
      this.#session.post({ type: 'HookPrepared', hookId, effect }, (accepted) => {
        signal.removeEventListener('abort', refuse);
        if (accepted) resolve();
        else refuse();
      });
    });
  }

  /** If the session was opened again during the batch, the journal has the missing facts. */
  async #batchRecord({ phase, callIds }: RunHook): Promise<BatchRecord> {
    const { calls, reports } = this.#batch;
    const hasCalls = callIds.every((callId) => calls.has(callId));
    const hasReports = phase === 'CheckingGitCommits' || reports.length > 0; // the first has none
    const isKnown = hasCalls && hasReports;
    if (!isKnown) this.#batch = await readLastBatch(this.#session.journal);
    return this.#batch;
  }
}

/** Facts about a batch for the hooks: its calls by id, and the reports of earlier phases. */
type BatchRecord = { readonly calls: Map<string, JudgedCall>; readonly reports: HookReport[] };

const emptyBatch = (): BatchRecord => ({ calls: new Map(), reports: [] });

/** The last batch in the journal, for a session that was opened again during its hooks. */
const readLastBatch = async (journal: Pick<Journal, 'read'>): Promise<BatchRecord> => {
  let batch = emptyBatch();
  for await (const { event } of journal.read()) {
    if (event.type === 'LlmCompleted' && event.calls.length > 0) {
      batch = { ...emptyBatch(), calls: new Map(event.calls.map((call) => [call.callId, call])) };
    }
    if (event.type === 'HookCompleted') batch.reports.push(event);
  }
  return batch;
};

/** Time limit for a text. */
const TEXT_MS = 20_000;

/**
 * Short texts from the session's model outside of the conversation, for one phase of the hooks.
 *
 * 1. The caller gets the text, or null if it was late or cut off, or if the session has reached its
 *    limit.
 * 2. The total usage is known after the last request has ended, even if its text was late.
 */
class SideRequests {
  readonly #equipment: Equipment;
  readonly #session: SessionData;
  readonly #requests = new Set<OpenRequest>();
  #usage: Usage | null = null;
  /** Requests whose usage is unknown, and whether a part of one is. */
  #unknown = 0;
  #coverage: UsageCoverage = 'whole';
  readonly #ended = new AbortController();
  readonly #hookId: string;
  readonly #post: Post;

  constructor(equipment: Equipment, session: SessionData, hookId: string, post: Post) {
    this.#equipment = equipment;
    this.#session = session;
    this.#hookId = hookId;
    this.#post = post;
  }

  async write(instructions: string, text: string): Promise<string | null> {
    const written = await attempt(() => this.#ask(instructions, text));
    // Without a text from the model, the caller has a default.
    return written.kind === 'done' ? written.value : null;
  }

  /** Aborts running requests and accepts no more. */
  end(): void {
    this.#ended.abort();
    for (const request of this.#requests) request.abort();
  }

  /** Resolves when the last request has ended, and has reported its usage. */
  async whenSilent(): Promise<void> {
    await Promise.all([...this.#requests].map(({ silent }) => silent));
  }

  /**
   * The usage that is known so far; null if nothing was used. Under a limit in dollars an unknown
   * cost counts as the most that it can be.
   */
  get reported(): Reported {
    if (this.#unknown === 0) return { usage: this.#usage, coverage: this.#coverage };
    const unknown = hasMoneyLimit(this.#session) ? UNKNOWN_USAGE : noUsage;
    return { usage: sumUsage(this.#usage, unknown), coverage: 'partial' };
  }

  async #ask(instructions: string, text: string): Promise<string | null> {
    if (this.#ended.signal.aborted || sessionLimit(this.#session) !== null) return null;
    const { clock } = this.#equipment;
    const model = this.#equipment.model(this.#session.settings.model);
    const { limits } = this.#session.settings;
    // a request without usage is unknown until its usage comes late
    let counted: 'no' | 'asUnknown' | 'yes' = 'no';
    const addUsage = (usage: Usage, coverage: UsageCoverage): void => {
      if (counted === 'asUnknown') this.#unknown -= 1;
      counted = 'yes';
      if (coverage === 'partial') this.#coverage = coverage;
      this.#usage = sumUsage(this.#usage, usage);
    };
    // Under a limit in dollars the request's worst case is set aside. Null: it must not be sent.
    const admitted = admitRequest(
      {
        post: this.#post,
        usageId: this.#hookId,
        settings: this.#session.settings,
        model,
        signal: this.#ended.signal,
      },
      {
        instructions,
        tools: [],
        messages: [{ role: 'user', parts: [{ type: 'text', origin: 'user', text }] }],
      },
    );
    const request = admitted instanceof Promise ? await admitted : admitted;
    if (request === null || this.#ended.signal.aborted) return null;
    const reading = readStream({
      model,
      request,
      // One deadline covers the whole request.
      clock,
      firstByteMs: 0,
      silenceMs: 0,
      onPiece: () => undefined,
      estimates: limits.tokens !== 'unlimited',
      onLateUsage: addUsage,
    });
    this.#requests.add(reading);
    const cancel = clock.after(TEXT_MS, reading.abort);
    const ending = await reading.ended;
    cancel();
    const { usage, coverage } = reportedBy(ending);
    if (usage !== null) addUsage(usage, coverage);
    else if (counted === 'no' && coverage === 'partial') {
      this.#unknown += 1; // until it comes late
      counted = 'asUnknown';
    }
    if (ending.type === 'aborted') return null;
    return ending.type === 'completed' && ending.stopReason === 'end' ? replyText(ending) : null;
  }
}
