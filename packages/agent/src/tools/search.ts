/** Searches file contents with ripgrep, and verifies the lines of its output. */

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
  type InputFault,
  readNumber,
  type TranslatedInput,
} from './define-tool.js';
import { failed } from './file-change.js';
import {
  plainNames,
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
  loadFile,
  noBlob,
  titleWithin,
} from './files.js';

const LINES_DEFAULT = 200;
const LINES_MAX = 2_000;
const SHOWN_BYTES = 28_000;
const COLUMNS_MAX = 400;
/** Lines of one file, if not all lines of all files can be shown. */
const PER_FILE = 20;
/** After so many matches the search stops counting. */
const COUNTED_MAX = 20_000;

const whole = (most: number) =>
  v.pipe(
    v.number(),
    v.integer('must be a whole number'),
    v.minValue(0, 'must not be negative'),
    v.maxValue(most, `must be at most ${most}`),
  );

const schema = v.strictObject({
  pattern: v.pipe(
    v.string(),
    v.minLength(1, 'must not be empty'),
    v.description('Regular expression (ripgrep).'),
  ),
  path: v.exactOptional(
    v.pipe(
      v.string(),
      v.minLength(1, 'must not be empty'),
      v.description('File, folder or blob:HASH; default: workspace.'),
    ),
  ),
  glob: v.exactOptional(
    v.pipe(
      v.string(),
      v.minLength(1, 'must not be empty'),
      v.maxLength(500, 'must have at most 500 characters'),
      v.description('As for find, below path: *.ts or !test/**'),
    ),
  ),
  ignoreCase: v.exactOptional(v.boolean()),
  context: v.exactOptional(v.pipe(whole(20), v.description('Lines around each match.'))),
  filesOnly: v.exactOptional(v.boolean()),
  limit: v.exactOptional(
    v.pipe(
      whole(LINES_MAX),
      v.minValue(1, 'must be at least 1'),
      v.description(`Lines shown, default ${LINES_DEFAULT}.`),
    ),
  ),
});
type Input = v.InferOutput<typeof schema>;

// ---- Input in the form of other agents ----

const ALIASES: Aliases = {
  pattern: ['query', 'regex', 'search_pattern'],
  path: [...(FILE_NAMES.path ?? []), ...(FOLDER_NAMES.path ?? [])],
  glob: ['include', 'include_pattern', 'file_pattern', 'filePattern'],
  ignoreCase: ['-i', 'ignore_case', 'case_insensitive', 'caseInsensitive'],
  context: ['-C', 'context_lines'],
  filesOnly: ['files_only'],
  limit: ['head_limit', 'max_results', 'maxResults'],
};
/** Lines after and before a match. As many are shown on the other side, too. */
const SIDES: readonly string[] = ['-A', '-B'];
const MODES: ReadonlyMap<Json | undefined, boolean> = new Map([
  ['content', false],
  ['files_with_matches', true],
]);

const translate = (written: JsonObject): TranslatedInput => {
  const { output_mode: mode, case_sensitive: sensitive, ...fields } = written;
  const faults: InputFault[] = [];
  const input = new Map(Object.entries(fields));
  const set = (name: string, value: Json, field: string): void => {
    const current = input.get(name) ?? value;
    if (current === value) input.set(name, value);
    else faults.push({ field, why: `says something else than ${name}: give ${name} alone` });
  };
  const filesOnly = MODES.get(mode);
  if (filesOnly !== undefined) set('filesOnly', filesOnly, 'output_mode');
  else if (mode !== undefined && mode !== null)
    faults.push({ field: 'output_mode', why: 'must be content or files_with_matches' });
  if (typeof sensitive === 'boolean') set('ignoreCase', !sensitive, 'case_sensitive');
  else if (sensitive !== undefined && sensitive !== null)
    faults.push({ field: 'case_sensitive', why: 'must be true or false: give ignoreCase' });
  const sides = SIDES.flatMap((name) => {
    const lines = readNumber(input.get(name) ?? null);
    if (typeof lines === 'number') input.delete(name);
    return typeof lines === 'number' ? [lines] : [];
  });
  const context = readNumber(input.get('context') ?? 0);
  if (sides.length > 0 && typeof context === 'number')
    input.set('context', Math.max(context, ...sides));
  return { input: Object.fromEntries(input), faults };
};

/** Ripgrep's types respect ignore files; its globs override them. */
const typeFlags = (glob: string | undefined): readonly string[] => {
  const names = glob === undefined ? null : plainNames(glob);
  return names === null
    ? []
    : [...names.map((name) => `--type-add=sought:${name}`), '--type=sought'];
};

const ripgrepFlags = (input: Input, reading: Reading): readonly string[] => [
  ...['--no-heading', '--with-filename', '--null', '--sort=path', '--line-number', '--column'],
  ...[`--max-columns=${COLUMNS_MAX}`, '--max-columns-preview'],
  ...(input.filesOnly === true ? ['--max-count=1'] : [`--context=${input.context ?? 0}`]),
  ...(input.ignoreCase === true ? ['--ignore-case'] : []),
  ...(reading === 'text' ? ['--fixed-strings'] : []),
  ...typeFlags(input.glob),
  `--regexp=${input.pattern}`,
];

/** How the pattern is read: as a regular expression, or as plain text if it is none. */
type Reading = 'regex' | 'text';

type Searched = {
  readonly hits: CollectedHits;
  /** The search stopped before the last match. */
  readonly more: boolean;
  readonly code: number | null;
  readonly error: string;
};

type Search = Pick<RipgrepRequest, 'words' | 'folder' | 'input'> & {
  readonly limit: number;
  readonly context: number;
  readonly signal: AbortSignal;
  /** Whether to report lines of this file. */
  wants(file: string): boolean;
};

/** Searches until ripgrep ends, enough matches are counted, or the call is aborted. */
const runSearch = async (search: Search): Promise<Searched> => {
  const { wants } = search;
  const hits = new CollectedHits(search);
  const take = (record: string): 'more' | 'enough' => {
    const line = readLine(record);
    if (line === null || !wants(line.file)) return 'more';
    hits.add(line);
    return hits.matches < COUNTED_MAX ? 'more' : 'enough';
  };
  return { ...(await runRipgrep({ ...search, take, end: '\n' })), hits };
};

/** A pattern with these is meant as a regular expression, though ripgrep can't search it. */
const LOOK_AROUND = /look-around|backreferences/;

/** The fault of a pattern that is no regular expression, in a few words; null for any other. */
const regexFault = ({ code, error }: Searched): string | null => {
  if (code !== 2 || !error.includes('regex parse error') || LOOK_AROUND.test(error)) return null;
  return /error: ([^\n]+)$/.exec(error)?.[1] ?? 'it can not be read as one';
};

type Shown = Omit<Searched, 'hits'> & CheckedLines & { readonly hits: CollectedHits };

/** How much of everything is shown, if it is not all. */
const describeLimit = ({ hits, shown, more }: Shown, filesOnly: boolean): readonly string[] => {
  if (shown.matches >= hits.matches && !more) return [];
  const total = `${more ? 'more than ' : ''}${groupDigits(hits.matches)}`;
  const rest = filesOnly
    ? `${shown.files} of ${total} files`
    : `${groupDigits(shown.matches)} of ${total} matching lines, from ${shown.files} of ` +
      `${more ? 'more than ' : ''}${groupDigits(hits.files)} files`;
  return [`[${rest}; narrow the search, or raise limit]`];
};

const describe = (result: Shown, filesOnly: boolean, signal: AbortSignal): ToolOutcome => {
  const { lines, changed, more, code, error } = result;
  const omissions =
    changed > 0
      ? [
          `[${changed} lines are left out: their files changed meanwhile, or are too large ` +
            'to be looked at again]',
        ]
      : [];
  const say = (...notes: readonly string[]): string =>
    [...lines, ...omissions, ...notes].join('\n');
  if (signal.aborted) {
    const timedOut = signal.reason === 'timedOut';
    const note = timedOut ? '[timed out; there may be more]' : '[cancelled; there may be more]';
    return { status: timedOut ? 'timedOut' : 'cancelled', text: say(note) };
  }
  if (more || (code === 0 && lines.length + omissions.length > 0))
    return { status: 'ok', text: say(...describeLimit(result, filesOnly)) };
  if (code === 0 || code === 1) return { status: 'ok', text: 'No matches.' };
  if (error !== '') return failed(`The search failed: ${error}`);
  return {
    status: 'ok',
    text: say(...describeLimit(result, filesOnly), '[some files or folders could not be read]'),
  };
};

const summarize = ({ hits, shown, more }: Shown, filesOnly: boolean): string => {
  if (shown.matches === 0) return 'no matches';
  const noun = filesOnly ? 'file' : 'line';
  return shown.matches < hits.matches || more
    ? `${shown.matches} of ${groupDigits(hits.matches)}${more ? '+' : ''} ${noun}s`
    : plural(shown.matches, noun);
};

/** Searches, as plain text if the pattern turns out to be no regular expression. */
const searchEither = async (
  input: Input,
  search: (reading: Reading) => Promise<Searched | null>,
): Promise<(Searched & { readonly note: string }) | null> => {
  const first = await search('regex');
  const fault = first === null ? null : regexFault(first);
  if (first === null || fault === null) return first === null ? null : { ...first, note: '' };
  const plainText = await search('text');
  if (plainText === null) return null;
  // a text that can't be searched either is reported as what it was given as
  if (plainText.code === 2 && plainText.error !== '') return { ...first, note: '' };
  const note = `[${input.pattern} is no regular expression (${fault}): searched as plain text]\n`;
  return { ...plainText, note };
};

const search = async (input: Input, context: ToolContext): Promise<ToolOutcome> => {
  const allowed = await findAllowed(input.path ?? '.', context);
  if (allowed.kind === 'elsewhere') return failed(allowed.why);
  const { real, shown } = allowed;
  const { workspace, signal, files } = context;
  const status = await stat(real).catch(() => null); // null: missing or not accessible
  if (status === null)
    return failed(`${shown} can't be searched: there is no such file or folder.`);
  if (!status.isFile() && !status.isDirectory()) {
    // reading a pipe would wait forever
    return failed(`${shown} can't be searched: it is not a regular file.`);
  }
  const glob = input.glob === undefined || status.isFile() ? null : await readGlob(input.glob);
  if (glob?.kind === 'invalid')
    return failed(`${input.glob} can't be read as a glob: ${glob.why}.`);
  const prefix = `${shown}/`;
  const wants = (file: string): boolean =>
    glob === null || glob.fits(file.startsWith(prefix) ? file.slice(prefix.length) : file);
  const limit = input.limit ?? LINES_DEFAULT;
  try {
    const searched = await searchEither(input, (reading) =>
      withFolder(workspace, (folder) => {
        const words = [...ripgrepFlags(input, reading), '--', shown];
        return runSearch({ words, folder, limit, context: input.context ?? 0, signal, wants });
      }),
    );
    if (searched === null) return failed('The workspace has moved.');
    const filesOnly = input.filesOnly === true;
    const checked = await checkLines(searched.hits.choose(), { workspace, filesOnly, files });
    const result = { ...searched, ...checked };
    const outcome = describe(result, filesOnly, signal);
    return noteOutcome(searched.note, outcome, summarize(result, filesOnly));
  } catch (error) {
    return failed(error instanceof Error ? error.message : String(error));
  }
};

const noteOutcome = (note: string, outcome: ToolOutcome, summary: string): ToolOutcome =>
  outcome.status === 'ok' ? { ...outcome, text: `${note}${outcome.text}`, summary } : outcome;

/** Searches output that was cut. Its lines have the numbers that `read` gives them, and no path. */
const searchBlob = async (
  { filesOnly, glob, ...input }: Input,
  text: string,
  { workspace, signal }: ToolContext,
): Promise<ToolOutcome> => {
  const { limit = LINES_DEFAULT, context = 0 } = input;
  try {
    const searched = await searchEither(input, (reading) =>
      withFolder(workspace, (folder) => {
        const words = [...ripgrepFlags(input, reading), '--text', '--', '-'];
        return runSearch({ words, folder, limit, context, signal, input: text, wants: () => true });
      }),
    );
    if (searched === null) return failed('The workspace has moved.');
    const texts = text.split('\n');
    const shown = searched.hits.choose().flatMap((hit) => hit.lines);
    const lines = shown.map((line) => showNumbered(line, texts[line.number - 1] ?? line.text));
    const matches = shown.filter(({ column }) => column !== null).length;
    const result = { ...searched, lines, changed: 0, shown: { matches, files: 1 } };
    return noteOutcome(searched.note, describe(result, false, signal), summarize(result, false));
  } catch (error) {
    return failed(error instanceof Error ? error.message : String(error));
  }
};

export const searchTool: Tool = defineTool({
  name: 'search',
  description: 'Searches file contents with ripgrep; files that .gitignore names are left out.',
  schema,
  aliases: ALIASES,
  ignored: ['-n'],
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

// ---- Which lines are shown ----

type FoundLine = {
  readonly file: string;
  readonly number: number;
  readonly text: string;
  /** Offset of the match in bytes, from 0; null for a line around a match. */
  readonly column: number | null;
};

/** A matching line with the lines around it that no other match has. */
type Hit = { readonly lines: readonly FoundLine[] };

/**
 * `FILE NUL NUMBER:COLUMN:TEXT`, or `FILE NUL NUMBER-TEXT` around a match; null for other records.
 */
const readLine = (record: string): FoundLine | null => {
  const [, file, number, column, text] = /^([^\0]+)\0(\d+)(?:-|:(\d+):)(.*)$/s.exec(record) ?? [];
  if (file === undefined || text === undefined) return null;
  return {
    file: file.replace(/^\.\//, ''),
    number: Number(number),
    text,
    column: column === undefined ? null : Number(column) - 1,
  };
};

/**
 * Collects matching lines by file, and chooses which are shown if not all can be: as many as
 * possible from each file, the first ones first, up to a limit for one file.
 */
class CollectedHits {
  readonly #limit: number;
  readonly #context: number;
  readonly #perFile: number;
  readonly #byFile = new Map<
    string,
    { hits: FoundLine[][]; lastMatch: number; around: FoundLine[] }
  >();
  matches = 0;

  constructor({ limit, context }: Pick<Search, 'limit' | 'context'>) {
    this.#limit = limit;
    this.#context = context;
    this.#perFile = Math.max(PER_FILE, Math.ceil(limit / 10));
  }

  get files(): number {
    return this.#byFile.size;
  }

  add(line: FoundLine): void {
    const file = this.#byFile.get(line.file) ?? {
      hits: [],
      lastMatch: Number.NEGATIVE_INFINITY,
      around: [],
    };
    this.#byFile.set(line.file, file);
    const isFull = file.hits.length >= (this.#isOver() ? this.#perFile : this.#limit);
    if (line.column !== null) {
      this.matches += 1;
      file.lastMatch = line.number;
      if (!isFull) file.hits.push([...file.around, line]);
      file.around = [];
    } else if (line.number - file.lastMatch > this.#context) file.around.push(line);
    else if (file.hits.at(-1)?.at(-1)?.number === line.number - 1) file.hits.at(-1)?.push(line);
  }

  /** In the order of the files. */
  choose(): readonly Hit[] {
    const all = [...this.#byFile.values()];
    const perFile = this.#isOver() && all.length > 1 ? this.#perFile : this.#limit;
    const chosen = all.map((): FoundLine[][] => []);
    let lines = 0;
    let bytes = 0;
    for (let round = 0; round < perFile; round++) {
      for (const [index, { hits }] of all.entries()) {
        const hit = hits[round];
        if (hit === undefined) continue;
        lines += hit.length;
        bytes += hit.reduce((sum, { text, file }) => sum + lineBytes(text, file, round), 0);
        if (lines > this.#limit || (bytes > SHOWN_BYTES && lines > hit.length))
          return chosen.flat().map((one) => ({ lines: one }));
        chosen[index]?.push(hit);
      }
    }
    return chosen.flat().map((one) => ({ lines: one }));
  }

  #isOver(): boolean {
    return this.matches > this.#limit;
  }
}

/** With its number; the first line of a file also with the file's name. */
const lineBytes = (text: string, file: string, round: number): number =>
  Buffer.byteLength(text) + 8 + (round === 0 ? Buffer.byteLength(file) + 2 : 0);

/**
 * Verifies the lines of ripgrep.
 *
 * ripgrep opens files by path. While it runs, another process may replace a folder with a symlink,
 * and ripgrep would report lines of a file outside. So a line is shown only if the file at the
 * allowed real path contains it.
 */

type CheckedLines = {
  /** Formatted lines. */
  readonly lines: readonly string[];
  /** Number of lines that the file no longer has. */
  readonly changed: number;
  readonly shown: { readonly matches: number; readonly files: number };
};

/** Ripgrep's note after the start of a long line. */
const PREVIEW = /( \[\.\.\. (omitted end of long line|(\d+) more match(es)?)\])$/;

/** Without byte order marks and replacement characters, which do not matter for the comparison. */
const plain = (text: string): string => text.replace(/[\ufeff\ufffd]/g, '').replace(/\r$/, '');

const isSameLine = (line: string, there: string): boolean => {
  const [one, other] = [plain(line), plain(there)];
  if (one === other) return true;
  const beginning = one.replace(PREVIEW, '');
  return beginning.length < one.length && other.startsWith(beginning);
};

const BEFORE_MATCH = 120;

/** The line, or of a long one the part around its first match. */
const showAround = ({ text, column }: FoundLine, there: string): string => {
  const line = there.replace(/\r$/, '');
  if (line.length <= COLUMNS_MAX) return line;
  const at = Buffer.from(line)
    .subarray(0, column ?? 0)
    .toString().length;
  const first = Math.max(0, Math.min(at - BEFORE_MATCH, line.length - COLUMNS_MAX));
  const from = /[\udc00-\udfff]/.test(line[first] ?? '') ? first - 1 : first;
  const last = Math.min(line.length, from + COLUMNS_MAX);
  const to = /[\ud800-\udbff]/.test(line[last - 1] ?? '') ? last - 1 : last;
  // ripgrep counts the matches that its preview lacks, the first one among them
  const counted = Number(PREVIEW.exec(text)?.[3] ?? 0);
  const others = (column ?? 0) < COLUMNS_MAX ? counted : counted - 1;
  const notes = [
    `characters ${from + 1}-${to} of ${line.length}`,
    ...(others > 0 ? [`${plural(others, 'more match', 'more matches')} in this line`] : []),
  ];
  const part = `${from === 0 ? '' : '…'}${line.slice(from, to)}${to < line.length ? '…' : ''}`;
  return `${part} [${notes.join('; ')}]`;
};

const showNumbered = (line: FoundLine, there: string): string =>
  `${line.number}${line.column === null ? '-' : ':'}${showAround(line, there)}`;

type ReadLines = {
  readonly lines: ReadonlyMap<number, string>;
  readonly sha256: string;
  /** undefined if the file can't be edited. */
  readonly text: string | undefined;
};

/** The lines with these numbers in the file at the real path; null if it can't be read. */
const readLines = async (real: string, numbers: ReadonlySet<number>): Promise<ReadLines | null> => {
  const loaded = await loadFile(real);
  if (loaded.kind !== 'file') return null;
  const decoded = decodeFile(loaded.bytes);
  const text = decoded.kind === 'text' ? decoded.text : loaded.bytes.toString('utf8');
  const lines = new Map<number, string>();
  let number = 1;
  for (let from = 0; from <= text.length && lines.size < numbers.size; number++) {
    const end = text.indexOf('\n', from);
    const stop = end < 0 ? text.length : end;
    if (numbers.has(number)) lines.set(number, text.slice(from, stop));
    from = stop + 1;
  }
  return { lines, sha256: loaded.sha256, text: editableText(decoded) };
};

type Checking = {
  readonly workspace: string;
  readonly filesOnly: boolean;
  readonly files: FileMemory;
};

/** The lines of one file, under its name. Lines that were shown count as read for an edit. */
const checkFile = async (
  file: string,
  hits: readonly Hit[],
  { workspace, filesOnly, files }: Checking,
): Promise<CheckedLines> => {
  const real = path.resolve(workspace, file);
  const lines = hits.flatMap((hit) => hit.lines);
  const read = await readLines(real, new Set(lines.map(({ number }) => number)));
  const texts: string[] = [];
  let [changed, matches, before] = [0, 0, Number.POSITIVE_INFINITY];
  for (const line of lines) {
    const there = read?.lines.get(line.number);
    if (there === undefined || !isSameLine(line.text, there)) {
      changed += 1;
      continue;
    }
    if (line.column !== null) matches += 1;
    if (line.number > before + 1 && hits.some((hit) => hit.lines.length > 1)) texts.push('--');
    before = line.number;
    texts.push(showNumbered(line, there));
  }
  if (matches === 0) return { lines: [], changed, shown: { matches, files: 0 } };
  if (!filesOnly && read?.text !== undefined) files.addLines?.(real, read.sha256, read.text);
  return { lines: filesOnly ? [file] : [file, ...texts], changed, shown: { matches, files: 1 } };
};

const checkLines = async (hits: readonly Hit[], checking: Checking): Promise<CheckedLines> => {
  const byFile = new Map<string, Hit[]>();
  for (const hit of hits) {
    const file = hit.lines[0]?.file ?? '';
    byFile.set(file, [...(byFile.get(file) ?? []), hit]);
  }
  const lines: string[] = [];
  let [changed, matches, files] = [0, 0, 0];
  for (const [file, some] of byFile) {
    const checked = await checkFile(file, some, checking);
    if (lines.length > 0 && checked.lines.length > 0 && !checking.filesOnly) lines.push('');
    lines.push(...checked.lines);
    changed += checked.changed;
    matches += checked.shown.matches;
    files += checked.shown.files;
  }
  return { lines, changed, shown: { matches, files } };
};
