import type { Journal, Watcher } from '../../needs.js';
import type { AskTypes } from '../../needs-recursive.js';
import { ROOT } from '../../recursive/ids.js';
import type { Outcome } from '../../recursive/state.js';
import { outcomeOf, type Tree } from '../../recursive/tree-state.js';
import { Life } from '../life.js';
import type { Post } from '../posted.js';
import { createTimers } from '../timers.js';
import { TreeCalls } from './calls.js';
import { Environments } from './environments.js';
import type { AskEquipment } from './equipment.js';
import { askFlow } from './flow.js';
import { performTree, type TreePerformers } from './perform.js';

/** Ids begin with the name of the run that they are of: `n0.c1.1.2.t1` is of `n0.c1.1.2`. */
const runOf = (id: string): string => id.slice(0, id.lastIndexOf('.'));

/** One tree of runs while it is open in this process. It ends when it is closed, or with what stopped its journal. */
export class LiveTree {
  readonly #opened: Tree;
  readonly #performers: TreePerformers;
  readonly #life: Life<AskTypes>;
  /** What the root comes to. Rejects with what stopped the tree before that. */
  readonly outcome: Promise<Outcome>;

  constructor(
    journal: Journal<AskTypes>,
    opened: Tree,
    equipment: AskEquipment,
    report: (fault: Error) => void,
  ) {
    this.#opened = opened;
    const { settings } = journal.header;
    const { clock, policy } = equipment;
    const post: Post<AskTypes> = (event, applied) => this.#life.post(event, applied);
    const performers: TreePerformers = {
      calls: new TreeCalls(equipment, settings, post),
      environments: new Environments(equipment, settings, post),
      timers: createTimers(clock, (timerId) => post({ type: 'TimerFired', node: runOf(timerId), timerId })),
      policy,
      post,
    };
    this.#performers = performers;
    this.#life = new Life<AskTypes>({
      flow: askFlow,
      journal,
      opened,
      clock,
      prepare: () => [],
      perform: (action, tree) => performTree(action, tree, performers),
      stopAll: () => this.#stopAll(),
      report,
    });
    this.outcome = this.#waitForOutcome();
    // whoever waits for it gets the error; a tree that nobody waits for must not end the process
    this.outcome.catch(() => undefined);
  }

  get state(): Tree {
    return this.#life.state;
  }

  /** Resolves when it was closed; rejects with what stopped it otherwise. */
  get ended(): Promise<void> {
    return this.#life.ended;
  }

  /** Calls the watcher with every step from now on; the returned function ends that. */
  watch(watcher: Watcher<AskTypes>): () => void {
    return this.#life.watch(watcher);
  }

  /** Begins, or goes on where it was; what is over stays so. */
  async start(): Promise<void> {
    const { name, epoch, nodes } = this.#opened;
    if (name === 'Ended') return;
    const root = nodes[ROOT];
    const isNew = root?.name === 'INIT' && root.work.kind === 'new';
    await this.#life.send(
      isNew ? { type: 'Started', node: ROOT } : { type: 'Resumed', node: ROOT, epoch: epoch + 1 },
    );
  }

  /** Ends the root and all below it. */
  async cancel(): Promise<void> {
    await this.#life.send({ type: 'CancelRequested', node: ROOT, cause: 'user' });
  }

  /** Stands down what still runs, so that it can be resumed; resolves when nothing of it runs any more. */
  async close(): Promise<void> {
    if (!this.#life.isOver) {
      if (this.state.name === 'Running') await this.#life.send({ type: 'ShutdownRequested', node: ROOT });
      await this.#life.end(null);
    }
    await this.ended;
  }

  #waitForOutcome(): Promise<Outcome> {
    const before = outcomeOf(this.#opened);
    if (before !== null) return Promise.resolve(before);
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

  /** Calls that were cut off are still to say what they cost; environments leave nothing behind. */
  async #stopAll(): Promise<void> {
    const { calls, environments, timers } = this.#performers;
    timers.cancelAll();
    await Promise.all([calls.stopAll(), environments.stopAll()]);
  }
}
