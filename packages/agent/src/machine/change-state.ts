import type { In, SessionData, TurnProgress } from './state.js';

/**
 * Copies of session, turn and states with some fields changed.
 *
 * 1. Every copy has all fields in one order, which keeps engines fast. Nested spreads (`{ ...session, … }`) made steps
 *    take twice as long.
 * 2. A field that is left out keeps its value. No field is ever undefined.
 */

const or = <T>(given: T | undefined, before: T): T => (given === undefined ? before : given);

export const changeSession = (session: SessionData, parts: Partial<SessionData>): SessionData => ({
  conversation: or(parts.conversation, session.conversation),
  queue: or(parts.queue, session.queue),
  settings: or(parts.settings, session.settings),
  grants: or(parts.grants, session.grants),
  usage: or(parts.usage, session.usage),
  unaccounted: or(parts.unaccounted, session.unaccounted),
  contextTokens: or(parts.contextTokens, session.contextTokens),
  slices: or(parts.slices, session.slices),
  emptyReplies: or(parts.emptyReplies, session.emptyReplies),
  mayCompact: or(parts.mayCompact, session.mayCompact),
  notes: or(parts.notes, session.notes),
  turn: or(parts.turn, session.turn),
  counters: or(parts.counters, session.counters),
  epoch: or(parts.epoch, session.epoch),
});

/** The session with parts of its turn changed. */
export const changeTurn = (session: SessionData, parts: Partial<TurnProgress>): SessionData => {
  const { turn } = session;
  const changed = {
    turnId: or(parts.turnId, turn.turnId),
    rounds: or(parts.rounds, turn.rounds),
    truncations: or(parts.truncations, turn.truncations),
    streaks: or(parts.streaks, turn.streaks),
    finishing: or(parts.finishing, turn.finishing),
    startedAt: or(parts.startedAt, turn.startedAt),
    timeLimit: or(parts.timeLimit, turn.timeLimit),
    warned: or(parts.warned, turn.warned),
  };
  const { objections = turn.objections } = parts;
  return changeSession(session, {
    turn: objections === undefined ? changed : { ...changed, objections },
  });
};

type Counters = SessionData['counters'];

/** The session with one of its counters at another count. */
export const changeCounter = (session: SessionData, kind: keyof Counters, count: number): SessionData =>
  changeSession(session, { counters: { ...session.counters, [kind]: count } });

type Calling = In<'CallingLlm'>;
export const changeCalling = (state: Calling, parts: Partial<Calling>): Calling => ({
  name: 'CallingLlm',
  session: or(parts.session, state.session),
  purpose: or(parts.purpose, state.purpose),
  requestId: or(parts.requestId, state.requestId),
  attempt: or(parts.attempt, state.attempt),
  partial: or(parts.partial, state.partial),
  call: or(parts.call, state.call),
});

type Batch = In<'ExecutingTools'>;
export const changeBatch = (batch: Batch, parts: Partial<Batch>): Batch => ({
  name: 'ExecutingTools',
  session: or(parts.session, batch.session),
  batchId: or(parts.batchId, batch.batchId),
  calls: or(parts.calls, batch.calls),
  phase: or(parts.phase, batch.phase),
});
