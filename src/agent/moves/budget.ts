import type { Action } from '../action.js';
import { changeSession, changeTurn } from '../change.js';
import type { Event, On } from '../event.js';
import type { Next, Same } from '../move.js';
import { go, ignore, withSession } from '../move.js';
import type { Dimension, Limits } from '../settings.js';
import type { In, Session, State } from '../state.js';
import { resetClock } from './clock.js';
import { tell } from './tell.js';

/** What may be spent, in the order in which limits are looked at (R50). */
const dimensions = [
  'usd',
  'tokens',
  'time',
  'rounds',
  'truncation',
  'repeats',
  'errors',
  'sameResults',
] as const satisfies readonly Dimension[];
/** Those after which the model may still be asked for its answer. */
const finishable: readonly Dimension[] = ['rounds', 'repeats', 'errors', 'sameResults'];

const limitOf = (limits: Limits, dimension: Dimension): number =>
  dimension === 'time' ? limits.timeMs : limits[dimension];

const spentOf = (session: Session, dimension: Dimension, at: number): number => {
  const { usage, turn } = session;
  switch (dimension) {
    case 'usd':
      return usage.costUsd;
    case 'tokens':
      return usage.inputTokens + usage.outputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
    case 'time':
      return at - turn.startedAt;
    case 'rounds':
      return turn.rounds;
    case 'truncation':
      return turn.truncations;
    case 'repeats':
    case 'errors':
    case 'sameResults':
      return turn.streaks[dimension];
    default:
      return dimension satisfies never;
  }
};

/** The first limit that is reached, or null. A limit of 0 is none. */
const reached = <D extends Dimension>(session: Session, among: readonly D[], at: number): D | null =>
  among.find((dimension) => {
    const limit = limitOf(session.settings.limits, dimension);
    return limit > 0 && spentOf(session, dimension, at) >= limit;
  }) ?? null;

/** The session's own limits: dollars and tokens, which a new turn does not reset. */
export const sessionLimit = (session: Session): 'usd' | 'tokens' | null =>
  reached(session, ['usd', 'tokens'], 0);
/** The limits that make a call pointless before it starts. */
export const callLimit = (session: Session, at: number): Dimension | null =>
  reached(session, ['usd', 'tokens', 'time'], at);

/** What is left of the session's limits; null of what has none. */
export const leftOf = (session: Session): { readonly usd: number | null; readonly tokens: number | null } => {
  const left = (dimension: 'usd' | 'tokens'): number | null => {
    const limit = limitOf(session.settings.limits, dimension);
    return limit > 0 ? Math.max(0, limit - spentOf(session, dimension, 0)) : null;
  };
  return { usd: left('usd'), tokens: left('tokens') };
};

/** A number as it stands before its unit. */
const bare = (dimension: Dimension, value: number): string => {
  if (dimension === 'usd') return `$${value.toFixed(value < 1 ? 4 : 2)}`;
  return String(dimension === 'time' ? Math.round(value / 1_000) : value);
};

const units: Readonly<Record<Dimension, readonly [one: string, many: string]>> = {
  usd: ['', ''],
  tokens: [' token', ' tokens'],
  time: [' s', ' s'],
  rounds: [' round', ' rounds'],
  truncation: [' cut reply', ' cut replies'],
  repeats: [' batch with the same calls', ' batches with the same calls'],
  errors: [' batch without success', ' batches without success'],
  sameResults: [' batch with the same results', ' batches with the same results'],
};

const amount = (dimension: Dimension, value: number): string => {
  const [one, many] = units[dimension];
  return `${bare(dimension, value)}${value === 1 ? one : many}`;
};

/** "$1.10 of $1.00 used", "100 of 100 rounds used": for notices. */
export const spentText = (session: Session, dimension: Dimension, at: number): string => {
  const spent = bare(dimension, spentOf(session, dimension, at));
  return `${spent} of ${amount(dimension, limitOf(session.settings.limits, dimension))} used`;
};

const setLimit = (session: Session, dimension: Dimension, limit: number): Session => {
  const key = dimension === 'time' ? 'timeMs' : dimension;
  const limits = { ...session.settings.limits, [key]: limit };
  const warned = session.turn.warned.filter((other) => other !== dimension);
  return changeTurn(changeSession(session, { settings: { ...session.settings, limits } }), { warned });
};

/** autoRearm: a dollar or token limit that was reached grows by its slice, with a notice. */
export const rearm = (
  session: Session,
  dimension: Dimension,
): { readonly session: Session; readonly actions: readonly Action[] } => {
  if (session.settings.autoRearm === 'off' || (dimension !== 'usd' && dimension !== 'tokens'))
    return { session, actions: [] };
  const limit = spentOf(session, dimension, 0) + session.slices[dimension];
  const text = `the limit was raised to ${amount(dimension, limit)} by itself (autoRearm)`;
  return {
    session: setLimit(session, dimension, limit),
    actions: [{ type: 'DisplayNotice', kind: 'budget', text }],
  };
};

/** Entry of CheckingBudget: one round of the turn is over. */
export const countRound = (state: In<'CheckingBudget'>): Next<'CheckingBudget'> => {
  const { session } = state;
  return go({ ...state, session: changeTurn(session, { rounds: session.turn.rounds + 1 }) });
};

export const limitReached = (state: In<'CheckingBudget'>, event: Event): boolean =>
  reached(state.session, dimensions, event.at) !== null;

/** The limit leaves room for one more call without tools, which asks for the answer. */
export const mayFinish = (state: In<'CheckingBudget'>, event: Event): boolean => {
  const { settings, turn } = state.session;
  const dimension = reached(state.session, dimensions, event.at);
  return (
    settings.atLimit === 'finish' && turn.finishing === 'no' && finishable.some((one) => one === dimension)
  );
};

export const askToFinish = (
  state: In<'CheckingBudget'>,
  event: Event,
): Next<'GatheringAdditionalMessages'> => {
  const { session } = state;
  const dimension = reached(session, dimensions, event.at) ?? 'rounds';
  const spent = spentText(session, dimension, event.at);
  const told = tell(session, 'note', [`[${spent}: no tool runs any more. Give your final answer now.]`]);
  const finishing = changeTurn(told, { finishing: dimension });
  return go(
    { name: 'GatheringAdditionalMessages', session: finishing },
    { type: 'DisplayNotice', kind: 'budget', text: `${spent}: the model is asked for its answer` },
  );
};

export const exceedBudget = (state: In<'CheckingBudget'>, event: Event): Next<'BudgetExceeded'> => {
  const dimension = reached(state.session, dimensions, event.at) ?? 'usd';
  return go({ name: 'BudgetExceeded', session: state.session, dimension });
};

/** One warning per limit when the warn ratio is passed (R51). */
export const warnOfBudget = (
  state: In<'CheckingBudget'>,
  event: Event,
): Next<'GatheringAdditionalMessages'> => {
  const { session } = state;
  const { limits, budgetWarnRatio } = session.settings;
  const near = dimensions.filter((dimension) => {
    const limit = limitOf(limits, dimension);
    if (limit === 0 || session.turn.warned.includes(dimension)) return false;
    return spentOf(session, dimension, event.at) >= limit * budgetWarnRatio;
  });
  const warnings = near.map((dimension): Action => {
    return { type: 'DisplayWarning', kind: 'budget', text: spentText(session, dimension, event.at) };
  });
  // A limit that was raised meanwhile lets tools run again.
  const warned = changeTurn(session, { finishing: 'no', warned: [...session.turn.warned, ...near] });
  return go({ name: 'GatheringAdditionalMessages', session: warned }, ...warnings);
};

/** BudgetExceeded -> WaitingForUserInput; the queue stays held (R69). */
export const stopForBudget = (state: In<'BudgetExceeded'>, event: Event): Next<'WaitingForUserInput'> => {
  const { dimension } = state;
  const text = `stopped: ${spentText(state.session, dimension, event.at)}`;
  const { session, actions } = rearm(state.session, dimension);
  const reason = { kind: 'budget', dimension } as const;
  return go(
    { name: 'WaitingForUserInput', session, reason, next: 'rest' },
    { type: 'DisplayNotice', kind: 'budget', text },
    ...actions,
  );
};

/** 0 lifts a limit; anything else that is not a positive number is none. */
export const isLimit = (limit: number): boolean => limit >= 0 && Number.isFinite(limit);

/** ApproveBudget where nothing else follows from it. */
export const raiseLimit = <S extends State>(state: S, event: On<'ApproveBudget'>): Same<S> => {
  if (!isLimit(event.limit)) return ignore(state, 'a limit is a number from 0 up');
  const raised = setLimit(state.session, event.dimension, event.limit);
  const { session, actions } = resetClock(state, state.session, raised);
  const text =
    event.limit === 0 ? 'the limit is lifted' : `the limit is now ${amount(event.dimension, event.limit)}`;
  return go(withSession(state, session), ...actions, { type: 'DisplayNotice', kind: 'budget', text });
};
