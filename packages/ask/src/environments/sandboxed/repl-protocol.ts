import * as v from 'valibot';
import { wellFormed } from '../cell-output.js';

/**
 * Messages between an environment and its sandboxed program, one line of JSON each. Cells count from 1, calls from 1 in
 * each cell; messages of another cell or call are dropped.
 */

/** Settings of the program, passed as JSON in argv. */
export type ProgramSettings = {
  readonly outputMax: number;
  /** Maximum characters of `last_output`. */
  readonly keptMax: number;
  /** Maximum characters of an answer, of a variable that is read, and of all prompts of one call. */
  readonly textMax: number;
};

/** The first line to the program. Names of inputs can be too long for argv. */
export type Inputs = {
  readonly type: 'inputs';
  /** Paths inside the sandbox. */
  readonly contexts: readonly string[];
  /** Unique names, in the same order. */
  readonly names: readonly string[];
};

export type ToProgram =
  | Inputs
  | { readonly type: 'run'; readonly number: number; readonly code: string }
  | { readonly type: 'read'; readonly name: string }
  /** The last cell was interrupted: what is left of that must not reach the next one. Sent after the last interrupt. */
  | { readonly type: 'settle' }
  | {
      readonly type: 'texts';
      readonly number: number;
      readonly ordinal: number;
      /** Null: the cell is stopped, so the waiting code must not continue. */
      readonly texts: readonly string[] | null;
    };

const Text = v.pipe(v.string(), v.transform(wellFormed));
const Count = v.pipe(v.number(), v.integer(), v.minValue(0));
const Variable = v.strictObject({ name: Text, type: Text, size: v.nullable(Count) });

const FromProgram = v.variant('type', [
  v.strictObject({ type: v.literal('ready') }),
  /** The program can't start; sent instead of `ready`. */
  v.strictObject({ type: v.literal('refused'), why: Text }),
  /** Head of the output, sent while it is printed, so that it survives if the program dies. */
  v.strictObject({ type: v.literal('printed'), stream: v.picklist(['stdout', 'stderr']), text: Text }),
  v.strictObject({
    type: v.literal('subcall'),
    number: Count,
    ordinal: Count,
    kind: v.picklist(['llm', 'rlm']),
    prompts: v.array(Text),
    /** Null: the default sub-model. */
    model: v.nullable(Text),
  }),
  v.strictObject({
    type: v.literal('finished'),
    number: Count,
    status: v.picklist(['ok', 'raised', 'stopped']),
    stdout: Text,
    stderr: Text,
    variables: v.array(Variable),
    answer: v.nullable(Text),
  }),
  v.strictObject({ type: v.literal('value'), text: v.nullable(Text) }),
]);
export type FromProgram = v.InferOutput<typeof FromProgram>;

/** Encodes a message as one line of ASCII, which can be split at any byte. */
export const lineFor = (order: ToProgram): string => {
  const json = JSON.stringify(order).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return `${json}\n`;
};

/** Decodes a line of the program; null if it is invalid, which means that the model's code wrote it. */
export const readLine = (line: string): FromProgram | null => {
  let json: unknown;
  try {
    json = JSON.parse(line);
  } catch {
    return null; // the caller kills the program, and the report says so
  }
  const read = v.safeParse(FromProgram, json);
  return read.success ? read.output : null;
};
