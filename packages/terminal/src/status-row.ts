import type { HookPhase } from '@pawl/agent/machine/action';
import type { Settings } from '@pawl/agent/machine/settings';
import { knownCostUsd, type State } from '@pawl/agent/machine/state';
import { totalTokens } from '@pawl/agent/machine/usage';
import { countColumns, cutLine, formatCost, formatSeconds, formatTokens, oneLine } from './paint.js';
import { joinSafe, makeSafe, type Safe, safe } from './safe-text.js';

const stateText = (state: State, now: number): Safe => {
  switch (state.name) {
    case 'Ready':
    case 'WaitingForUserInput':
      return waitingText(state);
    case 'CallingLlm':
      return state.call.mode === 'draining'
        ? safe`stopping`
        : callingText(state.partial !== '', state.attempt);
    case 'Error':
      return safe`retrying in ${secondsLeft(state.dueAt - now)}s (Enter: now)`;
    case 'ExecutingTools':
      return toolsText(state);
    case 'PostToolsHook':
      return phaseWords[state.phase];
    case 'Compacting':
      return safe`summarising the conversation to free context`;
    case 'ShuttingDown':
      return safe`closing`;
    default:
      return makeSafe(state.name);
  }
};

/** Whole seconds, so that the row changes once per second. */
const secondsLeft = (leftMs: number): number => Math.max(0, Math.ceil(leftMs / 1_000));

const phaseWords: Readonly<Record<HookPhase, Safe>> = {
  CheckingGitCommits: safe`checking commits`,
  RunningAutoformatters: safe`formatting`,
  AutoCommitting: safe`committing`,
};

const callingText = (streams: boolean, attempt: number): Safe => {
  const what = streams ? safe`answering` : safe`thinking`;
  return attempt > 1 ? safe`${what} (attempt ${attempt})` : what;
};

const toolsText = (state: Extract<State, { name: 'ExecutingTools' }>): Safe => {
  if (state.phase.mode === 'cancelling') return safe`stopping what runs`;
  if (state.calls.some((call) => call.status === 'awaitingApproval')) return safe`needs your answer`;
  const running = state.calls.filter((call) => call.status === 'running' || call.status === 'starting');
  return makeSafe(`running ${running.map((call) => call.judged.tool).join(', ')}`).trim();
};

const waitingText = (state: State): Safe => {
  if (state.name !== 'WaitingForUserInput') return safe`ready`;
  switch (state.reason.kind) {
    case 'cancelled':
      return safe`stopped`;
    case 'budget':
      return makeSafe(`limit reached: ${state.reason.dimension}`);
    case 'error':
      return safe`failed: /retry tries again`;
    default:
      return safe`ready`;
  }
};

/** Whether the session is working. */
export const isBusy = (state: State): boolean =>
  state.name !== 'Ready' && state.name !== 'WaitingForUserInput' && state.name !== 'ShuttingDown';

/** Whether time counts on the screen: something runs and doesn't wait for the user. */
export const isMoving = (state: State): boolean =>
  isBusy(state) &&
  !(state.name === 'ExecutingTools' && state.calls.some((call) => call.status === 'awaitingApproval'));

const SPINNER = safe`⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏`;
/** Duration of one picture of the spinner. */
export const SPINNER_MS = 120;

const spinnerAt = (now: number): Safe => {
  const index = Math.floor(now / SPINNER_MS) % SPINNER.length;
  return SPINNER.slice(index, index + 1);
};

const costText = (state: State): Safe => {
  const { usd } = state.session.settings.limits;
  return usd !== 'unlimited'
    ? safe`${formatCost(knownCostUsd(state))} of $${makeSafe(usd.toFixed(2))}`
    : formatCost(knownCostUsd(state));
};

const contextText = ({ session }: State): Safe => {
  const share = session.contextTokens / Math.max(1, session.settings.windowTokens);
  return safe`${Math.round(100 * share)}% of context`;
};

/** Characters per token: a rough mean for English and code. */
const SIGNS_A_TOKEN = 4;

/** Tokens of the session, plus an estimate for the reply that is streaming. */
const tokensText = ({ session: { usage } }: State, streamed: number): Safe => {
  const counted = totalTokens(usage);
  return streamed === 0
    ? safe`${formatTokens(counted)} tokens`
    : safe`~${formatTokens(counted + Math.ceil(streamed / SIGNS_A_TOKEN))} tokens`;
};

/** The keys that are useful in this state. */
const keysText = (state: State, typing: boolean): Safe => {
  if (isMoving(state))
    return typing ? safe`Enter: with the next step · Alt+Enter: after the turn` : safe`Escape stops`;
  if (state.name === 'WaitingForUserInput' && state.reason.kind === 'error') return safe``; // the text of the state already names /retry
  if (state.name === 'WaitingForUserInput' && state.reason.kind === 'budget') return safe`/budget raises it`;
  return typing || isBusy(state) ? safe`` : safe`/help`;
};

/** Shown only if commands run without a sandbox. */
const sandboxText = (sandbox: Settings['sandbox']): Safe => {
  if (sandbox === 'missing') return safe`no sandbox`;
  return sandbox === 'off' ? safe`sandbox off` : safe``;
};

const QUEUED_COLUMNS = 24;
const SEPARATOR = safe` · `;

type Part = {
  readonly text: Safe;
  /** Parts with a low rank stay longest in a narrow window. */
  readonly rank: number;
  readonly before?: Safe;
};

/** `streamed`: UTF-16 units of the running reply. `typing`: whether the input line has text. */
type StatusInput = { readonly streamed: number; readonly typing: boolean };

const NOTHING_SEEN: StatusInput = { streamed: 0, typing: false };

/** The parts in the order of the row. */
const statusParts = (state: State, now: number, { streamed, typing }: StatusInput): readonly Part[] => {
  const { queue, turn, settings } = state.session;
  const [first] = queue;
  return [
    { text: stateText(state, now), rank: 0 },
    { text: isBusy(state) ? formatSeconds(now - turn.startedAt) : safe``, rank: 1 },
    { text: queue.length > 0 ? safe`${queue.length} waiting` : safe``, rank: 2 },
    { text: cutLine(oneLine(first?.text ?? '', QUEUED_COLUMNS), QUEUED_COLUMNS), rank: 5, before: safe`: ` },
    { text: sandboxText(settings.sandbox), rank: 1.5 },
    { text: makeSafe(settings.model), rank: 8 },
    { text: tokensText(state, streamed), rank: 6 },
    { text: costText(state), rank: 3 },
    { text: contextText(state), rank: 4 },
    { text: keysText(state, typing), rank: 7 },
  ].filter((part) => part.text !== '');
};

const joined = (parts: readonly Part[]): Safe =>
  joinSafe(parts.map(({ text, before = SEPARATOR }, index) => (index === 0 ? text : safe`${before}${text}`)));

/** One row of at most `columns`: state, time of the turn, queue, model, tokens, cost, context. */
export const statusRow = (
  state: State,
  columns: number,
  now: number,
  seen: StatusInput = NOTHING_SEEN,
): Safe => {
  const spinner = isMoving(state) ? safe`${spinnerAt(now)} ` : safe``;
  let parts = statusParts(state, now, seen);
  while (parts.length > 1 && countColumns(spinner + joined(parts)) > columns) {
    const last = Math.max(...parts.map((part) => part.rank));
    parts = parts.filter((part) => part.rank !== last);
  }
  return cutLine(safe`${spinner}${joined(parts)}`, columns);
};
