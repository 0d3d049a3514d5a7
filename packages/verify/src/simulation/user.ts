/**
 * A user who types, cancels, edits and approves at any moment, according to the plan. From top to
 * bottom: single acts; the choice of the next one; and `User`, who sends them. When the faults of
 * the session are over (`isHealed`), the user only helps it to settle.
 */

import type { State } from '@pawl/agent/machine/state';
import type { Input } from '@pawl/agent/ports/session';
import type { LocalRuntime } from '@pawl/agent/session/runtime';
import type { SimulatedProcess } from './simulated-process.js';
import type { World } from './world.js';

const createInputText = (world: World): string => {
  const text = `${world.name('input')};`;
  world.inputs.set(text, { text, isAcknowledged: false, isWithdrawn: false });
  return text;
};

const createUserInput = (world: World): Input => ({
  type: 'UserInput',
  text: `${createInputText(world)} ${'please '.repeat(world.choices.pick(1, 200))}`,
  mode: world.choices.pick('steer', 'followUp'),
});

/** Approves, or denies, the first call that waits for it. */
const answerApproval = (world: World, state: State, isAllowed: boolean): Input | null => {
  if (state.name !== 'ExecutingTools') return null;
  const call = state.calls.find(({ status }) => status === 'awaitingApproval');
  if (call === undefined) return null;
  const { callId } = call.judged;
  const record = world.calls.get(callId);
  if (record !== undefined && record.askedIn !== world.processes)
    world.noteSituation('approval answered after a resume');
  const answer = isAllowed
    ? ({ kind: 'allow' } as const)
    : ({ kind: 'deny', reason: 'no' } as const);
  return { type: 'ApprovalAnswered', batchId: state.batchId, callId, answer, scope: 'once' };
};

/**
 * Removes the last item of the queue that the user sees; items that arrive meanwhile go with it.
 */
const shortenQueue = ({ session }: State): Input => ({
  type: 'EditQueue',
  items: session.queue.slice(0, -1),
});

const chooseBusyAct = (world: World, state: State): Input => {
  const { choices } = world;
  const calls =
    state.name === 'ExecutingTools' ? state.calls.map(({ judged }) => judged.callId) : [];
  const kind = choices.pick(
    'input',
    'cancel',
    'input',
    'cancelTool',
    'editQueue',
    'retry',
    'settings',
    'shutdown',
  );
  if (kind === 'cancel') {
    if (calls.length > 0) world.noteSituation('turn cancelled while tools ran');
    return { type: 'CancelTurn' };
  }
  const [callId] = calls;
  if (kind === 'cancelTool' && callId !== undefined && state.name === 'ExecutingTools')
    return { type: 'CancelTool', batchId: state.batchId, callId };
  if (kind === 'editQueue') return shortenQueue(state);
  if (kind === 'retry') return { type: 'RetryNow' };
  if (kind === 'settings')
    return { type: 'SettingsChanged', patch: { maxParallel: choices.between(1, 4) } };
  if (kind === 'shutdown' && choices.chance(0.3)) return { type: 'ShutdownRequested' };
  world.noteSituation('input while busy');
  return createUserInput(world);
};

const raiseLimit = (world: World, state: State): Input | null => {
  if (state.name !== 'WaitingForUserInput' || state.reason.kind !== 'budget') return null;
  const { dimension } = state.reason;
  const { limits } = state.session.settings;
  if (limits[dimension === 'time' ? 'timeMs' : dimension] === 'unlimited') return null;
  world.isLimitRaised = true;
  return { type: 'ApproveBudget', dimension, limit: 'unlimited' };
};

const chooseIdleAct = (world: World, state: State): Input => {
  const { choices } = world;
  const kind = choices.pick('input', 'input', 'compact', 'retryLast', 'raise', 'shutdown');
  if (kind === 'compact') return { type: 'CompactRequested' };
  if (kind === 'retryLast') return { type: 'RetryLast' };
  const raised = kind === 'raise' ? raiseLimit(world, state) : null;
  if (raised !== null) return raised;
  return kind === 'shutdown' && choices.chance(0.3)
    ? { type: 'ShutdownRequested' }
    : createUserInput(world);
};

const chooseAct = (world: World, state: State): Input => {
  if (state.name === 'Ready') return { type: 'Start' };
  if (state.name === 'WaitingForUserInput') return chooseIdleAct(world, state);
  const answered = world.choices.chance(0.8)
    ? answerApproval(world, state, !world.choices.chance(0.3))
    : null;
  return answered ?? chooseBusyAct(world, state);
};

/** The act of a user who helps the session to settle; null while it works. */
const chooseHelpfulAct = (world: World, state: State): Input | null => {
  if (state.name === 'Ready') return { type: 'Start' };
  const answered = answerApproval(world, state, true);
  if (answered !== null) return answered;
  if (state.name !== 'WaitingForUserInput') return null;
  const raised = raiseLimit(world, state);
  if (raised !== null) return raised;
  if (world.hasAskedLast) return null;
  world.hasAskedLast = true;
  return createUserInput(world);
};

const findInput = (world: World, input: Input) =>
  input.type === 'UserInput'
    ? world.inputs.get(input.text.slice(0, input.text.indexOf(' ')))
    : undefined;

export class User {
  readonly #process: SimulatedProcess;
  readonly #runtime: LocalRuntime;
  readonly #sessionId: string;

  constructor(process: SimulatedProcess, runtime: LocalRuntime, sessionId: string) {
    this.#process = process;
    this.#runtime = runtime;
    this.#sessionId = sessionId;
  }

  /** Acts again and again, until the plan's acts are used up. */
  live(): void {
    const { world } = this.#process;
    if (world.isHealed) this.#help();
    if (world.isHealed || world.acts >= world.plan.acts) return;
    // Such a session is about the waits before retries: its acts must come within them.
    const pauseMs = world.plan.isAboutRetries
      ? world.choices.pick(300, 1_000)
      : world.choices.pick(300, 5, 4_000, 40_000);
    this.#process.after(pauseMs, () => {
      world.acts += 1;
      const { state } = this.#process;
      if (state !== null) this.#send(chooseAct(world, state));
      this.live();
    });
  }

  #help(): void {
    const { world, state } = this.#process;
    const act = state === null ? null : chooseHelpfulAct(world, state);
    if (act !== null) this.#send(act);
    this.#process.after(1_000, () => this.#help());
  }

  #send(input: Input): void {
    const process = this.#process;
    const { world } = process;
    world.log(`user: ${input.type}`);
    const record = findInput(world, input);
    this.#runtime.send(this.#sessionId, input).then(
      () => {
        if (!process.isDead && record !== undefined) record.isAcknowledged = true;
      },
      () => {
        // asks again in the reopened session
        if (world.isHealed && !process.isDead) world.hasAskedLast = false;
      },
    );
  }
}
