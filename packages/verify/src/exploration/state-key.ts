/**
 * The key by which an exploration knows that it has been at a node before. Whatever the future
 * depends on must be in it, and nothing else: too little hides faults, too much never ends.
 */

import type { Call } from '@pawl/agent/machine/call';
import { holdsResults } from '@pawl/agent/machine/conversation';
import type { Message } from '@pawl/agent/machine/message';
import { isEnded } from '@pawl/agent/machine/moves/batch-calls';
import { mayHaveChanged } from '@pawl/agent/machine/moves/batch-events';
import { hasSessionLimit } from '@pawl/agent/machine/moves/budget';
import { isSpendingId } from '@pawl/agent/machine/moves/request';
import { utf8Bytes } from '@pawl/agent/machine/moves/retry';
import { spendingIds } from '@pawl/agent/machine/moves/tool-batch';
import {
  type Dimension,
  type Limit,
  type Limits,
  type Settings,
  totalTokens,
} from '@pawl/agent/machine/settings';
import {
  type In,
  remainingTimer,
  type SessionData,
  type State,
  turnRuns,
} from '@pawl/agent/machine/state';
import type { Grant } from '@pawl/agent/policy/rules';
import { chargesKey } from './charges.js';
import type { Configuration } from './configuration.js';
import type { ExplorationNode } from './exploration-node.js';
import { isRequest } from './possible-events.js';

/**
 * The key of a node: a text of everything that decides its future. Nodes with the same key are one
 * node.
 *
 * Sound means: from two nodes of the same key the same labels (events) lead, but for ids, to
 * nodes of the same key, over the same arrows, with the same faults. Reasons for each omission:
 *
 * 1. Ids. The machine compares ids for equality, and creates only fresh ids. Labels name work in
 *    flight, or work that never is again. So only the work in flight counts, not its id.
 * 2. Times. The machine reads the clock only for the remaining time of the turn's timer, which is
 *    in the key. Everything else that has a time waits for its timer, by id.
 * 3. Texts. No move reads what a text says. Read are: whether the message at the end holds results,
 *    one that is too long, text of the user (none, one, several: moves treat all texts alike),
 *    anything else; whether streamed text is blank; how many messages could be summarised (0, 1,
 *    enough: the number only grows until a summary makes it 0 or 1). All older messages are closed
 *    (nothing is added to them any more), and closed messages are never read again, but for their
 *    pictures: whether there is one that was not refused.
 * 4. The size of the conversation. Thresholds are shares of a million tokens, replies report a few
 *    or nearly all of them, and the texts since the last report stay below a thousand, since a
 *    shortest way to a node is short: the last report decides which thresholds are exceeded.
 * 5. Usage. It matters against limits. Only as many replies and bills cost something as the bounds
 *    say, so dollars and tokens are counted exactly where there is a limit, and ignored where there
 *    is none. Bills that may still come count only while one may still cost something, and not more
 *    of them than that.
 * 6. Counts of a turn start again with each turn: between turns they are not in the key.
 * 7. The reason for waiting is shown to the user. The machine reads only whether it was a budget.
 * 8. How a call ended matters for three things: whether it may have changed something, as the
 *    setting `hooks` counts it (which no world here changes under way), whether its text is too
 *    long to be sent twice, and whether it has a picture.
 * 9. What was charged counts by the work that it is for, where requests are charged. The size of
 *    the last request is left out, since all of them are alike and hold as many tokens as bytes.
 */
export const stateKeyFor = ({
  changes,
  charges,
}: Configuration): ((node: ExplorationNode) => string) => {
  // The names in a patch are names of settings.
  const changing = [
    ...new Set(changes.flatMap((patch) => Object.keys(patch) as (keyof Settings)[])),
  ];
  return (node) => {
    const { state, cursors, costlyLeft, now } = node;
    const { session } = state;
    const { settings } = session;
    let key = `${stateKey(state)}|${sessionKey(state)}|${limitsKey(settings.limits)}`;
    for (const name of changing) key += JSON.stringify(settings[name]);
    key += turnRuns(state) ? `|${turnKey(session, now)}` : `|${betweenTurnsKey(session)}`;
    if (costlyLeft > 0) key += `|${costlyLeft}${billsKey(state, costlyLeft)}`;
    if (charges) key += chargesKey(node);
    // The states of the other agents, whose machines are checked along the way.
    for (const { state: place } of cursors) key += `|${place}`;
    return key;
  };
};

const limitsKey = (limits: Limits): string => {
  const { usd, tokens, timeMs, rounds, truncation, repeats, errors, sameResults } = limits;
  return `${usd},${tokens},${timeMs},${rounds},${truncation},${repeats},${errors},${sameResults}`;
};

// ---- The state without its session ----

// Letters only have to tell nodes apart: nobody reads a key.

const stateKey = (state: State): string => {
  switch (state.name) {
    case 'WaitingForUserInput':
      return `W${state.reason.kind === 'budget' ? 'b' : ''}${state.next}`;
    case 'CallingLlm': {
      const { purpose, attempt, partial, call } = state;
      const shown = partial === '' ? '-' : partial.trim() === '' ? ' ' : 't';
      return `C${purpose}${attempt}${shown}${call.mode === 'open' ? '' : call.cause}`;
    }
    case 'Error':
      return `E${state.purpose}${state.attempt}${state.error.kind === 'empty' ? 'e' : ''}`;
    case 'ExecutingTools':
      return batchKey(state);
    case 'PostToolsHook':
      return `H${state.phase}${state.tree}${state.mutated.length > 0 ? 'm' : ''}${state.prepared === undefined ? '' : 'p'}`;
    case 'Compacting': {
      const { mode } = state;
      if (mode.kind === 'idle') return `Ki${mode.resume}`;
      return mode.kind === 'mid' ? 'Km' : `Ko${mode.purpose}${mode.attempt}`;
    }
    case 'Rewinding':
      return `R${state.conversation === undefined ? '' : 'c'}`;
    default:
      return state.name;
  }
};

const batchKey = (state: In<'ExecutingTools'>): string => {
  const { phase, session } = state;
  let key = `X${phase.mode}`;
  if (phase.mode === 'cancelling') key += phase.cause + (phase.graceTimerId === null ? '' : 'g');
  for (const call of state.calls) key += `,${callKey(call, session.settings)}`;
  return key;
};

const callKey = (call: Call, settings: Settings): string => {
  const { tool, verdict, reply } = call.judged;
  if (isEnded(call)) {
    const changed = mayHaveChanged(call, settings.hooks);
    const { text, images } = call.outcome;
    const long = isLong(text, settings.resultCutBytes) ? 'l' : '';
    return `${changed ? 'ended*' : 'ended'}${long}${images === undefined ? '' : 'i'}`;
  }
  const answered = reply === undefined ? '' : '!';
  const kind = `${tool}${verdict.kind === 'ok' ? '' : verdict.kind}${answered}`;
  switch (call.status) {
    case 'queued':
      return `${kind}q${call.allowed}`;
    case 'previewing':
      return `${kind}p`;
    case 'awaitingApproval':
      return `${kind}a`;
    case 'starting':
      return `${kind}s${call.allowed}${call.graceTimerId === null ? '' : 'g'}`;
    case 'running':
      return `${kind}r${call.graceTimerId === null ? '' : 'g'}`;
    default:
      return call satisfies never;
  }
};

/** A character has at most 4 bytes, so most texts need not be counted. */
const isLong = (text: string, bytes: number): boolean =>
  // Stryker disable next-line ConditionalExpression,EqualityOperator: a shortcut
  text.length * 4 > bytes && utf8Bytes(text) > bytes;

// ---- The session ----

const getGrantTarget = (grant: Grant): string => {
  switch (grant.scope) {
    case 'shape':
      return grant.shape;
    case 'prefix':
      return grant.words.join(' ');
    case 'session':
      return grant.group ?? '';
    default:
      return grant satisfies never;
  }
};

/** Whether a call that was abandoned while it ran has not reported its usage. */
const hasOpenBill = (state: State): boolean => {
  const running = spendingIds(state);
  return state.session.unaccounted.some((id) => isSpendingId(id) && !running.includes(id));
};

const sessionKey = (state: State): string => {
  const { session } = state;
  const { conversation, queue, settings, usage, grants, slices } = session;
  const { limits, model, primary } = settings;
  let key = `${Math.min(conversation.closed.length, 3)}${openKey(session)}${pictureKey(session)}`;
  for (const item of queue) key += item.mode === 'steer' ? 's' : 'f';
  key += session.mayCompact === 'yes' ? 'y' : 'n';
  key += sizeKey(session);
  // `primary`: the user's model, while another one answers.
  if (settings.fallback !== undefined) key += `${model}<${primary?.model ?? ''}`;
  if (session.notes.length > 0) key += '!';
  // Under a limit no call that spends starts before the usage of abandoned ones is known.
  if (hasSessionLimit(session) && hasOpenBill(state)) key += '?';
  // `slices`: how much a limit grows when it raises itself.
  if (limits.usd !== 'unlimited') key += `$${usage.costUsd}/${slices.usd}`;
  if (limits.tokens !== 'unlimited') key += `#${totalTokens(usage)}/${slices.tokens}`;
  for (const grant of grants)
    key += `+${grant.tool}${grant.scope}${getGrantTarget(grant)}${grant.needs ?? ''}`;
  return key;
};

/** The last message: results, long results, texts of the user (up to two), other parts. */
const openKey = ({ conversation, settings }: SessionData): string => {
  if (conversation.open === null) return '-';
  let userTexts = 0;
  let other = '';
  let long = '';
  for (const part of conversation.open.parts) {
    if (part.type === 'result') {
      if (isLong(part.text, settings.resultCutBytes)) long = 'l';
    } else if (part.origin === 'user') userTexts = Math.min(userTexts + 1, 2);
    else other = 'o';
  }
  return `${holdsResults(conversation) ? 'r' : ''}${long}${userTexts}${other}`;
};

/**
 * Whether the last message, and those before it, show pictures that were not refused, and whether
 * one was refused: all pictures are the same one here, so it is refused wherever it is shown next.
 */
const pictureKey = ({ conversation, refusedPictures }: SessionData): string => {
  const isShown = ({ parts }: Message): boolean =>
    parts.some(
      (part) =>
        'images' in part && part.images.some(({ sha256 }) => !refusedPictures.includes(sha256)),
    );
  const { closed, open } = conversation;
  const [last, before] = [open !== null && isShown(open), closed.toArray().some(isShown)];
  const refused = refusedPictures.length > 0;
  return `${last ? 'i' : ''}${before ? 'c' : ''}${refused ? 'x' : ''}`;
};

/** The thresholds that the conversation exceeds. */
const sizeKey = ({ contextTokens, settings }: SessionData): string => {
  const { windowTokens, compactAtRatio, compactMidRatio } = settings;
  if (contextTokens >= windowTokens) return '3';
  if (contextTokens > windowTokens * compactMidRatio) return '2';
  return contextTokens > windowTokens * compactAtRatio ? '1' : '0';
};

// ---- The turn ----

/** A count up to its limit: larger counts are never read, and without a limit none is. */
const upTo = (count: number, limit: Limit): number =>
  limit === 'unlimited' ? 0 : Math.min(count, limit);

const turnKey = ({ turn, settings, emptyReplies }: SessionData, now: number): string => {
  const { limits } = settings;
  const rounds = upTo(turn.rounds, limits.rounds);
  const truncations = upTo(turn.truncations, limits.truncation);
  const empty = upTo(emptyReplies, settings.emptyRetries);
  // The clock is only set to times at which a timer is due: few values.
  const timeLeft =
    turn.timeLimit === null
      ? ''
      : `@${remainingTimer(turn.timeLimit, now).delayMs}/${turn.timeLimit.delayMs}`;
  const warned = turn.warned.filter((dimension) => getLimit(limits, dimension) !== 'unlimited');
  const finishing = turn.finishing === 'no' ? '' : `f${turn.finishing}`;
  return `${rounds}.${truncations}.${empty}${timeLeft}${warned.join()}${streaksKey(turn.streaks, limits)}${finishing}`;
};

const streaksKey = (streaks: SessionData['turn']['streaks'], limits: Limits): string => {
  if ([limits.repeats, limits.errors, limits.sameResults].every((limit) => limit === 'unlimited'))
    return '';
  const { calls, results } = streaks;
  const counts = [
    upTo(streaks.repeats, limits.repeats),
    upTo(streaks.errors, limits.errors),
    upTo(streaks.sameResults, limits.sameResults),
  ];
  return `~${calls},${results},${counts.join()}`;
};

/** Warnings about session limits come once, also across turns. */
const betweenTurnsKey = ({ turn, settings: { limits } }: SessionData): string =>
  turn.warned
    .filter((dimension) => dimension === 'usd' || dimension === 'tokens')
    .filter((dimension) => limits[dimension] !== 'unlimited')
    .join();

const getLimit = (limits: Limits, dimension: Dimension): Limit =>
  dimension === 'time' ? limits.timeMs : limits[dimension];

// ---- Bills ----

/**
 * Open usage reports: of running work, and the number of ended requests, up to those that may still
 * cost something.
 */
const billsKey = (state: State, costlyLeft: number): string => {
  const current = currentBill(state);
  let others = 0;
  let running = '';
  for (const id of state.session.unaccounted) {
    if (id === current) running = 'b';
    else if (isRequest(id)) others += 1;
  }
  return `${running}${Math.min(others, costlyLeft)}`;
};

const currentBill = (state: State): string => {
  switch (state.name) {
    case 'CallingLlm':
      return state.requestId;
    case 'PostToolsHook':
      return state.hookId;
    case 'Compacting':
      return state.compactionId;
    // Stryker disable next-line ConditionalExpression: every request has an id
    default:
      return '';
  }
};
