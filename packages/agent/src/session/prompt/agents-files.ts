import { realpath } from 'node:fs/promises';
import path from 'node:path';
import { isWithin } from '../../platform/files/is-within.js';
import { openRegular, readUpTo, systemFault } from '../../platform/files/regular-file.js';
import { foreignFolder, isOfOtherUser, repositoryFolders } from '../../platform/files/repository-folders.js';
import { importedPaths, importFault } from './imported-paths.js';

/**
 * Reads the workspace's own instructions: AGENTS.md files from the workspace up to the repository's root, nearest first.
 *
 * 1. A folder without AGENTS.md may have CLAUDE.md instead, and any folder also CLAUDE.local.md.
 * 2. A file that imports others (`@docs/rules.md`) is followed by them. They are documents of the repository: no link leads
 *    out, none is hidden, named like secrets, or a file that the user's rules forbid to read.
 * 3. Each file counts once, and all of them together have a limit.
 */

const NAMES = ['AGENTS.md', 'CLAUDE.md'];
const LOCAL_NAME = 'CLAUDE.local.md';
const BYTES_MAX = 32 * 1024;
/** How far imports of imports are followed. */
const DEPTH_MAX = 5;
/** Imports that are looked for in one session. */
const IMPORTS_MAX = 100;

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

/** The text without a byte order mark and without a cut character at its end. */
const textOf = (bytes: Buffer): string =>
  bytes
    .toString('utf8')
    .replace(/^\ufeff/, '')
    .replace(/\ufffd$/, '');

/** Reads instructions of one workspace, and keeps count of what was read. */
class Reader {
  readonly #within: Omit<Place, 'file'>;
  readonly #mayRead: (path: string) => boolean;
  readonly files: AgentsFile[] = [];
  readonly warnings: string[] = [];
  /** Real paths. */
  readonly #seen = new Set<string>();
  #room = BYTES_MAX;
  #imports = 0;

  constructor(within: Omit<Place, 'file'>, mayRead: (path: string) => boolean) {
    this.#within = within;
    this.#mayRead = mayRead;
  }

  /** Takes a file and its imports. False if it does not exist. */
  async take(file: string, depth = 0): Promise<boolean> {
    const loaded = await load({ ...this.#within, file }, this.#room);
    if (loaded.kind === 'absent') return false;
    const shown = path.relative(this.#within.workspace, file);
    const fault = loaded.kind === 'unusable' ? loaded.why : depth > 0 ? this.#importFault(loaded.real) : null;
    if (fault !== null) this.warnings.push(`${shown} is not ${depth > 0 ? 'imported' : 'used'}: ${fault}`);
    if (fault !== null || loaded.kind === 'unusable' || this.#seen.has(loaded.real)) return true;
    this.#seen.add(loaded.real);
    this.#room -= loaded.bytes.length;
    const left = loaded.wholeBytes - loaded.bytes.length;
    const cut = left > 0 ? `\n[${left} more bytes of ${shown} are left out]` : '';
    if (left > 0)
      this.warnings.push(
        `${shown} is cut: AGENTS.md files together may have ${BYTES_MAX} bytes, ${left} are left out`,
      );
    const text = textOf(loaded.bytes);
    if (`${text}${cut}`.trim() !== '') this.files.push({ path: shown, text: `${text}${cut}` });
    await this.#takeImports(text, path.dirname(file), depth + 1);
    return true;
  }

  async #takeImports(text: string, folder: string, depth: number): Promise<void> {
    if (depth > DEPTH_MAX) return;
    for (const written of importedPaths(text)) {
      if (++this.#imports > IMPORTS_MAX) return;
      if (written.startsWith('/')) continue; // in most repositories an alias of modules: `@/lib/sum`
      if (written.startsWith('~/'))
        this.warnings.push(`@${written} is not imported: only files of the repository are`);
      else await this.take(path.join(folder, written), depth);
    }
  }

  #importFault(real: string): string | null {
    if (!this.#mayRead(real)) return 'your rules forbid to read it';
    return importFault(path.relative(this.#within.top, real));
  }
}

/**
 * Loads all files. An unusable file is a warning and never rejects. `workspace` is a real path; `mayRead` says of a real
 * path whether the user's rules let a file import it.
 */
export const loadAgentsFiles = async (
  workspace: string,
  mayRead: (path: string) => boolean = () => true,
): Promise<AgentsFiles> => {
  const { folders, foreign } = repositoryFolders(workspace);
  const reader = new Reader({ workspace, top: folders.at(-1) ?? workspace }, mayRead);
  if (foreign !== null) reader.warnings.push(foreignFolder(foreign));
  for (const folder of folders) {
    for (const name of NAMES) if (await reader.take(path.join(folder, name))) break;
    await reader.take(path.join(folder, LOCAL_NAME));
  }
  return { files: reader.files, warnings: reader.warnings };
};
