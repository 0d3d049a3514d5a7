/**
 * Runs phases of the hooks after tools: performs RunHook and AbortHook.
 *
 * 1. A phase ends with exactly one HookCompleted or HookFailed, or with none after AbortHook.
 * 2. The usage of a phase is part of its HookCompleted. The usage of a failed or aborted phase is reported when it is
 *    complete.
 * 3. A phase that only has to read ends before its action is durable, and is not started then (`Hooks.runNow`).
 * 4. The effect of a phase is durable before the phase has it (`HookContext.prepare`).
 * 5. A phase that takes too long is aborted and counts as failed. Only the end of the session waits for its remaining
 *    work.
 */

import type { Action } from '../machine/action.js';
import type { JudgedCall } from '../machine/call.js';
import type { HookEffect } from '../machine/event.js';
import { sessionLimit } from '../machine/moves/budget.js';
import type { SessionData } from '../machine/state.js';
import { sumUsage, type Usage } from '../machine/usage.js';
import { type Attempt, attempt, attemptNow } from '../platform/attempt.js';
import { waitAtMost } from '../platform/clock.js';
import type { HookContext, HookReport, Hooks } from '../ports/hooks.js';
import type { Journal } from '../ports/journal.js';
import type { TokenUsage } from '../ports/model.js';
import type { FileMemory } from '../ports/tool.js';
import type { Equipment, RunningSession } from './equipment.js';
import { type OpenRequest, priceUsage, readStream, replyText, UNKNOWN_USAGE } from './model-call.js';
import { redactReport } from './result-text.js';

type RunHook = Extract<Action, { readonly type: 'RunHook' }>;

type Run = {
  readonly order: RunHook;
  readonly session: SessionData;
  readonly abortion: AbortController;
  readonly asides: SideRequests;
  /** Files that this phase wrote, by real path. */
  readonly seen: Map<string, string>;
  /** The machine knows the result, or no longer needs it. */
  over: boolean;
};

export class HookRuns {
  readonly #equipment: Equipment;
  readonly #session: RunningSession;
  readonly #remember: () => Promise<void>;
  readonly #runs = new Map<string, Run>();
  readonly #returning = new Set<Promise<void>>();
  #batchId = '';
  #batch: BatchPast = emptyBatch();
  /** Id of the phase that ended at once (rule 3). */
  #looked = '';

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

  /** Applies rule 3. */
  prepare({ hookId, phase, callIds }: RunHook, { settings }: SessionData): void {
    const { hooks, redactor } = this.#equipment;
    const calls = callIds.flatMap((callId) => this.#batch.calls.get(callId) ?? []);
    if (phase !== 'CheckingGitCommits' || calls.length < callIds.length) return;
    const context = { workspace: settings.workspace, settings, calls };
    const ran = attemptNow(() => hooks?.runNow?.(phase, context) ?? null);
    if (ran.kind === 'fault' || ran.value === null) return; // `run` reports the fault
    const report = redactReport(redactor, ran.value);
    this.#batch.reports.push(report);
    this.#looked = hookId;
    this.#session.post({ type: 'HookCompleted', hookId, ...report, usage: null });
  }

  start(order: RunHook, session: SessionData): void {
    const { hookId } = order;
    const { hooks } = this.#equipment;
    if (hookId === this.#looked) return;
    if (hooks === null) {
      this.#session.post({ type: 'HookFailed', hookId, message: 'no hook is connected' });
      return;
    }
    const asides = new SideRequests(this.#equipment, session);
    const run: Run = {
      order,
      session,
      asides,
      seen: new Map(),
      over: false,
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

  /** Aborts everything. Resolves when the last phase has returned and all its usage has been reported. */
  async stopAll(): Promise<void> {
    for (const run of this.#runs.values()) this.#stop(run);
    await Promise.all(this.#returning);
  }

  #stop(run: Run): void {
    run.over = true;
    this.#runs.delete(run.order.hookId);
    run.abortion.abort();
    run.asides.end();
  }

  async #perform(hooks: Hooks, run: Run): Promise<void> {
    const { hookId, phase } = run.order;
    const deadlineMs = hooks.deadlinesMs[phase];
    const endWatch = this.#equipment.clock.after(deadlineMs, () => {
      if (run.over) return;
      this.#stop(run);
      const message = `it took longer than ${deadlineMs / 1000} s and was stopped`;
      this.#session.post({ type: 'HookFailed', hookId, message });
    });
    const ran = await attempt(async () =>
      redactReport(this.#equipment.redactor, await hooks.run(phase, await this.#contextOf(run))),
    );
    endWatch();
    run.asides.end();
    const used = await (run.over ? run.asides.used() : this.#usedInTime(run));
    this.#report(run, ran, used);
  }

  /** Applies rules 1 and 2. */
  #report(run: Run, ran: Attempt<HookReport>, usage: Usage | null): void {
    const { hookId } = run.order;
    const completed = !run.over && ran.kind === 'done';
    if (!completed && usage !== null) this.#session.post({ type: 'UsageReported', usageId: hookId, usage });
    if (run.over) return;
    run.over = true;
    this.#runs.delete(hookId);
    if (ran.kind === 'fault') {
      this.#session.post({ type: 'HookFailed', hookId, message: ran.fault.message });
      return;
    }
    this.#batch.reports.push(ran.value);
    const seen = [...run.seen].map(([path, sha256]) => ({ path, sha256 }));
    const memory = seen.length === 0 ? {} : { seen };
    const warning = [ran.value.warning, ...run.asides.faults].filter((text) => text !== '').join('\n');
    this.#session.post({ type: 'HookCompleted', hookId, ...ran.value, warning, usage, ...memory });
  }

  /** Waits at most a grace period for the usage of a model that continues after its text was given up. */
  #usedInTime({ asides, session }: Run): Promise<Usage | null> {
    return waitAtMost(this.#equipment.clock, session.settings.graceMs, asides.used());
  }

  async #contextOf(run: Run): Promise<HookContext> {
    const { order, session, abortion, asides } = run;
    const { calls, reports, recorded } = await this.#past(order);
    await this.#remember();
    const { settings } = session;
    return {
      workspace: settings.workspace,
      settings,
      calls: order.callIds.flatMap((callId) => calls.get(callId) ?? []),
      reports: [...reports],
      recorded,
      interrupted: order.interrupted ?? null,
      prepare: (effect) => this.#prepareEffect(run, effect),
      files: this.#filesOf(run),
      signal: abortion.signal,
      write: (instructions, text) => asides.write(instructions, this.#equipment.redactor.clean(text)),
    };
  }

  /** Rule 4. */
  #prepareEffect({ order: { hookId }, abortion: { signal } }: Run, effect: HookEffect): Promise<void> {
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
  async #past({ phase, callIds }: RunHook): Promise<BatchPast> {
    const { calls, reports } = this.#batch;
    const isFirst = phase === 'CheckingGitCommits';
    const known = callIds.every((callId) => calls.has(callId)) && (isFirst || reports.length > 0);
    if (!known) this.#batch = await readLastBatch(this.#session.journal);
    return this.#batch;
  }

  /** The session's memory of files. Changes are also noted for the end of the phase. */
  #filesOf({ seen }: Run): FileMemory {
    const { files } = this.#equipment;
    return {
      get: (path) => files.get(path),
      set: (path, sha256) => {
        files.set(path, sha256);
        seen.set(path, sha256);
      },
    };
  }
}

/** Facts about a batch for the hooks: its calls by id, and the reports of earlier phases. */
type BatchPast = {
  readonly calls: Map<string, JudgedCall>;
  readonly reports: HookReport[];
  /** See HookContext. */
  readonly recorded: Map<string, string>;
};

const emptyBatch = (): BatchPast => ({ calls: new Map(), reports: [], recorded: new Map() });

/** The last batch in the journal, for a session that was opened again during its hooks. */
const readLastBatch = async (journal: Pick<Journal, 'read'>): Promise<BatchPast> => {
  let batch = emptyBatch();
  for await (const { event } of journal.read()) {
    if (event.type === 'LlmCompleted' && event.calls.length > 0) {
      batch = { ...emptyBatch(), calls: new Map(event.calls.map((call) => [call.callId, call])) };
    }
    if (event.type === 'ToolStarted' && event.before !== undefined) {
      batch.recorded.set(event.callId, event.before);
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
 * 1. The caller gets the text, or null if it was late or cut off, or if the session has reached its limit.
 * 2. The total usage is known after the last request has ended, even if its text was late.
 */
class SideRequests {
  readonly #equipment: Equipment;
  readonly #session: SessionData;
  readonly #asked = new Set<OpenRequest>();
  #used: Usage | null = null;
  #faults = new Set<string>();
  #over = false;

  constructor(equipment: Equipment, session: SessionData) {
    this.#equipment = equipment;
    this.#session = session;
  }

  async write(instructions: string, text: string): Promise<string | null> {
    const written = await attempt(() => this.#ask(instructions, text));
    // Without a text from the model, the caller uses its own.
    return written.kind === 'done' ? written.value : null;
  }

  /** Aborts running requests and accepts no more. */
  end(): void {
    this.#over = true;
    for (const reading of this.#asked) reading.abort();
  }

  /** The total usage (rule 2); null if nothing was used. */
  async used(): Promise<Usage | null> {
    await Promise.all([...this.#asked].map(({ silent }) => silent));
    return this.#used;
  }

  /** Messages about usage that can't be counted. */
  get faults(): readonly string[] {
    return [...this.#faults];
  }

  async #ask(instructions: string, text: string): Promise<string | null> {
    if (this.#over || sessionLimit(this.#session) !== null) return null;
    const { clock } = this.#equipment;
    const model = this.#equipment.model(this.#session.settings.model);
    const book = (tokens: TokenUsage): void => {
      this.#used = sumUsage(this.#used, priceUsage(tokens, model.facts.prices));
    };
    const reading = readStream({
      model,
      request: {
        instructions,
        tools: [],
        messages: [{ role: 'user', parts: [{ type: 'text', origin: 'user', text }] }],
      },
      // One deadline covers the whole request.
      clock,
      firstByteMs: 0,
      silenceMs: 0,
      onPiece: () => undefined,
      onLateUsage: book,
      onBadUsage: (why) => {
        this.#used = sumUsage(this.#used, UNKNOWN_USAGE);
        this.#faults.add(why);
      },
    });
    this.#asked.add(reading);
    const cancel = clock.after(TEXT_MS, reading.abort);
    const ending = await reading.ended;
    cancel();
    if (ending.type === 'aborted') return null;
    if (ending.usage !== null) book(ending.usage);
    return ending.type === 'completed' && ending.stopReason === 'end' ? replyText(ending) : null;
  }
}
