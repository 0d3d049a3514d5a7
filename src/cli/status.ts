import type { HookPhase } from '../agent/purpose.js';
import type { State } from '../agent/state.js';
import { formatCost, formatSeconds, formatTokens } from './print.js';
import { costOf } from './records.js';

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

/** One line: state, time in the turn, tokens, money, what waits. */
export const statusLine = (state: State, now: number): string => {
  const { usage, queue, turn } = state.session;
  const tokens = usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens + usage.outputTokens;
  return [
    sayState(state, now),
    ...(isBusy(state) ? [formatSeconds(now - turn.startedAt)] : []),
    `${formatTokens(tokens)} tokens`,
    formatCost(costOf(state)),
    ...(queue.length > 0 ? [`${queue.length} waiting`] : []),
  ].join(' · ');
};
