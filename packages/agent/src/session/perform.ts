/**
 * Performs the actions of a session: each kind of action has one performer.
 *
 * `prepare` runs before the event of an action is durable, and may only read; `perform` runs after
 * it. Below them: `CheckpointRuns`, the performer of checkpoints, which needs no other one.
 */

import type { Action } from '../machine/action.js';
import type { RewindEvent } from '../machine/event.js';
import type { State } from '../machine/state.js';
import { attempt } from '../platform/attempt.js';
import { createTimers, type Timers } from '../platform/clock.js';
import { plural } from '../platform/text.js';
import type { CommandLevel } from '../policy/decide.js';
import type { JudgedCall } from '../policy/judged-call.js';
import type { Checkpoints, Restored, TakenCheckpoint } from '../ports/checkpoints.js';
import { HookRuns } from './after-tool-hooks.js';
import { Compactions } from './compaction.js';
import type { Equipment, PerformedSession, RunningSession } from './equipment.js';
import { Previews } from './judge-call.js';
import type { Post } from './loop.js';
import { ModelCalls } from './model-call.js';
import { ToolRuns } from './tool-run.js';
import { UserHookRuns } from './user-hooks.js';

export type Performers = {
  readonly models: ModelCalls;
  /** null: none was started yet. */
  compactions: Compactions | null;
  readonly createCompactions: () => Compactions;
  readonly tools: ToolRuns;
  readonly previews: Previews;
  readonly hooks: HookRuns;
  /** null: the user has no hooks. */
  readonly userHooks: UserHookRuns | null;
  readonly checkpoints: CheckpointRuns;
  readonly timers: Timers;
  readonly shutDown: () => void;
};

/**
 * Prepares an action before its event is durable. May only read and post. ToolStarted joins the
 * same group, so that a reply and the start of its calls cost one sync. So does the result of a
 * hook that only reads. Returns the ids of calls whose ToolStarted will be posted later.
 */
export const prepare = (
  action: Action,
  state: State,
  { tools, hooks }: Performers,
): readonly string[] => {
  if (action.type === 'RunHook') hooks.endEarly(action, state.session);
  if (action.type !== 'ExecuteTools') return [];
  const { batchId, calls } = action;
  return calls
    .filter((call) => tools.announceStart(batchId, call) === 'later')
    .map(({ callId }) => callId);
};

/**
 * Performs one action after its event is durable. Never throws, never waits; results are posted.
 */
export const perform = (action: Action, state: State, performers: Performers): void => {
  switch (action.type) {
    case 'SendLlmRequest':
      void performers.checkpoints.settle(); // takes the last batch's checkpoint meanwhile
      performers.models.send(action.requestId, action.length, state);
      break;
    case 'AbortLlmRequest':
      performers.models.abort(action.requestId);
      break;
    case 'PreviewCall':
      performers.previews.start(action.batchId, action.call);
      break;
    case 'WithdrawApproval': // also for watchers, which may already have asked
      performers.previews.drop(action.batchId, action.callId);
      break;
    case 'CancelTools':
      performers.tools.cancel(action.batchId, action.callIds, { force: action.force });
      break;
    case 'StartCompaction':
      performers.compactions ??= performers.createCompactions();
      performers.compactions.start(action, state);
      break;
    case 'AbortCompaction':
      performers.compactions?.abort(action.compactionId);
      break;
    case 'RestoreFiles':
      void performers.checkpoints.restore(
        action.rewindId,
        action.plan,
        state.name === 'Rewinding' && state.conversation === undefined,
      );
      break;
    case 'ScheduleTimer':
      performers.timers.after(action.timerId, action.delayMs);
      break;
    case 'CancelTimer':
      performers.timers.cancel(action.timerId);
      break;
    case 'RunHook':
      performers.hooks.start(action, state.session);
      break;
    case 'AbortHook':
      performers.hooks.abort(action.hookId);
      break;
    // Tools start elsewhere: `prepare` has posted ToolStarted, and ToolRuns runs them once it is
    // durable. The hooks after tools only remember the calls here.
    case 'ExecuteTools':
      performers.hooks.keep(action.batchId, action.calls);
      break;
    case 'Shutdown':
      performers.shutDown();
      break;
    case 'PromptForInput':
      void performers.checkpoints.endTurn();
      void performers.userHooks?.asked(action, state);
      break;
    case 'RequestApproval': // this and all that follow are for watchers
      void performers.userHooks?.asked(action, state);
      break;
    case 'DisplayText':
    case 'DisplayToolResult':
    case 'DisplayError':
    case 'DisplayWarning':
    case 'DisplayNotice':
    case 'RetractPartial':
    case 'RestoreQueue':
      break;
    default:
      action satisfies never;
  }
};

/** The performers of one session. They post all their results. */
export const createPerformers = (
  equipment: Equipment,
  { journal, opened, state, post, shutDown, userHooks: shared }: PerformedSession,
): Performers => {
  const userHooks = shared === undefined ? createUserHookRuns(equipment, opened, post) : shared;
  const checkpoints = new CheckpointRuns(
    equipment.checkpoints ?? null,
    post,
    () => equipment.jobs.list().length > 0,
  );
  const session: RunningSession = { journal, state, post, userHooks, checkpoints };
  const tools = new ToolRuns(equipment, session);
  const loadFiles = (): Promise<void> => tools.loadFiles();
  return {
    models: new ModelCalls(equipment, session),
    compactions: null,
    createCompactions: () => new Compactions(equipment, session),
    tools,
    previews: new Previews(equipment, session, loadFiles),
    hooks: new HookRuns(equipment, session, loadFiles),
    userHooks,
    checkpoints,
    timers: createTimers(equipment.clock, (timerId) => post({ type: 'TimerFired', timerId })),
    shutDown,
  };
};

/**
 * The user's hooks. If the session was interrupted in a batch, the hooks after this batch are still
 * to run: `ended` is the number of the batch before.
 */
export const createUserHookRuns = (
  { userHooks = null, redactor }: Equipment,
  { name, session }: State,
  post: Post,
): UserHookRuns | null => {
  if (userHooks === null) return null;
  const { batch } = session.counters;
  const ended = name === 'ExecutingTools' || name === 'PostToolsHook' ? batch - 1 : batch;
  return new UserHookRuns(userHooks, redactor, post, ended);
};

// ---- Checkpoints ----

/** Calls that may have changed files since the last checkpoint. */
type NotedCalls = {
  /** Null: a command of the user. */
  readonly batchId: string | null;
  /** They are those of a killed process, which nobody has noted. */
  readonly areKilled: boolean;
};

const NOTHING_CHANGED = { created: 0, changed: 0, deleted: 0, files: [] } as const;

type Taken = Extract<RewindEvent, { readonly type: 'CheckpointTaken' }>;

const LISTED_MAX = 10;
/** How long an event may take until it is in the journal, on the slowest of disks. */
const APPLIED_MS = 30_000;

/**
 * Takes checkpoints around calls, and posts each as CheckpointTaken; performs RestoreFiles. A
 * checkpoint stores what calls changed in files, so that a rewind can take it back.
 *
 * `before` notes a call that may change files (`#noted`). Once its batch has ended, `settle` takes
 * the checkpoint of the noted calls, which are `#last` then. `endTurn` looks at all files for them.
 * A fault never stops a call: the user reads which changes can't be taken back.
 */
export class CheckpointRuns {
  readonly checkpoints: Checkpoints | null;
  readonly #post: Post;
  readonly #hasJobs: () => boolean;
  /** Calls whose checkpoint is to be taken; null: none. */
  #noted: NotedCalls | null = null;
  /** Calls whose checkpoint was taken last in this turn; null: none. */
  #last: NotedCalls | null = null;
  /** A call of this session may have started a command in the background. */
  #mayHaveJobs = false;
  /** Commands ran in the background when the last checkpoint was begun. */
  #jobsRan = false;
  /** Ends when all checkpoints are taken, and their events are applied. */
  #settled: Promise<void> = Promise.resolve();
  /** How many checkpoints are being taken. */
  #taking = 0;
  /** Why the last calls began though their files could not be stored before; null: they could. */
  #fault: Error | null = null;

  /** `checkpoints` null: the session has none. `hasJobs`: commands run in the background. */
  constructor(checkpoints: Checkpoints | null, post: Post, hasJobs: () => boolean) {
    this.checkpoints = checkpoints;
    this.#post = post;
    this.#hasJobs = hasJobs;
  }

  /**
   * Before a call takes effect; `batchId` is null for a command of the user. `level`: the sandbox
   * of its command. A cancel ends it.
   */
  async before(
    batchId: string | null,
    call: JudgedCall | null,
    level: CommandLevel = 'off',
    signal?: AbortSignal,
  ): Promise<void> {
    const { checkpoints } = this;
    if (checkpoints === null || (call !== null && !call.traits.mutating)) return;
    const cancelled = new Promise<'cancelled'>((resolve) => {
      if (signal?.aborted) resolve('cancelled');
      signal?.addEventListener('abort', () => resolve('cancelled'), { once: true });
    });
    const isOther = this.#noted?.areKilled || this.#noted?.batchId !== batchId;
    if (isOther && !this.isSettled) await Promise.race([this.settle(), cancelled]);
    if (signal?.aborted) return;
    this.#noted ??= { batchId, areKilled: false };
    const looking = attempt(() => checkpoints.before(call, level)).then((looked) => {
      if (looked.kind === 'fault') this.#fault = looked.fault;
      return looked;
    });
    if ((await Promise.race([looking, cancelled])) === 'cancelled') return;
    this.#mayHaveJobs ||= call?.facts.background === 'yes';
  }

  /**
   * After a call: what the model is to hear of uncommitted text of the user that the call has lost;
   * empty: nothing. `hasEnded`: just now; false: at some time after the crash.
   */
  async after(call: JudgedCall, hasEnded = true): Promise<string> {
    const { checkpoints } = this;
    if (checkpoints === null || !call.traits.mutating || this.#noted === null) return '';
    const looked = await attempt(() => checkpoints.after(call, hasEnded));
    return looked.kind === 'done' ? looked.value : ''; // the checkpoint has all the same
  }

  /** A call for which `before` was called has not run. */
  withdraw(call: JudgedCall): void {
    // if it fails, the call has a checkpoint all the same
    void attempt(async () => this.checkpoints?.withdraw(call));
  }

  /** Calls of an earlier process may have changed files. `batchId`: of its last batch. */
  noteKilled(batchId: string): void {
    if (this.checkpoints !== null) this.#noted ??= { batchId, areKilled: true };
  }

  /** Whether nothing is left to take. */
  get isSettled(): boolean {
    return this.#taking === 0 && (this.#noted === null || this.checkpoints === null);
  }

  /** For the hooks, which are to know what the calls of a killed process changed; null: nothing. */
  settleKilled(): Promise<void> | null {
    return this.#noted?.areKilled ? this.settle() : null;
  }

  /** Takes the checkpoint of calls that have ended. Resolves when it is in the journal. */
  settle(): Promise<void> {
    const noted = this.#noted;
    const { checkpoints } = this;
    if (noted === null || checkpoints === null) return this.#settled;
    const alsoRan = noted.areKilled ? 'killedCalls' : this.#jobsRan ? 'jobs' : undefined;
    this.#noted = null;
    this.#last = noted;
    this.#jobsRan = this.#mayHaveJobs && this.#hasJobs();
    return this.#track(async () => {
      const by = changedBy(noted);
      const taken = await attempt(() =>
        checkpoints.take({ by, ...(alsoRan === undefined ? {} : { alsoRan }) }),
      );
      const before = this.#fault;
      if (taken.kind === 'done') this.#fault = null;
      const fault = taken.kind === 'fault' ? taken.fault : before;
      await this.#report(checkpoints, noted, taken.kind === 'done' ? taken.value : null, fault);
    });
  }

  /** Like `settle`, at the end of a turn: also takes what no call was seen to change. */
  endTurn(): Promise<void> {
    void this.settle();
    const last = this.#last;
    const { checkpoints } = this;
    this.#last = null;
    if (last === null || checkpoints === null) return this.#settled;
    return this.#track(async () => {
      const swept = await attempt(() => checkpoints.sweep(changedBy(last)));
      if (swept.kind === 'fault') await this.#report(checkpoints, last, null, swept.fault);
      else await this.#report(checkpoints, last, swept.value, null);
    });
  }

  #track(work: () => Promise<void>): Promise<void> {
    this.#taking += 1;
    const taking = work().finally(() => {
      this.#taking -= 1;
    });
    this.#settled = Promise.all([this.#settled, taking]).then(() => undefined);
    return this.#settled;
  }

  /** Posts a checkpoint, and why there is none, or only a part. Resolves when it is applied. */
  async #report(
    checkpoints: Checkpoints,
    noted: NotedCalls,
    taken: TakenCheckpoint | null,
    fault: Error | null,
  ): Promise<void> {
    if (taken === null && fault === null) return;
    // an empty id: there is no checkpoint, only the sentence about what could not be taken
    const { checkpoint = '', changes = NOTHING_CHANGED, leftOut = [] } = taken ?? {};
    const isInJournal = await this.#tell({
      checkpoint,
      by: changedBy(noted),
      batchId: noted.batchId,
      changes,
      leftOut: fault === null ? leftOut : [...leftOut, describeFault(fault)],
    });
    // otherwise, or if it fails, the next process tells it again
    if (taken !== null && isInJournal) await attempt(() => checkpoints.recorded());
  }

  /** Resolves with true when the event is in the journal and applied; false: the session is over. */
  #tell(taken: Omit<Taken, 'type' | 'at'>): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, APPLIED_MS, false).unref();
      this.#post({ type: 'CheckpointTaken', ...taken }, () => {
        clearTimeout(timer);
        resolve(true);
      });
    });
  }

  /** Performs RestoreFiles; `keepsConversation`: only files go back. Always posts its end. */
  async restore(rewindId: string, plan: string, keepsConversation: boolean): Promise<void> {
    const restored = await attempt(async () => {
      if (this.checkpoints === null) throw new Error('this session keeps no checkpoints');
      return this.checkpoints.restore(plan);
    });
    const outcome =
      restored.kind === 'done'
        ? restored.value
        : {
            checkpoint: null,
            changes: NOTHING_CHANGED,
            left: [{ path: '.', why: restored.fault.message }],
            refs: [],
          };
    const note = describeRestore(outcome, keepsConversation);
    const { checkpoint, changes, left } = outcome;
    const moved = outcome.refs.map(({ text }) => text);
    const refs = moved.length === 0 ? {} : { refs: moved };
    this.#post({ type: 'Rewound', rewindId, checkpoint, changes, left, note, ...refs });
  }

  /** Ends scans of the workspace. */
  async close(): Promise<void> {
    await attempt(() => this.checkpoints?.close());
  }
}

const changedBy = ({ batchId }: NotedCalls): 'user' | 'agent' =>
  batchId === null ? 'user' : 'agent';

/** What the model has to know about its files; null: they are as its conversation says. */
const describeRestore = (
  { changes, left, refs }: Restored,
  keepsConversation: boolean,
): string | null => {
  const { created, changed, deleted, files } = changes;
  const total = created + changed + deleted;
  const paths = files.map(({ path }) => path);
  const back =
    keepsConversation && total > 0
      ? [
          `The user took back changes of ${plural(total, 'file')}: ${list(paths, total)}. Read ` +
            'them again before you edit.',
        ]
      : [];
  const reasons = left.map(({ path, why }) => `${path} (${why})`);
  const stay =
    left.length === 0
      ? []
      : [
          `The user took back earlier work, but these stay as they are: ${list(reasons, left.length)}.`,
        ];
  const moved = refs.length === 0 ? [] : [`In git: ${refs.map(({ text }) => text).join('; ')}.`];
  return [...back, ...moved, ...stay].join(' ') || null;
};

const describeFault = ({ message }: Error): string =>
  `What these calls changed can’t be taken back, or not all of it: ${message}`;

const list = (texts: readonly string[], total: number): string => {
  const more = total - Math.min(texts.length, LISTED_MAX);
  const shown = texts.slice(0, LISTED_MAX).join(', ');
  return more > 0 ? `${shown} and ${more} more` : shown;
};
