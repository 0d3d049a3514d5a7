/**
 * One session of the agent that is open in this process.
 *
 * From top to bottom: `agentAdapter`, what the loop must know of the agent's events;
 * `AgentSession`, with `send` and `prompt`; `Turn`, the result of a prompt, and the words for why
 * it ended; and the buffer for events that nobody reads yet. Volatile events are pieces of a
 * streamed reply: they need not reach the disk one by one, since the whole reply follows. A foreign
 * session came from another state folder, for example by an import.
 */

import type { Action } from '../machine/action.js';
import type { CallStatus } from '../machine/call.js';
import type { PastFiles } from '../machine/carried-session.js';
import { messagesOf } from '../machine/conversation.js';
import type { Event, MachineUpgrade, On } from '../machine/event.js';
import { agent } from '../machine/machine.js';
import type { Dimension, Settings, Usage, UsageTotals } from '../machine/settings.js';
import type { State, StopCause, WaitReason } from '../machine/state.js';
import { attempt } from '../platform/attempt.js';
import { waitAtMost } from '../platform/clock.js';
import type { JudgedCall } from '../policy/judged-call.js';
import type { Grant } from '../policy/rules.js';
import type { FileVersion } from '../ports/checkpoints.js';
import type { AgentTypes, Journal } from '../ports/journal.js';
import type { Input } from '../ports/session.js';
import type { Job } from '../ports/tool.js';
import type { UnapprovedCall } from './approvals.js';
import type { Equipment } from './equipment.js';
import { judgeCall } from './judge-call.js';
import { JournaledSession, type MachineAdapter, notOpen, type Posted } from './loop.js';
import { checkInput } from './outside-values.js';
import { createPerformers, type Performers, perform, prepare } from './perform.js';
import type {
  PlannedRewind,
  ReadJournal,
  RewindPoint,
  RewindReport,
  RewindRequest,
} from './rewind.js';
import { recoverCalls, runningCalls, type StoppedCalls } from './tool-run.js';
import type { SessionBegin } from './user-hooks.js';

const isVolatile = (event: Event): boolean =>
  event.type === 'TextDelta' ||
  event.type === 'ReasoningDelta' ||
  event.type === 'ToolCallDelta' ||
  event.type === 'ToolProgress';

/**
 * Merges the text of one reply at a time. Between two requests there is always another event
 * (rules.md#merged-text).
 */
const mergeText = (pending: Event | null, event: Event): Event | null => {
  if (event.type !== 'TextDelta') return pending;
  return { ...event, text: (pending?.type === 'TextDelta' ? pending.text : '') + event.text };
};

/**
 * The agent's deltas are volatile. A group (events that are journaled together) waits for the
 * ToolStarted events of the calls that it starts. Events are not checked again: `send` checks those
 * of a user, performers check what models, tools and hooks give.
 */
export const agentAdapter: MachineAdapter<AgentTypes> = {
  step: agent.stepUnchecked,
  isVolatile,
  merge: mergeText,
  // a whole reply makes its streamed text superfluous
  contains: (next, pending) =>
    next.type === 'LlmCompleted' &&
    pending.type === 'TextDelta' &&
    next.requestId === pending.requestId,
  startedId: (event) => (event.type === 'ToolStarted' ? event.callId : null),
};

/**
 * Facts about the end of the earlier process, read from the journal.
 *
 * - `past`: the files that calls have read and written; absent: the journal is read for it later.
 * - `stoppedAt`: the time of the last event, if a turn runs: the time since then does not count for
 *   it.
 * - `upgrade`: set if an earlier version of the machine wrote the last entries. It tells with which
 *   conversation and work this version goes on.
 */
type Interruption = {
  readonly past: PastFiles | undefined;
  readonly stoppedAt: number | null;
  readonly upgrade: MachineUpgrade | undefined;
};

/**
 * A session of the agent that is open in this process. It ends after the machine's Shutdown, or
 * with an error.
 */
export class AgentSession extends JournaledSession<AgentTypes> {
  readonly #journal: Journal;
  /** The state with which the session was opened. */
  readonly #opened: State;
  readonly #equipment: Equipment;
  readonly #report: (fault: Error) => void;
  readonly #performers: Performers;
  /** The last entry from elsewhere; Infinity: all are, and the next prompt adopts the session. */
  #foreignUntil: number;
  /** Rewinds so far, for their ids. */
  #rewinds = 0;

  constructor(
    journal: Journal,
    opened: State,
    equipment: Equipment,
    report: (fault: Error) => void,
  ) {
    super({ adapter: agentAdapter, journal, state: opened, clock: equipment.clock, report });
    this.#journal = journal;
    this.#foreignUntil = journal.foreignUntil ?? 0;
    this.#opened = opened;
    this.#equipment = equipment;
    this.#report = report;
    this.#performers = createPerformers(equipment, {
      journal,
      opened,
      state: () => this.state,
      post: (event, onApplied) => this.post(event, onApplied),
      shutDown: () => void this.end(null),
    });
  }

  /** Starts the hooks about the session's start. */
  begin(source: SessionBegin): void {
    void this.#performers.userHooks?.begin(source, this.state.session.settings.model);
  }

  /** The loop calls it before the event of the action is durable. */
  protected prepare(action: Action, state: State): readonly string[] {
    return prepare(action, state, this.#performers);
  }

  /** The loop calls it once the event of the action is durable. */
  protected perform(action: Action, state: State): void {
    perform(action, state, this.#performers);
  }

  /** The background commands of the session, oldest first. */
  get jobs(): readonly Job[] {
    return this.#equipment.jobs.list();
  }

  /**
   * Resolves when the event is durable and applied. Rejects with a TypeError for input that is no
   * event of a user.
   */
  async send(value: Input): Promise<{ readonly seq: number }> {
    const input = checkInput(value);
    if (input.type === 'ShutdownRequested') return this.#shutDown();
    if (input.type === 'SettingsChanged') {
      // only the runtime may set these two
      const { stoppedAt: _, ...change } = input;
      const { tools: __, ...patch } = input.patch;
      return this.submit({ ...change, ...this.#changeSettings(patch) });
    }
    const sent = await this.submit(input);
    if (!Number.isFinite(this.#foreignUntil) && input.type === 'UserInput') await this.#adopt();
    return sent;
  }

  async #adopt(): Promise<void> {
    this.#foreignUntil = this.#journal.seq;
    const adopted = await attempt(() => this.#journal.adopt?.());
    // It stays foreign. A later resume then ends pending work instead of going on with it.
    if (adopted.kind === 'fault') this.#report(adopted.fault);
  }

  /** Calls are stopped first, so that the model learns what became of them. */
  async #shutDown(): Promise<{ readonly seq: number }> {
    const { tools, checkpoints } = this.#performers;
    const stopped = tools.isIdle ? null : await tools.stopForEnd();
    // A session with nothing to wait for ends at once, so the event of the last checkpoint must
    // come before.
    if (!checkpoints.isSettled) await checkpoints.settle();
    // A rewind is changing files: it comes to its end first.
    if (this.state.name === 'Rewinding') await this.idle();
    const submitted = this.submit({ type: 'ShutdownRequested', ...stoppedOutcomes(stopped) });
    stopped?.reportUsage();
    return submitted;
  }

  protected override async shutdownEvent(): Promise<Posted> {
    return {
      type: 'ShutdownRequested',
      ...stoppedOutcomes(await this.#performers.tools.stopForEnd()),
    };
  }

  /**
   * Resolves when the session waits for the user, and has looked at what its calls changed: files
   * that somebody changes then are not the calls'. Rejects with the error that stopped the session.
   */
  async idle(): Promise<State> {
    const state = await this.#rest();
    const { checkpoints } = this.#performers;
    // a session that is over takes no event of a checkpoint
    if (!checkpoints.isSettled) await Promise.race([checkpoints.settle(), this.ended]);
    return state;
  }

  async #rest(): Promise<State> {
    if (this.fault !== null) await this.ended; // rejects with the fault
    if (isIdle(this.state)) return this.state;
    return new Promise((resolve, reject) => {
      const unwatch = this.watch(({ state }) => {
        if (!isIdle(state)) return;
        unwatch();
        resolve(state);
      });
      this.ended.then(() => reject(notOpen(this.header.sessionId)), reject);
    });
  }

  /** Where the session can go back to, the oldest first. */
  async timeline(): Promise<readonly RewindPoint[]> {
    await this.#settleFiles();
    const { readTimeline } = await import('./rewind.js');
    const { checkpoints } = this.#performers.checkpoints;
    return (await readTimeline(this.#readJournal(), checkpoints)).points;
  }

  /** What a rewind would do. Rejects with CannotRewind. */
  async planRewind(request: RewindRequest): Promise<RewindReport> {
    await this.#settleFiles();
    const { planRewind } = await import('./rewind.js');
    const { checkpoints } = this.#performers.checkpoints;
    return (await planRewind(this.#readJournal(), this.state, checkpoints, request)).report;
  }

  /**
   * Goes back to an entry: the conversation, and what the session's calls have changed in files.
   * Rejects with CannotRewind, and changes nothing then.
   */
  async rewind(request: RewindRequest): Promise<RewindReport> {
    await this.#settleFiles();
    const { planRewind } = await import('./rewind.js');
    const { checkpoints } = this.#performers.checkpoints;
    return this.#goTo(await planRewind(this.#readJournal(), this.state, checkpoints, request));
  }

  /** Brings back a version of a file that a checkpoint holds. */
  async restoreFile(version: FileVersion): Promise<RewindReport> {
    await this.#settleFiles();
    const { planFile } = await import('./rewind.js');
    const { checkpoints } = this.#performers.checkpoints;
    return this.#goTo(await planFile(this.#readJournal(), checkpoints, version));
  }

  /** Goes forward again from the last rewind. Rejects with CannotRewind if there is none. */
  async redo(): Promise<RewindReport> {
    await this.#settleFiles();
    const { planRedo } = await import('./rewind.js');
    const { checkpoints } = this.#performers.checkpoints;
    return this.#goTo(await planRedo(this.#readJournal(), this.state, checkpoints));
  }

  /**
   * Takes the last summary of the conversation back. Rejects with CannotRewind if there is none, or
   * if the messages no longer fit the window of the model.
   */
  async undoCompaction(): Promise<RewindReport> {
    await this.#settleFiles();
    const { planUndoCompaction } = await import('./rewind.js');
    return this.#goTo(await planUndoCompaction(this.#readJournal(), this.state));
  }

  /** Runs a command of the user, so that what it changes is kept. */
  async whileUserRuns<T>(command: () => Promise<T>): Promise<T> {
    const { checkpoints } = this.#performers;
    await checkpoints.before(null, null);
    try {
      return await command();
    } finally {
      await checkpoints.settle();
    }
  }

  /** Resolves when no call runs and the last checkpoint is in the journal. */
  async #settleFiles(): Promise<void> {
    if (this.state.name !== 'WaitingForUserInput' && this.state.name !== 'Ready') {
      const { CannotRewind } = await import('./rewind.js');
      throw new CannotRewind('A turn is running: stop it first, then take it back.');
    }
    await this.#performers.checkpoints.settle();
  }

  #readJournal(): ReadJournal {
    const { header, seq } = this;
    return { header, seq, foreignUntil: this.#foreignUntil, entries: () => this.#journal.read(1) };
  }

  /** Posts the planned rewind, and waits until its files are restored or it is refused. */
  async #goTo(planned: PlannedRewind): Promise<RewindReport> {
    const { to, direction, conversation, plan, refusal, note = null, report } = planned;
    const { CannotRewind, reportRewind } = await import('./rewind.js');
    if (refusal !== null) throw new CannotRewind(refusal);
    if (plan === null && conversation === null) return report;
    this.#rewinds += 1; // two may be asked for after one entry
    const rewindId = `rewind-${this.seq + 1}-${this.#rewinds}`;
    const rewound = new Promise<On<'Rewound'> | null>((resolve, reject) => {
      const unwatch = this.watch(({ event, diagnostics }) => {
        if (!('rewindId' in event) || event.rewindId !== rewindId) return;
        const [refused] = diagnostics; // why the machine refuses the event
        const isAccepted = event.type === 'RewindRequested' && refused === undefined;
        // Files are being restored: Rewound follows.
        if (isAccepted && plan !== null) return;
        unwatch();
        if (refused !== undefined)
          reject(new CannotRewind(`Nothing was taken back: ${refused.why}.`));
        else resolve(event.type === 'Rewound' ? event : null);
      });
      this.ended.then(
        () => resolve(null),
        () => resolve(null),
      );
    });
    const submitted = this.submit({
      type: 'RewindRequested',
      rewindId,
      to,
      direction,
      ...(conversation === null ? {} : { conversation }),
      ...(plan === null ? {} : { files: { plan } }),
      ...(note === null ? {} : { note }),
    });
    const [done] = await Promise.all([rewound, submitted]);
    if (done === null) return report;
    const stays = new Set(done.left.map(({ path }) => path));
    // What stays as it is: files, and HEAD, branches and the index of git (`refs`) by their names.
    // '.': everything, since the restore failed as a whole.
    const refs = stays.has('.') ? [] : report.refs.filter(({ name }) => !stays.has(name));
    return reportRewind(planned, report.messages, { ...done, refs });
  }

  /** Shuts the session down if it still runs. Resolves when it has ended. */
  async close(): Promise<void> {
    if (!this.isOver) await this.send({ type: 'ShutdownRequested' });
    await this.ended;
  }

  /**
   * Continues a session that was opened again. New settings are applied first, so that nothing
   * starts under the old ones. After a clean end nothing starts, and settings can change only once
   * the session is open.
   */
  async resume(
    { changes, grants }: { readonly changes: Partial<Settings>; readonly grants: readonly Grant[] },
    { past, stoppedAt, upgrade }: Interruption,
  ): Promise<void> {
    const { epoch: before, grants: recorded, settings, counters } = this.#opened.session;
    const wasClosed = this.#opened.name === 'ShuttingDown';
    const stopped = stoppedAt === null ? {} : { stoppedAt };
    const hasSameGrants = JSON.stringify(recorded) === JSON.stringify(grants);
    const change = (): void => {
      if (Object.keys(changes).length === 0 && hasSameGrants) return;
      this.post({
        ...this.#changeSettings(changes),
        ...(hasSameGrants ? {} : { grants }),
        ...stopped,
      });
    };
    const judged = await this.#judgePending({ ...settings, ...changes });
    if (!wasClosed) change();
    const event: Posted = {
      type: 'Resumed',
      epoch: before + 1,
      ...stopped,
      ...(upgrade === undefined ? {} : { upgrade }),
      ...judged,
    };
    // A killed batch may have no checkpoint of its files yet.
    if (!wasClosed && counters.batch > 0)
      this.#performers.checkpoints.expect(`batch-${counters.batch}`);
    const resumed = this.submit(event, (accepted, state) => {
      if (accepted) this.#recover(state, past);
    });
    if (wasClosed) change();
    await resumed;
  }

  /**
   * Judges the calls that have not run by their tools, from their inputs: what the journal says of
   * them is not believed.
   */
  async #judgePending({ workspace, sandbox }: Settings): Promise<Pick<On<'Resumed'>, 'judged'>> {
    if (this.#opened.name !== 'ExecutingTools') return {};
    const { calls } = this.#opened;
    const { tools, redactor, userPlaces } = this.#equipment;
    const judged: JudgedCall[] = [];
    for (const { judged: call, status } of calls) {
      if (!isPending(status)) continue;
      const { callId, tool, rawInput = JSON.stringify(call.input) } = call;
      const rejudged = await judgeCall(
        { type: 'call', callId, tool, rawInput },
        tools,
        workspace,
        redactor,
        userPlaces,
        sandbox,
      );
      // Hooks only tighten, and do not run twice for a call.
      judged.push(call.hooks === undefined ? rejudged : { ...rejudged, hooks: call.hooks });
    }
    return judged.length === 0 ? {} : { judged };
  }

  /** Adds the prices of a new model. Throws if the model is not connected. */
  #changeSettings(patch: Partial<Settings>): Extract<Input, { readonly type: 'SettingsChanged' }> {
    if (patch.model === undefined) return { type: 'SettingsChanged', patch };
    return {
      type: 'SettingsChanged',
      patch,
      prices: this.#equipment.model(patch.model).facts.prices,
    };
  }

  /** Settles the calls that an earlier process left. */
  #recover(resumed: State, past: PastFiles | undefined): void {
    const running = runningCalls(this.#opened, resumed);
    const waited = running.map(({ batchId, call }) => `${batchId} ${call.callId}`);
    const takingOver = attempt(() => this.#equipment.takeOver?.(waited)).then((taken) => {
      if (taken.kind === 'fault') this.#report(taken.fault);
    });
    recoverCalls(running, this.#journal, this.#performers.tools, { known: past, takingOver });
  }

  /**
   * Waits at most a grace period: for tools that were ended by force, and for aborted replies,
   * whose usage must still be journaled.
   */
  protected async stopAll(): Promise<void> {
    const { models, compactions, timers, tools, previews, hooks, userHooks } = this.#performers;
    timers.cancelAll();
    const { clock, jobs } = this.#equipment;
    const stopped = Promise.all(
      [models, compactions, tools, previews, hooks, userHooks].map((runs) => runs?.stopAll()),
    );
    await waitAtMost(clock, this.state.session.settings.graceMs, stopped);
    for (const job of jobs.list()) {
      const killed = await attempt(() => job.kill());
      if (killed.kind === 'fault') this.#report(killed.fault);
    }
    await userHooks?.end();
    await this.#performers.checkpoints.close();
    const closed = await attempt(() => this.#equipment.close?.(this.fault !== null));
    if (closed.kind === 'fault') this.#report(closed.fault);
  }
}

const stoppedOutcomes = (
  stopped: StoppedCalls | null,
): Pick<On<'ShutdownRequested'>, 'outcomes'> => {
  const outcomes = stopped?.outcomes() ?? [];
  return outcomes.length === 0 ? {} : { outcomes };
};

/** Whether a call has not run and is to be decided again when the session is resumed. */
const isPending = (status: CallStatus): boolean =>
  status === 'queued' ||
  status === 'previewing' ||
  status === 'awaitingApproval' ||
  status === 'starting';

/** Whether the session does nothing until the user acts. */
const isIdle = ({ name }: State): boolean =>
  name === 'WaitingForUserInput' || name === 'Ready' || name === 'ShuttingDown';

/** The result of a prompt, available when the session is idle again. */
export type Turn = {
  /** True if the turn ended with the model's answer. */
  readonly ok: boolean;
  /** The model's final text; empty if the turn ended without an answer. */
  readonly text: string;
  /** Why the turn ended: `endOfTurn`, `cancelled`, `budget`, `error`, … */
  readonly reason: TurnReason;
  /** Tokens and cost since the prompt; the cost is null if the price of any call is unknown. */
  readonly usage: Usage;
  readonly state: State;
};

/** Why a turn ended. `unapproved`: calls needed an approval, and nobody was there to give it. */
export type TurnReason =
  | WaitReason
  | {
      readonly kind: 'cancelled';
      readonly cause: 'approval';
      readonly unapproved: readonly UnapprovedCall[];
    };

/** The text of the last message if the model wrote it; empty otherwise. */
const finalText = (state: State): string => {
  const last = messagesOf(state.session.conversation).at(-1);
  if (last?.role !== 'assistant') return '';
  return last.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('');
};

/** Tokens and cost that were added to the totals. */
export const usageBetween = (before: UsageTotals, after: UsageTotals): Usage => ({
  inputTokens: after.inputTokens - before.inputTokens,
  outputTokens: after.outputTokens - before.outputTokens,
  cacheReadTokens: after.cacheReadTokens - before.cacheReadTokens,
  cacheWriteTokens: after.cacheWriteTokens - before.cacheWriteTokens,
  costUsd: after.unpriced > before.unpriced ? null : after.costUsd - before.costUsd,
  ...(after.estimated === undefined ? {} : { estimated: after.estimated }),
});

/** If the session was shut down during the turn, the prompt counts as cancelled. */
const turnReason = (state: State): WaitReason =>
  state.name === 'WaitingForUserInput' ? state.reason : { kind: 'cancelled', cause: 'user' };

export const createTurn = (
  before: UsageTotals,
  state: State,
  unapproved: readonly UnapprovedCall[],
): Turn => {
  const reason = turnReason(state);
  const endedByModel = reason.kind === 'endOfTurn';
  return {
    ok: endedByModel && reason.cause === 'answer',
    text: endedByModel ? finalText(state) : '',
    reason:
      reason.kind === 'cancelled' && unapproved.length > 0
        ? { kind: 'cancelled', cause: 'approval', unapproved: [...unapproved] }
        : reason,
    usage: usageBetween(before, state.session.usage),
    state,
  };
};

type EndCause = Extract<WaitReason, { readonly kind: 'endOfTurn' }>['cause'];

const limitTexts: Readonly<Record<Dimension, string>> = {
  usd: 'The limit in dollars is reached, or the next request could exceed it.',
  tokens: 'The limit in tokens is reached, or the next request could exceed it.',
  time: 'The time limit was reached.',
  rounds: 'The limit in rounds was reached.',
  truncation: 'The reply was cut off at the output limit of the model several times.',
  repeats: 'The model repeated the same calls, so the turn was stopped.',
  errors: 'All calls of the model failed several times in a row, so the turn was stopped.',
  sameResults:
    'The calls of the model gave the same results several times, so the turn was stopped.',
};

const endTexts: Readonly<Record<EndCause, string>> = {
  answer: '',
  empty: 'The model gave an empty reply.',
  refused: 'The model, or a filter of its provider, stopped the answer.',
  truncated: 'The answer was cut off at the output limit of the model.',
};

const stopTexts: Readonly<Record<StopCause, string>> = {
  user: 'The turn was cancelled.',
  veto: 'A hook stopped the turn.',
  approval: 'A call needed approval, but there was no user to ask.',
  policy: 'The stopping policy ended the turn.',
};

/**
 * Why a turn ended, as sentences; empty if it ended with the model's answer, or has not started.
 */
export const reasonText = (reason: WaitReason): string => {
  switch (reason.kind) {
    case 'endOfTurn':
      return endTexts[reason.cause];
    case 'cancelled':
      return stopTexts[reason.cause];
    case 'budget':
      return limitTexts[reason.dimension];
    case 'error':
      return reason.message;
    case 'start':
    case 'compacted':
    case 'rewound':
    case 'resumed':
      return '';
    default:
      return reason satisfies never;
  }
};

/** Keeps items in order until someone subscribes. */
export type EventBuffer<T extends object | string> = {
  push(item: T): void;
  /** Delivers the kept items, then each new one. The returned function ends the subscription. */
  subscribe(listener: (item: T) => void): () => void;
};

export const createEventBuffer = <T extends object | string>(): EventBuffer<T> => {
  const early: T[] = [];
  let deliver = (item: T): void => void early.push(item);
  return {
    push: (item) => deliver(item),
    subscribe(listener) {
      for (let item = early.shift(); item !== undefined; item = early.shift()) listener(item);
      deliver = listener;
      return () => {
        deliver = () => undefined;
      };
    },
  };
};
