/// <reference path="./js-yaml.d.ts" />
/**
 * Divides a Markdown file into its front matter (YAML between two lines `---`) and its body.
 *
 * 1. All values are texts, lists or maps: `1.0` and `2026-01-31` stay what they are.
 * 2. `description: Use when: x` is no YAML, but common. Such a line is read as if its value stood in quotes.
 * 3. A message never quotes the file: a link could lead to a secret.
 */

export type FrontMatter =
  | {
      readonly kind: 'ok';
      readonly fields: ReadonlyMap<string, unknown>;
      readonly body: string;
      /** False if it could only be read by rule 2. */
      readonly isStrict: boolean;
      /** Line of each field in the file, from 1. */
      lineOf(field: string): number;
    }
  | { readonly kind: 'none'; readonly body: string }
  | { readonly kind: 'faulty'; readonly line: number; readonly why: string };

const CHARACTERS_MAX = 16 * 1024;
/** Deeper nesting could exhaust the stack of the parser. */
const NESTING_MAX = 40;
const FENCE = /^---[ \t]*$/;
/** The YAML begins in the second line of the file. */
const FIRST_LINE = 2;

/** `key: value` at the start of a line, with a value that does not begin as something else than plain text. */
const PLAIN_LINE = /^([A-Za-z][\w-]*):[ \t]+([^\s"'|>[{&*!%@`#].*)$/;

const withQuotes = (line: string): string => {
  const found = PLAIN_LINE.exec(line);
  if (found === null || !/:(\s|$)| #/.test(found[2] ?? '')) return line;
  return `${found[1]}: ${JSON.stringify(found[2]?.trimEnd())}`;
};

type Parsed =
  | { readonly kind: 'ok'; readonly value: unknown }
  | { readonly kind: 'faulty'; readonly line: number; readonly why: string };

const parse = async (lines: readonly string[]): Promise<Parsed> => {
  const { FAILSAFE_SCHEMA, load, YAMLException } = await import('js-yaml');
  try {
    return { kind: 'ok', value: load(lines.join('\n'), { schema: FAILSAFE_SCHEMA }) };
  } catch (error) {
    // Nothing is lost: the file is named, and the others are used.
    if (!(error instanceof YAMLException))
      return { kind: 'faulty', line: FIRST_LINE, why: 'the YAML is too complex' };
    return {
      kind: 'faulty',
      line: (error.mark?.line ?? 0) + FIRST_LINE,
      why: `the YAML is invalid: ${error.reason}`,
    };
  }
};

const tooDeep = (lines: readonly string[]): boolean => {
  const brackets = lines.join('').match(/[[{]/g)?.length ?? 0;
  const dashes = Math.max(0, ...lines.map((line) => line.match(/^(\s*[-?]\s)+/)?.[0].length ?? 0));
  const indents = new Set(lines.map((line) => /^ */.exec(line)?.[0].length ?? 0));
  return brackets > NESTING_MAX || dashes > NESTING_MAX || indents.size > NESTING_MAX;
};

export const readFrontMatter = async (text: string): Promise<FrontMatter> => {
  const lines = text.replace(/^\ufeff/, '').split(/\r?\n/);
  if (!FENCE.test(lines[0] ?? '')) return { kind: 'none', body: lines.join('\n') };
  const end = lines.findIndex((line, index) => index > 0 && FENCE.test(line));
  if (end < 0)
    return { kind: 'faulty', line: 1, why: 'the front matter has no end: a second line --- is missing' };
  const yaml = lines.slice(1, end);
  const length = yaml.reduce((sum, line) => sum + line.length + 1, 0);
  if (length > CHARACTERS_MAX)
    return {
      kind: 'faulty',
      line: 1,
      why: `the front matter has ${length} characters, at most ${CHARACTERS_MAX} are read`,
    };
  if (tooDeep(yaml)) return { kind: 'faulty', line: 1, why: 'the front matter is nested too deep' };
  const strict = await parse(yaml);
  const read = strict.kind === 'ok' ? strict : await parse(yaml.map(withQuotes));
  if (read.kind === 'faulty') return strict.kind === 'ok' ? read : strict;
  const { value } = read;
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return { kind: 'faulty', line: FIRST_LINE, why: 'the front matter has no fields' };
  return {
    kind: 'ok',
    fields: new Map(Object.entries(value)),
    body: lines.slice(end + 1).join('\n'),
    isStrict: strict.kind === 'ok',
    lineOf: (field) =>
      Math.max(
        0,
        yaml.findIndex((line) => line.startsWith(`${field}:`)),
      ) + FIRST_LINE,
  };
};
