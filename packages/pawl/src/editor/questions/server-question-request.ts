import type {
  CreateElicitationRequest,
  CreateElicitationResponse,
  ElicitationPropertySchema,
  RequestPermissionRequest,
  RequestPermissionResponse,
} from '@agentclientprotocol/sdk';
import { readContent } from '@pawl/agent/extensions/mcp/questions/field-values';
import type {
  FieldChoice,
  FieldType,
  QuestionField,
  ServerAnswer,
  ServerQuestion,
} from '@pawl/agent/extensions/mcp/questions/server-question';
import { shortTitle } from '@pawl/agent/machine/values/call-title';
import { harmless } from '@pawl/terminal/paint-text';
import { textContent } from '../calls/tool-calls.js';

/** A question of an MCP server for an editor: as a form, or as a permission request if one choice answers it. */

const DECLINED: ServerAnswer = { action: 'decline' };
const CHOICES_MAX = 10;

const questionText = ({ server, message, asks }: ServerQuestion): string =>
  harmless(
    [
      `The MCP server ${server} asks: ${message}`,
      ...(asks.kind === 'address' ? [`Open it yourself if you trust it: ${asks.url}`] : []),
    ].join('\n\n'),
  );

const titled = (choices: readonly FieldChoice[]): { const: string; title: string }[] =>
  choices.map(({ value, label }) => ({ const: value, title: harmless(label) }));

const schemaOfType = (type: FieldType): ElicitationPropertySchema => {
  switch (type.kind) {
    case 'text':
      return { type: 'string' };
    case 'choice':
      return { type: 'string', oneOf: titled(type.choices) };
    case 'choices':
      return { type: 'array', items: { anyOf: titled(type.choices) } };
    case 'number':
    case 'integer':
    case 'boolean':
      return { type: type.kind };
  }
};

/** The form. It has no default values: nothing is filled in for the user. */
export const formRequest = (
  sessionId: string,
  question: ServerQuestion,
  fields: readonly QuestionField[],
): CreateElicitationRequest => ({
  mode: 'form',
  sessionId,
  message: questionText(question),
  requestedSchema: {
    type: 'object',
    properties: Object.fromEntries(
      fields.map(({ name, label, type }) => [name, { ...schemaOfType(type), title: harmless(label) }]),
    ),
    required: fields.filter(({ isRequired }) => isRequired).map(({ name }) => name),
  },
});

export const readForm = (
  response: CreateElicitationResponse,
  fields: readonly QuestionField[],
): ServerAnswer => {
  if (response.action === 'cancel') return { action: 'cancel' };
  if (response.action !== 'accept' || !('content' in response)) return DECLINED;
  const given: unknown = response.content ?? {};
  if (typeof given !== 'object' || given === null) return DECLINED;
  const content = readContent({ ...given }, fields);
  return content === null ? DECLINED : { action: 'accept', content };
};

type Option = { readonly id: string; readonly name: string; readonly answer: ServerAnswer };

const accept = (name: string, value: string | boolean): ServerAnswer => ({
  action: 'accept',
  content: Object.fromEntries([[name, value]]),
});

/** The answers if one choice is all that is asked; null for any other question. */
export const optionsOf = ({ asks }: ServerQuestion): readonly Option[] | null => {
  if (asks.kind === 'address')
    return [{ id: 'done', name: 'I have opened it', answer: { action: 'accept', content: {} } }];
  const [field, ...more] = asks.fields;
  if (field === undefined) return [{ id: 'yes', name: 'Yes', answer: { action: 'accept', content: {} } }];
  const { name, type } = field;
  if (more.length > 0) return null;
  if (type.kind === 'boolean')
    return [true, false].map((value) => ({
      id: String(value),
      name: value ? 'Yes' : 'No',
      answer: accept(name, value),
    }));
  if (type.kind !== 'choice' || type.choices.length > CHOICES_MAX) return null;
  return type.choices.map(({ value, label }, index) => ({
    id: `choice-${index}`,
    name: harmless(label),
    answer: accept(name, value),
  }));
};

/** A choice is no permission, so none of the options holds longer than this question. */
export const choiceRequest = (
  sessionId: string,
  toolCallId: string,
  question: ServerQuestion,
  options: readonly Option[],
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

export const questionTitle = ({ server, message }: ServerQuestion): string =>
  shortTitle(harmless(`${server} asks: ${message}`).replace(/\s+/g, ' ').trim());

export const readChoice = (
  { outcome }: RequestPermissionResponse,
  options: readonly Option[],
): ServerAnswer => {
  if (outcome.outcome !== 'selected') return { action: 'cancel' };
  return options.find(({ id }) => id === outcome.optionId)?.answer ?? DECLINED;
};
