/**
 * `/detach` in a terminal: the session goes on in a separate process.
 *
 * 1. The other process is started first, and waits. If it can't be, the session stays here.
 * 2. This process ends at a moment at which nothing is lost by it, in one step: no event comes
 *    between the look and the end.
 * 3. It ends as a crash would end it, so commands go on. The other process finds them as after a
 *    crash (docs/proof/reliability.md).
 */

import { conversationLength, messagesOf } from '@pawl/agent/machine/conversation';
import type { State } from '@pawl/agent/machine/state';
import type { Stepped } from '@pawl/agent/ports/session';
import { startSuccessor } from '../detached/launch.js';
import { NotNow, type SlashCommandContext } from './slash-command.js';
import type { UserWork } from './terminal-session.js';

/**
 * How long the session waits at rest for the usage of an ended request. A connection that was ended
 * usually closes within it. After that the other process counts what is reserved as spent, and says
 * so.
 */
const LATE_USAGE_MS = 2_000;

const isAtRest = ({ name }: State): boolean => name === 'WaitingForUserInput' || name === 'Error';

/** Whether a later process goes on exactly where this one ends now. */
const canHandOver = (state: State): boolean => {
  if (isAtRest(state)) return true;
  // A command goes on without this process, unless it is being stopped (its time to end by itself
  // runs: `graceTimerId`). A question is asked again. Other running calls would be lost.
  return (
    state.name === 'ExecutingTools' &&
    state.calls.every(
      (call) =>
        (call.status !== 'starting' && call.status !== 'running') ||
        (call.judged.facts.shell !== undefined &&
          call.status === 'running' &&
          call.graceTimerId === null),
    )
  );
};

const firstText = ({ session: { conversation } }: State): string => {
  const [part] = messagesOf(conversation)[0]?.parts ?? [];
  return part?.type === 'text' ? part.text : '';
};

type HandOver = Pick<SlashCommandContext, 'session' | 'flags' | 'view'> & {
  /** What the user has begun and the journal does not have yet: this process ends after it. */
  readonly work: UserWork;
  /** Tells the user what it waits for, or that the session stays here. */
  say(what: 'waits' | 'waitsForUsage' | 'stays'): void;
  /** Gives the terminal back and ends this process. */
  leave(): void;
};

/** Resolves when the session is about to be handed over. */
export const handOver = async ({
  session,
  flags,
  view,
  work,
  say,
  leave,
}: HandOver): Promise<void> => {
  const { conversation, queue, settings } = view.state.session;
  if (conversationLength(conversation) + queue.length === 0)
    throw new NotNow(
      'Nothing was asked yet. To begin a session that runs alone: pawl -p "PROMPT" --detach',
    );
  // no journal gives the preset `full`
  const ownFlags = settings.preset === 'full' ? { ...flags, preset: 'full' } : flags;
  // It waits for the end of this process.
  const successor = await startSuccessor(session.id, ownFlags, firstText(view.state));
  let isWanted = true;
  const stay = (): void => {
    isWanted = false;
    void successor.cancel();
  };
  session.ended.then(stay, stay);
  void successor.ended.then(() => {
    if (isWanted) say('stays');
    stay();
  });
  let usage: 'comes' | 'awaited' | 'lost' = 'comes';
  const leaveIfPossible = (stepped: Stepped | null): void => {
    if (!isWanted || !work.isOver) return;
    // What a reply asks for has not begun when its step is seen.
    if (stepped?.event.type !== 'LlmCompleted' && !canHandOver(view.state)) return;
    const { reserved } = view.state.session;
    if (!isAtRest(view.state) || reserved.length === 0 || usage === 'lost') leave();
    else if (usage === 'comes') {
      usage = 'awaited';
      say('waitsForUsage');
      setTimeout(() => {
        usage = 'lost';
        leaveIfPossible(null);
      }, LATE_USAGE_MS);
    }
  };
  work.watch(leaveIfPossible);
  leaveIfPossible(null);
  if (!work.isOver || !isAtRest(view.state)) say('waits');
};
