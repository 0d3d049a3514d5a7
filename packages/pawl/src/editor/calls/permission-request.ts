import path from 'node:path';
import type {
  PermissionOption,
  RequestPermissionRequest,
  RequestPermissionResponse,
  ToolCallContent,
} from '@agentclientprotocol/sdk';
import type { ApprovalQuestion, ApprovalReply } from '@pawl/agent/api/approvals';
import { shortTitle } from '@pawl/agent/machine/values/call-title';
import { codeFence } from '@pawl/agent/platform/base/code-fence';
import type { ApprovalChoice } from '@pawl/agent/policy/approval-question';
import { harmless } from '@pawl/terminal/paint-text';
import { factLines } from '@pawl/terminal/questions/question-rows';
import { plannedChange } from './file-diff.js';
import { textContent } from './tool-calls.js';

/**
 * An approval question as a permission request.
 *
 * 1. Its content is everything that would run or change, never cut, with invisible characters shown as marks.
 * 2. The name of an option that holds longer than this call says what it allows, and that it ends with the session.
 */

const nameOf = ({ answer, allows }: ApprovalChoice): string => {
  if (answer === 'once') return 'Allow once';
  return answer === 'no' ? 'Reject' : `Allow in this session: ${allows}`;
};

const kindOf = (answer: ApprovalChoice['answer']): PermissionOption['kind'] => {
  if (answer === 'once') return 'allow_once';
  return answer === 'no' ? 'reject_once' : 'allow_always';
};

const optionOf = (choice: ApprovalChoice): PermissionOption => ({
  optionId: choice.answer,
  name: harmless(nameOf(choice)),
  kind: kindOf(choice.answer),
});

const languages = { command: 'sh', address: '', change: 'diff', input: 'json' } as const;

/** The command, address, change or input, then the facts about it. */
const contentOf = async (question: ApprovalQuestion): Promise<ToolCallContent[]> => {
  const { subject, paths } = question;
  const [file] = paths;
  const changes =
    subject.kind === 'change' && file !== undefined ? await plannedChange(file, subject.text) : null;
  const shown = changes ?? [textContent(codeFence(harmless(subject.text), languages[subject.kind]))];
  return [
    ...shown,
    textContent(
      factLines(question)
        .map((line) => `- ${harmless(line)}`)
        .join('\n'),
    ),
  ];
};

/** One line. The content has everything. */
const titleOf = ({ tool, subject, paths, hosts, folder }: ApprovalQuestion): string => {
  const line = harmless(subject.text).replace(/\s+/g, ' ').trim();
  if (subject.kind === 'command') return shortTitle(line);
  const about = paths.length > 0 ? paths.map((file) => path.relative(folder, file) || file) : hosts;
  return shortTitle(harmless(`${tool} ${about.join(' ')}`.trim()));
};

export const permissionRequest = async (
  sessionId: string,
  question: ApprovalQuestion,
): Promise<RequestPermissionRequest> => ({
  sessionId,
  toolCall: {
    toolCallId: question.callId,
    title: titleOf(question),
    status: 'pending',
    content: await contentOf(question),
    rawInput: question.input,
  },
  options: question.choices.map(optionOf),
});

const replies: Readonly<Record<string, ApprovalReply>> = {
  once: 'allow',
  always: 'alwaysThis',
  prefix: 'alwaysPrefix',
  session: 'always',
  no: { deny: '' },
};

/** The user's answer; null if the client has cancelled the turn. An option that was not offered allows nothing. */
export const readAnswer = (
  { outcome }: RequestPermissionResponse,
  { choices }: ApprovalQuestion,
): ApprovalReply | null => {
  if (outcome.outcome === 'cancelled') return null;
  const chosen = choices.find(({ answer }) => answer === outcome.optionId)?.answer;
  return replies[chosen ?? ''] ?? { deny: 'the editor sent an answer that was not offered' };
};
