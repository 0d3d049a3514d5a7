/**
 * Questions to an editor's user, as requests of the protocol (ACP).
 *
 * From top to bottom: may this call run; forms; what the model wants to know; may this program of
 * the project run (the trust gate); and what an MCP server wants to know. A permission request
 * offers options, an elicitation is a form.
 */

import { randomUUID } from 'node:crypto';
import path from 'node:path';
import type {
  CreateElicitationRequest,
  CreateElicitationResponse,
  ElicitationPropertySchema,
  PermissionOption,
  RequestPermissionRequest,
  RequestPermissionResponse,
  ToolCallContent,
} from '@agentclientprotocol/sdk';
import {
  type FieldChoice,
  type FieldType,
  type QuestionField,
  readContent,
  type ServerAnswer,
  type ServerQuestion,
} from '@pawl/agent/extensions/mcp/question';
import type { AskUserOrNot } from '@pawl/agent/extensions/mcp/session-servers';
import type { State } from '@pawl/agent/machine/state';
import { attempt } from '@pawl/agent/platform/attempt';
import { codeFence } from '@pawl/agent/platform/text';
import type { ApprovalChoice } from '@pawl/agent/policy/approval-question';
import { shortTitle } from '@pawl/agent/policy/judged-call';
import type { ApprovalQuestion, ApprovalReply } from '@pawl/agent/session/approvals';
import { clientCallId } from '@pawl/agent/session/client-call-ids';
import { harmless } from '@pawl/terminal/paint';
import { callFacts } from '@pawl/terminal/question-rows';
import type { ProjectQuestion, TrustAnswer, TrustQuestion } from '../sessions/project-trust.js';
import type { Outbox } from './outbox.js';
import type { OpenedSession, ReopenableSession } from './reopenable-session.js';
import { type Client, noticeUpdate } from './session-updates.js';
import { plannedChange, textContent } from './tool-calls.js';
import { commandsUpdate } from './typed-commands.js';

// May this call run

/** Whether an answer is one of the choices of a question of the model. */
const isNumber = (answer: ApprovalChoice['answer']): boolean => /^[1-4]$/.test(answer);

const onceName = (allows: string): string =>
  allows === 'this call' ? 'Allow once' : harmless(`Yes: ${allows}`);

const approvalOption = ({ answer, allows }: ApprovalChoice): PermissionOption => {
  if (isNumber(answer)) return { optionId: answer, name: harmless(allows), kind: 'allow_once' };
  if (answer === 'once') return { optionId: answer, name: onceName(allows), kind: 'allow_once' };
  if (answer === 'no') return { optionId: answer, name: 'Reject', kind: 'reject_once' };
  const name = harmless(`Allow in this session: ${allows}`);
  return { optionId: answer, name, kind: 'allow_always' };
};

/** The language of the Markdown code block that shows what would run or change. */
const fenceLanguages = {
  command: 'sh',
  address: '',
  change: 'diff',
  input: 'json',
  question: '',
  plan: '',
} as const;

/** The command, address, change or input, then the facts about it. */
const approvalContent = async (question: ApprovalQuestion): Promise<ToolCallContent[]> => {
  const { subject, paths } = question;
  const [file] = paths;
  const changes =
    subject.kind === 'change' && file !== undefined
      ? await plannedChange(file, subject.text)
      : null;
  const shown = changes ?? [
    textContent(codeFence(harmless(subject.text), fenceLanguages[subject.kind])),
  ];
  return [
    ...shown,
    textContent(
      callFacts(question)
        .map(({ text }) => `- ${harmless(text)}`)
        .join('\n'),
    ),
  ];
};

/** One line. The content has everything. */
const approvalTitle = ({ tool, subject, paths, hosts, folder }: ApprovalQuestion): string => {
  const line = harmless(subject.text).replace(/\s+/g, ' ').trim();
  if (subject.kind === 'command') return shortTitle(line);
  const about = paths.length > 0 ? paths.map((file) => path.relative(folder, file) || file) : hosts;
  return shortTitle(harmless(`${tool} ${about.join(' ')}`.trim()));
};

/**
 * An approval question as a permission request.
 *
 * 1. Its content is everything that would run or change, never cut, with invisible characters shown
 *    as marks.
 * 2. The name of an option that holds longer than this call says what it allows, and that it ends
 *    with the session.
 */
export const permissionRequest = async (
  sessionId: string,
  question: ApprovalQuestion,
): Promise<RequestPermissionRequest> => ({
  sessionId,
  toolCall: {
    toolCallId: clientCallId(question.batchId, question.callId),
    title: approvalTitle(question),
    status: 'pending',
    content: await approvalContent(question),
    rawInput: question.input,
  },
  // text needs a form
  options: question.choices
    .filter(({ answer }) => answer !== 'reply' && answer !== 'edit')
    .map(approvalOption),
});

/** The replies of the library to the answers of the terminal. */
const replyTexts: Readonly<Record<string, ApprovalReply>> = {
  once: 'allow',
  always: 'alwaysThis',
  prefix: 'alwaysPrefix',
  session: 'always',
  no: { deny: '' },
};

/**
 * The user's answer; null if the client has cancelled the turn. An option that was not offered
 * allows nothing.
 */
export const readApproval = (
  { outcome }: RequestPermissionResponse,
  { choices }: ApprovalQuestion,
): ApprovalReply | null => {
  if (outcome.outcome === 'cancelled') return null;
  const choice = choices.find(({ answer }) => answer === outcome.optionId);
  if (choice !== undefined && isNumber(choice.answer)) return { reply: choice.allows };
  return (
    replyTexts[choice?.answer ?? ''] ?? { deny: 'the editor sent an answer that was not offered' }
  );
};

// Forms, of questions of the model and of MCP servers

const DECLINED: ServerAnswer = { action: 'decline' };

const formChoices = (choices: readonly FieldChoice[]): { const: string; title: string }[] =>
  choices.map(({ value, label }) => ({ const: value, title: harmless(label) }));

const schemaOfType = (type: FieldType): ElicitationPropertySchema => {
  switch (type.kind) {
    case 'text':
      return { type: 'string' };
    case 'choice':
      return { type: 'string', oneOf: formChoices(type.choices) };
    case 'choices':
      return { type: 'array', items: { anyOf: formChoices(type.choices) } };
    case 'number':
    case 'integer':
    case 'boolean':
      return { type: type.kind };
  }
};

/** The form. It has no default values: nothing is filled in for the user. */
const formRequest = (
  sessionId: string,
  message: string,
  fields: readonly QuestionField[],
): CreateElicitationRequest => ({
  mode: 'form',
  sessionId,
  message,
  requestedSchema: {
    type: 'object',
    properties: Object.fromEntries(
      fields.map(({ name, label, type }) => [
        name,
        { ...schemaOfType(type), title: harmless(label) },
      ]),
    ),
    required: fields.filter(({ isRequired }) => isRequired).map(({ name }) => name),
  },
});

const readForm = (
  response: CreateElicitationResponse,
  fields: readonly QuestionField[],
): ServerAnswer => {
  if (response.action === 'cancel') return { action: 'cancel' };
  if (response.action !== 'accept' || !('content' in response)) return DECLINED;
  const answer: unknown = response.content ?? {};
  if (typeof answer !== 'object' || answer === null) return DECLINED;
  const content = readContent({ ...answer }, fields);
  return content === null ? DECLINED : { action: 'accept', content };
};

// What the model wants to know

/** What the model asks the user, as a form: one of its choices, or the user's own words. */
export const askWords = async (
  { context }: Client,
  sessionId: string,
  { subject, choices }: ApprovalQuestion,
  signal: AbortSignal,
): Promise<ApprovalReply> => {
  const offered = choices
    .filter(({ answer }) => isNumber(answer))
    .map(({ allows }) => ({ value: allows, label: allows }));
  const label = offered.length === 0 ? 'Your answer' : 'Or in your own words';
  const words: QuestionField = { name: 'words', label, isRequired: false, type: { kind: 'text' } };
  const type = { kind: 'choice', choices: offered } as const;
  const choice: QuestionField = { name: 'choice', label: 'Answer', isRequired: false, type };
  const fields = offered.length === 0 ? [words] : [choice, words];
  const request = formRequest(sessionId, harmless(subject.text), fields);
  const response = await context.request('elicitation/create', request, withdrawnBy(signal));
  const answer = readForm(response, fields);
  if (answer.action !== 'accept') return { deny: '' };
  const { words: typed = '', choice: chosen = '' } = answer.content;
  const reply = String(typed).trim() === '' ? String(chosen) : String(typed);
  return reply === '' ? { deny: '' } : { reply };
};

// May this program of the project run

type TrustGateParts = {
  readonly client: Client;
  readonly outbox: Outbox;
  readonly session: ReopenableSession;
  readonly workspace: string;
  openAgain(): Promise<OpenedSession>;
};

/**
 * Asks once, before the first turn, about programs that the project wants to run. Until then the
 * session runs without them; if the user allows one, the session is reopened with it.
 */
export class TrustGate {
  readonly #parts: TrustGateParts;
  #asking: Promise<void> | null = null;
  #withdrawn = new AbortController();

  constructor(parts: TrustGateParts) {
    this.#parts = parts;
  }

  /**
   * Resolves when the user has answered, or the question was withdrawn. Rejects if the session
   * could not be opened again. While something runs in the session, nothing is asked: a later turn
   * will.
   */
  async pass({ name }: State): Promise<void> {
    const session = await this.#parts.session.current();
    const isAtRest = name === 'Ready' || name === 'WaitingForUserInput';
    if (this.#asking === null && (!isAtRest || session.jobs().length > 0)) return;
    this.#asking ??= this.#askAndReopen();
    await this.#asking;
  }

  /** Withdraws the open question: that is no answer, and the next session asks again. */
  withdraw(): void {
    this.#withdrawn.abort();
  }

  async #askAndReopen(): Promise<void> {
    const { client, outbox, session, workspace, openAgain } = this.#parts;
    this.#withdrawn = new AbortController();
    const { signal } = this.#withdrawn;
    const tell = (text: string): void =>
      outbox.push(noticeUpdate(text, 'warning', client.features));
    const { projectQuestions } = await import('../sessions/project-trust.js');
    const questions = await projectQuestions(workspace, tell);
    const isAllowed = await askTrustQuestions(questions, {
      client,
      sessionId: session.id,
      outbox,
      signal,
    });
    if (!isAllowed) return;
    await session.reopen(openAgain);
    outbox.push(commandsUpdate(session.prompts));
  }
}

type TrustRequest = {
  readonly client: Client;
  readonly sessionId: string;
  readonly outbox: Outbox;
  /** Withdraws the open question. The others are not asked. */
  readonly signal: AbortSignal;
};

/**
 * Asks one question after the other, and stores each answer before the next. Resolves with whether
 * something was allowed.
 */
const askTrustQuestions = async (
  questions: readonly ProjectQuestion[],
  asking: TrustRequest,
): Promise<boolean> => {
  let isAllowed = false;
  for (const question of questions) {
    if (asking.signal.aborted) break;
    if (await askTrustQuestion(question, asking)) isAllowed = true;
  }
  return isAllowed;
};

/**
 * Asks by a call with a permission request; resolves with whether the user allowed it. No answer is
 * no permission: a cancelled question, an option that was not offered, a client that has gone.
 */
const askTrustQuestion = async (
  question: ProjectQuestion,
  { client, sessionId, outbox, signal }: TrustRequest,
): Promise<boolean> => {
  const call = {
    toolCallId: `trust-${randomUUID()}`,
    title: oneLineTitle(question.title),
    status: 'pending',
    content: trustContent(question),
  } as const;
  const choices = trustChoices(question);
  outbox.push({ sessionUpdate: 'tool_call', kind: 'other', ...call });
  await outbox.flushed();
  const response = await attempt(async () => {
    signal.throwIfAborted();
    const options = choices.map(({ option }) => option);
    const request: RequestPermissionRequest = { sessionId, toolCall: call, options };
    return client.context.request('session/request_permission', request, withdrawnBy(signal));
  });
  const outcome = response.kind === 'done' ? response.value.outcome : null;
  const optionId = outcome?.outcome === 'selected' ? outcome.optionId : null;
  const answer = choices.find(({ option }) => option.optionId === optionId)?.answer ?? 'later';
  const stored = await attempt(() => question.answer(answer));
  // An object is one of the question's ways to say yes; `later` and `no` are texts.
  const isAllowed = stored.kind === 'done' && typeof answer === 'object';
  const text =
    stored.kind === 'done'
      ? stored.value
      : `not run, since your answer can't be stored: ${stored.fault.message}`;
  outbox.push({
    sessionUpdate: 'tool_call_update',
    toolCallId: call.toolCallId,
    status: isAllowed ? 'completed' : 'failed',
    content: [...call.content, textContent(harmless(text))], // it replaces the earlier content
  });
  return isAllowed;
};

/** Everything that would run, never cut, with invisible characters shown as marks. */
const trustContent = ({ content, kind, meaning, yes }: TrustQuestion): ToolCallContent[] => {
  // Several ways to say yes: in the sandbox, with its network, or without a sandbox.
  const levels =
    yes.length === 1
      ? ''
      : 'In the sandbox it reads this folder and has no network, unless you allow that too. As ' +
        'you, outside the sandbox, it can do all that you can. ';
  return [
    textContent(codeFence(harmless(content), kind === 'diff' ? 'diff' : '')),
    textContent(harmless(`${levels}${meaning}`)),
  ];
};

type TrustChoice = { readonly option: PermissionOption; readonly answer: TrustAnswer };

const trustChoices = ({ yes }: TrustQuestion): readonly TrustChoice[] => {
  const choice = (
    answer: TrustAnswer,
    optionId: string,
    name: string,
    kind: PermissionOption['kind'],
  ): TrustChoice => ({ answer, option: { optionId, name, kind } });
  return [
    ...yes.map((one) =>
      choice(one, one.key, `${one.name}, until its text changes`, 'allow_always'),
    ),
    choice('later', 'later', 'Not now', 'reject_once'),
    choice('no', 'no', 'Never run this text', 'reject_always'),
  ];
};

// What an MCP server wants to know

/**
 * Asks the editor's user what an MCP server wants to know: by a form if the editor has forms, else
 * by options if one choice answers it. Other questions can't be asked.
 */
export const askInEditor = (
  { context, features }: Client,
  sessionId: string,
  outbox: Outbox,
): AskUserOrNot => {
  const askByOptions = async (
    question: ServerQuestion,
    options: NonNullable<ReturnType<typeof choiceOptions>>,
    signal: AbortSignal,
  ): Promise<ServerAnswer> => {
    const toolCallId = `question-${randomUUID()}`;
    const title = questionTitle(question);
    outbox.push({
      sessionUpdate: 'tool_call',
      toolCallId,
      title,
      kind: 'other',
      status: 'pending',
    });
    try {
      await outbox.flushed();
      signal.throwIfAborted();
      const response = await context.request(
        'session/request_permission',
        choiceRequest(sessionId, toolCallId, question, options),
        withdrawnBy(signal),
      );
      return readChoice(response, options);
    } finally {
      outbox.push({ sessionUpdate: 'tool_call_update', toolCallId, status: 'completed' });
    }
  };
  return async (question, signal) => {
    const { asks } = question;
    if (asks.kind === 'form' && features.forms) {
      const request = formRequest(sessionId, questionText(question), asks.fields);
      await outbox.flushed();
      signal.throwIfAborted();
      const response = await context.request('elicitation/create', request, withdrawnBy(signal));
      return readForm(response, asks.fields);
    }
    const options = choiceOptions(question);
    return options === null ? null : askByOptions(question, options, signal);
  };
};

const CHOICES_MAX = 10;

const questionText = ({ server, message, asks }: ServerQuestion): string =>
  harmless(
    [
      `The MCP server ${server} asks: ${message}`,
      ...(asks.kind === 'address' ? [`Open it yourself if you trust it: ${asks.url}`] : []),
    ].join('\n\n'),
  );

type ServerQuestionOption = {
  readonly id: string;
  readonly name: string;
  readonly answer: ServerAnswer;
};

const acceptAnswer = (name: string, value: string | boolean): ServerAnswer => ({
  action: 'accept',
  content: Object.fromEntries([[name, value]]),
});

/** The answers if one choice is all that is asked; null for any other question. */
const choiceOptions = ({ asks }: ServerQuestion): readonly ServerQuestionOption[] | null => {
  if (asks.kind === 'address')
    return [{ id: 'done', name: 'I have opened it', answer: { action: 'accept', content: {} } }];
  const [field, ...more] = asks.fields;
  if (field === undefined)
    return [{ id: 'yes', name: 'Yes', answer: { action: 'accept', content: {} } }];
  const { name, type } = field;
  if (more.length > 0) return null;
  if (type.kind === 'boolean')
    return [true, false].map((value) => ({
      id: String(value),
      name: value ? 'Yes' : 'No',
      answer: acceptAnswer(name, value),
    }));
  if (type.kind !== 'choice' || type.choices.length > CHOICES_MAX) return null;
  return type.choices.map(({ value, label }, index) => ({
    id: `choice-${index}`,
    name: harmless(label),
    answer: acceptAnswer(name, value),
  }));
};

/** A choice is no permission, so none of the options holds longer than this question. */
const choiceRequest = (
  sessionId: string,
  toolCallId: string,
  question: ServerQuestion,
  options: readonly ServerQuestionOption[],
): RequestPermissionRequest => ({
  sessionId,
  toolCall: {
    toolCallId,
    title: questionTitle(question),
    status: 'pending',
    content: [textContent(choiceText(question))],
  },
  options: [
    ...options.map(({ id, name }) => ({ optionId: id, name, kind: 'allow_once' as const })),
    { optionId: 'decline', name: 'Decline', kind: 'reject_once' },
  ],
});

const choiceText = (question: ServerQuestion): string => {
  const { asks } = question;
  const label = asks.kind === 'form' ? (asks.fields[0]?.label ?? '') : '';
  return [questionText(question), harmless(label)].filter((text) => text !== '').join('\n\n');
};

const questionTitle = ({ server, message }: ServerQuestion): string =>
  oneLineTitle(`${server} asks: ${message}`);

const readChoice = (
  { outcome }: RequestPermissionResponse,
  options: readonly ServerQuestionOption[],
): ServerAnswer => {
  if (outcome.outcome !== 'selected') return { action: 'cancel' };
  return options.find(({ id }) => id === outcome.optionId)?.answer ?? DECLINED;
};

const oneLineTitle = (text: string): string =>
  shortTitle(harmless(text).replace(/\s+/g, ' ').trim());

/** The options of a request that the signal withdraws. */
export const withdrawnBy = (signal: AbortSignal) => ({
  cancellationSignal: signal,
  stopWaitingOnCancel: true,
});
