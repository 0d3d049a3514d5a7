/**
 * The files that calls name, and those that a command could lose for good. A tool for files names
 * what it changes. A command may name files that git ignores, which no scan lists: they are copied
 * before it runs, as far as they fit.
 */

import path from 'node:path';
import type { JudgedCall } from '../../policy/judged-call.js';
import { isGenerated } from '../../policy/paths.js';
import { namedFiles } from '../../policy/shell/unrecoverable-files.js';
import { FILE_BYTES_MAX, lookAt, lookAtAll, readHeldFolder, withFolders } from './file-entries.js';
import { fitsCopies, type KnownFiles } from './known-files.js';
import { toName } from './manifest.js';

import { type Listing, stateName, type WorkspaceLister } from './workspace-lister.js';

type CallFilesSources = {
  readonly workspace: string;
  readonly stateFolder: string;
  readonly known: KnownFiles;
  /** Files that calls have named so far. */
  readonly named: ReadonlySet<string>;
  readonly lister: WorkspaceLister;
};

export class CallFiles {
  readonly #sources: CallFilesSources;

  constructor(sources: CallFilesSources) {
    this.#sources = sources;
  }

  #toName(file: string): string {
    return toName(path.relative(this.#sources.workspace, file));
  }

  /** The files that a command names and no scan knows, since git ignores them. */
  ignoredNames({ facts: { shell, argv } }: JudgedCall): readonly string[] {
    if (shell === undefined) return [];
    const names = namedFiles(shell, argv.join(' '), this.#sources.workspace).flatMap(
      (file) => this.#findIgnored(this.#toName(file)).names,
    );
    return withFolders([...new Set(names)]).filter((name) => !this.#isOfScan(name));
  }

  #findIgnored(name: string): ReturnType<typeof unlistedAt> {
    const { workspace, stateFolder } = this.#sources;
    const state = stateName(workspace, stateFolder);
    const isListed = (one: string): boolean => this.#isOfScan(one) || one.startsWith(`${state}/`);
    return unlistedAt(workspace, name, { isListed, bytesMax: FILE_BYTES_MAX });
  }

  /** Whether a scan knows it: git does not ignore it. */
  #isOfScan(name: string): boolean {
    return this.#sources.known.has(name) && !this.#sources.named.has(name);
  }

  /** Which of these files could not be taken back. `scanned`: the last listing; null: none yet. */
  async findUnkept(paths: readonly string[], scanned: Listing | null): Promise<readonly string[]> {
    const listing = scanned ?? (await this.#sources.lister.list(true));
    if (listing.limit !== null) return paths;
    const hasRoom = scanned !== null || (await this.#hasRoomFor(listing));
    return paths.filter((file) => {
      const name = this.#toName(file);
      const names = [...listing.names].filter(
        (one) => one === name || name === '' || one.startsWith(`${name}/`),
      );
      // a file that git ignores is copied before a command that names it
      if (names.length === 0) return !this.#findIgnored(name).areAll;
      return !names.every((one) => this.#isKept(one, listing, hasRoom));
    });
  }

  /** Whether the content of a file is in the store or in git, or would be copied. */
  #isKept(name: string, { clean }: Listing, hasRoom: boolean): boolean {
    const known = this.#sources.known.get(name);
    if (known !== undefined) return known.content.kind !== 'notKept';
    if (clean?.has(name)) return true;
    const entry = lookAt(this.#sources.workspace, name);
    return hasRoom && (entry === null || entry.bytes <= FILE_BYTES_MAX);
  }

  /** Whether the first scan could copy all files that git does not hold. */
  async #hasRoomFor({ names, clean }: Listing): Promise<boolean> {
    const copied = [...names].filter((name) => !clean?.has(name));
    if (!fitsCopies(copied.length, 0)) return false;
    const entries = await lookAtAll(this.#sources.workspace, copied);
    let bytes = 0;
    for (const entry of entries.values())
      if (entry.kind === 'file' && entry.bytes <= FILE_BYTES_MAX) bytes += entry.bytes;
    return fitsCopies(0, bytes);
  }
}

/** Limits for the files that one path names: so many, with so many bytes together. */
const NAMED_MAX = 1_000;
const NAMED_ENTRIES_MAX = 20_000;
const NAMED_BYTES_MAX = 100 * 1024 * 1024;

/**
 * The files at a name and below it that no scan lists, since git ignores them, without what builds
 * make again. `areAll`: none is larger than `bytesMax`, they are not too many, and no other
 * repository is among them.
 */
const unlistedAt = (
  workspace: string,
  start: string,
  { isListed, bytesMax }: { isListed: (name: string) => boolean; bytesMax: number },
): { readonly names: readonly string[]; readonly areAll: boolean } => {
  const names: string[] = [];
  const open = [start];
  let [bytes, areAll] = [0, true];
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    const entry = name === '' ? null : lookAt(workspace, name);
    if (isGenerated(name) || (name !== '' && entry === null)) continue;
    if (name !== '' && entry?.kind !== 'folder') {
      if (isListed(name)) continue;
      bytes += entry?.bytes ?? 0;
      const fits = bytes <= NAMED_BYTES_MAX && names.length < NAMED_MAX;
      if (fits && (entry?.bytes ?? 0) <= bytesMax) names.push(name);
      else areAll = false;
      continue;
    }
    const inside = readHeldFolder(workspace, name).map(({ name }) => name);
    const fits = open.length + inside.length <= NAMED_ENTRIES_MAX;
    if (!fits || (name !== '' && inside.includes('.git'))) areAll = false;
    else
      for (const one of inside) if (one !== '.git') open.push(name === '' ? one : `${name}/${one}`);
  }
  return { names, areAll };
};
