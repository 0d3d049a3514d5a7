import type { HookPhase } from '../agent/purpose.js';
import type { State } from '../agent/state.js';
import { costOf } from './cost.js';
import { formatCost, formatSeconds, formatTokens, oneLine } from './print.js';
import { columnsOf, cutLine } from './width.js';

/** The state in plain words. */
const sayState = (state: State, now: number): string => {
  switch (state.name) {
    case 'Ready':
    case 'WaitingForUserInput':
      return sayWaiting(state);
    case 'CallingLlm':
      return state.call.mode === 'draining' ? 'stopping' : sayCalling(state.partial !== '', state.attempt);
    case 'Error':
      return `trying again in ${formatSeconds(state.dueAt - now)}`;
    case 'ExecutingTools':
      return sayTools(state);
    case 'PostToolsHook':
      return phaseWords[state.phase];
    case 'Compacting':
      return 'making room: summarising the conversation';
    case 'ShuttingDown':
      return 'closing';
    default:
      return state.name;
  }
};

const phaseWords: Readonly<Record<HookPhase, string>> = {
  CheckingGitCommits: 'checking commits',
  RunningAutoformatters: 'formatting',
  AutoCommitting: 'committing',
};

const sayCalling = (streams: boolean, attempt: number): string => {
  const what = streams ? 'answering' : 'thinking';
  return attempt > 1 ? `${what} (attempt ${attempt})` : what;
};

const sayTools = (state: Extract<State, { name: 'ExecutingTools' }>): string => {
  if (state.phase.mode === 'cancelling') return 'stopping what runs';
  if (state.calls.some((call) => call.status === 'awaitingApproval')) return 'needs your answer';
  const running = state.calls.filter((call) => call.status === 'running' || call.status === 'starting');
  return `running ${running.map((call) => call.judged.tool).join(', ')}`.trim();
};

const sayWaiting = (state: State): string => {
  if (state.name !== 'WaitingForUserInput') return 'ready';
  switch (state.reason.kind) {
    case 'cancelled':
      return 'stopped';
    case 'budget':
      return `limit reached: ${state.reason.dimension}`;
    case 'error':
      return 'failed: /retry tries again';
    default:
      return 'ready';
  }
};

/** Whether something goes on without the user. */
export const isBusy = (state: State): boolean =>
  state.name !== 'Ready' && state.name !== 'WaitingForUserInput' && state.name !== 'ShuttingDown';

/** Whether time passes on the screen: something runs, and is not waiting for the user. */
export const isMoving = (state: State): boolean =>
  isBusy(state) &&
  !(state.name === 'ExecutingTools' && state.calls.some((call) => call.status === 'awaitingApproval'));

const SPINNER = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
/** How long each picture of the spinner stays. */
export const SPINNER_MS = 120;

const spinnerAt = (now: number): string => SPINNER[Math.floor(now / SPINNER_MS) % SPINNER.length] ?? '';

const sayMoney = (state: State): string => {
  const { usd } = state.session.settings.limits;
  return `${formatCost(costOf(state))}${usd > 0 ? ` of $${usd.toFixed(2)}` : ''}`;
};

const sayContext = ({ session }: State): string => {
  const share = session.contextTokens / Math.max(1, session.settings.windowTokens);
  return `${Math.round(100 * share)}% of context`;
};

const sayTokens = ({ session: { usage } }: State): string =>
  `${formatTokens(usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens + usage.outputTokens)} tokens`;

const QUEUED_COLUMNS = 24;
const SEPARATOR = ' · ';

type Part = {
  readonly text: string;
  /** The smaller, the longer it stays when the window gets narrower. */
  readonly rank: number;
  readonly before?: string;
};

/** In the order in which they stand. */
const partsOf = (state: State, now: number): readonly Part[] => {
  const { queue, turn, settings } = state.session;
  const [first] = queue;
  return [
    { text: sayState(state, now), rank: 0 },
    { text: isBusy(state) ? formatSeconds(now - turn.startedAt) : '', rank: 1 },
    { text: queue.length > 0 ? `${queue.length} waiting` : '', rank: 2 },
    { text: cutLine(oneLine(first?.text ?? '', QUEUED_COLUMNS), QUEUED_COLUMNS), rank: 5, before: ': ' },
    { text: settings.model, rank: 8 },
    { text: sayTokens(state), rank: 6 },
    { text: sayMoney(state), rank: 3 },
    { text: sayContext(state), rank: 4 },
    { text: isMoving(state) ? 'Escape stops' : '', rank: 7 },
  ].filter((part) => part.text !== '');
};

const joined = (parts: readonly Part[]): string =>
  parts.map(({ text, before = SEPARATOR }, index) => (index === 0 ? text : before + text)).join('');

/** One row of at most `columns`: state, time in the turn, what waits, model, tokens, money, context. */
export const statusRow = (state: State, columns: number, now: number): string => {
  const spinner = isMoving(state) ? `${spinnerAt(now)} ` : '';
  let parts = partsOf(state, now);
  while (parts.length > 1 && columnsOf(spinner + joined(parts)) > columns) {
    const last = Math.max(...parts.map((part) => part.rank));
    parts = parts.filter((part) => part.rank !== last);
  }
  return cutLine(spinner + joined(parts), columns);
};
