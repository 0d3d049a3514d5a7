import type { FieldChoice, FieldValue, QuestionField } from './server-question.js';

/** The values of a form: from what the user types, and from what an editor sends. */

export type ReadValue =
  | { readonly kind: 'value'; readonly value: FieldValue }
  | { readonly kind: 'invalid'; readonly why: string };

const value = (read: FieldValue): ReadValue => ({ kind: 'value', value: read });
const invalid = (why: string): ReadValue => ({ kind: 'invalid', why });

const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ['y', true],
  ['yes', true],
  ['true', true],
  ['n', false],
  ['no', false],
  ['false', false],
]);

/** A choice by its number in the list, or by its value or label. */
const choiceIn = (typed: string, choices: readonly FieldChoice[]): string | null => {
  const found =
    choices.find((choice) => choice.value === typed || choice.label === typed) ??
    (/^\d{1,3}$/.test(typed) ? choices[Number(typed) - 1] : undefined);
  return found?.value ?? null;
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
      if (type.kind === 'integer' && !Number.isSafeInteger(number)) return invalid('Type a whole number.');
      return value(number);
    }
    case 'boolean': {
      const read = BOOLEANS.get(line.toLowerCase());
      return read === undefined ? invalid('Type y or n.') : value(read);
    }
    case 'choice': {
      const chosen = choiceIn(line, type.choices);
      return chosen === null ? invalid(`Type a number from 1 to ${type.choices.length}.`) : value(chosen);
    }
    case 'choices': {
      const chosen = line.split(',').map((one) => choiceIn(one.trim(), type.choices));
      return chosen.every((one) => one !== null)
        ? value([...new Set(chosen)])
        : invalid(`Type numbers from 1 to ${type.choices.length}, with commas between them.`);
    }
  }
};

const fits = (given: unknown, { type }: QuestionField): given is FieldValue => {
  const isChoice = (one: unknown): boolean =>
    'choices' in type && type.choices.some((choice) => choice.value === one);
  switch (type.kind) {
    case 'text':
      return typeof given === 'string';
    case 'number':
      return typeof given === 'number' && Number.isFinite(given);
    case 'integer':
      return Number.isSafeInteger(given);
    case 'boolean':
      return typeof given === 'boolean';
    case 'choice':
      return isChoice(given);
    case 'choices':
      return Array.isArray(given) && given.every(isChoice);
  }
};

/** What a form of an editor holds for the server; null if a required field lacks, or has another type. */
export const readContent = (
  given: Readonly<Record<string, unknown>>,
  fields: readonly QuestionField[],
): Readonly<Record<string, FieldValue>> | null => {
  const content: [string, FieldValue][] = [];
  for (const field of fields) {
    const one = Object.hasOwn(given, field.name) ? given[field.name] : undefined;
    if (one === undefined || one === null) {
      if (field.isRequired) return null;
    } else if (fits(one, field)) content.push([field.name, one]);
    else return null;
  }
  return Object.fromEntries(content);
};
