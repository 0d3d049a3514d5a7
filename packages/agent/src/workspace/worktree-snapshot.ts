import { lstat } from 'node:fs/promises';
import path from 'node:path';
import type { Repository } from './git/git.js';
import { type Head, type Refs, tipsOf } from './git/refs.js';
import { ProgramFailure, settleAll } from './run-program.js';

/**
 * Takes a snapshot of a repository: its refs, and its files with uncommitted changes.
 *
 * 1. Only names and stamps are collected. A different stamp means that a file changed between two snapshots.
 * 2. Submodules, nested repositories, and files whose names are not UTF-8 are ignored.
 */

/** Size, times and identity of a file, or `absent`. Every change of the content changes it. */
export type Stamp = string;

/** A file that differs from HEAD, or is not in it. Paths are relative to the top of the repository. */
export type ChangedFile = {
  readonly kind: 'tracked' | 'untracked' | 'unmerged';
  /** The working tree differs from the index, or the file is not in the index. */
  readonly inTree: boolean;
  /** Object in the index; null if the file is not in it. */
  readonly staged: string | null;
  readonly stamp: Stamp;
};

/** Files that differ from what is committed. */
export type ChangedFiles = ReadonlyMap<string, ChangedFile>;

export type WorktreeSnapshot = Refs & { readonly changed: ChangedFiles };

const FILES_MAX = 20_000;

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

/** Parses one record of `status --porcelain=v2 -z --no-renames`; null for ignored entries. */
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
const BRANCH = /^refs\/heads\/(.*)\n$/s;

const askTips = async (repository: Repository): Promise<ReturnType<typeof tipsOf>> => {
  const lines = (await repository.ask(REFS)).split('\n').filter((line) => line !== '');
  return tipsOf(
    new Map(
      lines.map((line) => {
        const end = line.indexOf(' ');
        return [line.slice(end + 1), line.slice(0, end)];
      }),
    ),
  );
};

/** Asks git for the refs if they can't be read from files. Rejects with a ProgramFailure. */
export const askRefs = async (repository: Repository): Promise<Refs> => {
  const [tips, branch, commit] = await settleAll([
    askTips(repository),
    repository.run(['symbolic-ref', '--quiet', 'HEAD']),
    repository.run(['rev-parse', '--verify', '--quiet', 'HEAD']),
  ]);
  const { top, gitFolder } = repository;
  const head = {
    hash: commit.code === 0 ? commit.output.toString('utf8').trim() : null,
    branch: BRANCH.exec(branch.output.toString('utf8'))?.[1] ?? null,
  };
  return { top, gitFolder, head, ...tips };
};

/**
 * Takes a snapshot. `refs`: null if git has to be asked. Rejects with a ProgramFailure, also if too many files have
 * changed.
 */
export const takeSnapshot = async (
  repository: Repository,
  refs: Refs | null = null,
): Promise<WorktreeSnapshot> => {
  const [status, tips] = await settleAll([
    repository.ask([...STATUS, '--untracked-files=all', '--ignore-submodules=all']),
    refs === null ? askTips(repository) : Promise.resolve(refs),
  ]);
  const { head, lines } = parseStatus(status);
  if (lines.length > FILES_MAX) {
    throw new ProgramFailure(
      'tooMuch',
      `more than ${FILES_MAX} files are changed or untracked. Commit them, or ignore them (.gitignore)`,
    );
  }
  const stamped = await Promise.all(
    lines.map(async ({ path: name, file }) => {
      const stamp = await stampOf(path.join(repository.top, name));
      return [name, { ...file, stamp }] as const;
    }),
  );
  const { tips: all, remoteTips, stash } = tips;
  const { top, gitFolder } = repository;
  return { top, gitFolder, head, tips: all, remoteTips, stash, changed: new Map(stamped) };
};

/** Files whose content is known to have changed, as relative paths. */
export const changedBetween = async (
  before: WorktreeSnapshot,
  after: WorktreeSnapshot,
): Promise<readonly string[]> => {
  const moved = before.head.hash !== after.head.hash;
  const names: string[] = [];
  for (const [name, file] of after.changed) {
    const earlier = before.changed.get(name);
    // an undone commit leaves files that differ from HEAD although their content did not change
    const touched = earlier === undefined ? file.inTree || !moved : earlier.stamp !== file.stamp;
    if (touched) names.push(name);
  }
  for (const [name, earlier] of before.changed) {
    if (after.changed.has(name)) continue;
    if ((await stampOf(path.join(after.top, name))) !== earlier.stamp) names.push(name);
  }
  return names;
};
