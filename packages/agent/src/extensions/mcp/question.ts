/**
 * A question of an MCP server to the user (elicitation), as it is shown.
 *
 * 1. All texts are the server's: they are cut here, and sanitized where they are shown.
 * 2. A form with too many fields is declined.
 * 3. Bounds of a value (a minimum, a pattern) are checked by the server.
 */

import type { ElicitRequestParams } from '@modelcontextprotocol/client';
import { cut } from '../../platform/text.js';
import { isObject } from '../../platform/untrusted-input.js';

export type FieldChoice = { readonly value: string; readonly label: string };

export type FieldType =
  | { readonly kind: 'text' | 'number' | 'integer' | 'boolean' }
  | { readonly kind: 'choice' | 'choices'; readonly choices: readonly FieldChoice[] };

export type QuestionField = {
  /** As the server names it. */
  readonly name: string;
  /** One line for the user. */
  readonly label: string;
  readonly isRequired: boolean;
  readonly type: FieldType;
};

export type ServerQuestion = {
  readonly server: string;
  readonly message: string;
  /** A form, or an address that the user is to open. */
  readonly asks:
    | { readonly kind: 'form'; readonly fields: readonly QuestionField[] }
    | { readonly kind: 'address'; readonly url: string };
};

export type FieldValue = string | number | boolean | string[];

export type ServerAnswer =
  | { readonly action: 'accept'; readonly content: Readonly<Record<string, FieldValue>> }
  /** `cancel`: no answer. */
  | { readonly action: 'decline' | 'cancel' };

/** Asks the user. The signal withdraws the question; it then resolves all the same. */
export type AskUser = (question: ServerQuestion, signal: AbortSignal) => Promise<ServerAnswer>;

const MESSAGE_MAX = 2_000;
const LABEL_MAX = 200;
const NAME_MAX = 100;
const URL_MAX = 2_000;
const FIELDS_MAX = 10;
const CHOICES_MAX = 50;

/** Replaces secrets in a text. */
type Clean = (text: string) => string;

const readText = (value: object, key: string): string | null => {
  const text: unknown = Reflect.get(value, key);
  return typeof text === 'string' && text !== '' ? text : null;
};

/**
 * The choices of a list of texts, or of objects with `const` and `title`; null if it is neither.
 */
const readChoices = (
  list: unknown,
  labels: unknown,
  clean: Clean,
): readonly FieldChoice[] | null => {
  if (!Array.isArray(list) || list.length === 0 || list.length > CHOICES_MAX) return null;
  const choices = list.map((one: unknown, index): FieldChoice | null => {
    const value = isObject(one) ? readText(one, 'const') : one;
    if (typeof value !== 'string' || value === '' || value.length > LABEL_MAX) return null;
    const label: unknown = isObject(one)
      ? readText(one, 'title')
      : Array.isArray(labels)
        ? labels[index]
        : null;
    return { value, label: cut(clean(typeof label === 'string' ? label : value), LABEL_MAX) };
  });
  return choices.every((choice) => choice !== null) ? choices : null;
};

/** Null for a type that no form can show. */
const readType = (schema: object, clean: Clean): FieldType | null => {
  const field = (key: string): unknown => Reflect.get(schema, key);
  const listed = field('enum') ?? field('oneOf');
  switch (field('type')) {
    case 'string': {
      if (listed === undefined) return { kind: 'text' };
      const choices = readChoices(listed, field('enumNames'), clean);
      return choices === null ? null : { kind: 'choice', choices };
    }
    case 'array': {
      const items = field('items');
      if (!isObject(items)) return null;
      const several = Reflect.get(items, 'enum') ?? Reflect.get(items, 'anyOf');
      const choices = readChoices(several, null, clean);
      return choices === null ? null : { kind: 'choices', choices };
    }
    case 'number':
      return { kind: 'number' };
    case 'integer':
      return { kind: 'integer' };
    case 'boolean':
      return { kind: 'boolean' };
    default:
      return null;
  }
};

const readField = (
  name: string,
  schema: object,
  isRequired: boolean,
  clean: Clean,
): QuestionField | null => {
  const type = readType(schema, clean);
  if (type === null || name.length > NAME_MAX) return null;
  const title = readText(schema, 'title') ?? name;
  const about = readText(schema, 'description');
  const label = cut(clean(about === null ? title : `${title}: ${about}`), LABEL_MAX);
  return { name, label, isRequired, type };
};

/** Null for a form to decline. `clean` replaces secrets in the server's words. */
export const readServerQuestion = (
  server: string,
  params: ElicitRequestParams,
  clean: Clean,
): ServerQuestion | null => {
  const message = cut(clean(params.message), MESSAGE_MAX);
  if (params.mode === 'url') {
    const { url } = params;
    const isShown = url.length <= URL_MAX && /^https?:/i.test(url) && URL.canParse(url);
    return isShown ? { server, message, asks: { kind: 'address', url: clean(url) } } : null;
  }
  const { properties, required = [] } = params.requestedSchema;
  const entries = Object.entries(properties);
  if (entries.length > FIELDS_MAX) return null;
  const fields = entries.map(([name, schema]) =>
    readField(name, schema, required.includes(name), clean),
  );
  if (!fields.every((field) => field !== null)) return null;
  return { server, message, asks: { kind: 'form', fields } };
};

// ---- The values of a form: from a typed line, or from the form of an editor ----

type ReadValue =
  | { readonly kind: 'value'; readonly value: FieldValue }
  | { readonly kind: 'invalid'; readonly why: string };

const value = (read: FieldValue): ReadValue => ({ kind: 'value', value: read });
const invalid = (why: string): ReadValue => ({ kind: 'invalid', why });

/**
 * A choice by its number in the list that the user sees, or else by its label or value: a value may
 * be the number of another choice.
 */
const findChoice = (typed: string, choices: readonly FieldChoice[]): string | null => {
  const match =
    (/^\d{1,3}$/.test(typed) ? choices[Number(typed) - 1] : undefined) ??
    choices.find((choice) => choice.value === typed || choice.label === typed);
  return match?.value ?? null;
};

/** The value of a line that is not empty. */
export const readTyped = (typed: string, { type }: QuestionField): ReadValue => {
  const line = typed.trim();
  switch (type.kind) {
    case 'text':
      return value(typed);
    case 'number':
    case 'integer': {
      const number = Number(line);
      if (line === '' || !Number.isFinite(number)) return invalid('Type a number.');
      if (type.kind === 'integer' && !Number.isSafeInteger(number))
        return invalid('Type a whole number.');
      return value(number);
    }
    case 'boolean': {
      if (/^(y|yes|true)$/i.test(line)) return value(true);
      return /^(n|no|false)$/i.test(line) ? value(false) : invalid('Type y or n.');
    }
    case 'choice': {
      const chosen = findChoice(line, type.choices);
      return chosen === null
        ? invalid(`Type a number from 1 to ${type.choices.length}.`)
        : value(chosen);
    }
    case 'choices': {
      const chosen = line.split(',').map((one) => findChoice(one.trim(), type.choices));
      return chosen.every((one) => one !== null)
        ? value([...new Set(chosen)])
        : invalid(`Type numbers from 1 to ${type.choices.length}, with commas between them.`);
    }
  }
};

/** Whether a value of an editor has the type of its field. */
const fits = (raw: unknown, { type }: QuestionField): raw is FieldValue => {
  const isChoice = (one: unknown): boolean =>
    'choices' in type && type.choices.some((choice) => choice.value === one);
  switch (type.kind) {
    case 'text':
      return typeof raw === 'string';
    case 'number':
      return typeof raw === 'number' && Number.isFinite(raw);
    case 'integer':
      return Number.isSafeInteger(raw);
    case 'boolean':
      return typeof raw === 'boolean';
    case 'choice':
      return isChoice(raw);
    case 'choices':
      return Array.isArray(raw) && raw.every(isChoice);
  }
};

/**
 * What a form of an editor holds for the server; null if a required field is missing, or one has
 * another type.
 */
export const readContent = (
  raw: Readonly<Record<string, unknown>>,
  fields: readonly QuestionField[],
): Readonly<Record<string, FieldValue>> | null => {
  const content: [string, FieldValue][] = [];
  for (const field of fields) {
    const one = Object.hasOwn(raw, field.name) ? raw[field.name] : undefined;
    if (one === undefined || one === null) {
      if (field.isRequired) return null;
    } else if (fits(one, field)) content.push([field.name, one]);
    else return null;
  }
  return Object.fromEntries(content);
};
