import {
  type Action,
  createPerformers,
  type Equipment,
  type Event,
  type PerformedSession,
  type Performers,
  type Posted,
  perform,
  prepare,
  type State,
  type StoppedCall,
  type Told,
  type UserHookRuns,
} from 'pawl/engine';
import type { AppliedEvent } from '../session/apply-events.js';
import type { ShownText, Work } from '../session/session-records.js';
import { endedWork, stopOf } from '../session/work-of-action.js';

/** One piece of work while this process does it: an action with performers of its own, and the events they post. */

/** What the work came to. `isOpen`: usage may still be reported. */
export type WorkResult = {
  readonly posted: readonly Posted[];
  readonly at: number;
  readonly shown?: ShownText;
  readonly isOpen: boolean;
};

export type WorkNeeds = {
  readonly equipment: Equipment;
  readonly journal: PerformedSession['journal'];
  /** Of the session: they remember more than one piece of work. Null: there are none. */
  readonly userHooks: UserHookRuns | null;
  state(): State;
  /** Sends an event to the session at once and waits until it is durable. */
  postNow(event: Posted): Promise<{ readonly applied: AppliedEvent | undefined; readonly state: State }>;
  /** Shows what is not kept. */
  show(event: Event): void;
  report(fault: Error): void;
};

const VOLATILE: ReadonlySet<Posted['type']> = new Set([
  'TextDelta',
  'ReasoningDelta',
  'ToolCallDelta',
  'ToolProgress',
]);

/** How long the usage of a reply that was given up is waited for. */
const LATE_MS = 30_000;

const wait = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });

export class WorkRun {
  readonly work: Work;
  readonly #needs: WorkNeeds;
  readonly #performers: Performers;
  readonly result: Promise<WorkResult>;
  #settle: () => void = () => undefined;
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
      post: (event, told) => this.#post(event, told),
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
    const state = this.#needs.state();
    prepare(action, state, this.#performers);
    perform(action, state, this.#performers);
  }

  /** Ends the work with these events, without doing it. */
  endWith(posted: readonly Posted[]): void {
    this.#posted.push(...posted);
    this.#end();
  }

  /** Stops the work. Only a call may still report its outcome, unless it is forced. */
  stop(force: boolean): void {
    const { action } = this.work;
    const stopping = stopOf(action, force);
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

  /** What is reported after the end. */
  async late(): Promise<readonly Posted[]> {
    await this.#silence();
    return this.#posted.splice(0);
  }

  async #silence(): Promise<void> {
    const { models, compactions, hooks, tools } = this.#performers;
    const all = Promise.all([models.stopAll(), compactions.stopAll(), hooks.stopAll(), tools.stopAll()]);
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

  #post(event: Posted, told?: Told): void {
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
  async #tell(event: Posted, told: Told): Promise<void> {
    const { action } = this.work;
    const isKept =
      event.type === 'ToolStarted' &&
      action.type === 'ExecuteTools' &&
      action.calls.every(({ traits }) => traits.effect !== 'probeable');
    if (isKept) {
      await Promise.resolve();
      told(true, this.#needs.state());
      return;
    }
    try {
      const { applied, state } = await this.#needs.postNow(event);
      const accepted = applied !== undefined && 'accepted' in applied && applied.accepted;
      told(accepted, state);
      if (!accepted && event.type === 'ToolStarted') this.#end();
    } catch (error) {
      this.#needs.report(error instanceof Error ? error : new Error(String(error)));
      told(false, this.#needs.state()); // the effect does not begin
      this.#end();
    }
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#endedAt = Date.now();
    this.#settle();
  }
}
