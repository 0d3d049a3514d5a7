import { realpath } from 'node:fs/promises';
import path from 'node:path';
import { isWithin } from '../files/is-within.js';
import { openRegular, readUpTo, systemFault } from '../files/regular-file.js';
import { foreignFolder, isOfOtherUser, repositoryFolders } from '../files/repository-folders.js';

/**
 * Reads the workspace's own instructions: AGENTS.md files from the workspace up to the repository's root, nearest first.
 * A folder without AGENTS.md may have CLAUDE.md instead.
 */

const NAMES = ['AGENTS.md', 'CLAUDE.md'];
const BYTES_MAX = 32 * 1024;

export type AgentsFile = {
  /** Relative to the workspace: `AGENTS.md`, `../AGENTS.md`. */
  readonly path: string;
  readonly text: string;
};

export type AgentsFiles = {
  readonly files: readonly AgentsFile[];
  /** Each names a file and its fault. */
  readonly warnings: readonly string[];
};

type Loaded =
  | { readonly kind: 'loaded'; readonly real: string; readonly bytes: Buffer; readonly wholeBytes: number }
  | { readonly kind: 'absent' }
  | { readonly kind: 'unusable'; readonly why: string };

type Place = { readonly file: string; readonly workspace: string; readonly top: string };

/**
 * Reads at most `room` bytes. It follows no symlink out of `top`, which could show the model any file, and above the
 * workspace it reads no file of another user.
 */
const load = async ({ file, workspace, top }: Place, room: number): Promise<Loaded> => {
  try {
    const real = await realpath(file);
    if (!isWithin(real, top)) return { kind: 'unusable', why: `it leads out to ${real}` };
    if ([file, real].some((place) => isOfOtherUser(place, workspace)))
      return { kind: 'unusable', why: 'it belongs to another user' };
    const opened = await openRegular(real, { follow: false });
    try {
      const bytes = await readUpTo(opened.file, opened.status, room);
      return { kind: 'loaded', real, bytes, wholeBytes: Math.max(opened.status.size, bytes.length) };
    } finally {
      await opened.file.close();
    }
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return { kind: 'absent' };
    return { kind: 'unusable', why: systemFault(error, file) };
  }
};

/** The first of the names that exists in the folder, even if it can't be used. */
const loadFirst = async (
  folder: string,
  within: Omit<Place, 'file'>,
  room: number,
): Promise<{ readonly name: string; readonly loaded: Loaded }> => {
  for (const name of NAMES) {
    const loaded = await load({ ...within, file: path.join(folder, name) }, room);
    if (loaded.kind !== 'absent') return { name, loaded };
  }
  return { name: '', loaded: { kind: 'absent' } };
};

/** The text without a byte order mark and without a cut character at its end. */
const textOf = (bytes: Buffer): string =>
  bytes
    .toString('utf8')
    .replace(/^\ufeff/, '')
    .replace(/\ufffd$/, '');

/** Loads all files. An unusable file is a warning and never rejects. `workspace` is a real path. */
export const loadAgentsFiles = async (workspace: string): Promise<AgentsFiles> => {
  const { folders, foreign } = repositoryFolders(workspace);
  const top = folders.at(-1) ?? workspace;
  const files: AgentsFile[] = [];
  const warnings: string[] = foreign === null ? [] : [foreignFolder(foreign)];
  const seen = new Set<string>();
  let room = BYTES_MAX;
  for (const folder of folders) {
    const { name, loaded } = await loadFirst(folder, { workspace, top }, room);
    const shown = path.relative(workspace, path.join(folder, name));
    if (loaded.kind === 'unusable') warnings.push(`${shown} is not used: ${loaded.why}`);
    if (loaded.kind !== 'loaded' || seen.has(loaded.real)) continue;
    seen.add(loaded.real);
    room -= loaded.bytes.length;
    const left = loaded.wholeBytes - loaded.bytes.length;
    const cut = left > 0 ? `\n[${left} more bytes of ${shown} are left out]` : '';
    if (left > 0)
      warnings.push(
        `${shown} is cut: AGENTS.md files together may have ${BYTES_MAX} bytes, ${left} are left out`,
      );
    const text = `${textOf(loaded.bytes)}${cut}`;
    if (text.trim() !== '') files.push({ path: shown, text });
  }
  return { files, warnings };
};
