/**
 * A tree of runs that is open in this process: `LiveTree` starts it, sends events and closes it.
 * The loop is the agent's (session/loop.ts).
 */

import { attempt } from '@pawl/agent/platform/attempt';
import { createTimers, type Timers } from '@pawl/agent/platform/clock';
import type { Journal } from '@pawl/agent/ports/journal';
import {
  JournaledSession,
  type MachineAdapter,
  type Post,
  type Posted,
} from '@pawl/agent/session/loop';
import { faultIn } from '@pawl/machine/kernel/shape';
import type { AskTypes } from '../ports.js';
import type { TreeAction } from '../run/action.js';
import { type ChangedLimits, verdictShape } from '../run/event.js';
import type { Outcome } from '../run/state.js';
import type { StopVerdict } from '../run/stop-policies.js';
import { ROOT } from '../tree/ledger.js';
import { stepTree } from '../tree/step-tree.js';
import { outcomeOf, type Tree } from '../tree/tree-state.js';
import { type AskEquipment, type StopPolicy, TreeCalls } from './model-calls.js';
import { Environments } from './run-environments.js';

/** The run of an id, which is its prefix: `n0.c1.1.2.t1` belongs to `n0.c1.1.2`. */
const getRunId = (id: string): string => id.slice(0, id.lastIndexOf('.'));

/**
 * A tree of runs that is open in this process, until it is closed or its journal fails. From the
 * base class: `post` queues an event, `submit` also waits until it is durable, and `end` ends the
 * session.
 */
export class LiveTree extends JournaledSession<AskTypes> {
  readonly #opened: Tree;
  /** New limits for a resumed tree; null: unchanged. */
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
    const post: Post<AskTypes> = (event, onApplied) => this.post(event, onApplied);
    const fired = (timerId: string): void =>
      post({ type: 'TimerFired', node: getRunId(timerId), timerId });
    this.#performers = {
      calls: new TreeCalls(equipment, settings, post),
      environments: new Environments(equipment, settings, post),
      timers: createTimers(equipment.clock, fired),
      policy: equipment.policy,
      post,
    };
    this.outcome = this.#waitForOutcome();
    // Avoids an unhandled rejection, which would end the process; awaiting `outcome` still rejects.
    this.outcome.catch(() => undefined);
  }

  /** Nothing has to be prepared for an action. */
  protected prepare(): readonly string[] {
    return [];
  }

  protected perform(action: AskTypes['action'], tree: Tree): void {
    performTree(action, tree, this.#performers);
  }

  /**
   * Begins or resumes the tree. A tree that has ended stays as it is. `lastAt`: the time of its
   * last event.
   */
  async start(lastAt: number | null): Promise<void> {
    // `epoch` counts how often the tree was opened again
    const { epoch, nodes } = this.#opened;
    const limits = this.#limits;
    const stopped = lastAt === null ? {} : { stoppedAt: lastAt };
    if (limits !== null)
      await this.submit({ type: 'LimitsChanged', node: ROOT, limits, ...stopped });
    if (this.current.name === 'Ended') return;
    const root = nodes[ROOT];
    const isNew = root?.name === 'INIT' && root.work.kind === 'new';
    // The first event since the opening says until when the tree ran.
    const since = limits === null ? stopped : {};
    await this.submit(
      isNew
        ? { type: 'Started', node: ROOT }
        : { type: 'Resumed', node: ROOT, epoch: epoch + 1, ...since },
    );
  }

  /** Cancels the root and all its descendants. */
  async cancel(): Promise<void> {
    await this.submit({ type: 'CancelRequested', node: ROOT, cause: 'user' });
  }

  /** Stops the tree so that it can be resumed. Resolves when all its work has ended. */
  async close(): Promise<void> {
    if (!this.isOver) {
      if (this.current.name === 'Running')
        await this.submit({ type: 'ShutdownRequested', node: ROOT });
      await this.end(null);
    }
    await this.ended;
  }

  /** On a full disk the tree stands down, as at a close, and can be resumed. */
  protected override async shutdownEvent(): Promise<Posted<AskTypes> | null> {
    return this.current.name === 'Running' ? { type: 'ShutdownRequested', node: ROOT } : null;
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

type TreePerformers = {
  readonly calls: TreeCalls;
  readonly environments: Environments;
  readonly timers: Timers;
  readonly policy: StopPolicy | null;
  readonly post: Post<AskTypes>;
};

type AskPolicy = Extract<TreeAction, { readonly type: 'AskPolicy' }>;

const failed = (why: string): StopVerdict => ({
  kind: 'stop',
  reason: 'policy',
  why: `the policy failed: ${why}`,
});

/** Checks the verdict of a user's policy, which may return anything. */
const checkVerdict = (verdict: StopVerdict): StopVerdict => {
  const why = faultIn(verdictShape, verdict, 'its verdict');
  return why === null ? verdict : failed(why);
};

/**
 * Asks the user's policy. If the policy fails, is missing or gives no verdict, the run stops, so
 * that a bug can't allow a forbidden call.
 */
const askPolicy = async (
  { node, policyId, facts }: AskPolicy,
  { policy, post }: TreePerformers,
): Promise<void> => {
  const asked = await attempt(() => policy?.(facts) ?? failed('it gave no verdict'));
  const verdict = asked.kind === 'done' ? checkVerdict(asked.value) : failed(asked.fault.message);
  post({ type: 'PolicyAnswered', node, policyId, verdict });
};

/**
 * Performs one action after its event is durable. Never throws or waits; results are posted as
 * events.
 */
const performTree = (action: TreeAction, tree: Tree, performers: TreePerformers): void => {
  const { calls, environments, timers } = performers;
  switch (action.type) {
    case 'CallModel': {
      const state = tree.nodes[action.node];
      if (state !== undefined) calls.send(action, state.run);
      break;
    }
    case 'AbortModel':
      calls.abort(action.requestId);
      break;
    case 'StartEnvironment':
      environments.start(action);
      break;
    case 'RunCell':
      environments.run(action);
      break;
    case 'AnswerSubcall':
      environments.answer(action);
      break;
    case 'ReadVariable':
      environments.read(action);
      break;
    case 'CloseEnvironment':
      environments.close(action.node);
      break;
    case 'AskPolicy':
      void askPolicy(action, performers);
      break;
    case 'ScheduleTimer':
      timers.after(action.timerId, action.delayMs);
      break;
    case 'CancelTimer':
      timers.cancel(action.timerId);
      break;
    case 'DisplayWarning': // this and what follows is for watchers
    case 'ReportOutcome':
      break;
    default:
      action satisfies never;
  }
};

/** Adapts the tree to journaled sessions: every event is journaled at once, and none is delayed. */
const askAdapter: MachineAdapter<AskTypes> = {
  step: stepTree,
  isVolatile: () => false,
  merge: (pending) => pending,
  contains: () => false,
  startedId: () => null,
};
