import { readFile } from 'node:fs/promises';
import type { JudgedCall } from '../agent/call.js';
import type { Json, JsonObject } from '../agent/message.js';

/** What a call would change, for the question whether it may: read from its input and the file as it is. */

const BYTES_MAX = 1_000_000;

const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const textIn = (input: JsonObject, name: string): string | null => {
  const value = input[name];
  return typeof value === 'string' ? value : null;
};

/** The text after an edit where each old text stands exactly once; null where only the tool itself can tell. */
const afterEdits = (before: string, input: JsonObject): string | null => {
  const edits = input.edits;
  if (!Array.isArray(edits)) return null;
  let after = before;
  const list = edits as readonly Json[]; // an array of JSON holds JSON
  for (const edit of list) {
    const [from, to] = isObject(edit) ? [textIn(edit, 'oldText'), textIn(edit, 'newText')] : [null, null];
    if (from === null || to === null || from === '') return null;
    const parts = after.split(from);
    if (parts.length !== 2) return null;
    after = parts.join(to);
  }
  return after;
};

/** What an edit says of itself, where the file can't tell more. */
const editsAlone = (input: JsonObject): string | null => {
  if (!Array.isArray(input.edits)) return null;
  const edits = input.edits as readonly Json[]; // an array of JSON holds JSON
  const lines = edits.flatMap((edit) => {
    if (!isObject(edit)) return [];
    const signed = (sign: string, text: string | null): readonly string[] =>
      text === null || text === ''
        ? []
        : text
            .replace(/\n$/, '')
            .split('\n')
            .map((line) => sign + line);
    return ['@@ -1 +1 @@', ...signed('-', textIn(edit, 'oldText')), ...signed('+', textIn(edit, 'newText'))];
  });
  return lines.join('\n');
};

const readText = async (file: string): Promise<string> => {
  const bytes = await readFile(file).catch(() => null); // not there, or not to be read: the tool will say so
  return bytes === null || bytes.length > BYTES_MAX ? '' : bytes.toString('utf8');
};

/** A unified diff, or null of a call that replaces neither a whole file nor texts in one. */
export const foresee = async ({ input, traits, facts }: JudgedCall): Promise<string | null> => {
  const [file] = facts.paths;
  const content = textIn(input, 'content');
  if (file === undefined || !traits.mutating || (content === null && !Array.isArray(input.edits)))
    return null;
  const before = await readText(file);
  const after = content ?? afterEdits(before, input);
  if (after === null || after.length > BYTES_MAX) return editsAlone(input);
  const { createTwoFilesPatch } = await import('diff');
  return createTwoFilesPatch('before', 'after', before, after, '', '', { context: 2 });
};
