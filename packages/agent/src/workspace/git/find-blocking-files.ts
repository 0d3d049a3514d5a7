import { type Stats, statSync } from 'node:fs';
import path from 'node:path';
import { readTextOrEmptySync } from '../../platform/files/regular-file.js';

/**
 * Checks the files that git would read. Git would wait for ever at a pipe, and open any device.
 *
 * It does not understand every include of a configuration. For the rest, git's deadline applies.
 */

const TEXT_BYTES_MAX = 1024 * 1024;
const CONFIGS_MAX = 50;
const OF_WORKTREE = ['HEAD', 'index', 'commondir', 'gitdir', 'config.worktree', 'info/sparse-checkout'];
const SHARED = [
  ...['config', 'packed-refs', 'shallow', 'info/exclude', 'info/attributes', 'info/grafts'],
  ...['objects/info/alternates', 'objects/info/commit-graph'],
];
const OF_TOP = ['.gitignore', '.gitattributes', '.gitmodules', '.mailmap'];

const statusOf = (place: string): Stats | null => {
  try {
    return statSync(place);
  } catch {
    return null; // absent, or git can't read it either
  }
};

const textOf = (file: string): string => readTextOrEmptySync(file, TEXT_BYTES_MAX);

/** Whether git can read it without waiting. */
const isHarmless = (place: string): boolean => {
  const status = statusOf(place);
  return status === null || status.isFile() || status.isDirectory();
};

/** The files that a configuration includes, whether or not their condition holds. */
const includedBy = (file: string, home: string): readonly string[] => {
  let inInclude = false;
  return textOf(file)
    .split('\n')
    .flatMap((line) => {
      if (/^\s*\[/.test(line)) inInclude = /^\s*\[\s*include(if\b|\s|\]|\.)/i.test(line);
      const written = inInclude ? /(?:^|\])\s*path\s*=\s*(.*)$/i.exec(line)?.[1]?.trim() : undefined;
      if (written === undefined || written === '') return [];
      const place = written.replace(/^"(.*)"$/, '$1').replace(/^~(?=\/)/, () => home);
      return [path.resolve(path.dirname(file), place)];
    });
};

/** A path without quotes, `%(prefix)` or other users' homes. */
const PLAIN_PATH = /^(~\/)?[^"'\\#;%~\s]+$/;
const ANY_INCLUDE = /\binclude(if)?\b/i;

/**
 * All files that these configurations include, directly or indirectly, whether or not conditions hold. Null if an
 * include is not understood, or there are too many.
 */
export const includedFiles = (configs: readonly string[], home: string): readonly string[] | null => {
  const found = new Set<string>();
  const waiting = [...configs];
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    const written = textOf(file);
    if (!ANY_INCLUDE.test(written)) continue;
    if (written.split('\n').some((line) => isOddPath(line)) || found.size > CONFIGS_MAX) return null;
    for (const place of includedBy(file, home)) {
      if (found.has(place)) continue;
      found.add(place);
      waiting.push(place);
    }
  }
  return [...found];
};

/** Whether a line of a file with includes names a path in a form that is not understood. */
const isOddPath = (line: string): boolean => {
  if (/^\s*\[\s*include/i.test(line)) return !/^\s*\[\s*include(if\s+"[^"\\]*")?\s*\]\s*$/i.test(line);
  const named = /^\s*path\s*=\s*(.*?)\s*$/i.exec(line)?.[1];
  if (named === undefined) return /(^|\])\s*path\b/i.test(line) || line.trimEnd().endsWith('\\');
  return !PLAIN_PATH.test(named);
};

const badConfig = (first: readonly string[], home: string): string | null => {
  const waiting = [...first];
  const seen = new Set<string>();
  for (let file = waiting.pop(); file !== undefined && seen.size < CONFIGS_MAX; file = waiting.pop()) {
    if (seen.has(file)) continue;
    seen.add(file);
    if (!isHarmless(file)) return file;
    waiting.push(...includedBy(file, home));
  }
  return null;
};

/** The git folder of this working tree, and the one that it shares with others. */
const gitFolders = (top: string): readonly [own: string, shared: string] => {
  const mark = path.join(top, '.git');
  if (statusOf(mark)?.isDirectory()) return [mark, mark];
  const own = path.resolve(
    top,
    textOf(mark)
      .replace(/^gitdir:\s*/, '')
      .trim(),
  );
  const common = textOf(path.join(own, 'commondir')).trim();
  return [own, common === '' ? own : path.resolve(own, common)];
};

/** The first pipe, device or socket where git expects a file of the repository; null if there is none. */
export const findWaitingFile = (top: string, home: string): string | null => {
  if (!isHarmless(path.join(top, '.git'))) return path.join(top, '.git');
  const [own, shared] = gitFolders(top);
  const files = [
    ...OF_WORKTREE.map((name) => path.join(own, name)),
    ...SHARED.map((name) => path.join(shared, name)),
    ...OF_TOP.map((name) => path.join(top, name)),
  ];
  const bad = files.find((file) => !isHarmless(file));
  return bad ?? badConfig([path.join(shared, 'config'), path.join(own, 'config.worktree')], home);
};
