import { costOf } from '@pawl/agent/machine/known-cost';
import type { Dimension, Limits } from '@pawl/agent/machine/settings';
import type { State } from '@pawl/agent/machine/state';
import { isLimited, type Limit, readLimit } from '@pawl/agent/machine/values/limit-value';
import { factsOf } from '@pawl/agent/models/catalogue';
import type { Input } from '@pawl/agent/ports/session-input-output';
import { formatCost, formatTokens } from '@pawl/terminal/paint-text';
import { makeSafe } from '@pawl/terminal/safe-text';
import { type Command, NotNow } from './command-context.js';

/** `/cost` and `/budget`: what the session has cost, and its limits. */

export const cost: Command = ({ view }) => {
  const { usage, settings } = view.state.session;
  const unpriced = usage.unpriced === 0 ? '' : ` · ${usage.unpriced} calls without a known price`;
  const text = [
    `  input ${formatTokens(usage.inputTokens)} · cache read ${formatTokens(usage.cacheReadTokens)}`,
    `cache write ${formatTokens(usage.cacheWriteTokens)} · output ${formatTokens(usage.outputTokens)}`,
    formatCost(costOf(view.state)) + unpriced,
  ].join(' · ');
  const { prices } = factsOf(settings.model);
  const price =
    prices === null
      ? ''
      : `\n  ${settings.model}: $${prices.input} in, $${prices.output} out per million tokens`;
  view.print(makeSafe(text + price));
};

type Unit = 'usd' | 'tokens' | 'rounds' | 'time';

const UNITS: Readonly<Record<string, Unit>> = {
  $: 'usd',
  usd: 'usd',
  dollar: 'usd',
  dollars: 'usd',
  token: 'tokens',
  tokens: 'tokens',
  round: 'rounds',
  rounds: 'rounds',
  minute: 'time',
  minutes: 'time',
  min: 'time',
};
const FACTORS: Readonly<Record<string, number>> = { '': 1, k: 1_000, m: 1_000_000 };

/** A limit as the user typed it; `unit` is null if only an amount was given. Zero means no limit. */
export type Budget = { readonly amount: number; readonly unit: Unit | null };

/** Parses `5`, `$5`, `200k tokens`, `30 rounds`, `10 minutes`; null for anything else. */
export const readBudget = (words: string): Budget | null => {
  const found = /^(\$?)\s*(\d+(?:\.\d+)?)\s*(?:(k|m)(?![a-z]))?\s*(\$|[a-z]+)?$/i.exec(words.trim());
  if (found === null) return null;
  const [, sign = '', digits = '', factor = '', word = ''] = found;
  const amount = Number(digits) * (FACTORS[factor.toLowerCase()] ?? 1);
  const unit = UNITS[(sign || word).toLowerCase()] ?? null;
  if (unit === null && word !== '') return null;
  return { amount, unit };
};

/** The limit that stopped the turn; null if none did. */
const stoppedBy = (state: State): Dimension | null =>
  state.name === 'WaitingForUserInput' && state.reason.kind === 'budget' ? state.reason.dimension : null;

const namesOf: Readonly<Record<Unit, keyof Limits>> = {
  usd: 'usd',
  tokens: 'tokens',
  rounds: 'rounds',
  time: 'timeMs',
};

/** The event that sets a limit. Without a unit it is the limit that stopped the turn, or else dollars. */
export const budgetEvent = (state: State, { amount, unit }: Budget): Input => {
  const stopped = stoppedBy(state);
  const dimension: Dimension = unit ?? stopped ?? 'usd';
  const limit = readLimit(dimension === 'time' ? Math.ceil(amount * 60_000) : amount);
  if (dimension === stopped && amount > 0) return { type: 'ApproveBudget', dimension, limit };
  const name = unit === null ? (dimension === 'time' ? 'timeMs' : dimension) : namesOf[unit];
  return { type: 'SettingsChanged', patch: { limits: { ...state.session.settings.limits, [name]: limit } } };
};

const limitText = (limit: Limit, show: (limit: number) => string): string =>
  limit === 'unlimited' ? 'no limit' : `of ${show(limit)}`;

const tell = (state: State): string => {
  const { limits } = state.session.settings;
  const { usage, turn } = state.session;
  const tokens = usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens + usage.outputTokens;
  const count = (limit: number): string => String(limit);
  return [
    `  dollars  ${formatCost(costOf(state))}, ${limitText(limits.usd, formatCost)}`,
    `  tokens   ${formatTokens(tokens)}, ${limitText(limits.tokens, formatTokens)}`,
    `  rounds   ${turn.rounds} in this turn, ${limitText(limits.rounds, count)}`,
    `  minutes  ${limitText(limits.timeMs, (limit) => count(limit / 60_000))} for a turn`,
    '  /budget 5 limits dollars; /budget 200k tokens, 30 rounds, 10 minutes the others; 0 removes a limit',
  ].join('\n');
};

export const budget: Command = async ({ view, session, flags }, words) => {
  const { state } = view;
  if (words === '') return view.print(makeSafe(tell(state)));
  const read = readBudget(words);
  if (read === null)
    throw new NotNow(
      `'${words}' is not a limit. Write for example /budget 5, /budget 200k tokens, 30 rounds or 10 minutes.`,
    );
  const event = budgetEvent(state, read);
  const dollars = event.type === 'SettingsChanged' && isLimited(event.patch.limits?.usd);
  const { model } = state.session.settings;
  if (dollars && factsOf(model).prices === null && !flags.allowUnknownPrice)
    throw new NotNow(
      `The price of ${model} is unknown, so a limit in dollars has no effect. Limit tokens: /budget 200k tokens`,
    );
  await session.send(event);
  const goesOn = event.type === 'ApproveBudget' ? '\n  /retry goes on.' : '';
  view.print(makeSafe(tell(view.state).split('\n').slice(0, -1).join('\n') + goesOn));
};
