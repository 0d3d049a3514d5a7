/**
 * The tool `find`: file names by a pattern, the ones that changed last first, since these are most
 * often meant. ripgrep lists the files that are not ignored; the pattern is matched here.
 */

import { lstat } from 'node:fs/promises';
import path from 'node:path';
import * as v from 'valibot';
import type { HeldFolder } from '../platform/files.js';
import { plural } from '../platform/text.js';
import type { Tool, ToolContext, ToolOutcome } from '../ports/tool.js';
import {
  defineTool,
  FOLDER_NAMES,
  type ForeignFields,
  filledText,
  wholeNumber,
} from './define-tool.js';
import { failed, stopped } from './file-change.js';
import { listFiles, type RipgrepEnd, readGlob, withFolder } from './file-search.js';
import { findAllowed, judgePath, titleWithin } from './files.js';
import { noFolder } from './similar-names.js';

const SHOWN_DEFAULT = 100;
const SHOWN_MAX = 1_000;
/** After so many matches the search ends; these are sorted by time. */
const FOUND_MAX = 20_000;
const STATS_AT_ONCE = 64;

const schema = v.strictObject({
  glob: v.pipe(
    v.string(),
    v.minLength(1, 'must not be empty'),
    v.maxLength(500, 'must have at most 500 characters'),
    v.description('e.g. *.test.ts or src/**/*.{ts,tsx}'),
  ),
  path: v.exactOptional(filledText('Folder; default: the workspace.')),
  limit: v.exactOptional(wholeNumber(1, SHOWN_MAX, `Files shown, default ${SHOWN_DEFAULT}.`)),
});
type Input = v.InferOutput<typeof schema>;

const FOREIGN: ForeignFields = {
  case_sensitive: { same: [true], instead: 'give both letters: [Rr]eadme*' },
  respect_git_ignore: { same: [true], instead: 'use find in bash for ignored files' },
  type: { same: ['f', 'file'], instead: 'only files are found: list shows folders' },
  sort: { same: 'any' },
  exclude: { instead: 'narrow glob or path' },
  query: { instead: 'give glob, such as **/*name*' },
  patterns: { instead: 'give one glob, such as *.{ts,js}' },
};

type File = { readonly name: string; readonly changedAt: number };

/** Time of the last change. A file that was removed meanwhile counts as the oldest. */
const changedAt = (place: string): Promise<number> =>
  lstat(place).then(
    ({ mtimeMs }) => mtimeMs,
    () => 0,
  );

/** Newest first; same time by name. */
const sortByTime = async (names: readonly string[], folder: string): Promise<readonly string[]> => {
  const files: File[] = [];
  for (let from = 0; from < names.length; from += STATS_AT_ONCE) {
    const some = names.slice(from, from + STATS_AT_ONCE);
    const timed = some.map(async (name) => ({
      name,
      changedAt: await changedAt(path.join(folder, name)),
    }));
    files.push(...(await Promise.all(timed)));
  }
  return files
    .sort((a, b) => b.changedAt - a.changedAt || (a.name < b.name ? -1 : 1))
    .map(({ name }) => name);
};

const describeLimit = (count: number, limit: number, more: boolean): readonly string[] => {
  if (more)
    return [
      `[the newest of the first ${count} that fit; there are more: narrow the glob or the path]`,
    ];
  if (count <= limit) return [];
  const advice = limit < SHOWN_MAX ? 'narrow the glob or raise limit' : 'narrow the glob';
  return [`[the newest ${limit} of ${count}; ${advice}]`];
};

/**
 * Keeps the names that exist below the folder itself. Drops names behind a symlink, which somebody
 * may have put there while ripgrep ran.
 */
const onlyPresent = async (names: readonly string[], real: string): Promise<readonly string[]> => {
  const present = new Set<string>();
  const folders = new Map<string, string[]>();
  for (const name of names) {
    const folder = path.dirname(name);
    const others = folders.get(folder);
    if (others === undefined) folders.set(folder, [name]);
    else others.push(name);
  }
  for (const [folder, inIt] of folders) {
    await withFolder(path.join(real, folder), async (held) => {
      for (const name of inIt) {
        // null: removed meanwhile
        const there = await lstat(held.at(path.basename(name))).catch(() => null);
        if (there !== null) present.add(name);
      }
    });
  }
  return names.filter((name) => present.has(name));
};

type Found = { readonly names: readonly string[]; readonly end: RipgrepEnd };

const findIn = async (
  folder: HeldFolder,
  fits: (name: string) => boolean,
  signal: AbortSignal,
): Promise<Found> => {
  const names: string[] = [];
  const take = (name: string): 'more' | 'enough' => {
    if (fits(name)) names.push(name);
    return names.length < FOUND_MAX ? 'more' : 'enough';
  };
  const end = await listFiles({ folder, signal, take });
  return { names, end };
};

const find = async (input: Input, context: ToolContext): Promise<ToolOutcome> => {
  const allowed = await findAllowed(input.path ?? '.', context);
  if (allowed.kind === 'elsewhere') return failed(allowed.why);
  const { real, shown } = allowed;
  const glob = await readGlob(input.glob);
  if (glob.kind === 'invalid') return failed(`${input.glob} can't be read as a glob: ${glob.why}.`);
  const result = await withFolder(real, (folder) => findIn(folder, glob.fits, context.signal));
  if (result === null) return failed(await noFolder(real, shown, 'Give the folder to look in.'));
  const { names, end } = result;
  if (context.signal.aborted)
    return stopped(context.signal, `stopped; ${names.length} files were found so far`);
  const why = end.fault?.text ?? 'some folders could not be read';
  if (names.length === 0 && end.isPartial) return failed(`No files; ${why}.`);
  if (names.length === 0) return { status: 'ok', text: 'No files.', summary: 'no files' };
  const limit = input.limit ?? SHOWN_DEFAULT;
  const newest = await onlyPresent((await sortByTime(names, real)).slice(0, limit), real);
  const prefix = shown === '.' ? '' : `${shown}/`;
  const lines = newest.map((name) => `${prefix}${name}`);
  const unread = end.isPartial ? [`[${why}]`] : [];
  return {
    status: 'ok',
    text: [...lines, ...describeLimit(names.length, limit, end.more), ...unread].join('\n'),
    summary:
      newest.length < names.length
        ? `${newest.length} of ${names.length} files`
        : plural(newest.length, 'file'),
  };
};

export const findTool: Tool = defineTool({
  name: 'find',
  description: 'Finds files by name, the newest first; files that .gitignore names are left out.',
  schema,
  aliases: {
    ...FOLDER_NAMES,
    glob: ['pattern', 'glob_pattern', 'globPattern', 'name'],
    limit: ['max_results', 'maxResults', 'head_limit'],
  },
  foreign: FOREIGN,
  traits: { effect: 'pure', parallelSafe: true, mutating: false, deadlineMs: 30_000 },
  judge: (input, workspace) => judgePath(input.path ?? '.', workspace),
  title: ({ glob }, paths) => titleWithin(glob, paths),
  run: async (input, context) => {
    try {
      return await find(input, context);
    } catch (error) {
      return failed(error instanceof Error ? error.message : String(error));
    }
  },
});
