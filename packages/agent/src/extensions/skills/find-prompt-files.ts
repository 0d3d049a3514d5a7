import { readdir, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import { systemWords } from '../../platform/base/path-error-texts.js';
import { isWithin } from '../../platform/files/is-within.js';
import { readRegular, systemFault } from '../../platform/files/regular-file.js';
import type { PromptFault, PromptPlace } from './prompt-file.js';

/**
 * Finds and reads Markdown files below a folder.
 *
 * 1. Links are followed, but those of a project only inside its repository, or to the user's own skills. Otherwise a
 *    repository could show the model any file.
 * 2. Only regular files of a limited size are read.
 */

const FILE_BYTES_MAX = 128 * 1024;
const DEPTH_MAX = 4;
const FOLDERS_MAX = 1_000;
const IGNORED = ['.git', 'node_modules'];

const leadsOut = (real: string, { within }: PromptPlace): boolean =>
  within !== null && !within.some((folder) => isWithin(real, folder));

export type ReadText =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'unusable'; readonly why: string };

/** The text of a file of the place. Never rejects. */
export const readPromptText = async (file: string, place: PromptPlace): Promise<ReadText> => {
  try {
    const real = await realpath(file);
    if (leadsOut(real, place)) return { kind: 'unusable', why: `it leads out to ${real}` };
    const loaded = await readRegular(real, FILE_BYTES_MAX, { follow: false });
    if (loaded.kind === 'file') return { kind: 'text', text: loaded.bytes.toString('utf8') };
    if (loaded.kind === 'unusable') return loaded;
    return { kind: 'unusable', why: loaded.kind === 'folder' ? 'it is a folder' : 'there is no such file' };
  } catch (error) {
    return { kind: 'unusable', why: systemWords(error) ?? systemFault(error, file) };
  }
};

type Entries = { readonly files: readonly string[]; readonly folders: readonly string[] };

const kindOf = async (entry: string): Promise<'file' | 'folder' | 'other'> => {
  const status = await stat(entry).catch(() => null); // a link that leads nowhere
  if (status === null) return 'other';
  return status.isDirectory() ? 'folder' : 'file';
};

/** Names of the entries, sorted. Pipes and devices count as files, which are then refused with words. */
const entriesOf = async (folder: string): Promise<Entries> => {
  const entries = await readdir(folder, { withFileTypes: true });
  const files: string[] = [];
  const folders: string[] = [];
  for (const entry of entries) {
    if (IGNORED.includes(entry.name)) continue;
    const linked = entry.isSymbolicLink() ? await kindOf(path.join(folder, entry.name)) : null;
    if (entry.isDirectory() || linked === 'folder') folders.push(entry.name);
    else if (linked !== 'other') files.push(entry.name);
  }
  return { files: files.sort(), folders: folders.sort() };
};

export type FoundFiles = { readonly files: readonly string[]; readonly faults: readonly PromptFault[] };

/**
 * All skills (`NAME/SKILL.md`; nothing below a skill) or commands (`*.md`) below the folder of the place, the nearest
 * first. Never rejects.
 */
export const findPromptFiles = async (place: PromptPlace): Promise<FoundFiles> => {
  const files: string[] = [];
  const faults: PromptFault[] = [];
  const skip = (file: string, text: string): void =>
    void faults.push({ file, line: null, text, weight: 'skipped' });
  const seen = new Set<string>();
  const waiting = [{ folder: place.folder, depth: 0 }];
  for (const { folder, depth } of waiting) {
    try {
      const real = await realpath(folder);
      if (seen.has(real)) continue;
      seen.add(real);
      if (leadsOut(real, place)) {
        skip(folder, `it is not used: it leads out to ${real}`);
        continue;
      }
      if (seen.size > FOLDERS_MAX) {
        skip(place.folder, `it has more than ${FOLDERS_MAX} folders; the others are not looked at`);
        break;
      }
      const found = await entriesOf(real);
      const isSkill = place.kind === 'skill' && depth > 0 && found.files.includes('SKILL.md');
      if (isSkill) files.push(path.join(folder, 'SKILL.md'));
      if (place.kind === 'command')
        files.push(
          ...found.files.filter((name) => name.endsWith('.md')).map((name) => path.join(folder, name)),
        );
      if (isSkill || depth === DEPTH_MAX) continue;
      for (const name of found.folders) waiting.push({ folder: path.join(folder, name), depth: depth + 1 });
    } catch (error) {
      skip(folder, `it can't be read: ${systemFault(error, folder)}`);
    }
  }
  return { files, faults };
};
