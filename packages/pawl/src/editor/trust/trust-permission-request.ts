import type {
  RequestPermissionRequest,
  RequestPermissionResponse,
  SessionUpdate,
  ToolCallContent,
} from '@agentclientprotocol/sdk';
import { shortTitle } from '@pawl/agent/machine/values/call-title';
import { codeFence } from '@pawl/agent/platform/base/code-fence';
import { harmless } from '@pawl/terminal/paint-text';
import { textContent } from '../calls/tool-calls.js';
import type { TrustAnswer, TrustQuestion } from '../host-interface.js';

/** A question about something that the project wants to run, as a call with a permission request. */

/** Everything that would run, never cut, with invisible characters shown as marks. */
const contentOf = ({ content, kind, meaning }: TrustQuestion): ToolCallContent[] => [
  textContent(codeFence(harmless(content), kind === 'diff' ? 'diff' : '')),
  textContent(harmless(meaning)),
];

const titleOf = ({ title }: TrustQuestion): string => shortTitle(harmless(title).replace(/\s+/g, ' ').trim());

export const announceTrust = (toolCallId: string, question: TrustQuestion): SessionUpdate => ({
  sessionUpdate: 'tool_call',
  toolCallId,
  title: titleOf(question),
  kind: 'other',
  status: 'pending',
  content: contentOf(question),
});

export const trustRequest = (
  sessionId: string,
  toolCallId: string,
  question: TrustQuestion,
): RequestPermissionRequest => ({
  sessionId,
  toolCall: { toolCallId, title: titleOf(question), status: 'pending', content: contentOf(question) },
  options: question.choices.map(({ id, name, kind }) => ({ optionId: id, name, kind })),
});

/** The chosen option; null for a cancelled question, and for an option that was not offered. */
export const chosenOption = (
  { outcome }: RequestPermissionResponse,
  { choices }: TrustQuestion,
): string | null =>
  outcome.outcome === 'selected' ? (choices.find(({ id }) => id === outcome.optionId)?.id ?? null) : null;

/** What became of the question. Content replaces earlier content, so the text is sent again. */
export const trustAnswered = (
  toolCallId: string,
  question: TrustQuestion,
  answer: TrustAnswer,
): SessionUpdate => ({
  sessionUpdate: 'tool_call_update',
  toolCallId,
  status: answer.isAllowed ? 'completed' : 'failed',
  content: [...contentOf(question), textContent(harmless(answer.said))],
});
