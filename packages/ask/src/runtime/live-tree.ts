import type { Journal } from '@pawl/agent/ports/journal';
import { JournaledSession } from '@pawl/agent/session/journaled-session';
import type { Post, Posted } from '@pawl/agent/session/posted-event-types';
import { createTimers } from '@pawl/agent/session/timers';
import type { AskTypes } from '../environment-and-journal-types.js';
import type { ChangedLimits } from '../run/event.js';
import type { Outcome } from '../run/state.js';
import { ROOT } from '../tree/run-ids.js';
import { outcomeOf, type Tree } from '../tree/tree-state.js';
import type { AskEquipment } from './ask-equipment.js';
import { askAdapter } from './ask-machine-adapter.js';
import { TreeCalls } from './model-calls.js';
import { performTree, type TreePerformers } from './perform.js';
import { Environments } from './run-environments.js';

/** The run of an id, which is its prefix: `n0.c1.1.2.t1` belongs to `n0.c1.1.2`. */
const runOf = (id: string): string => id.slice(0, id.lastIndexOf('.'));

/** A tree of runs that is open in this process, until it is closed or its journal fails. */
export class LiveTree extends JournaledSession<AskTypes> {
  readonly #opened: Tree;
  /** New limits for a resumed tree; null if it keeps its own. */
  readonly #limits: ChangedLimits | null;
  readonly #performers: TreePerformers;
  /** The outcome of the root. Rejects with the error that stopped the tree before its end. */
  readonly outcome: Promise<Outcome>;

  constructor(
    journal: Journal<AskTypes>,
    opened: Tree,
    equipment: AskEquipment,
    report: (fault: Error) => void,
    limits: ChangedLimits | null = null,
  ) {
    super({ adapter: askAdapter, journal, state: opened, clock: equipment.clock, report });
    this.#opened = opened;
    this.#limits = limits;
    const { settings } = journal.header;
    const post: Post<AskTypes> = (event, told) => this.post(event, told);
    const fired = (timerId: string): void => post({ type: 'TimerFired', node: runOf(timerId), timerId });
    this.#performers = {
      calls: new TreeCalls(equipment, settings, post, report),
      environments: new Environments(equipment, settings, post),
      timers: createTimers(equipment.clock, fired),
      policy: equipment.policy,
      post,
    };
    this.outcome = this.#waitForOutcome();
    // Avoids an unhandled rejection, which would end the process; awaiting `outcome` still rejects.
    this.outcome.catch(() => undefined);
  }

  protected prepare(): readonly string[] {
    return [];
  }

  protected perform(action: AskTypes['action'], tree: Tree): void {
    performTree(action, tree, this.#performers);
  }

  /** Begins or resumes the tree. A tree that has ended stays as it is. `lastAt`: the time of its last event. */
  async start(lastAt: number | null): Promise<void> {
    const { epoch, nodes } = this.#opened;
    const limits = this.#limits;
    const stopped = lastAt === null ? {} : { stoppedAt: lastAt };
    if (limits !== null) await this.submit({ type: 'LimitsChanged', node: ROOT, limits, ...stopped });
    if (this.state.name === 'Ended') return;
    const root = nodes[ROOT];
    const isNew = root?.name === 'INIT' && root.work.kind === 'new';
    // The first event since the opening says until when the tree ran.
    const since = limits === null ? stopped : {};
    await this.submit(
      isNew ? { type: 'Started', node: ROOT } : { type: 'Resumed', node: ROOT, epoch: epoch + 1, ...since },
    );
  }

  /** Cancels the root and all its descendants. */
  async cancel(): Promise<void> {
    await this.submit({ type: 'CancelRequested', node: ROOT, cause: 'user' });
  }

  /** Stops the tree so that it can be resumed. Resolves when all its work has ended. */
  async close(): Promise<void> {
    if (!this.isOver) {
      if (this.state.name === 'Running') await this.submit({ type: 'ShutdownRequested', node: ROOT });
      await this.end(null);
    }
    await this.ended;
  }

  /** On a full disk the tree stands down, as at a close, and can be resumed. */
  protected override async shutdownEvent(): Promise<Posted<AskTypes> | null> {
    return this.state.name === 'Running' ? { type: 'ShutdownRequested', node: ROOT } : null;
  }

  #waitForOutcome(): Promise<Outcome> {
    const before = outcomeOf(this.#opened);
    if (before !== null && this.#limits === null) return Promise.resolve(before);
    return new Promise((resolve, reject) => {
      const unwatch = this.watch(({ state }) => {
        const outcome = outcomeOf(state);
        if (outcome === null) return;
        unwatch();
        resolve(outcome);
      });
      this.ended.then(() => reject(new Error('the run was closed before its end')), reject);
    });
  }

  /** Waits until aborted calls have reported their usage and environments have ended. */
  protected async stopAll(): Promise<void> {
    const { calls, environments, timers } = this.#performers;
    timers.cancelAll();
    await Promise.all([calls.stopAll(), environments.stopAll()]);
  }
}
