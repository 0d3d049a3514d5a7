/**
 * `/detach` in a terminal: the session goes on in a process of its own.
 *
 * 1. The other process is started first, and waits. If it can't be, the session stays here.
 * 2. This process ends at a moment at which nothing is lost by it, in one step: no event comes
 *    between the look and the end.
 * 3. It ends as a crash would end it, so commands go on. The other process finds them as after a
 *    crash (docs/reliability.md).
 */

import { conversationLength, messagesOf } from '@pawl/agent/machine/conversation';
import type { State } from '@pawl/agent/machine/state';
import type { Stepped } from '@pawl/agent/ports/session';
import { startSuccessor } from '../detached/launch.js';
import type { RunFlags } from '../settings/flags.js';
import { NotNow, type SlashCommandContext } from './slash-command.js';
import type { UserWork } from './terminal-session.js';

/**
 * Whether a later process goes on exactly where this one ends now. At rest, not while money is
 * reserved: then usage may still come, and a process that begins as after a crash counts all of the
 * reservation as spent.
 */
const canHandOver = (state: State): boolean => {
  const { reserved = [] } = state.session;
  switch (state.name) {
    case 'WaitingForUserInput':
    case 'Error':
      return reserved.length === 0;
    case 'ExecutingTools':
      // A command goes on without this process, unless it is being stopped (its time to end by
      // itself runs: `graceTimerId`). A question is asked again. Other running calls would be lost.
      return state.calls.every(
        (call) =>
          (call.status !== 'starting' && call.status !== 'running') ||
          (call.judged.facts.shell !== undefined &&
            call.status === 'running' &&
            call.graceTimerId === null),
      );
    default:
      return false;
  }
};

/**
 * The flags for the successor, without those that the journal knows better: they may have changed
 * since they were typed. The preset `full` is named: no journal gives it.
 */
const successorFlags = (flags: RunFlags, { session }: State): RunFlags => {
  const { model, effort, preset, profile, workspace, resume, continue: last, ...rest } = flags;
  const { takeOver, maxUsd, maxRounds, maxTokens, maxMinutes, ...others } = rest;
  return session.settings.preset === 'full' ? { ...others, preset: 'full' } : others;
};

const firstText = ({ session: { conversation } }: State): string => {
  const [part] = messagesOf(conversation)[0]?.parts ?? [];
  return part?.type === 'text' ? part.text : '';
};

type HandOver = Pick<SlashCommandContext, 'session' | 'flags' | 'view'> & {
  /** What the user has begun and the journal does not have yet: this process ends after it. */
  readonly work: UserWork;
  /** Tells the user that the process waits, or that the session stays here. */
  say(what: 'waits' | 'stays'): void;
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
  const { conversation, queue } = view.state.session;
  if (conversationLength(conversation) + queue.length === 0)
    throw new NotNow(
      'Nothing was asked yet. To begin a session that runs alone: pawl -p "PROMPT" --detach',
    );
  const ownFlags = successorFlags(flags, view.state);
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
  const leaveIfPossible = (stepped: Stepped | null): void => {
    if (!isWanted || !work.isOver) return;
    // What a reply asks for has not begun when its step is seen.
    if (stepped?.event.type === 'LlmCompleted' || canHandOver(view.state)) leave();
  };
  work.watch(leaveIfPossible);
  leaveIfPossible(null);
  say('waits');
};
