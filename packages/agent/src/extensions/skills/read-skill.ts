/// <reference path="../../platform/js-yaml.d.ts" />

/**
 * Finds and reads the files of skills and commands, and makes the text that the model gets.
 *
 * From top to bottom: that text (`readPromptBlock`, `findSkill`); arguments in it; the front matter
 * of a file (`readFrontMatter`); and finding and reading files (`findPromptFiles`).
 */

import { readdir, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import { isWithin, readRegular, systemFault } from '../../platform/files.js';
import { pathErrorText } from '../../platform/text.js';
import { inOneLine, type PromptFault, type PromptFile, type PromptPlace } from './prompt-file.js';

/** A skill or command as text for the model. */
export type PromptBlock =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'unusable'; readonly why: string };

const wrapBlock = (kind: PromptFile['kind'], name: string, lines: readonly string[]): string =>
  [`<${kind} name="${name}">`, ...lines, `</${kind}>`].join('\n');

/**
 * The body of a skill or command with its arguments. Reads the file again, as safely as when it
 * was loaded. Never rejects.
 */
export const readPromptBlock = async (
  { file, kind, name, place }: PromptFile,
  args: string,
): Promise<PromptBlock> => {
  const read = await readPromptText(file, place);
  if (read.kind === 'unusable') return read;
  const matter = await readFrontMatter(read.text);
  if (matter.kind === 'faulty')
    return { kind: 'unusable', why: `line ${matter.line}: ${matter.why}` };
  // A file that has become something else is not shown.
  if (kind === 'skill' && matter.kind === 'none')
    return { kind: 'unusable', why: 'it does not begin with front matter' };
  const body = expandArguments(matter.body.trim(), args);
  if (kind === 'command') return { kind: 'text', text: wrapBlock(kind, name, [body]) };
  const folder = path.dirname(file);
  const files = await filesBeside(folder);
  const about = [
    `Folder of the skill: ${inOneLine(folder)}`,
    ...(files.length === 0 ? [] : [`Files in it: ${files.join(', ')}`]),
  ];
  return { kind: 'text', text: wrapBlock(kind, name, [...about, '', body]) };
};

const LISTED_MAX = 100;
const LISTED_DEPTH = 3;

/** Files beside SKILL.md, relative to its folder. Links are named, not followed. */
const filesBeside = async (folder: string): Promise<readonly string[]> => {
  const files: string[] = [];
  const waiting = [{ below: '', depth: 1 }];
  // The list grows while it is walked through.
  for (const { below, depth } of waiting) {
    const entries = await readdir(path.join(folder, below), { withFileTypes: true }).catch(
      () => [],
    );
    for (const entry of entries.sort((one, other) => (one.name < other.name ? -1 : 1))) {
      const name = path.join(below, entry.name);
      if (files.length === LISTED_MAX) return files;
      if (entry.isDirectory() && depth < LISTED_DEPTH)
        waiting.push({ below: name, depth: depth + 1 });
      else if (!entry.isDirectory() && name !== 'SKILL.md') files.push(inOneLine(name));
    }
  }
  return files;
};

export type ActiveSkill = { readonly name: string; readonly text: string };

/** The skill in a text of `readPromptBlock`; null without one. */
export const findSkill = (text: string): ActiveSkill | null => {
  const begin = /(?:^|\n)<skill name="([\w-]+)">\n/.exec(text);
  const name = begin?.[1];
  if (begin === null || name === undefined) return null;
  const end = text.lastIndexOf('\n</skill>');
  return end > begin.index
    ? { name, text: text.slice(begin.index, end).trimStart() + '\n</skill>' }
    : null;
};

// ---- Arguments ----

/** Words of the arguments; quotes hold a word with blanks together. */
const splitWords = (args: string): readonly string[] =>
  [...args.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, bare]) => double ?? single ?? bare ?? '',
  );

/**
 * Puts arguments into the text of a command: `$ARGUMENTS` is all of them, `$1` to `$9` are single
 * ones. Nothing is run, whatever the text says: a `!` before a command is only text. In one pass,
 * so that an argument that looks like `$1` stays as it is. Text without a place for the arguments
 * gets them below.
 */
export const expandArguments = (body: string, args: string): string => {
  const words = splitWords(args);
  let isUsed = false;
  const text = body.replace(/\$(ARGUMENTS\b|[1-9](?!\d))/g, (_, which: string) => {
    isUsed = true;
    return which === 'ARGUMENTS' ? args : (words[Number(which) - 1] ?? '');
  });
  return isUsed || args === '' ? text : `${text.trimEnd()}\n\nArguments: ${args}`;
};

// ---- Front matter ----

/**
 * The front matter of a Markdown file (YAML between two lines `---`), and its body.
 *
 * 1. All values are texts, lists or maps: `1.0` and `2026-01-31` stay what they are.
 * 2. `description: Use when: x` is no YAML, but common, as are `[x] more`, `@x` and `*`. Such a
 *    value is read as if it stood in quotes, and so is one with `#12`, which would lose its end.
 * 3. A message never quotes the file: a link could lead to a secret.
 */
export type FrontMatter =
  | {
      readonly kind: 'ok';
      readonly fields: ReadonlyMap<string, unknown>;
      readonly body: string;
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

/** `key: value` at the start of a line, with a value that is no block and has no tag or anchor. */
const ENTRY = /^([A-Za-z][\w-]*):[ \t]+([^\s|>&!#].*)$/;
/** A value in quotes or brackets that ends before the line does. */
const CLOSED_EARLY = /^("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|\[[^\]]*\]|\{[^}]*\})[ \t]*[^\s#]/;
/** Beginnings that YAML keeps for itself, or takes for a name. */
const RESERVED = /^[@`%*]/;
const isPlain = (value: string): boolean => !/^["'[{]/.test(value);

/** Whether a text has a part such as `#12`, which YAML takes for a comment. */
const hasNumber = (value: string): boolean => isPlain(value) && / #\S/.test(value);

/** Whether a text is no YAML without quotes, or not all of it. */
const needsQuotes = (value: string): boolean =>
  RESERVED.test(value) || CLOSED_EARLY.test(value) || (isPlain(value) && /:(\s|$)| #/.test(value));

/** The lines with values in quotes where `needs` says so; a value may go on in indented lines. */
const quoteValues = (
  lines: readonly string[],
  needs: (value: string) => boolean,
): readonly string[] => {
  const quoted = [...lines];
  for (const [index, line] of lines.entries()) {
    const [, key, first = ''] = ENTRY.exec(line) ?? [];
    if (key === undefined) continue;
    const next = lines.findIndex((each, at) => at > index && !/^[ \t]+\S/.test(each));
    const end = next < 0 ? lines.length : next;
    const value = [first, ...lines.slice(index + 1, end)].map((each) => each.trim()).join(' ');
    // Empty lines keep the numbers of those that follow.
    if (needs(value))
      quoted.fill('', index, end).splice(index, 1, `${key}: ${JSON.stringify(value)}`);
  }
  return quoted;
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

/** Counts what could nest, without parsing: the parser itself is to be protected. */
const isTooDeep = (lines: readonly string[]): boolean => {
  const brackets = lines.join('').match(/[[{]/g)?.length ?? 0;
  const dashes = Math.max(0, ...lines.map((line) => line.match(/^(\s*[-?]\s)+/)?.[0].length ?? 0));
  const indents = new Set(lines.map((line) => /^ */.exec(line)?.[0].length ?? 0));
  return brackets > NESTING_MAX || dashes > NESTING_MAX || indents.size > NESTING_MAX;
};

/** Divides a file. It is parsed as it is written, and only if that fails by rule 2. */
export const readFrontMatter = async (text: string): Promise<FrontMatter> => {
  const lines = text.replace(/^\ufeff/, '').split(/\r?\n/);
  if (!FENCE.test(lines[0] ?? '')) return { kind: 'none', body: lines.join('\n') };
  const end = lines.findIndex((line, index) => index > 0 && FENCE.test(line));
  if (end < 0)
    return {
      kind: 'faulty',
      line: 1,
      why: 'the front matter has no end: a second line --- is missing',
    };
  const yaml = lines.slice(1, end);
  const length = yaml.reduce((sum, line) => sum + line.length + 1, 0);
  if (length > CHARACTERS_MAX)
    return {
      kind: 'faulty',
      line: 1,
      why: `the front matter has ${length} characters, at most ${CHARACTERS_MAX} are read`,
    };
  if (isTooDeep(yaml))
    return {
      kind: 'faulty',
      line: 1,
      why: 'the front matter is nested too deep, or has too many brackets',
    };
  const strict = await parse(quoteValues(yaml, hasNumber));
  const read = strict.kind === 'ok' ? strict : await parse(quoteValues(yaml, needsQuotes));
  if (read.kind === 'faulty') return strict.kind === 'ok' ? read : strict;
  const { value } = read;
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return { kind: 'faulty', line: FIRST_LINE, why: 'the front matter has no fields' };
  return {
    kind: 'ok',
    fields: new Map(Object.entries(value)),
    body: lines.slice(end + 1).join('\n'),
    lineOf: (field) =>
      Math.max(
        0,
        yaml.findIndex((line) => line.startsWith(`${field}:`)),
      ) + FIRST_LINE,
  };
};

// ---- Finding and reading files ----

const FILE_BYTES_MAX = 128 * 1024;
const DEPTH_MAX = 4;
const FOLDERS_MAX = 1_000;
const IGNORED = ['.git', 'node_modules'];

/**
 * Whether a real path is outside of what the place may show. Links are followed, but those of a
 * project only inside its repository, or to the user's skills.
 * Otherwise a repository could show the model any file.
 */
const leadsOut = (real: string, { within }: PromptPlace): boolean =>
  within !== null && !within.some((folder) => isWithin(real, folder));

type ReadText =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'unusable'; readonly why: string };

/** The text of a regular file of limited size in the place. Never rejects. */
export const readPromptText = async (file: string, place: PromptPlace): Promise<ReadText> => {
  try {
    const real = await realpath(file);
    if (leadsOut(real, place)) return { kind: 'unusable', why: `it leads out to ${real}` };
    const loaded = await readRegular(real, FILE_BYTES_MAX, { follow: 'none' });
    if (loaded.kind === 'file') return { kind: 'text', text: loaded.bytes.toString('utf8') };
    if (loaded.kind === 'unusable') return loaded;
    return {
      kind: 'unusable',
      why: loaded.kind === 'folder' ? 'it is a folder' : 'there is no such file',
    };
  } catch (error) {
    return { kind: 'unusable', why: pathErrorText(error) ?? systemFault(error, file) };
  }
};

type Entries = { readonly files: readonly string[]; readonly folders: readonly string[] };

const entryKind = async (entry: string): Promise<'file' | 'folder' | 'other'> => {
  const status = await stat(entry).catch(() => null); // a link that leads nowhere
  if (status === null) return 'other';
  return status.isDirectory() ? 'folder' : 'file';
};

/**
 * Names of the entries, sorted. Pipes and devices count as files, which are then refused with
 * words.
 */
const readEntries = async (folder: string): Promise<Entries> => {
  const entries = await readdir(folder, { withFileTypes: true });
  const files: string[] = [];
  const folders: string[] = [];
  for (const entry of entries) {
    if (IGNORED.includes(entry.name)) continue;
    const linked = entry.isSymbolicLink() ? await entryKind(path.join(folder, entry.name)) : null;
    if (entry.isDirectory() || linked === 'folder') folders.push(entry.name);
    else if (linked !== 'other') files.push(entry.name);
  }
  return { files: files.sort(), folders: folders.sort() };
};

type PromptFileSearch = {
  readonly files: readonly string[];
  readonly faults: readonly PromptFault[];
};

/**
 * All skills (`NAME/SKILL.md`; nothing below a skill) or commands (`*.md`) below the folder of the
 * place, the nearest first. Never rejects.
 */
export const findPromptFiles = async (place: PromptPlace): Promise<PromptFileSearch> => {
  const files: string[] = [];
  const faults: PromptFault[] = [];
  const skip = (file: string, text: string): void =>
    void faults.push({ file, line: null, text, weight: 'skipped' });
  const seen = new Set<string>();
  const waiting = [{ folder: place.folder, depth: 0 }];
  // The list grows while it is walked through.
  for (const { folder, depth } of waiting) {
    try {
      const real = await realpath(folder);
      if (seen.has(real)) continue;
      seen.add(real);
      if (leadsOut(real, place)) {
        skip(folder, `it is not used: it leads out to ${real}`);
        continue;
      }
      if (seen.size > FOLDERS_MAX) {
        skip(place.folder, `it has more than ${FOLDERS_MAX} folders; the others are not looked at`);
        break;
      }
      const entries = await readEntries(real);
      const isSkill = place.kind === 'skill' && depth > 0 && entries.files.includes('SKILL.md');
      if (isSkill) files.push(path.join(folder, 'SKILL.md'));
      if (place.kind === 'command')
        files.push(
          ...entries.files
            .filter((name) => name.endsWith('.md'))
            .map((name) => path.join(folder, name)),
        );
      if (isSkill || depth === DEPTH_MAX) continue;
      for (const name of entries.folders)
        waiting.push({ folder: path.join(folder, name), depth: depth + 1 });
    } catch (error) {
      skip(folder, `it can't be read: ${systemFault(error, folder)}`);
    }
  }
  return { files, faults };
};
