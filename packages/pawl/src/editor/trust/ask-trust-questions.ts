import { randomUUID } from 'node:crypto';
import { attempt } from '@pawl/agent/session/attempt';
import type { TrustAnswer, TrustQuestion } from '../host-interface.js';
import type { Outbox } from '../outbox.js';
import type { Client } from '../replay-into-outbox.js';
import { announceTrust, chosenOption, trustAnswered, trustRequest } from './trust-permission-request.js';

/**
 * Asks the editor's user about what the project wants to run, one question after the other.
 *
 * 1. No answer is no permission: a cancelled question, an option that was not offered, a client that has gone.
 * 2. An answer is stored before the next question.
 */

type Asking = {
  readonly client: Client;
  readonly sessionId: string;
  readonly outbox: Outbox;
  /** Withdraws the open question. The others are not asked. */
  readonly signal: AbortSignal;
};

const askOne = async (
  question: TrustQuestion,
  { client, sessionId, outbox, signal }: Asking,
): Promise<TrustAnswer> => {
  const toolCallId = `trust-${randomUUID()}`;
  outbox.push(announceTrust(toolCallId, question));
  await outbox.flushed();
  const asked = await attempt(async () => {
    signal.throwIfAborted();
    return client.context.request(
      'session/request_permission',
      trustRequest(sessionId, toolCallId, question),
      { cancellationSignal: signal, stopWaitingOnCancel: true },
    );
  });
  const chosen = asked.kind === 'done' ? chosenOption(asked.value, question) : null; // rule 1
  const stored = await attempt(() => question.answer(chosen));
  const answer =
    stored.kind === 'done'
      ? stored.value
      : { said: `not run, since your answer can't be stored: ${stored.fault.message}`, isAllowed: false };
  outbox.push(trustAnswered(toolCallId, question, answer));
  return answer;
};

/** Resolves with whether something was allowed. */
export const askTrustQuestions = async (
  questions: readonly TrustQuestion[],
  asking: Asking,
): Promise<boolean> => {
  let isAllowed = false;
  for (const question of questions) {
    if (asking.signal.aborted) break;
    const answer = await askOne(question, asking);
    isAllowed ||= answer.isAllowed;
  }
  return isAllowed;
};
