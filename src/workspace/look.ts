import { lstat } from 'node:fs/promises';
import path from 'node:path';
import type { Repository } from './git.js';
import { ProgramFailure, settleAll } from './program.js';

/**
 * A look at a repository: where it stands, and which files differ from what is committed.
 *
 * 1. Only names and times are gathered: whether a file changed between two looks is told by its stamp.
 * 2. Submodules, repositories inside, and files whose name is not UTF-8 are not looked at.
 */

/** What can't be seen from a change of its content: size, times and identity of a file, or `absent`. */
export type Stamp = string;

/** A file that differs from HEAD, or is not in it. Paths are relative to the top of the repository. */
export type ChangedFile = {
  readonly kind: 'tracked' | 'untracked' | 'unmerged';
  /** The working tree differs from the index, or the file is not in the index. */
  readonly inTree: boolean;
  /** Object in the index; null of a file that is not there. */
  readonly staged: string | null;
  readonly stamp: Stamp;
};

export type Head = {
  /** null: nothing is committed yet. */
  readonly hash: string | null;
  /** null: HEAD is detached. */
  readonly branch: string | null;
};

export type Look = {
  readonly top: string;
  readonly head: Head;
  /** Hashes that branches, local and remote, point to. */
  readonly tips: readonly string[];
  readonly remoteTips: readonly string[];
  readonly stash: string | null;
  readonly changed: ReadonlyMap<string, ChangedFile>;
};

const FILES_MAX = 20_000;
const TIPS_MAX = 20_000;

const ABSENT: Stamp = 'absent';

/** The stamp of a file as it is now. */
export const stampOf = async (file: string): Promise<Stamp> => {
  try {
    const { mode, size, ino, mtimeNs, ctimeNs } = await lstat(file, { bigint: true });
    return [mode, size, ino, mtimeNs, ctimeNs].join(' ');
  } catch {
    return ABSENT; // not there, or not to be seen: a file that nobody can commit either
  }
};

type Line = { readonly path: string; readonly file: Omit<ChangedFile, 'stamp'> };

const NOT_UTF8 = '\ufffd';
const NO_OBJECT = /^0+$/;

/** One record of `status --porcelain=v2 -z --no-renames`; null of what is not looked at. */
const lineOf = (record: string): Line | null => {
  const fields = record.split(' ');
  const rest = (count: number): string => fields.slice(count).join(' ');
  const named = (name: string, file: Line['file']): Line | null =>
    name.endsWith('/') || name.includes(NOT_UTF8) ? null : { path: name, file };
  switch (fields[0]) {
    case '1': {
      const staged = fields[7] ?? '';
      if (fields[2]?.startsWith('S') || fields.slice(3, 6).includes('160000')) return null;
      return named(rest(8), {
        kind: 'tracked',
        inTree: fields[1]?.[1] !== '.',
        staged: NO_OBJECT.test(staged) ? null : staged,
      });
    }
    case 'u':
      return named(rest(10), { kind: 'unmerged', inTree: true, staged: null });
    case '?':
      return named(rest(1), { kind: 'untracked', inTree: true, staged: null });
    default:
      return null;
  }
};

const HEADER = /^# branch\.(oid|head) (.*)$/s;

type Status = { readonly head: Head; readonly lines: readonly Line[] };

const parseStatus = (output: string): Status => {
  let head: Head = { hash: null, branch: null };
  const lines: Line[] = [];
  for (const record of output.split('\0')) {
    const header = HEADER.exec(record);
    const value = header?.[2] ?? '';
    if (header?.[1] === 'oid') head = { ...head, hash: value === '(initial)' ? null : value };
    else if (header?.[1] === 'head') head = { ...head, branch: value === '(detached)' ? null : value };
    const line = lineOf(record);
    if (line !== null) lines.push(line);
  }
  return { head, lines };
};

const STATUS = ['status', '--porcelain=v2', '-z', '--branch', '--no-ahead-behind', '--no-renames'];
const REFS = [
  'for-each-ref',
  '--format=%(objectname) %(refname)',
  'refs/heads',
  'refs/remotes',
  'refs/stash',
];
const STASH = ' refs/stash';
const REMOTE = ' refs/remotes/';

/** Rejects with a ProgramFailure, also where there is more than can be looked at in time. */
export const lookAt = async (repository: Repository): Promise<Look> => {
  const [status, refs] = await settleAll([
    repository.ask([...STATUS, '--untracked-files=all', '--ignore-submodules=all']),
    repository.ask(REFS),
  ]);
  const { head, lines } = parseStatus(status);
  if (lines.length > FILES_MAX) {
    throw new ProgramFailure(
      'tooMuch',
      `more than ${FILES_MAX} files are changed or not ignored: see .gitignore`,
    );
  }
  const stamped = await Promise.all(
    lines.map(async ({ path: name, file }) => {
      const stamp = await stampOf(path.join(repository.top, name));
      return [name, { ...file, stamp }] as const;
    }),
  );
  const all = refs.split('\n').filter((line) => line !== '');
  const hashOf = (line: string): string => line.slice(0, line.indexOf(' '));
  const hashesOf = (found: readonly string[]) => [...new Set(found.slice(0, TIPS_MAX).map(hashOf))];
  const stash = all.find((line) => line.endsWith(STASH));
  return {
    top: repository.top,
    head,
    tips: hashesOf(all),
    remoteTips: hashesOf(all.filter((line) => line.includes(REMOTE))),
    stash: stash === undefined ? null : hashOf(stash),
    changed: new Map(stamped),
  };
};

/** Files whose content is not what it was, of which it is known; relative paths. */
export const changedBetween = async (before: Look, after: Look): Promise<readonly string[]> => {
  const moved = before.head.hash !== after.head.hash;
  const names: string[] = [];
  for (const [name, file] of after.changed) {
    const earlier = before.changed.get(name);
    // a commit that was taken back leaves files that differ from HEAD, although nobody has touched them
    const touched = earlier === undefined ? file.inTree || !moved : earlier.stamp !== file.stamp;
    if (touched) names.push(name);
  }
  for (const [name, earlier] of before.changed) {
    if (after.changed.has(name)) continue;
    if ((await stampOf(path.join(after.top, name))) !== earlier.stamp) names.push(name);
  }
  return names;
};
