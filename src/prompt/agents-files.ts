import { constants } from 'node:fs';
import { open, realpath, stat } from 'node:fs/promises';
import path from 'node:path';

/** The workspace's own instructions: AGENTS.md, nearest first, walking up to the repository's root. */

const NAME = 'AGENTS.md';
const BYTES_MAX = 32 * 1024;

export type AgentsFile = {
  /** Relative to the workspace: `AGENTS.md`, `../AGENTS.md`. */
  readonly path: string;
  readonly text: string;
};

export type AgentsFiles = {
  readonly files: readonly AgentsFile[];
  /** Each names a file and says what is wrong with it. */
  readonly warnings: readonly string[];
};

const exists = (place: string): Promise<boolean> =>
  stat(place).then(
    () => true,
    () => false,
  );

/** From the workspace up to the folder that holds `.git`; the workspace alone outside a repository. */
const foldersOf = async (workspace: string): Promise<readonly string[]> => {
  const folders: string[] = [];
  for (let folder = workspace; ; folder = path.dirname(folder)) {
    folders.push(folder);
    if (await exists(path.join(folder, '.git'))) return folders;
    if (path.dirname(folder) === folder) return [workspace];
  }
};

type Loaded =
  | { readonly kind: 'loaded'; readonly real: string; readonly bytes: Buffer; readonly wholeBytes: number }
  | { readonly kind: 'absent' }
  | { readonly kind: 'unusable'; readonly why: string };

/** Reads at most `room` bytes. A symlink that leads out of `top` is not followed: it could show the model any file. */
const load = async (place: string, top: string, room: number): Promise<Loaded> => {
  try {
    const real = await realpath(place);
    if (path.relative(top, real).startsWith('..'))
      return { kind: 'unusable', why: `it leads out to ${real}` };
    const file = await open(real, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const status = await file.stat();
      if (!status.isFile()) return { kind: 'unusable', why: 'it is not a regular file' };
      const bytes = Buffer.alloc(Math.min(room, status.size));
      const { bytesRead } = await file.read(bytes, 0, bytes.length, 0);
      return { kind: 'loaded', real, bytes: bytes.subarray(0, bytesRead), wholeBytes: status.size };
    } finally {
      await file.close();
    }
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return { kind: 'absent' };
    return { kind: 'unusable', why: error instanceof Error ? error.message : String(error) };
  }
};

/** The text without half a character at its end. */
const textOf = (bytes: Buffer): string =>
  bytes
    .toString('utf8')
    .replace(/^\ufeff/, '')
    .replace(/\ufffd$/, '');

/** Never rejects because of a file: what can't be used is a warning. `workspace` is a real path. */
export const loadAgentsFiles = async (workspace: string): Promise<AgentsFiles> => {
  const folders = await foldersOf(workspace);
  const top = folders.at(-1) ?? workspace;
  const files: AgentsFile[] = [];
  const warnings: string[] = [];
  const seen = new Set<string>();
  let room = BYTES_MAX;
  for (const folder of folders) {
    const place = path.join(folder, NAME);
    const shown = path.relative(workspace, place);
    const loaded = await load(place, top, room);
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
