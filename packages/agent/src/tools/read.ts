/**
 * The tool `read`: lines of a file with their numbers, the entries of a folder, or a picture. Also
 * lines of a blob: output of a tool that was cut and stored.
 *
 * From top to bottom: the schema; input in the form of other agents, which models have learned;
 * lines; folders; pictures; and `readTool`.
 */

import { readdir } from 'node:fs/promises';
import type { Json, JsonObject } from '@pawl/machine/kernel/shape';
import * as v from 'valibot';
import type { ShownLines } from '../machine/call.js';
import { wholeFile } from '../machine/seen-files.js';
import { holdFolder } from '../platform/files.js';
import { firstCharacters, plural } from '../platform/text.js';
import type { Tool, ToolContext, ToolOutcome } from '../ports/tool.js';
import {
  type Aliases,
  defineTool,
  FILE_NAMES,
  type ForeignFields,
  filledText,
  type InputFault,
  isGiven,
  readNumber,
  type TranslatedInput,
} from './define-tool.js';
import { fileLines, findEndings } from './edit/lines.js';
import { failed } from './file-change.js';
import {
  blobHash,
  decodeFile,
  type Encoding,
  editableText,
  findAllowed,
  judgeBlob,
  judgePath,
  loadFile,
  noBlob,
} from './files.js';
import { keepPicture } from './picture.js';
import { suggestNames } from './similar-names.js';

/**
 * What one call shows of a file. `cutBytes` tells the runtime this limit, so that it does not cut
 * the middle out of the result.
 */
const SHOWN_BYTES = 50_000;
/** Bytes beyond these, for a remark and the line that says where it goes on. */
const ROOM_BYTES = 1_000;
const LINES_MAX = 2_000;
const LINE_CHARACTERS_MAX = 2_000;

const schema = v.strictObject({
  path: filledText('File, folder or blob:HASH of cut output.'),
  offset: v.exactOptional(
    v.pipe(
      v.number(),
      v.integer('must be a whole number'),
      v.minValue(1, 'counts from 1'),
      v.description('First line, from 1.'),
    ),
  ),
  limit: v.exactOptional(
    v.pipe(
      v.number(),
      v.integer('must be a whole number'),
      v.minValue(1, 'must be at least 1'),
      v.description(`Lines, at most ${LINES_MAX}.`),
    ),
  ),
});
type Input = v.InferOutput<typeof schema>;

// ---- Input in the form of other agents ----

const ALIASES: Aliases = {
  ...FILE_NAMES,
  offset: ['start_line', 'startLine', 'start_line_one_indexed'],
};
const LAST_LINE_NAMES: readonly string[] = [
  'end_line',
  'endLine',
  'end_line_one_indexed_inclusive',
];
const ONE_FILE = 'give one path a call, and several calls in one reply';
const FOREIGN: ForeignFields = {
  command: { same: ['view'], instead: 'files are changed by edit and write' },
  mode: { same: ['slice'], instead: 'give offset and limit' },
  encoding: { same: 'any' },
  should_read_entire_file: { same: 'any' },
  pages: { same: [''], instead: 'the pages of a PDF are read by a program in bash' },
  lines: { instead: 'give offset and limit' },
  paths: { instead: ONE_FILE },
  files: { instead: ONE_FILE },
};

/**
 * The number of lines up to `last`, or what is wrong with it. Null: no limit, since -1 is the end
 * of the file, or the offset is wrong, which the schema reports.
 */
const countUpTo = (last: Json, { offset, limit }: JsonObject): number | string | null => {
  if (last === -1) return null;
  if (typeof last !== 'number') return 'must be a line number';
  const first = isGiven(offset) ? offset : 1;
  if (typeof first !== 'number') return null;
  const count = last - first + 1;
  if (count < 1) return `lies before the first line, ${first}`;
  const contradictsLimit = isGiven(limit) && limit !== count;
  return contradictsLimit ? 'says something else than limit: give limit alone' : count;
};

/** Line 0 is the first line; a last line becomes a limit. */
const translate = ({ view_range: range, ...fields }: JsonObject): TranslatedInput => {
  const faults: InputFault[] = [];
  const input = new Map(Object.entries(fields));
  if (input.get('offset') === 0) input.set('offset', 1);
  const ends = LAST_LINE_NAMES.flatMap((name) => {
    const value = input.get(name) ?? null;
    input.delete(name);
    return isGiven(value) ? [{ name, value: readNumber(value) }] : [];
  });
  if (Array.isArray(range) && range.length === 2) {
    const [start = null, last = null] = range.map(readNumber);
    const first = start === 0 ? 1 : start;
    const offset = input.get('offset') || first;
    if (offset !== first)
      faults.push({
        field: 'view_range',
        why: 'says something else than offset: give offset alone',
      });
    input.set('offset', offset);
    ends.push({ name: 'view_range', value: last });
  } else if (isGiven(range))
    faults.push({ field: 'view_range', why: 'must be two line numbers: give offset and limit' });
  for (const { name, value } of ends) {
    const count = countUpTo(value, Object.fromEntries(input));
    if (typeof count === 'string') faults.push({ field: name, why: count });
    else if (count !== null) input.set('limit', count);
  }
  return { input: Object.fromEntries(input), faults };
};

// ---- What is shown ----

const encodingNotes: Readonly<Record<Encoding, string>> = {
  utf8: '',
  'utf8-bom': '',
  utf16le: '[UTF-16 text, decoded; it can be read, but not edited]',
  utf16be: '[UTF-16 text, decoded; it can be read, but not edited]',
  unknown: '[not valid UTF-8, shown with replacement characters; it can be read, but not edited]',
};

/** What the shown lines do not tell of the file, and an edit or a command may have to know. */
const describeText = (text: string, encoding: Encoding): string => {
  const endings = findEndings(text);
  const notes = [
    ...(endings === '\r\n' ? ['CRLF line endings'] : []),
    ...(endings === 'mixed' ? ['mixed line endings: LF and CRLF'] : []),
    ...(encoding === 'utf8-bom' ? ['a byte order mark'] : []),
    ...(text === '' || text.endsWith('\n') ? [] : ['no line break at the end']),
  ];
  return notes.length === 0 ? '' : `[the file has ${notes.join(', ')}]`;
};

const showLine = (line: string, number: number): string => {
  const text = line.endsWith('\r') ? line.slice(0, -1) : line;
  if (text.length <= LINE_CHARACTERS_MAX) return `${number}\t${text}`;
  const rest = text.length - LINE_CHARACTERS_MAX;
  return `${number}\t${firstCharacters(text, LINE_CHARACTERS_MAX)} … ${rest} more characters in this line`;
};

/** A result with the lines that it shows in full. */
type ShownText = { readonly outcome: ToolOutcome; readonly lines: readonly ShownLines[] };

/** Numbered lines from `offset`, and the offset of the next ones. `remark`: shown before them. */
const showLines = (
  text: string,
  remark: string,
  { offset = 1, limit = LINES_MAX }: Input,
  callId: string,
): ShownText => {
  const lines = fileLines(text);
  if (lines.length === 0) {
    const empty = [remark, '[the file is empty]'].filter(Boolean).join('\n');
    return { outcome: { status: 'ok', text: empty, summary: 'empty' }, lines: wholeFile(callId) };
  }
  if (offset > lines.length) {
    const why = `Line ${offset} is past the end: there are ${lines.length} lines.`;
    return { outcome: failed(why), lines: [] };
  }
  const shown = remark === '' ? [] : [remark];
  let bytes = 0;
  let next = offset;
  const end = Math.min(lines.length + 1, offset + Math.min(limit, LINES_MAX));
  while (next < end && bytes < SHOWN_BYTES) {
    const line = showLine(lines[next - 1] ?? '', next);
    bytes += Buffer.byteLength(line) + 1;
    if (bytes > SHOWN_BYTES) break; // never the first line, which is cut before
    shown.push(line);
    next += 1;
  }
  if (next <= lines.length) {
    shown.push(`[lines ${offset}-${next - 1} of ${lines.length}; go on with offset ${next}]`);
  }
  const isPart = offset > 1 || next <= lines.length;
  const summary = isPart
    ? `lines ${offset}-${next - 1} of ${lines.length}`
    : plural(lines.length, 'line');
  const cut = { cutBytes: SHOWN_BYTES + ROOM_BYTES };
  return {
    outcome: { status: 'ok', text: shown.join('\n'), summary, ...cut },
    lines: fullyShown(lines, offset, next, callId),
  };
};

/** The lines from `first` to before `next`, without those that are too long to be shown in full. */
const fullyShown = (
  lines: readonly string[],
  first: number,
  next: number,
  callId: string,
): readonly ShownLines[] => {
  const ranges: ShownLines[] = [];
  let start = first;
  for (let number = first; number <= next; number++) {
    if (number < next && (lines[number - 1]?.length ?? 0) <= LINE_CHARACTERS_MAX) continue;
    if (number > start) ranges.push({ by: callId, first: start, last: number - 1 });
    start = number + 1;
  }
  const [only, ...others] = ranges;
  const isAll = only?.first === 1 && only.last === lines.length && others.length === 0;
  return isAll ? wholeFile(callId) : ranges;
};

/** Entries of a folder from `offset`, and the offset of the next ones. */
const showFolder = async (
  real: string,
  shown: string,
  { offset = 1, limit = LINES_MAX }: Input,
): Promise<ToolOutcome> => {
  const held = await holdFolder(real);
  if (held.kind !== 'held') return failed(`${shown} is no folder any more.`);
  const entries = await readdir(held.folder.reach, { withFileTypes: true }).finally(
    held.folder.close,
  );
  const names = entries
    .map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name))
    .sort();
  if (offset > Math.max(1, names.length))
    return failed(
      `Entry ${offset} is past the end: ${shown} has ${plural(names.length, 'entry', 'entries')}.`,
    );
  const end = offset - 1 + Math.min(limit, LINES_MAX);
  const listed = names.slice(offset - 1, end);
  if (end < names.length) listed.push(`[${names.length - end} more; go on with offset ${end + 1}]`);
  return {
    status: 'ok',
    text: [`[folder ${shown}, ${names.length} entries]`, ...listed].join('\n'),
    summary: plural(names.length, 'entry', 'entries'),
  };
};

/** Returns a picture as such. If the model accepts no pictures, the runtime says so. */
const showBinary = async (
  shown: string,
  bytes: Buffer,
  { blobs }: ToolContext,
): Promise<ToolOutcome> => {
  const stored = await keepPicture(bytes, blobs);
  switch (stored.kind) {
    case 'stored': {
      const { image, picture } = stored;
      const text =
        `${shown}: ${image.mediaType}, ${picture.width} x ${picture.height} pixels, ` +
        `${bytes.length} bytes`;
      return {
        status: 'ok',
        text,
        images: [image],
        summary: `${picture.width} x ${picture.height}`,
      };
    }
    case 'tooLarge':
      return failed(
        `${shown} is a picture that can't be shown: ${stored.why}. Make a smaller copy and ` +
          'read that.',
      );
    case 'broken':
      return failed(`${shown} is a picture that can't be shown: ${stored.why}.`);
    case 'none':
      return failed(`${shown} is a binary file of ${bytes.length} bytes and is not shown.`);
    default:
      return stored satisfies never;
  }
};

/** Also one without binary bytes, whose text says nothing about its pages. */
const isPdf = (bytes: Buffer): boolean => bytes.subarray(0, 5).toString('latin1') === '%PDF-';

const withNote = (note: string, outcome: ToolOutcome): ToolOutcome =>
  note === '' ? outcome : { ...outcome, text: `${note}\n${outcome.text}` };

const NOTEBOOK = /\.ipynb$/i;

const showFile = async (input: Input, context: ToolContext): Promise<ToolOutcome> => {
  const allowed = await findAllowed(input.path, context);
  if (allowed.kind === 'elsewhere') return failed(allowed.why);
  const { real, shown, note: pathNote } = allowed;
  const loaded = await loadFile(real);
  switch (loaded.kind) {
    case 'absent':
      return failed(`${shown} does not exist.${await suggestNames(real)}`);
    case 'unreadable': {
      // advice only if it is too large: a command would wait for a pipe or a device, and may not
      // read what Pawl may not
      const advice = loaded.isTooLarge === true ? ' Look at parts of it with a shell command.' : '';
      return failed(`${shown} can't be read: ${loaded.why}.${advice}`);
    }
    case 'folder':
      return withNote(pathNote, await showFolder(real, shown, input));
    case 'file': {
      if (isPdf(loaded.bytes))
        return failed(
          `${shown} is a PDF of ${loaded.bytes.length} bytes and is not shown. Read it by a ` +
            'program in bash, such as pdftotext.',
        );
      const decoded = decodeFile(loaded.bytes);
      if (decoded.kind === 'binary')
        return withNote(pathNote, await showBinary(shown, loaded.bytes, context));
      const notebook = NOTEBOOK.test(real)
        ? (await import('./notebook.js')).notebookText(decoded.text)
        : null;
      const textNote =
        notebook?.remark ||
        encodingNotes[decoded.encoding] ||
        describeText(decoded.text, decoded.encoding);
      const remark = [pathNote, textNote].filter(Boolean).join('\n');
      const text = notebook?.text ?? decoded.text;
      const { outcome, lines: shownLines } = showLines(text, remark, input, context.callId);
      // lines of the file itself, of which a notebook as text shows none
      const lines = notebook === null ? shownLines : [];
      // remembered as read, so that `edit` may change it, and `write` once all lines were shown
      if (outcome.status === 'ok')
        context.files.set(real, loaded.sha256, editableText(decoded), lines);
      return outcome;
    }
    default:
      return loaded satisfies never;
  }
};

export const readTool: Tool = defineTool({
  name: 'read',
  description:
    'Shows a text file with line numbers (number, tab, line), a picture, or what is in a ' +
    'folder. Long files come in parts: go on with offset.',
  schema,
  aliases: ALIASES,
  foreign: FOREIGN,
  translate,
  traits: { effect: 'pure', parallelSafe: true, mutating: false, deadlineMs: 30_000 },
  async judge(input, workspace) {
    return blobHash(input.path) === null ? judgePath(input.path, workspace) : judgeBlob(input.path);
  },
  title: ({ path }, [shown = path]) => shown,
  async run(input, context) {
    const hash = blobHash(input.path);
    if (hash === null) return showFile(input, context);
    const text = await context.blobs.get(hash);
    if (text === undefined) return noBlob(input.path);
    return showLines(text, '', input, context.callId).outcome;
  },
});
