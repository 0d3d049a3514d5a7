import { lstat } from 'node:fs/promises';
import path from 'node:path';
import type { JudgedCall } from '../agent/call.js';
import type { Repository } from './git.js';
import { isWithin, markedFolder } from './locate.js';
import { changedBetween, type Look } from './look.js';
import { settleAll } from './program.js';
import type { Touched } from './touched.js';

/** Which files a call changed, and whose the changes are. */

/** What changed while a call ran; names are relative to the top. */
export type Effect = {
  readonly before: Look;
  readonly changed: readonly string[];
  /** What changed may have been there before, in a commit or a stash, and need not be the call's own work. */
  readonly mixed: boolean;
};

const UNSEEN = 'there was no look at the repository before the agent changed it';
const INSIDE = 'it belongs to a repository inside this one';
const MIXED = 'it came with a switch of branches, a stash or a commit that was taken back';

const isMixed = async (repository: Repository, before: Look, after: Look): Promise<boolean> => {
  if (before.stash !== after.stash || before.head.branch !== after.head.branch) return true;
  const [from, to] = [before.head.hash, after.head.hash];
  if (from === to || from === null) return false;
  if (to === null) return true;
  return (await repository.run(['merge-base', '--is-ancestor', from, to])).code !== 0;
};

const isFolder = async (file: string): Promise<boolean> => {
  try {
    return (await lstat(file)).isDirectory();
  } catch {
    return false; // it is gone, so it is nothing to look below
  }
};

/** The files, not folders, that calls name. */
export const namedFiles = async (calls: readonly JudgedCall[]): Promise<readonly string[]> => {
  const paths = [...new Set(calls.flatMap(({ facts }) => facts.paths))];
  const folders = await Promise.all(paths.map(isFolder));
  return paths.filter((_path, index) => folders[index] === false);
};

export const effectBetween = async (repository: Repository, before: Look, after: Look): Promise<Effect> => {
  const [changed, mixed] = await settleAll([
    changedBetween(before, after),
    isMixed(repository, before, after),
  ]);
  return { before, changed, mixed };
};

const noteNamed = (file: string, effect: Effect | undefined, top: string, touched: Touched): void => {
  if (!isWithin(file, top)) return;
  const name = path.relative(top, file);
  if (markedFolder(path.dirname(file)) !== top) touched.exclude(name, INSIDE);
  else if (effect === undefined) touched.doubt(name, UNSEEN);
  else touched.touch(name, effect.before);
};

/** A command changed what changed below the folder that it names. */
const noteBelow = (
  folder: string,
  { before, changed, mixed }: Effect,
  top: string,
  touched: Touched,
): readonly string[] => {
  const names = changed.filter((name) => isWithin(path.join(top, name), folder));
  for (const name of names) {
    if (mixed) touched.doubt(name, MIXED);
    else touched.touch(name, before);
  }
  return names.map((name) => path.join(top, name));
};

/** The files that a call changed, as absolute paths; noted as touched by it. */
export const noteEffect = async (
  call: JudgedCall,
  effect: Effect | undefined,
  { top, gitFolder }: Repository,
  touched: Touched,
): Promise<readonly string[]> => {
  const files: string[] = [];
  for (const place of call.facts.paths) {
    if (isWithin(place, gitFolder)) continue;
    if (await isFolder(place)) {
      if (effect !== undefined) files.push(...noteBelow(place, effect, top, touched));
    } else {
      files.push(place);
      noteNamed(place, effect, top, touched);
    }
  }
  return files;
};
