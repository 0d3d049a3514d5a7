import type { Settings } from '../agent/settings.js';
import type { State } from '../agent/state.js';
import type { Entry, Input, Job, Journal, Watcher } from '../needs.js';
import type { AgentTypes } from '../needs-machine.js';
import { createCompactions } from './compaction.js';
import type { Equipment } from './equipment.js';
import { agentFlow } from './flow.js';
import { HookRuns } from './hook-run.js';
import { Life } from './life.js';
import { ModelCalls } from './model-call.js';
import { type Performers, perform, prepare } from './perform.js';
import type { Post } from './posted.js';
import { interruptedHook, recoverCalls, runningCalls } from './recovery.js';
import { createTimers } from './timers.js';
import { ToolRuns } from './tool-run.js';
import { attempt } from './wall.js';

/** One session of the agent while it is open in this process. It ends after the machine's Shutdown, or with an error. */
export class LiveSession {
  readonly #journal: Journal;
  readonly #opened: State;
  readonly #equipment: Equipment;
  readonly #report: (fault: Error) => void;
  readonly #performers: Performers;
  readonly #life: Life<AgentTypes>;

  constructor(journal: Journal, opened: State, equipment: Equipment, report: (fault: Error) => void) {
    this.#journal = journal;
    this.#opened = opened;
    this.#equipment = equipment;
    this.#report = report;
    const post: Post = (event, applied) => this.#life.post(event, applied);
    const tools = new ToolRuns(equipment, journal.blobs, () => this.state.session, post);
    const performers: Performers = {
      models: new ModelCalls(equipment, journal.blobs, post),
      compactions: createCompactions(equipment, post),
      tools,
      hooks: new HookRuns(equipment, journal, () => tools.remember(), post),
      timers: createTimers(equipment.clock, (timerId) => post({ type: 'TimerFired', timerId })),
      shutDown: () => void this.#life.end(null),
    };
    this.#performers = performers;
    this.#life = new Life<AgentTypes>({
      flow: agentFlow,
      journal,
      opened,
      clock: equipment.clock,
      prepare: (action) => prepare(action, performers),
      perform: (action, state) => perform(action, state, performers),
      stopAll: () => this.#stopAll(),
      report,
    });
  }

  get state(): State {
    return this.#life.state;
  }

  get seq(): number {
    return this.#life.seq;
  }

  get jobs(): readonly Job[] {
    return this.#equipment.jobs.list();
  }

  /** Resolves when the session was shut down; rejects with what stopped it otherwise. */
  get ended(): Promise<void> {
    return this.#life.ended;
  }

  send(input: Input): Promise<{ readonly seq: number }> {
    return this.#life.send(
      input.type === 'SettingsChanged' ? { ...input, ...this.#changeSettings(input.patch) } : input,
    );
  }

  /**
   * Goes on with a session that was opened again. New settings come first, so that nothing starts under the old ones;
   * after a clean end nothing starts, and settings can't change before the session is open.
   */
  async resume(patch: Partial<Settings>): Promise<void> {
    const epoch = this.#opened.session.epoch + 1;
    const wasClosed = this.#opened.name === 'ShuttingDown';
    const change = (): void => {
      if (Object.keys(patch).length > 0) this.#life.post(this.#changeSettings(patch));
    };
    if (!wasClosed) change();
    const resumed = this.#life.send({ type: 'Resumed', epoch }, ({ state }) => this.#recover(state));
    if (wasClosed) change();
    await resumed;
  }

  /** Another model comes with its prices; throws if it is not connected. */
  #changeSettings(patch: Partial<Settings>): Extract<Input, { readonly type: 'SettingsChanged' }> {
    if (patch.model === undefined) return { type: 'SettingsChanged', patch };
    return { type: 'SettingsChanged', patch, prices: this.#equipment.model(patch.model).facts.prices };
  }

  #recover(resumed: State): void {
    recoverCalls(runningCalls(this.#opened, resumed), this.#journal, this.#performers.tools);
    const hookId = interruptedHook(resumed);
    if (hookId !== null) this.#life.post({ type: 'HookFailed', hookId, message: 'interrupted' });
  }

  /** Calls the watcher with every step from now on; the returned function ends that. */
  watch(watcher: Watcher): () => void {
    return this.#life.watch(watcher);
  }

  /** What the journal holds from `from` on, then what comes, until the session ends. */
  read(from: number): AsyncIterable<Entry> {
    return this.#life.read(from);
  }

  /** Shuts the session down if it still runs; resolves when it has ended. */
  async close(): Promise<void> {
    if (!this.#life.isOver) await this.send({ type: 'ShutdownRequested' });
    await this.ended;
  }

  /**
   * Waits at most a grace time: for tools, which were ended by force, and for replies that were cut off, whose usage is
   * still to be journaled.
   */
  async #stopAll(): Promise<void> {
    const { models, compactions, timers, tools, hooks } = this.#performers;
    timers.cancelAll();
    const { clock, jobs } = this.#equipment;
    let cancel = (): void => undefined;
    const timeIsUp = new Promise<void>((resolve) => {
      cancel = clock.after(this.state.session.settings.graceMs, resolve);
    });
    const stopped = Promise.all([models, compactions, tools, hooks].map((runs) => runs.stopAll()));
    await Promise.race([stopped, timeIsUp]);
    cancel();
    for (const job of jobs.list()) {
      const killed = await attempt(() => job.kill());
      if (killed.kind === 'fault') this.#report(killed.fault);
    }
  }
}
