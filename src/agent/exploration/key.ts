import type { Call } from '../call.js';
import { holdsResults } from '../conversation.js';
import { isEnded } from '../moves/batch.js';
import { utf8Bytes } from '../moves/cut.js';
import type { Dimension, Limits, Settings } from '../settings.js';
import type { In, Session, State } from '../state.js';
import type { Configuration } from './configuration.js';
import { isRequest } from './fateful.js';
import type { Node } from './node.js';

/**
 * What of a node decides its future, as a text: nodes with the same text are one node of the exploration.
 *
 * Sound means: from two nodes of the same key the same labels lead, up to the names of ids, to nodes of the same key,
 * over the same arrows, with the same faults. Why each thing that is left out may be left out:
 *
 * 1. Ids. The machine compares ids for equality, and makes new ones that it has never used; labels name what is in
 *    flight, or what never is again. So only what is in flight counts, not what it is called.
 * 2. Times. The machine reads the clock only to tell when the turn's limit is over, counted from the turn's start:
 *    only that difference is kept, where there is a limit. Everything else that has a time waits for its timer, by id.
 * 3. Texts. No move reads what a text says. Read are: whether the message at the end holds results, one that is too
 *    long, text of the user (none, one, several: moves treat all texts alike), anything else; whether streamed text is
 *    blank; how many messages could be summarised (0, 1, enough: the number only grows until a summary makes it 0 or
 *    1). All older messages are closed, and closed messages are never read again.
 * 4. The size of the conversation. Thresholds are shares of a million tokens, replies report a few or nearly all of
 *    them, and what is told in between stays below a thousand, since a shortest way to a node is short: which
 *    thresholds are passed is decided by the last report.
 * 5. Usage. It matters against limits. Only as many replies and bills cost something as the bounds say, so dollars and
 *    tokens are counted exactly where there is a limit, and ignored where there is none. Bills that may still come
 *    count only while one may still cost something, and not more of them than that.
 * 6. What counts per turn is set anew when a turn begins: between turns it is left out.
 * 7. Why the machine waits is told to the user, and read once: whether it was for a budget.
 * 8. How a call ended matters for two things: whether it changed something (`ok` of a mutating call), and whether its
 *    text is too long to be sent twice.
 */
export const keysOf = ({ changes }: Configuration): ((node: Node) => string) => {
  // Patches are made of settings: their names are names of settings.
  const changing = [...new Set(changes.flatMap((patch) => Object.keys(patch) as (keyof Settings)[]))];
  return ({ state, cursors, costlyLeft, now }) => {
    const { session } = state;
    const { settings } = session;
    let key = `${stateKey(state)}|${sessionKey(session)}|${limitsKey(settings.limits)}`;
    for (const name of changing) key += JSON.stringify(settings[name]);
    key += turnRuns(state) ? `|${turnKey(session, now)}` : `|${betweenTurnsKey(session)}`;
    if (costlyLeft > 0) key += `|${costlyLeft}${billsKey(state, costlyLeft)}`;
    for (const { state: place } of cursors) key += `|${place}`;
    return key;
  };
};

const limitsKey = (limits: Limits): string => {
  const { usd, tokens, timeMs, rounds, truncation, repeats, errors, sameResults } = limits;
  return `${usd},${tokens},${timeMs},${rounds},${truncation},${repeats},${errors},${sameResults}`;
};

// ---- The state's own part ----

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
      return `H${state.phase}${state.tree}${state.mutated.length > 0 ? 'm' : ''}`;
    case 'Compacting': {
      const { mode } = state;
      if (mode.kind === 'idle') return `Ki${mode.resume}`;
      return mode.kind === 'mid' ? 'Km' : `Ko${mode.purpose}${mode.attempt}`;
    }
    default:
      return state.name;
  }
};

const batchKey = (state: In<'ExecutingTools'>): string => {
  const { phase, session } = state;
  let key = `X${phase.mode}`;
  if (phase.mode === 'cancelling') key += phase.cause + (phase.graceTimerId === null ? '' : 'g');
  for (const call of state.calls) key += `,${callKey(call, session.settings.resultCutBytes)}`;
  return key;
};

const callKey = (call: Call, longBytes: number): string => {
  const { tool, verdict, traits } = call.judged;
  if (isEnded(call)) {
    const changed = call.status === 'ok' && traits.mutating;
    return `${changed ? 'ended*' : 'ended'}${isLong(call.outcome.text, longBytes) ? 'l' : ''}`;
  }
  const kind = `${tool}${verdict.kind === 'ok' ? '' : verdict.kind}`;
  switch (call.status) {
    case 'queued':
      return `${kind}q${call.allowed}`;
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

const isLong = (text: string, bytes: number): boolean => text.length * 4 > bytes && utf8Bytes(text) > bytes;

// ---- The session ----

const sessionKey = (session: Session): string => {
  const { conversation, queue, settings, usage, grants, slices } = session;
  const { limits } = settings;
  let key = `${Math.min(conversation.closed.length, 3)}${openKey(session)}`;
  for (const item of queue) key += item.mode === 'steer' ? 's' : 'f';
  key += session.mayCompact === 'yes' ? 'y' : 'n';
  key += sizeKey(session);
  if (session.notes.length > 0) key += '!';
  if (limits.usd > 0) key += `$${usage.costUsd}/${slices.usd}`;
  if (limits.tokens > 0) key += `#${tokensOf(session)}/${slices.tokens}`;
  for (const grant of grants)
    key += `+${grant.tool}${grant.scope}${grant.scope === 'shape' ? grant.shape : ''}`;
  return key;
};

const tokensOf = ({ usage }: Session): number =>
  usage.inputTokens + usage.outputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;

/** The message at the end: results, long ones among them, texts of the user (up to two), anything else. */
const openKey = ({ conversation, settings }: Session): string => {
  if (conversation.open === null) return '-';
  let own = 0;
  let other = '';
  let long = '';
  for (const part of conversation.open.parts) {
    if (part.type === 'result') {
      if (isLong(part.text, settings.resultCutBytes)) long = 'l';
    } else if (part.origin === 'user') own = Math.min(own + 1, 2);
    else other = 'o';
  }
  return `${holdsResults(conversation) ? 'r' : ''}${long}${own}${other}`;
};

/** Which thresholds the conversation has passed. */
const sizeKey = ({ contextTokens, settings }: Session): string => {
  const { windowTokens, compactAtRatio, compactMidRatio } = settings;
  if (contextTokens >= windowTokens) return '3';
  if (contextTokens > windowTokens * compactMidRatio) return '2';
  return contextTokens > windowTokens * compactAtRatio ? '1' : '0';
};

// ---- The turn ----

const turnRuns = (state: State): boolean => {
  switch (state.name) {
    case 'Ready':
    case 'WaitingForUserInput':
    case 'ShuttingDown':
      return false;
    case 'Compacting':
      return state.mode.kind !== 'idle';
    default:
      return true;
  }
};

/** Up to the limit: no count is read beyond it, and none where the limit is 0, which is none. */
const upTo = (count: number, limit: number): number => Math.min(count, limit);

const turnKey = ({ turn, settings, emptyReplies }: Session, now: number): string => {
  const { limits } = settings;
  const rounds = upTo(turn.rounds, limits.rounds);
  const truncations = upTo(turn.truncations, limits.truncation);
  const timer = turn.timeLimit === null ? '' : 't';
  const empty = upTo(emptyReplies, settings.emptyRetries);
  // The clock is only ever set to a turn's limits: few values.
  const passed = limits.timeMs > 0 ? `@${now - turn.startedAt}` : '';
  const warned = turn.warned.filter((dimension) => limitOf(limits, dimension) > 0);
  const finishing = turn.finishing === 'no' ? '' : `f${turn.finishing}`;
  return `${rounds}.${truncations}.${empty}${timer}${passed}${warned.join()}${streaksKey(turn.streaks, limits)}${finishing}`;
};

const streaksKey = (streaks: Session['turn']['streaks'], limits: Limits): string => {
  if (!(limits.repeats > 0 || limits.errors > 0 || limits.sameResults > 0)) return '';
  const { calls, results } = streaks;
  const counts = [
    upTo(streaks.repeats, limits.repeats),
    upTo(streaks.errors, limits.errors),
    upTo(streaks.sameResults, limits.sameResults),
  ];
  return `~${calls},${results},${counts.join()}`;
};

/** Warnings about limits of the session are given once, also over turns. */
const betweenTurnsKey = ({ turn, settings: { limits } }: Session): string =>
  turn.warned
    .filter((dimension) => dimension === 'usd' || dimension === 'tokens')
    .filter((dimension) => limits[dimension] > 0)
    .join();

const limitOf = (limits: Limits, dimension: Dimension): number =>
  dimension === 'time' ? limits.timeMs : limits[dimension];

// ---- Bills ----

/** Whether what runs may still send a bill, and how many requests that are over may: no more than may still cost something. */
const billsKey = (state: State, costlyLeft: number): string => {
  const current = currentBill(state);
  let others = 0;
  let own = '';
  for (const id of state.session.unaccounted) {
    if (id === current) own = 'b';
    else if (isRequest(id)) others += 1;
  }
  return `${own}${Math.min(others, costlyLeft)}`;
};

const currentBill = (state: State): string => {
  switch (state.name) {
    case 'CallingLlm':
      return state.requestId;
    case 'PostToolsHook':
      return state.hookId;
    case 'Compacting':
      return state.compactionId;
    default:
      return '';
  }
};
