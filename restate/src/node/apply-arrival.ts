import type * as restate from '@restatedev/restate-sdk';
import { type Header, type MachineUpgrade, type Posted, type State, turnRuns } from 'pawl/engine';
import type { LiveChannel } from '../live/live-channel.js';
import { type AppliedEvent, type AppliedEvents, applyEvents, stampTimes } from '../session/apply-events.js';
import {
  type Arrival,
  HEAD,
  type Head,
  LIVE,
  type ShownText,
  TITLE,
  withEntries,
} from '../session/session-records.js';
import type { SessionStates } from '../session/session-states.js';
import { takeOverEvents } from '../session/take-over.js';
import { endedWork } from '../session/work-of-action.js';
import { runningCallsOf } from './closing.js';
import { chunkOf } from './entries-object.js';
import { indexOf, titleIn } from './index-object.js';
import { startHooks, startWork, stopAllWork } from './start-work.js';

/**
 * Applies the events that arrive at a session together. Each answer of the engine that this waits for costs a millisecond
 * or more, so it waits for as few as it can: for the head (its caller), and for one proof that the entries are stored.
 */

type Context = restate.ObjectContext;

export type ArrivalParts = { readonly states: SessionStates; readonly live: LiveChannel };

/** Whether a reply may have shown text that the journal lacks. */
const repliesWith = (state: State): string | null =>
  state.name === 'CallingLlm' && state.call.mode === 'open' ? state.requestId : null;

const isAboutReply = (posted: readonly Posted[], requestId: string): boolean =>
  posted.some((event) => endedWork(event) === requestId);

const lackingText = (shown: ShownText | null, kept: Head['kept']): Posted | null => {
  if (shown === null) return null;
  const known = kept?.requestId === shown.requestId ? kept.length : 0;
  if (shown.text.length <= known) return null;
  return { type: 'TextDelta', requestId: shown.requestId, text: shown.text.slice(known) };
};

/** The text that was shown of the running reply, so that the journal has it before any other event. */
const shownBefore = async (
  ctx: Context,
  { posted, shown }: Arrival,
  state: State,
  live: LiveChannel,
): Promise<ShownText | null> => {
  if (shown !== undefined) return shown;
  const requestId = repliesWith(state);
  if (requestId === null || isAboutReply(posted, requestId)) return null;
  return ctx.run('shown text', () => live.shownText(ctx.key, requestId));
};

/** A fork was cut off somewhere, and a closed session has ended: both go on as after an interruption. */
const resumption = (head: Head, state: State, upgrade: MachineUpgrade | null): Posted => ({
  type: 'Resumed',
  epoch: state.session.epoch + 1,
  ...(turnRuns(state) ? { stoppedAt: head.lastAt } : {}),
  ...(upgrade === null ? {} : { upgrade }),
});

/** The hooks of the end begin with it, and say themselves when they have ended. */
const isEnding = ({ over, ending = false, bound }: Head): boolean =>
  over ? ending : bound !== undefined && bound.moments.length > 0;

const nextHead = (head: Head, { entries, state }: AppliedEvents, shown: ShownText | null): Head => {
  const kept = shown === null ? head.kept : { requestId: shown.requestId, length: shown.text.length };
  const still = state.name === 'CallingLlm' && kept?.requestId === state.requestId;
  return {
    ...head,
    seq: head.seq + entries.length,
    lastAt: entries.at(-1)?.event.at ?? head.lastAt,
    kept: still ? kept : null,
    over: state.name === 'ShuttingDown',
    ending: state.name === 'ShuttingDown' && isEnding(head),
    isFork: false,
    titled: head.titled || titleIn(entries) !== null,
  };
};

const keepEntries = (ctx: Context, head: Head, entries: AppliedEvents['entries']): Head => {
  if (entries.length === 0) return head;
  const { tail, chunk } = withEntries(head.tail, entries);
  if (chunk !== null) ctx.genericSend(chunkOf(ctx.key, chunk));
  const kept = { ...head, tail };
  ctx.set(HEAD, kept);
  return kept;
};

/**
 * Tells the list of sessions that this one was used or closed. Only the call that brings the title is waited for: nobody
 * looks for a session without one, and the time of the last use may come a moment later.
 */
const tellList = (
  ctx: Context,
  header: Header,
  before: Head,
  head: Head,
  entries: AppliedEvents['entries'],
) => {
  const title = titleIn(entries);
  if (title === null && !head.over) return null;
  const call = indexOf(header, head, title);
  if (before.titled || title === null) {
    ctx.genericSend(call);
    return null;
  }
  ctx.set(TITLE, title);
  return ctx.genericCall<unknown, unknown>(call);
};

export type Arrived = { readonly head: Head; readonly results: readonly AppliedEvent[] };

/**
 * `head`: as the engine has it now; each question for it is a round trip. A session that is over goes on with the events,
 * unless they are about its `end`.
 */
export const arrive = async (
  ctx: Context,
  parts: ArrivalParts,
  head: Head,
  arrival: Arrival,
  end: 'end' | null = null,
): Promise<Arrived> => {
  const { states, live } = parts;
  const { header, state: before, upgrade } = await states.exact(ctx.key, head.seq, head.tail);
  const shown = await shownBefore(ctx, arrival, before, live);
  const text = lackingText(shown, head.kept);
  const goesOn = head.isFork || (head.over && end === null);
  const takeOver = goesOn ? [] : takeOverEvents(before, upgrade, head.lastAt);
  const first = [
    ...(goesOn ? [resumption(head, before, upgrade)] : takeOver),
    ...(text === null ? [] : [text]),
  ];
  const events = stampTimes([...first, ...arrival.posted], arrival.at, head.lastAt);
  const applied = applyEvents(head.seq, before, events);
  const { entries, state, actions, results } = applied;
  const next = keepEntries(ctx, nextHead(head, applied, text === null ? null : shown), entries);
  const listed = tellList(ctx, header, head, next, entries);
  for (const { event } of entries) {
    const ended = endedWork(event);
    if (ended !== null) ctx.clear(LIVE + ended);
  }
  if (goesOn) startHooks(ctx, next, { moment: 'session-start', source: 'resume' });
  const recovered = goesOn ? runningCallsOf(before, state) : [];
  const hasAnswered = await startWork(ctx, next, [...recovered, ...actions], recovered.length);
  // Rule 3: any answer of the engine to what came after the entries proves that it has them.
  if (listed !== null) await listed;
  else if (entries.length > 0 && !hasAnswered) await ctx.run('stored', () => null);
  if (state.name === 'ShuttingDown' && end === null) await stopAllWork(ctx, next);
  states.advance(ctx.key, entries, state);
  live.publish(ctx.key, { kind: 'entries', entries });
  return { head: next, results: results.slice(first.length) };
};
