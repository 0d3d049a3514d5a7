import { type CarriedSession, type MachineUpgrade, type Posted, type State, turnRuns } from 'pawl/engine';

/**
 * A session of an earlier machine on a node of this one.
 *
 * 1. At rest it is taken over: `Resumed` says so, with all that the present machine can't read from the entries.
 * 2. In the middle of a turn that the present machine follows, the turn goes on. The session is taken over at rest.
 * 3. A turn that it can't follow is cancelled. Calls that run are asked for their outcome; none is started.
 * 4. A session of a later machine is refused in words. Nothing that arrives for it is lost: the engine asks again.
 */

/** Calls that have not started don't start: the turn is cancelled. */
const withoutWaitingCalls = (session: CarriedSession): CarriedSession => {
  const { work, at } = session;
  if (work.kind !== 'calls') return session;
  const text = 'not run: the turn was cancelled by an update of Pawl';
  const calls = work.calls.map((call) =>
    call.startedAt === null && call.ended === undefined
      ? { ...call, ended: { status: 'cancelled', ran: false, at, text } as const }
      : call,
  );
  return { ...session, work: { ...work, calls } };
};

/** The events that come before those that arrived. `lastAt`: the time of the last entry. */
export const takeOverEvents = (
  state: State,
  upgrade: MachineUpgrade | null,
  lastAt: number,
): readonly Posted[] => {
  if (upgrade === null) return [];
  const epoch = state.session.epoch + 1;
  const { session } = upgrade;
  const isRunning = turnRuns(state) || session?.work.kind === 'calls' || session?.work.kind === 'request';
  if (!isRunning) return [{ type: 'Resumed', epoch, upgrade }];
  if (session === undefined) return [];
  const carried = { ...upgrade, session: withoutWaitingCalls(session) };
  return [{ type: 'Resumed', epoch, stoppedAt: lastAt, upgrade: carried }, { type: 'CancelTurn' }];
};

/** Why a session of this version can't be used here; null if it can. */
export const refusalOf = (sessionId: string, version: number, own: number): string | null =>
  version <= own
    ? null
    : `session ${sessionId} is used by a newer Pawl (state machine of version ${version}, that of this node has version ${own}): update this node`;
