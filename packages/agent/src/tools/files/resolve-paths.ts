import { lstat, readlink, realpath } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import type { CallFacts } from '../../machine/call.js';
import type { InvalidInput, ToolContext } from '../../ports/tool.js';

/**
 * Resolves paths.
 *
 * 1. A real path contains no symlink, even if the file does not exist. Policy and tools therefore see the same file.
 * 2. Nothing is opened and nothing is changed.
 * 3. The paths of a call are decided when it is judged. Another call may since have put a symlink in the way, so a tool
 *    takes its path from `findAllowed` just before it uses it.
 */

const LINKS_MAX = 40;

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : '';

/** Resolves symlinks up to the first missing part. */
const follow = async (absolute: string, links: number): Promise<string> => {
  if (links > LINKS_MAX) throw new Error('it leads through too many symlinks');
  try {
    return await realpath(absolute);
  } catch (error) {
    const code = codeOf(error);
    if (code !== 'ENOENT' && code !== 'ENOTDIR') throw error;
  }
  const parent = path.dirname(absolute);
  if (parent === absolute) return absolute;
  const place = path.join(await follow(parent, links), path.basename(absolute));
  const status = await lstat(place).catch(() => null); // null: nothing exists there
  if (!status?.isSymbolicLink()) return place;
  return follow(path.resolve(path.dirname(place), await readlink(place)), links + 1);
};

/** Absolute, but symlinks are not resolved. `~` is the home folder, as in a shell. */
const absoluteOf = (given: string, workspace: string): string => {
  if (given === '~' || given.startsWith('~/')) return path.join(homedir(), given.slice(1));
  return path.resolve(workspace, given);
};

/** The real path of a name that the model gave. Rejects if the path can't be followed. */
const realPathOf = (given: string, workspace: string): Promise<string> =>
  follow(absoluteOf(given, workspace), 0);

export type Allowed =
  | { readonly kind: 'allowed'; readonly real: string; readonly shown: string }
  | { readonly kind: 'elsewhere'; readonly why: string };

/** The real path, if it is still one that the policy decided about (rule 3). */
export const findAllowed = async (
  given: string,
  { workspace, paths }: Pick<ToolContext, 'workspace' | 'paths'>,
): Promise<Allowed> => {
  const real = await realPathOf(given, workspace).catch(() => null); // null: it can't be followed any more
  if (real !== null && paths.includes(real)) {
    return { kind: 'allowed', real, shown: showPath(real, workspace) };
  }
  return {
    kind: 'elsewhere',
    why: `${given}: the path leads elsewhere than when it was allowed; look again and ask anew.`,
  };
};

export type FileFacts = { readonly kind: 'ok'; readonly facts: CallFacts };

/** Facts for the policy about a call with one path. */
export const judgePath = async (
  given: string,
  workspace: string,
  field = 'path',
): Promise<FileFacts | InvalidInput> => {
  if (given.includes('\0')) return { kind: 'invalid', field, why: 'holds a NUL character' };
  try {
    const real = await realPathOf(given, workspace);
    return { kind: 'ok', facts: { argv: [], paths: [real], hosts: [], shape: real } };
  } catch (error) {
    const why = codeOf(error) || (error instanceof Error ? error.message : String(error));
    return { kind: 'invalid', field, why: `${given} can't be followed to a real path: ${why}` };
  }
};

/** The title of a call that searches below a folder. */
export const titleWithin = (sought: string, [folder = '.']: readonly string[]): string =>
  folder === '.' ? sought : `${sought} in ${folder}`;

/** A real path for people and models: relative to the workspace if it is inside. */
export const showPath = (real: string, workspace: string): string => {
  const relative = path.relative(workspace, real);
  if (relative === '') return '.';
  return relative === '..' || relative.startsWith(`..${path.sep}`) ? real : relative;
};
