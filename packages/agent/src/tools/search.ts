/**
 * The tool `search`: searches file contents with ripgrep, and verifies the lines of its output.
 *
 * From top to bottom: the schema; inputs in the forms of other agents, which models have learned;
 * running ripgrep; the choice of lines to show; a search in files or in a blob (stored output that
 * was cut for the model), with `searchTool`; and the check that a line of ripgrep's output is still
 * in a file that may be read.
 */

import { stat } from 'node:fs/promises';
import path from 'node:path';
import type { Json, JsonObject } from '@pawl/machine/kernel/shape';
import * as v from 'valibot';
import { groupDigits, plural } from '../platform/text.js';
import type { FileMemory, Tool, ToolContext, ToolOutcome } from '../ports/tool.js';
import {
  type Aliases,
  defineTool,
  FILE_NAMES,
  FOLDER_NAMES,
  type ForeignFields,
  filledText,
  type InputFault,
  isGiven,
  readNumber,
  type TranslatedInput,
  wholeNumber,
} from './define-tool.js';
import { failed, stopped } from './file-change.js';
import {
  plainNames,
  type RipgrepEnd,
  type RipgrepRequest,
  readGlob,
  runRipgrep,
  withFolder,
} from './file-search.js';
import {
  blobHash,
  decodeFile,
  editableText,
  findAllowed,
  judgeBlob,
  judgePath,
  type LoadedFile,
  loadFile,
  noBlob,
  titleWithin,
} from './files.js';
import { suggestNames } from './similar-names.js';

const LINES_DEFAULT = 200;
const LINES_MAX = 2_000;
/** Limit for one file, so that it does not displace all others. */
const LINES_OF_FILE_MAX = 20;
const SHOWN_BYTES = 28_000;
/** Longer lines are shown around their first match. */
const COLUMNS_MAX = 400;
const COLUMNS_BEFORE = 150;
/** About the size of a line number. */
const NUMBER_BYTES = 6;
/** Limit on the collected lines. The lines to show are chosen after the last file. */
const COLLECTED_BYTES_MAX = 4_000_000;
/** Limit on the bytes of files that are read again to verify lines. */
const VERIFIED_BYTES_MAX = 256_000_000;
/** With enough to show, a search continues to count: up to this many matching lines, and ms. */
const COUNTED_MAX = 100_000;
const COUNTING_MS = 2_000;

const schema = v.strictObject({
  pattern: filledText('Regular expression (ripgrep).'),
  path: v.exactOptional(filledText('File, folder or blob:HASH; default: workspace.')),
  glob: v.exactOptional(
    v.pipe(
      v.string(),
      v.minLength(1, 'must not be empty'),
      v.maxLength(500, 'must have at most 500 characters'),
      v.description('As for find, below path: *.ts or !test/**'),
    ),
  ),
  ignoreCase: v.exactOptional(v.boolean()),
  context: v.exactOptional(wholeNumber(0, 20, 'Lines around each match.')),
  filesOnly: v.exactOptional(v.boolean()),
  limit: v.exactOptional(
    wholeNumber(1, LINES_MAX, `Matching lines shown, default ${LINES_DEFAULT}.`),
  ),
});
type Input = v.InferOutput<typeof schema>;

// ---- Input in the form of other agents ----

const ALIASES: Aliases = {
  pattern: ['query', 'regex', 'search_pattern'],
  path: [...(FILE_NAMES.path ?? []), ...(FOLDER_NAMES.path ?? [])],
  glob: ['include', 'include_pattern', 'file_pattern', 'filePattern'],
  ignoreCase: ['-i', 'ignore_case', 'nocase', 'case_insensitive', 'caseInsensitive'],
  context: ['-C', 'context_lines'],
  filesOnly: ['files_only', 'names_only'],
  limit: ['head_limit', 'max_results', 'maxResults', 'total_max_matches'],
};
const USE_GLOB = 'give glob, such as **/*.js';
const ONE_PLACE = 'give one path a call, and several calls in one reply';
/** `same`: values that change nothing and are dropped. `instead`: advice for all others. */
const FOREIGN: ForeignFields = {
  '-n': { same: 'any' },
  '-o': { same: [false] },
  offset: { same: [0], instead: 'narrow path or glob, or raise limit' },
  multiline: { same: [false], instead: 'search for one line of the text, with context' },
  regexp: { same: [true], instead: 'escape the pattern' },
  literal: { same: [false], instead: 'escape the pattern' },
  fixed_strings: { same: [false], instead: 'escape the pattern' },
  max_matches_per_file: { same: 'any' },
  no_ignore: { same: [false], instead: 'use grep in bash for ignored files' },
  type: { instead: USE_GLOB },
  exclude: { instead: 'give glob, such as !test/**' },
  exclude_pattern: { instead: 'give glob, such as !test/**' },
  paths: { instead: ONE_PLACE },
};
/** Lines after or before a match: the largest number becomes `context`. */
const SIDES: readonly string[] = ['-A', '-B', 'after', 'before'];
const MODES: ReadonlyMap<Json | undefined, boolean> = new Map([
  ['content', false],
  ['files_with_matches', true],
  ['count', false], // the lines are shown, and their total if some are left out
]);

const translate = (written: JsonObject): TranslatedInput => {
  const { output_mode: mode, case_sensitive: sensitive, ...fields } = written;
  const faults: InputFault[] = [];
  const input = new Map(Object.entries(fields));
  const set = (name: string, value: Json, field: string): void => {
    const current = input.get(name);
    if (current === value || !isGiven(current)) input.set(name, value);
    else faults.push({ field, why: `says something else than ${name}: give ${name} alone` });
  };
  const filesOnly = MODES.get(mode);
  if (filesOnly !== undefined) set('filesOnly', filesOnly, 'output_mode');
  else if (mode !== undefined && mode !== null)
    faults.push({ field: 'output_mode', why: 'must be content, count or files_with_matches' });
  if (typeof sensitive === 'boolean') set('ignoreCase', !sensitive, 'case_sensitive');
  else if (sensitive !== undefined && sensitive !== null)
    faults.push({ field: 'case_sensitive', why: 'must be true or false: give ignoreCase' });
  const sides = SIDES.flatMap((name) => {
    const lines = readNumber(input.get(name) ?? null);
    if (typeof lines !== 'number') return []; // a wrong value stays, and is refused
    input.delete(name);
    return [lines];
  });
  const context = readNumber(input.get('context') || 0);
  if (sides.length > 0 && typeof context === 'number')
    input.set('context', Math.max(context, ...sides));
  return { input: Object.fromEntries(input), faults };
};

// ---- What ripgrep finds ----

/**
 * Limits ripgrep to the file names of a glob, to save time; `search` checks the whole glob.
 * They are given as a file type (`--type`), since ripgrep's own globs would override ignore files.
 */
const typeFlags = (glob: string | undefined): readonly string[] => {
  // null: the glob has no simple file names such as `*.ts`
  const names = glob === undefined ? null : plainNames(glob);
  return names === null
    ? []
    : [...names.map((name) => `--type-add=sought:${name}`), '--type=sought'];
};

const ripgrepFlags = (input: Input): readonly string[] => [
  ...['--no-heading', '--with-filename', '--null', '--sort=path', '--line-number', '--column'],
  ...[`--max-columns=${COLUMNS_MAX}`, '--max-columns-preview'],
  ...(input.filesOnly === true ? ['--max-count=1'] : [`--context=${input.context ?? 0}`]),
  ...(input.ignoreCase === true ? ['--ignore-case'] : []),
  ...typeFlags(input.glob),
  `--regexp=${input.pattern}`,
];

type FoundLine = {
  readonly file: string;
  readonly number: number;
  /** Of the first match, in bytes from 1; null for a line around a match. */
  readonly column: number | null;
  /** Without its end, if it is long. */
  readonly text: string;
};

/** `FILE NUL NUMBER:COLUMN:TEXT`; around a match `FILE NUL NUMBER-TEXT`; null for a separator. */
const parseRecord = (record: string): FoundLine | null => {
  const [, name, number, column, text] = /^([^\0]+)\0(\d+)(?::(\d+):|-)(.*)$/s.exec(record) ?? [];
  if (name === undefined || text === undefined) return null;
  const file = name.replace(/^\.\//, '');
  return { file, number: Number(number), column: column ? Number(column) : null, text };
};

/** A matching line, with the lines around it that no earlier match has. */
type Match = readonly FoundLine[];

type FoundFile = {
  readonly file: string;
  /** The first matches; further ones are only counted. */
  readonly matches: readonly Match[];
  /** All matching lines of the file. */
  readonly count: number;
};

/** The limits of a result. */
type Bounds = {
  /** Matching lines to show. */
  readonly limit: number;
  /** Matching lines to show of one file. */
  readonly perFile: number;
  readonly context: number;
  /** Only the names of files are shown. */
  readonly namesOnly: boolean;
};

/** Collects the lines that may be shown, and counts the others, in bounded memory. */
const collectMatches = (bounds: Bounds) => {
  const { limit, perFile, context, namesOnly } = bounds;
  const files: (FoundFile & { matches: FoundLine[][]; count: number })[] = [];
  const totals = { lines: 0, files: 0 };
  let bytes = 0;
  /** Bytes of names and first matches. Their limit is separate: each file needs one. */
  let firstBytes = 0;
  let current: (typeof files)[number] | undefined;
  /** Lines before the next match. */
  let before: FoundLine[] = [];
  /** The last match; `lines` gets the lines after it. Null: the match is only counted. */
  let last: { readonly number: number; readonly lines: FoundLine[] | null } | null = null;

  /** Whether there is room for the last match of the current file. `count` was raised for it. */
  const hasRoom = (): boolean => {
    if (current === undefined) return false;
    const isFirstOfFile = current.count === 1;
    // one beyond the limit of bytes, by which `shareLines` sees that the result is cut
    if (isFirstOfFile) return files.length < limit && firstBytes <= SHOWN_BYTES;
    // a file without its first match is not shown, so no further one is collected
    const { length } = current.matches;
    return length > 0 && length < perFile && bytes <= COLLECTED_BYTES_MAX;
  };
  const addMatch = (line: FoundLine, file: (typeof files)[number]): void => {
    file.count += 1;
    totals.lines += 1;
    const lines = hasRoom() ? [...before, line] : null;
    before = [];
    last = { number: line.number, lines };
    if (lines === null) return;
    file.matches.push(lines);
    bytes += countBytes(lines);
    if (file.count > 1) return;
    files.push(file);
    firstBytes += firstSize(file.file, lines, bounds);
  };
  const add = (line: FoundLine): void => {
    if (current?.file !== line.file) {
      current = { file: line.file, matches: [], count: 0 };
      totals.files += 1;
      before = [];
      last = null;
    }
    // a line around a match belongs to the last match if it is near enough, else to the next
    if (line.column !== null) addMatch(line, current);
    else if (last === null || line.number > last.number + context) before.push(line);
    else if (last.lines !== null) {
      last.lines.push(line);
      bytes += countBytes([line]);
    }
  };
  /** Whether there is enough to show, so that further matches are only counted. */
  const isFull = (): boolean =>
    totals.lines >= limit || (namesOnly ? firstBytes : bytes) > SHOWN_BYTES;
  return { files, totals, add, isFull };
};

const countBytes = (lines: readonly FoundLine[]): number =>
  lines.reduce((sum, { text }) => sum + Buffer.byteLength(text) + NUMBER_BYTES, 0);

/** Bytes that are shown of a file with its first match. */
const firstSize = (file: string, match: Match, { namesOnly }: Bounds): number =>
  Buffer.byteLength(file) + NUMBER_BYTES + (namesOnly ? 0 : countBytes(match));

/** The matches of a search, and how ripgrep ended. */
type SearchResult = RipgrepEnd & {
  readonly files: readonly FoundFile[];
  readonly totals: { readonly lines: number; readonly files: number };
};

type Search = Pick<RipgrepRequest, 'words' | 'folder' | 'input'> &
  Bounds & {
    readonly signal: AbortSignal;
    /** Whether to report lines of this file. */
    accepts(file: string): boolean;
  };

/** Searches until ripgrep ends, enough is counted, or the call is aborted. */
const runSearch = async ({ accepts, signal, ...request }: Search): Promise<SearchResult> => {
  const { files, totals, add, isFull } = collectMatches(request);
  const countingEnd = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const take = (record: string): 'more' | 'enough' => {
    const line = parseRecord(record);
    if (line === null || !accepts(line.file)) return 'more';
    add(line);
    if (isFull()) timer ??= setTimeout(() => countingEnd.abort(), COUNTING_MS);
    return totals.lines >= COUNTED_MAX ? 'enough' : 'more';
  };
  const stopSignal = AbortSignal.any([signal, countingEnd.signal]);
  try {
    const end = await runRipgrep({ ...request, signal: stopSignal, take, end: '\n' });
    return { ...end, files, totals, more: end.more || stopSignal.aborted };
  } finally {
    clearTimeout(timer);
  }
};

/** `regexFault`: why the pattern is no regular expression, so that it was searched as text. */
type PatternResult = SearchResult & { readonly regexFault?: string };

/** Searches for plain text if the pattern is no regular expression. */
const searchPattern = async (
  input: Input,
  run: (flags: readonly string[]) => Promise<SearchResult | null>,
): Promise<PatternResult | null> => {
  const flags = ripgrepFlags(input);
  const searched = await run(flags);
  if (searched?.fault?.isOfPattern !== true) return searched;
  const literal = await run([...flags, '--fixed-strings']);
  if (literal === null || literal.fault !== null) return searched;
  return { ...literal, regexFault: searched.fault.text };
};

// ---- What is shown ----

/** Why not all lines are shown. */
type Cut = 'limit' | 'bytes' | 'file';

/** The number of matches to show of each file. */
type Share = { readonly counts: readonly number[]; readonly cut: Cut | null };

/**
 * Chooses how many matches of each file to show: one of each in turn, so that no file displaces all
 * others. With a limit of 4, files with 5, 1 and 1 matches get 2, 1 and 1.
 */
const shareLines = ({ files, totals }: SearchResult, bounds: Bounds): Share => {
  const { limit, perFile } = bounds;
  const counts = files.map(() => 0);
  // the largest limit can't be raised, so the advice is another one
  const atLimit: Cut = limit < LINES_MAX ? 'limit' : 'bytes';
  let lines = 0;
  let bytes = 0;
  for (let round = 0; round < perFile; round++) {
    let added = false;
    for (const [index, { file, matches }] of files.entries()) {
      const match = matches[round];
      if (match === undefined) continue;
      bytes += round === 0 ? firstSize(file, match, bounds) : countBytes(match);
      if (lines >= limit) return { counts, cut: atLimit };
      if (bytes > SHOWN_BYTES && lines > 0) return { counts, cut: 'bytes' };
      counts[index] = round + 1;
      lines += 1;
      added = true;
    }
    if (!added) break;
  }
  if (lines === totals.lines) return { counts, cut: null };
  return { counts, cut: lines >= limit ? atLimit : 'file' };
};

type Shown = {
  readonly lines: readonly string[];
  /** Matching lines that are shown. With `filesOnly` each file shows one, so it counts files. */
  readonly count: number;
  /** Number of files with shown lines. */
  readonly files: number;
  /** Notes about files with omitted lines, each with the reason. */
  readonly omitted: readonly string[];
};

/** Advice for the model after a cut. */
const NEXT: Readonly<Record<Cut, string>> = {
  limit: 'narrow the search or raise limit',
  bytes: 'narrow the search',
  file: 'for all lines of one file give it as path',
};

/** The unit of totals. `linesOfOne`: lines of one file or blob. */
type CountedThing = 'files' | 'lines' | 'linesOfOne';

/** `200 of 1,432 lines in 50 files`. */
const describeTotals = (
  { count, files }: Pick<Shown, 'count' | 'files'>,
  { totals, more }: SearchResult,
  kind: CountedThing,
): string => {
  const total = (number: number, noun: string): string =>
    `${more ? 'at least ' : ''}${groupDigits(number)} ${noun}${number === 1 ? '' : 's'}`;
  if (kind === 'files') return `${groupDigits(count)} of ${total(totals.files, 'file')}`;
  const lines = `${groupDigits(count)} of ${total(totals.lines, 'line')}`;
  if (kind === 'linesOfOne') return lines;
  const part = files < totals.files ? `${groupDigits(files)} of ` : '';
  return `${lines} in ${part}${total(totals.files, 'file')}`;
};

/** A search with the lines to show. */
type Answer = {
  readonly searched: PatternResult;
  readonly shown: Shown;
  readonly cut: Cut | null;
  readonly kind: CountedThing;
};

/** How the lines of files are shown. */
type View = {
  /** Real path that the file names are relative to. */
  readonly workspace: string;
  readonly kind: CountedThing;
  readonly context: number;
  readonly files: FileMemory;
};

/** Limit on notes about files with omitted lines. */
const OMITTED_MAX = 5;

/** The result for the model. */
const describe = ({ searched, shown, cut, kind }: Answer, signal: AbortSignal): ToolOutcome => {
  const { isPartial, fault, regexFault, more } = searched;
  const notes = shown.omitted.slice(0, OMITTED_MAX);
  const others = shown.omitted.length - OMITTED_MAX;
  if (others > 0) notes.push(`[the same holds for ${plural(others, 'more file')}]`);
  if (regexFault !== undefined)
    notes.push(
      `[pattern can't be read as a regular expression (${regexFault}): it was searched as plain text]`,
    );
  const text = (...last: readonly string[]): string =>
    [...shown.lines, ...notes, ...last].join('\n');
  if (signal.aborted) return stopped(signal, text('[there may be more]'));
  if (isPartial && fault !== null) return failed(`The search failed: ${fault.text}.`);
  if (shown.lines.length === 0 && shown.omitted.length === 0) notes.unshift('No matches.');
  if (more || cut !== null) {
    const extent = more ? '; the rest was not counted' : '';
    const next = NEXT[cut ?? 'bytes'];
    notes.push(`[${describeTotals(shown, searched, kind)}${extent}: ${next}]`);
  }
  if (isPartial) notes.push('[some files or folders could not be read]');
  return { status: 'ok', text: text(), summary: summarize({ searched, shown, cut, kind }) };
};

const summarize = ({ searched, shown, cut, kind }: Answer): string => {
  const isComplete = cut === null && !searched.more && shown.omitted.length === 0;
  if (isComplete && shown.count === 0) return 'no matches';
  if (isComplete) return plural(shown.count, kind === 'files' ? 'file' : 'line');
  return describeTotals(shown, searched, kind === 'files' ? kind : 'linesOfOne');
};

// ---- A search in files, and in a blob ----

const boundsFor = (
  { limit = LINES_DEFAULT, context = 0, filesOnly = false }: Input,
  isOneFile: boolean,
): Bounds => ({
  limit,
  context,
  perFile: isOneFile ? limit : LINES_OF_FILE_MAX,
  namesOnly: filesOnly,
});

const search = async (input: Input, context: ToolContext): Promise<ToolOutcome> => {
  const allowed = await findAllowed(input.path ?? '.', context);
  if (allowed.kind === 'elsewhere') return failed(allowed.why);
  const { real, shown: name } = allowed;
  const { workspace, signal } = context;
  const status = await stat(real).catch(() => null); // null: missing or not accessible
  if (status === null)
    return failed(`${name} can't be searched: it does not exist.${await suggestNames(real)}`);
  if (!status.isFile() && !status.isDirectory()) {
    // reading a pipe would wait forever
    return failed(`${name} can't be searched: it is not a regular file.`);
  }
  const glob = input.glob === undefined || status.isFile() ? null : await readGlob(input.glob);
  if (glob?.kind === 'invalid')
    return failed(`${input.glob} can't be read as a glob: ${glob.why}.`);
  // ripgrep prints paths relative to the workspace; the glob is relative to `path`
  const prefix = `${name}/`;
  const isSecretPlace = context.isSecret?.(real) === true; // the user was asked about it
  const accepts = (file: string): boolean =>
    (glob === null || glob.fits(file.startsWith(prefix) ? file.slice(prefix.length) : file)) &&
    (isSecretPlace || context.isSecret?.(path.resolve(workspace, file)) !== true);
  const bounds = boundsFor(input, status.isFile());
  try {
    const searched = await searchPattern(input, (flags) =>
      withFolder(workspace, (folder) =>
        runSearch({ words: [...flags, '--', name], folder, signal, accepts, ...bounds }),
      ),
    );
    if (searched === null) return failed('The workspace has moved.');
    const { counts, cut } = shareLines(searched, bounds);
    const lineKind = status.isFile() ? 'linesOfOne' : 'lines';
    const kind = input.filesOnly === true ? 'files' : lineKind;
    const view: View = { workspace, kind, files: context.files, ...bounds };
    const shown = await showFiles(searched, counts, view);
    return describe({ searched, shown, cut, kind }, signal);
  } catch (error) {
    return failed(error instanceof Error ? error.message : String(error));
  }
};

/**
 * Searches stored output. Lines have the same numbers as in `read`, and no path. `filesOnly` and
 * `glob` mean nothing here.
 */
const searchBlob = async (
  { filesOnly, glob, ...input }: Input,
  text: string,
  { workspace, signal }: ToolContext,
): Promise<ToolOutcome> => {
  const bounds = boundsFor(input, true);
  try {
    const searched = await searchPattern(input, (flags) =>
      // ripgrep reads the text from its input, but needs some folder to run in
      withFolder(workspace, (folder) =>
        runSearch({
          words: [...flags, '--text', '--', '-'],
          folder,
          signal,
          input: text,
          accepts: () => true,
          ...bounds,
        }),
      ),
    );
    if (searched === null) return failed('The workspace has moved.');
    const { counts, cut } = shareLines(searched, bounds);
    const matches = searched.files[0]?.matches.slice(0, counts[0]) ?? [];
    const lines = formatLines(matches.flat(), pickLines(text, numbersIn(matches)), bounds.context);
    const shown = { lines, count: matches.length, files: 1, omitted: [] };
    return describe({ searched, shown, cut, kind: 'linesOfOne' }, signal);
  } catch (error) {
    return failed(error instanceof Error ? error.message : String(error));
  }
};

export const searchTool: Tool = defineTool({
  name: 'search',
  description: 'Searches file contents with ripgrep; files that .gitignore names are left out.',
  schema,
  aliases: ALIASES,
  foreign: FOREIGN,
  translate,
  traits: { effect: 'pure', parallelSafe: true, mutating: false, deadlineMs: 30_000 },
  async judge({ path: place = '.' }, workspace) {
    return blobHash(place) === null ? judgePath(place, workspace) : judgeBlob(place);
  },
  title: ({ pattern, path: place = '.' }, paths) =>
    titleWithin(pattern, blobHash(place) === null ? paths : ['output']),
  async run(input, context) {
    const hash = blobHash(input.path ?? '.');
    if (hash === null) return search(input, context);
    const text = await context.blobs.get(hash);
    return text === undefined ? noBlob(`blob:${hash}`) : searchBlob(input, text, context);
  },
});

// ---- The lines, verified ----

// ripgrep opens files by path. While it runs, another process may replace a folder with a symlink,
// and ripgrep would report lines of a file outside. So a line is shown only if the file at the
// allowed real path has it, and with that file's text; a file is named only if it is there.

/** The verified lines of these files, below the name of each file. */
const showFiles = async (
  { files, totals, more }: SearchResult,
  counts: readonly number[],
  { workspace, kind, context, files: memory }: View,
): Promise<Shown> => {
  const lines: string[] = [];
  const omitted: string[] = [];
  const sums = { count: 0, files: 0 };
  let bytes = 0;
  for (const [index, { file, matches, count }] of files.entries()) {
    const shownMatches = matches.slice(0, counts[index]);
    if (shownMatches.length === 0) continue;
    const real = path.resolve(workspace, file);
    const loaded = bytes < VERIFIED_BYTES_MAX ? await loadFile(real) : null;
    bytes += loaded?.kind === 'file' ? loaded.bytes.length : 0;
    const present = linesIn(loaded, shownMatches);
    const reported = shownMatches.flat();
    const verified = reported.filter((line) => isSameLine(line.text, present.get(line.number)));
    const missing = reported.length - verified.length;
    if (missing > 0) {
      const named = isKnownToBeThere(loaded) ? file : 'a file';
      omitted.push(`[${named}: ${plural(missing, 'line')} not shown: ${whyOmitted(loaded)}]`);
    }
    const shownCount = verified.filter(({ column }) => column !== null).length;
    if (shownCount === 0) continue;
    sums.count += shownCount;
    sums.files += 1;
    if (kind === 'files') {
      lines.push(file);
      continue;
    }
    if (lines.length > 0) lines.push('');
    lines.push(file, ...formatLines(verified, present, context));
    rememberLines(memory, real, loaded);
    const rest = count - shownMatches.length;
    // the search may have stopped within the last file
    const isUncounted = more && index === totals.files - 1;
    if (kind === 'lines' && rest > 0)
      lines.push(`[${isUncounted ? 'at least ' : ''}${groupDigits(rest)} more in this file]`);
  }
  return { lines, omitted, ...sums };
};

/** Otherwise ripgrep may have its name from outside. */
const isKnownToBeThere = (loaded: LoadedFile | null): boolean =>
  loaded?.kind === 'file' || (loaded?.kind === 'unreadable' && loaded.isTooLarge === true);

const whyOmitted = (loaded: LoadedFile | null): string => {
  if (loaded === null) return 'files before it were too large; search fewer files';
  if (loaded.kind === 'unreadable') return `${loaded.why}; a command can search it (rg)`;
  return 'it changed meanwhile';
};

/** Ripgrep's note after the start of a long line. */
const PREVIEW = /( \[\.\.\. (omitted end of long line|(\d+) more match(es)?)\])$/;

/**
 * A line for comparisons: without its end, and what ripgrep and we decode in different ways: byte
 * order marks and bytes that are no UTF-8.
 */
const normalize = (text: string): string => text.replace(/[\ufeff\ufffd]/g, '').replace(/\r$/, '');

/** Whether ripgrep's line is the one in the file; of a long line it has only the start. */
const isSameLine = (line: string, present: string | undefined): boolean => {
  if (present === undefined) return false;
  const reported = normalize(line);
  const actual = normalize(present);
  if (reported === actual) return true;
  const beginning = reported.replace(PREVIEW, '');
  return beginning.length < reported.length && actual.startsWith(beginning);
};

/** Lines by number. */
type Lines = ReadonlyMap<number, string>;

const numbersIn = (matches: readonly Match[]): ReadonlySet<number> =>
  new Set(matches.flat().map(({ number }) => number));

/** The lines with these numbers. */
const pickLines = (text: string, numbers: ReadonlySet<number>): Lines => {
  const lines = new Map<number, string>();
  let number = 1;
  for (let from = 0; from <= text.length && lines.size < numbers.size; number++) {
    const end = text.indexOf('\n', from);
    const stop = end < 0 ? text.length : end;
    if (numbers.has(number)) lines.set(number, text.slice(from, stop).replace(/\r$/, ''));
    from = stop + 1;
  }
  return lines;
};

/** A long line is shown around its first match. */
const cutLine = (line: string, { column, text }: FoundLine): string => {
  if (line.length <= COLUMNS_MAX) return line;
  const start = column === null ? 0 : windowStart(line, column - 1);
  const end = splitsPair(line, start + COLUMNS_MAX) ? start + COLUMNS_MAX - 1 : start + COLUMNS_MAX;
  const [, , , others = '0'] = PREVIEW.exec(text) ?? [];
  // ripgrep's count of matches after the beginning of the line includes this one
  const isCounted = start > 0 && column !== null && column > COLUMNS_MAX;
  const more = Number(others) - (isCounted ? 1 : 0) > 0 ? ' more matches in this line' : '';
  const rest = end < line.length || more !== '' ? ` [...${more}]` : '';
  return `${start > 0 ? '[...] ' : ''}${line.slice(start, end)}${rest}`;
};

/** Where the window begins, in UTF-16 units, for a match at this offset in bytes. */
const windowStart = (line: string, bytes: number): number => {
  const at = Buffer.from(line.slice(0, bytes)).subarray(0, bytes).toString().length;
  if (at <= COLUMNS_MAX - COLUMNS_BEFORE) return 0;
  const start = Math.min(at - COLUMNS_BEFORE, line.length - COLUMNS_MAX);
  return splitsPair(line, start) ? start + 1 : start;
};

/** Whether an offset lies inside a surrogate pair. */
const splitsPair = (text: string, offset: number): boolean =>
  /[\ud800-\udbff]/.test(text[offset - 1] ?? '') && /[\udc00-\udfff]/.test(text[offset] ?? '');

/** `12:text`, around a match `13-text`; `--` between groups. Omits lines that `lines` lacks. */
const formatLines = (
  matched: readonly FoundLine[],
  lines: Lines,
  context: number,
): readonly string[] => {
  const shown: string[] = [];
  let previous: number | null = null;
  for (const line of matched) {
    const text = lines.get(line.number);
    if (text === undefined) continue;
    if (context > 0 && previous !== null && line.number > previous + 1) shown.push('--');
    shown.push(`${line.number}${line.column === null ? '-' : ':'}${cutLine(text, line)}`);
    previous = line.number;
  }
  return shown;
};

/** Shown lines count as read for an edit. */
const rememberLines = (memory: FileMemory, real: string, loaded: LoadedFile | null): void => {
  if (loaded?.kind !== 'file') return;
  const text = editableText(decodeFile(loaded.bytes));
  if (text !== undefined) memory.addLines?.(real, loaded.sha256, text);
};

/** The present lines of a file at the places of these matches. */
const linesIn = (loaded: LoadedFile | null, matches: readonly Match[]): Lines => {
  if (loaded?.kind !== 'file') return new Map();
  const decoded = decodeFile(loaded.bytes);
  const text = decoded.kind === 'text' ? decoded.text : loaded.bytes.toString('utf8');
  return pickLines(text, numbersIn(matches));
};
