/**
 * `--json-schema`: the answer must be JSON that satisfies a schema.
 *
 * 1. The model is told before the prompt, and asked once more if its answer does not fit.
 * 2. The answer is the JSON alone, or text with one fenced block of JSON.
 * 3. Nothing is loaded from the network: a reference leads into the schema itself.
 * 4. A check has a deadline, since a pattern of the schema can take for ever on a hostile answer.
 */

import { readFileSync, statSync } from 'node:fs';
import { createContext, Script } from 'node:vm';
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/server/validators/ajv';
import { attemptNow } from '@pawl/agent/platform/attempt';
import { cut, findFences, pathErrorText } from '@pawl/agent/platform/text';
import { usageStop } from '../settings/flags.js';

/** The JSON of an answer as text and value, or what is wrong with the answer. */
type CheckedAnswer =
  | { readonly kind: 'fits'; readonly text: string; readonly value: unknown }
  | { readonly kind: 'faulty'; readonly why: string };

export type AnswerSchema = {
  /** The file as the user wrote it. */
  readonly file: string;
  /** The prompt with the request for JSON before it. */
  addTo(prompt: string): string;
  check(answer: string): CheckedAnswer;
  /** The message that asks for the answer once more; `why` it did not fit. */
  askAgain(why: string): string;
};

/** A schema is part of the prompt: larger ones would fill the window. */
const BYTES_MAX = 200_000;
/** The only version of JSON Schema that is understood: the address of its schema. */
const DRAFT = 'https://json-schema.org/draft/2020-12/schema';

type Validator = ReturnType<AjvJsonSchemaValidator['getValidator']>;
type JsonSchema = Parameters<AjvJsonSchemaValidator['getValidator']>[0];

const readSchemaText = (file: string): string => {
  const status = statSync(file);
  // a shell hands down the output of a program as a pipe
  if (!status.isFile() && !status.isFIFO()) throw new Error('it is not a file');
  // the size of a pipe is not known before
  const bytes = status.size > BYTES_MAX ? null : readFileSync(file);
  if (bytes === null || bytes.length > BYTES_MAX)
    throw new Error(`it has more than ${BYTES_MAX} bytes`);
  return bytes.toString('utf8');
};

const parseSchema = (text: string): JsonSchema => {
  const parsed = attemptNow<unknown>(() => JSON.parse(text.replace(/^\ufeff/, '')));
  if (parsed.kind === 'fault') throw new Error(`it is not JSON: ${parsed.fault.message}`);
  const schema = parsed.value;
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema))
    throw new Error('a JSON Schema is an object');
  const declared = '$schema' in schema ? String(schema.$schema).replace(/#$/, '') : DRAFT;
  if (declared.replace(/^http:/, 'https:') !== DRAFT)
    throw new Error(`it is of another version (${declared}); write ${DRAFT}, or leave it out`);
  // A JSON object. Whether it is a schema is checked next.
  return schema as JsonSchema;
};

const compileSchema = (schema: JsonSchema): Validator => {
  const validators = new AjvJsonSchemaValidator();
  const checked = validators.getValidator({ $ref: DRAFT })(schema);
  if (!checked.valid) throw new Error(`it is no JSON Schema: ${checked.errorMessage}`);
  return validators.getValidator(schema);
};

/** The text that should be JSON: the whole answer, or its only fenced block. */
const jsonText = (answer: string): string => {
  const [first, ...others] = findFences(answer).filter(({ info }) => /^(?:json)?$/i.test(info));
  const isOnly = first?.closed === 'yes' && others.length === 0;
  return (isOnly ? first.text : answer).trim();
};

/** Faults are sent to the model: those of a long list of wrong items would fill its window. */
const WHY_MAX = 2_000;

const faulty = (why: string): CheckedAnswer => ({
  kind: 'faulty',
  why: cut(why, WHY_MAX, ' … and more'),
});

const CHECK_MS = 2_000;

const CHECK = new Script('check()');

/** Only a script with a time limit stops a regular expression that runs in this thread. */
const withinDeadline = <T>(check: () => T): T => {
  try {
    return CHECK.runInContext(createContext({ check }), { timeout: CHECK_MS });
  } catch (error) {
    // it belongs to the other context, so it is no `Error` here
    if (Reflect.get(Object(error), 'code') !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
    throw new Error(
      `the check did not end within ${CHECK_MS / 1_000} s: a pattern of the schema takes too ` +
        'long for this answer',
    );
  }
};

const checkWith =
  (validate: Validator) =>
  (answer: string): CheckedAnswer => {
    const text = jsonText(answer);
    const parsed = attemptNow<unknown>(() => JSON.parse(text));
    if (parsed.kind === 'fault') return faulty(`it is not JSON: ${parsed.fault.message}`);
    // A schema that refers to itself can exceed the stack.
    const checked = attemptNow(() => withinDeadline(() => validate(parsed.value)));
    if (checked.kind === 'fault') return faulty(checked.fault.message);
    return checked.value.valid
      ? { kind: 'fits', text, value: parsed.value }
      : faulty(checked.value.errorMessage ?? 'it does not satisfy the schema');
  };

/** Reads and checks the schema. Throws a usage error. */
export const loadAnswerSchema = (file: string): AnswerSchema => {
  const loaded = attemptNow(() => {
    const schema = parseSchema(readSchemaText(file));
    return { schema, validate: compileSchema(schema) };
  });
  if (loaded.kind === 'fault') {
    const { fault } = loaded;
    throw usageStop(
      `--json-schema ${file} can't be used: ${pathErrorText(fault) ?? fault.message}.`,
    );
  }
  const { schema, validate } = loaded.value;
  const request =
    '<answer-format>\nYour last message must be JSON alone, without any other text, that ' +
    `satisfies this JSON Schema:\n${JSON.stringify(schema)}\n</answer-format>`;
  return {
    file,
    addTo: (prompt) => `${request}\n\n${prompt}`,
    check: checkWith(validate),
    askAgain: (why) =>
      `Your last message does not satisfy the JSON Schema ("data" is the whole JSON): ${why}\n` +
      'Write it again: JSON alone, without any other text.',
  };
};
