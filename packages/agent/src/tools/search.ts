/** Searches file contents with ripgrep, and verifies the lines of its output. */

import { stat } from 'node:fs/promises';
import path from 'node:path';
import type { Json, JsonObject } from '@pawl/machine/kernel/shape';
import * as v from 'valibot';
import type { HeldFolder } from '../platform/files.js';
import { plural } from '../platform/text.js';
import type { Tool, ToolContext, ToolOutcome } from '../ports/tool.js';
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
import { plainNames, readGlob, runRipgrep, withFolder } from './file-search.js';
import { decodeFile, findAllowed, judgePath, loadFile, titleWithin } from './files.js';

const LINES_DEFAULT = 200;
const LINES_MAX = 2_000;
const SHOWN_BYTES = 28_000;
const COLUMNS_MAX = 400;

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
      v.description('File or folder; default: the workspace.'),
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

const ripgrepFlags = (input: Input): readonly string[] => [
  ...['--no-heading', '--with-filename', '--null', '--sort=path', '--line-number'],
  ...[`--max-columns=${COLUMNS_MAX}`, '--max-columns-preview'],
  ...(input.filesOnly === true ? ['--max-count=1'] : [`--context=${input.context ?? 0}`]),
  ...(input.ignoreCase === true ? ['--ignore-case'] : []),
  ...typeFlags(input.glob),
  `--regexp=${input.pattern}`,
];

type Searched = {
  readonly lines: readonly FoundLine[];
  /** The search stopped before the last match. */
  readonly more: boolean;
  readonly code: number | null;
  readonly error: string;
};

type Search = {
  readonly words: readonly string[];
  readonly folder: HeldFolder;
  readonly limit: number;
  readonly signal: AbortSignal;
  /** Whether to report lines of this file. */
  wants(file: string): boolean;
};

/** Searches until ripgrep ends, `limit` is reached, or the call is aborted. */
const runSearch = async ({ words, folder, limit, signal, wants }: Search): Promise<Searched> => {
  const lines: FoundLine[] = [];
  let bytes = 0;
  let gap = false;
  const take = (record: string): 'more' | 'enough' => {
    const line = readLine(record);
    if (line.kind === 'gap') {
      gap = lines.length > 0;
      return 'more';
    }
    if (!wants(line.file)) return 'more';
    bytes += Buffer.byteLength(record) + 1;
    if (lines.length >= limit || (bytes > SHOWN_BYTES && lines.length > 0)) return 'enough';
    if (gap) lines.push({ kind: 'gap' });
    gap = false;
    lines.push(line);
    return 'more';
  };
  return { ...(await runRipgrep({ words, folder, signal, take, end: '\n' })), lines };
};

type Shown = Omit<Searched, 'lines'> & CheckedLines;

const describe = (
  { lines, changed, more, code, error }: Shown,
  signal: AbortSignal,
): ToolOutcome => {
  const omissions =
    changed > 0
      ? [
          `[${changed} lines are left out: their files changed meanwhile, or are too large ` +
            'to be looked at again]',
        ]
      : [];
  const say = (note: string): string => [...lines, ...omissions, note].join('\n');
  if (signal.aborted) {
    const timedOut = signal.reason === 'timedOut';
    const note = timedOut ? '[timed out; there may be more]' : '[cancelled; there may be more]';
    return { status: timedOut ? 'timedOut' : 'cancelled', text: say(note) };
  }
  if (more)
    return {
      status: 'ok',
      text: say(`[only the first ${lines.length} lines; narrow the search or raise limit]`),
    };
  const shown = [...lines, ...omissions];
  if (code === 0 && shown.length > 0) return { status: 'ok', text: shown.join('\n') };
  if (code === 0 || code === 1) return { status: 'ok', text: 'No matches.' };
  if (error !== '') return failed(`The search failed: ${error}`);
  return { status: 'ok', text: say('[some files or folders could not be read]') };
};

const summarize = ({ lines, more }: Shown, filesOnly: boolean): string => {
  if (lines.length === 0) return 'no matches';
  return `${more ? 'first ' : ''}${plural(lines.length, filesOnly ? 'file' : 'line')}`;
};

const search = async (input: Input, context: ToolContext): Promise<ToolOutcome> => {
  const allowed = await findAllowed(input.path ?? '.', context);
  if (allowed.kind === 'elsewhere') return failed(allowed.why);
  const { real, shown } = allowed;
  const { workspace, signal } = context;
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
  const words = [...ripgrepFlags(input), '--', shown];
  try {
    const limit = input.limit ?? LINES_DEFAULT;
    const searched = await withFolder(workspace, (folder) =>
      runSearch({ words, folder, limit, signal, wants }),
    );
    if (searched === null) return failed('The workspace has moved.');
    const filesOnly = input.filesOnly === true;
    const result = { ...searched, ...(await checkLines(searched.lines, workspace, filesOnly)) };
    const outcome = describe(result, signal);
    return outcome.status === 'ok'
      ? { ...outcome, summary: summarize(result, filesOnly) }
      : outcome;
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
  judge: (input, workspace) => judgePath(input.path ?? '.', workspace),
  title: ({ pattern }, paths) => titleWithin(pattern, paths),
  run: search,
});

/**
 * Verifies the lines of ripgrep.
 *
 * ripgrep opens files by path. While it runs, another process may replace a folder with a symlink,
 * and ripgrep would report lines of a file outside. So a line is shown only if the file at the
 * allowed real path contains it.
 */

type FoundLine =
  | {
      readonly kind: 'line';
      readonly file: string;
      readonly number: number;
      readonly mark: string;
      readonly text: string;
    }
  /** Separates groups of lines. */
  | { readonly kind: 'gap' };

/**
 * `FILE NUL NUMBER:TEXT`; with `-` instead of `:` a context line. Any other record separates
 * groups.
 */
const readLine = (record: string): FoundLine => {
  const [, file, number, mark, text] = /^([^\0]+)\0(\d+)([:-])(.*)$/s.exec(record) ?? [];
  if (file === undefined || mark === undefined || text === undefined) return { kind: 'gap' };
  return { kind: 'line', file: file.replace(/^\.\//, ''), number: Number(number), mark, text };
};

type CheckedLines = {
  /** Formatted lines. */
  readonly lines: readonly string[];
  /** Number of lines that the file no longer has. */
  readonly changed: number;
};

/** Ripgrep's note after the start of a long line. */
const PREVIEW = /( \[\.\.\. (omitted end of long line|\d+ more match(es)?)\])$/;

/** Without byte order marks and replacement characters, which do not matter for the comparison. */
const plain = (text: string): string => text.replace(/[\ufeff\ufffd]/g, '').replace(/\r$/, '');

const isSameLine = (line: string, there: string | undefined): boolean => {
  if (there === undefined) return false;
  const [one, other] = [plain(line), plain(there)];
  if (one === other) return true;
  const beginning = one.replace(PREVIEW, '');
  return beginning.length < one.length && other.startsWith(beginning);
};

type Lines = ReadonlyMap<number, string>;

/** The lines with these numbers in the file at the real path; none if it can't be read. */
const readLines = async (real: string, numbers: ReadonlySet<number>): Promise<Lines> => {
  const loaded = await loadFile(real);
  const lines = new Map<number, string>();
  if (loaded.kind !== 'file') return lines;
  const decoded = decodeFile(loaded.bytes);
  const text = decoded.kind === 'text' ? decoded.text : loaded.bytes.toString('utf8');
  let number = 1;
  for (let from = 0; from <= text.length && lines.size < numbers.size; number++) {
    const end = text.indexOf('\n', from);
    const stop = end < 0 ? text.length : end;
    if (numbers.has(number)) lines.set(number, text.slice(from, stop));
    from = stop + 1;
  }
  return lines;
};

/** `folder`: real path that the file names are relative to. */
const checkLines = async (
  matches: readonly FoundLine[],
  folder: string,
  filesOnly: boolean,
): Promise<CheckedLines> => {
  const numbers = new Map<string, Set<number>>();
  for (const line of matches) {
    if (line.kind === 'line')
      numbers.set(line.file, (numbers.get(line.file) ?? new Set()).add(line.number));
  }
  const files = new Map<string, Lines>();
  for (const [file, sought] of numbers)
    files.set(file, await readLines(path.resolve(folder, file), sought));
  const lines: string[] = [];
  let changed = 0;
  for (const line of matches) {
    if (line.kind === 'gap') {
      if (!filesOnly) lines.push('--');
    } else if (!isSameLine(line.text, files.get(line.file)?.get(line.number))) changed += 1;
    else if (filesOnly) lines.push(line.file);
    else lines.push(`${line.file}${line.mark}${line.number}${line.mark}${line.text}`);
  }
  return { lines, changed };
};
