import * as v from 'valibot';
import { wellFormed } from './output.js';

/**
 * What passes between an environment and its program behind the sandbox: one line of JSON each. Cells are counted from
 * 1, calls from 1 in each cell; what belongs to another is dropped.
 */

/** Settings of a program, as JSON in argv. */
export type ProgramSettings = {
  /** Paths inside the sandbox. */
  readonly contexts: readonly string[];
  readonly outputMax: number;
  /** Characters that `last_output` keeps whole. */
  readonly keptMax: number;
  /** Characters of an answer, of a variable that is read, and of all prompts of one call. */
  readonly textMax: number;
};

export type ToProgram =
  | { readonly type: 'run'; readonly number: number; readonly code: string }
  | { readonly type: 'read'; readonly name: string }
  | {
      readonly type: 'texts';
      readonly number: number;
      readonly ordinal: number;
      /** Null: the cell is stopped, and the code that waits for them goes no further. */
      readonly texts: readonly string[] | null;
    };

const Text = v.pipe(v.string(), v.transform(wellFormed));
const Count = v.pipe(v.number(), v.integer(), v.minValue(0));
const Variable = v.strictObject({ name: Text, type: Text, size: v.nullable(Count) });

const FromProgram = v.variant('type', [
  v.strictObject({ type: v.literal('ready') }),
  /** Instead of `ready`. */
  v.strictObject({ type: v.literal('refused'), why: Text }),
  /** The beginning of the output, while it is printed: all that is left of it if the program dies. */
  v.strictObject({ type: v.literal('printed'), stream: v.picklist(['stdout', 'stderr']), text: Text }),
  v.strictObject({
    type: v.literal('subcall'),
    number: Count,
    ordinal: Count,
    kind: v.picklist(['llm', 'rlm']),
    prompts: v.array(Text),
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

/** A line for a program: ASCII, so that it can be cut anywhere. */
export const lineFor = (order: ToProgram): string => {
  const json = JSON.stringify(order).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return `${json}\n`;
};

/** What a line of a program says; null where no program of ours would say it: code of a model wrote it. */
export const readLine = (line: string): FromProgram | null => {
  let json: unknown;
  try {
    json = JSON.parse(line);
  } catch {
    return null; // nothing is lost: the environment says that its program broke
  }
  const read = v.safeParse(FromProgram, json);
  return read.success ? read.output : null;
};
