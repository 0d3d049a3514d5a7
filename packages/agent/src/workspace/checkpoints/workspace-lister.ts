/**
 * Lists the names of all files and links of the workspace that git knows or could add: what git
 * ignores is left out, and so are nested repositories, submodules and `.git`. Without a repository
 * the folders are walked. A name is a path in the workspace (file-entries.ts).
 *
 * Git is not asked again while no folder, no index and no file of patterns has changed, and then
 * only about the folders that have.
 */

import { existsSync, type Stats, statSync } from 'node:fs';
import path from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { stateFolder } from '../../platform/environment.js';
import { readTextOrEmptySync, realPath } from '../../platform/files.js';
import { ProgramFailure } from '../../platform/run-program.js';
import { repositoryFolders } from '../../platform/trusted-folders.js';
import {
  attributesFiles,
  excludesFile,
  type GitPlace,
  type KnownRepository,
  type Repository,
  useRepository,
} from '../git.js';
import {
  foldersAround,
  inSlices,
  lookAt,
  makeStamp,
  placeOf,
  readFolderIfThere,
  readHeldFolder,
  SLICE,
  TICK_MS,
} from './file-entries.js';
import { showName, toName } from './manifest.js';

/** The names of all files and links that git knows or could add. */
export type Listing = {
  readonly names: ReadonlySet<string>;
  /** Files that equal their blob of the index, with the blob; null: not asked, or no repository. */
  readonly clean: ReadonlyMap<string, string> | null;
  /** Files without changes that git stores in other bytes. Absent: not asked. */
  readonly converted?: ReadonlySet<string>;
  /** Why some files are not in `names`; null: all are. */
  readonly limit: string | null;
};

const FILES_MAX_WITHOUT_GIT = 20_000;

/** The name of Pawl's state folder, if it lies in the workspace; otherwise of no file there. */
export const stateName = (workspace: string, folder: string): string => {
  const state = realPath(folder);
  return state === null ? '' : toName(path.relative(workspace, state));
};

/** Lists a workspace without git. Leaves out nested repositories, and Pawl's state. */
const walk = ({ workspace, environment }: GitPlace): Listing => {
  const inWorkspace = stateName(workspace, stateFolder(environment));
  const names: string[] = [];
  const folders = [''];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    const prefix = folder === '' ? '' : `${folder}/`;
    const found = readHeldFolder(workspace, folder);
    if (folder !== '' && found.some(({ name }) => name === '.git')) continue;
    for (const one of found) {
      const name = `${prefix}${one.name}`;
      if (name === '.git' || name === inWorkspace) continue;
      if (one.isDirectory()) folders.push(name);
      else if (one.isFile() || one.isSymbolicLink()) names.push(name);
      if (names.length > FILES_MAX_WITHOUT_GIT)
        return { names: new Set(), clean: null, limit: TOO_MANY };
    }
  }
  return { names: new Set(names), clean: null, limit: null };
};

const TOO_MANY =
  `This folder has no git repository and more than ${FILES_MAX_WITHOUT_GIT} files, so what ` +
  'commands change in it can’t be taken back. Changes by the tools for files can.';

const LISTING_BYTES_MAX = 256 * 1024 * 1024;
const LISTING_MS = 60_000;
/** For runs of git. */
const OPTIONS = { bytesMax: LISTING_BYTES_MAX, deadlineMs: LISTING_MS };

/** Splits a list with NUL after each entry. */
const split = (output: Buffer): readonly string[] =>
  output
    .toString('latin1')
    .split('\0')
    .filter((text) => text !== '');

/** What git prints. Throws if git fails; then the folders are walked. */
const readGit = async (repository: Repository, words: readonly string[]): Promise<Buffer> => {
  const { code, output, errors } = await repository.run(words, OPTIONS);
  if (code !== 0) throw new ProgramFailure('refused', `git ${words[0]} failed: ${errors}`);
  return output;
};

/**
 * The name in the workspace of one that git lists from its top; null: it lies outside. `prefix`:
 * the workspace from there.
 */
const nameInside = (prefix: string, name: string): string | null => {
  if (prefix === '') return name;
  return name.startsWith(`${prefix}/`) ? name.slice(prefix.length + 1) : null;
};

/** A listing of git, and the stamps of all folders and files on which it depends. */
type StampedListing = {
  readonly listing: Listing;
  readonly stamps: ReadonlyMap<string, string>;
  /** Places of `stamps` that are in no folder of the workspace. */
  readonly outside: readonly string[];
  /** All folders in which git would see a new file; null: too many. */
  readonly folders: ReadonlySet<string> | null;
};

/** Folders to list, and the listing that holds for all others; null: `within` is everything. */
type ListedParts = { readonly within: readonly string[]; readonly last: StampedListing | null };

const EVERYTHING: ListedParts = { within: [''], last: null };
/** If more folders have changed, everything is listed. */
const STALE_MAX = 20;

type KnownPlace = GitPlace & { readonly known: KnownRepository };

/** Lists the workspace for one session. Asks git again only if something changed. */
export class WorkspaceLister {
  readonly #place: KnownPlace;
  /** Null: git has to be asked. */
  #last: StampedListing | null = null;

  constructor(place: KnownPlace) {
    this.#place = place;
  }

  /** Folders to watch for new names. Null: git is asked each time. */
  get folders(): ReadonlySet<string> | null {
    return this.#last?.folders ?? null;
  }

  /**
   * `wantsClean`: also which files equal their blob. `reported`: the only folders in which
   * something may have changed; null: in any. Git lists only the folders that have changed.
   */
  async list(wantsClean: boolean, reported: Iterable<string> | null = null): Promise<Listing> {
    const last = wantsClean ? null : this.#last;
    const stale = last === null ? null : await this.#staleFolders(last, reported);
    if (last !== null && stale?.length === 0) return last.listing;
    this.#last = null;
    try {
      const listed = await useRepository(this.#place, async (repository) => {
        const parts = stale === null || last === null ? EVERYTHING : { within: stale, last };
        this.#last = await this.#listParts(repository, wantsClean, parts);
        return this.#last;
      });
      if (listed?.folders === null) this.#last = null;
      return listed?.listing ?? walk(this.#place);
    } catch (error) {
      if (error instanceof ProgramFailure) return walk(this.#place);
      throw error;
    }
  }

  /** Folders in which git may list other names than the last time; null: perhaps in all. */
  async #staleFolders(
    { stamps, outside, folders }: StampedListing,
    reported: Iterable<string> | null,
  ): Promise<readonly string[] | null> {
    const { workspace, known } = this.#place;
    const top = repositoryFolders(workspace).top;
    if (folders === null || top === null || known.cached(top) === null) return null;
    const isStale = (place: string): boolean =>
      stamps.has(place) && stampAt(place) !== stamps.get(place);
    if (outside.some(isStale)) return null;
    const stale: string[] = [];
    for await (const slice of inSlices(reported ?? folders, SLICE))
      for (const folder of slice)
        if (listingPlaces(workspace, folder).some(isStale)) stale.push(folder);
    return stale.includes('') || stale.length > STALE_MAX ? null : stale;
  }

  /** Lists these folders, with all below them, and takes over the rest from the last time. */
  async #listParts(
    repository: Repository,
    wantsClean: boolean,
    { within, last }: ListedParts,
  ): Promise<StampedListing> {
    const isOther = (name: string): boolean =>
      within.every((folder) => folder !== '' && name !== folder && !name.startsWith(`${folder}/`));
    const listedAtMs = Date.now();
    const listing = await this.#listByGit(repository, wantsClean, within);
    const around = foldersAround([...listing.names]).filter((folder) => !isOther(folder));
    const folders = new Set([...(last?.folders ?? [])].filter(isOther));
    const areAll = await addFolders(repository, this.#place.workspace, folders, [
      ...new Set([...within, ...around]),
    ]);
    const names = new Set(last === null ? [] : [...last.listing.names].filter(isOther));
    for (const name of listing.names) names.add(name);
    const stamped = areAll ? folders : new Set<string>();
    return {
      listing: last === null ? listing : { ...listing, names },
      ...(await this.#takeStamps(
        repository,
        stamped,
        listedAtMs,
        last?.stamps ?? new Map(),
        isOther,
      )),
      folders: areAll ? folders : null,
    };
  }

  /**
   * The stamps of the index, of the files with patterns, and of all folders in which git would see
   * a new file. Empty if one changed a moment ago: then it is listed again. `isKept`: folders whose
   * earlier stamps hold.
   */
  async #takeStamps(
    repository: Repository,
    folders: ReadonlySet<string>,
    listedAtMs: number,
    earlier: ReadonlyMap<string, string>,
    isKept: (folder: string) => boolean,
  ): Promise<Pick<StampedListing, 'stamps' | 'outside'>> {
    const { workspace, environment } = this.#place;
    const outside = [repository.indexFile, path.join(repository.shared, 'info', 'exclude')];
    const patterns = excludesFile(repository.config, environment);
    if (patterns !== null) outside.push(patterns);
    for (let above = workspace; above !== repository.top && above !== '/'; ) {
      above = path.dirname(above);
      outside.push(path.join(above, '.gitignore'));
    }
    const stamps = new Map<string, string>();
    const take = (place: string, kept?: string): void => {
      stamps.set(place, kept ?? stampAt(place, listedAtMs - TICK_MS) ?? '');
    };
    for (const place of outside) take(place);
    for await (const slice of inSlices(folders, SLICE))
      for (const folder of slice)
        for (const place of listingPlaces(workspace, folder))
          take(place, isKept(folder) ? earlier.get(place) : undefined);
    return { stamps, outside };
  }

  /** The bytes of blobs of the repository; those that are missing are left out. */
  async readBlobs(blobs: readonly string[]): Promise<ReadonlyMap<string, Buffer>> {
    const found = new Map<string, Buffer>();
    if (blobs.length === 0) return found;
    try {
      await useRepository(this.#place, async (repository) => {
        const input = [...new Set(blobs)].map((blob) => `${blob}\n`).join('');
        const { output } = await repository.run(['cat-file', '--batch'], { ...OPTIONS, input });
        for (let at = 0; at < output.length; ) {
          const end = output.indexOf('\n', at);
          const [blob = '', kind, size] = output.toString('latin1', at, end).split(' ');
          at = end + 1;
          if (kind !== 'blob') continue; // it is missing
          found.set(blob, output.subarray(at, at + Number(size)));
          at += Number(size) + 1;
        }
      });
    } catch (error) {
      if (!(error instanceof ProgramFailure)) throw error; // their changes can't be taken back
    }
    return found;
  }

  /**
   * The contents of those files that HEAD has; null: there is no commit. Where git can't say, none
   * has any.
   */
  async readCommitted(names: readonly string[]): Promise<ReadonlyMap<string, Buffer> | null> {
    const asked = new Set(names);
    const blobs = new Map<string, string>();
    let hasCommit = false;
    try {
      await useRepository(this.#place, async (repository) => {
        const head = await repository.tryAsk(['rev-parse', '--verify', '--quiet', 'HEAD']);
        hasCommit = head !== null;
        if (!hasCommit) return;
        const prefix = toName(path.relative(repository.top, this.#place.workspace));
        const words = ['ls-tree', '-r', '-z', '--full-tree', 'HEAD'];
        for (const line of split(await readGit(repository, words))) {
          const [, blob = '', listed = ''] = /^\d+ blob ([0-9a-f]+)\t([\s\S]+)$/.exec(line) ?? [];
          const name = nameInside(prefix, listed);
          if (name !== null && asked.has(name)) blobs.set(name, blob);
        }
      });
    } catch (error) {
      if (!(error instanceof ProgramFailure)) throw error;
    }
    if (!hasCommit) return null;
    const contents = await this.readBlobs([...blobs.values()]);
    const committed = new Map<string, Buffer>();
    for (const [name, blob] of blobs) {
      const bytes = contents.get(blob);
      if (bytes !== undefined) committed.set(name, bytes);
    }
    return committed;
  }

  async #listByGit(
    repository: Repository,
    wantsClean: boolean,
    within: readonly string[],
  ): Promise<Listing> {
    const below = path.relative(repository.top, this.#place.workspace);
    const prefix = toName(below);
    const inside = (name: string): string | null => nameInside(prefix, name);
    const scope = ['--', ...within.map((folder) => path.join(below, showName(folder)))];
    const list = ['ls-files', '-z', '--cached', '--others', '--exclude-standard'];
    const blobs = wantsClean ? ['-s', '-v'] : [];
    const names = new Set<string>();
    const clean = new Map<string, string>();
    const lines = split(await readGit(repository, [...list, ...blobs, ...scope]));
    for await (const slice of inSlices(lines))
      for (const line of slice) {
        // with blobs: "? NAME", or "TAG MODE BLOB STAGE", a tab and the name
        const start = !wantsClean ? 0 : line.startsWith('? ') ? 2 : line.indexOf('\t') + 1;
        const name = inside(line.slice(start));
        if (name === null || name.endsWith('/')) continue;
        names.add(name);
        // other tags: git is told not to look for changes; other modes: no regular file
        if (line.startsWith('H 100') && line.endsWith(' 0\t', start) && wantsClean)
          clean.set(name, line.slice('H 100644 '.length, start - ' 0\t'.length));
      }
    if (!wantsClean) return { names, clean: null, limit: null };
    const converted = await this.#dropChanged(repository, names, clean, scope);
    return { names, clean, converted, limit: null };
  }

  /**
   * Drops files whose bytes may not be those of their blob in the index. Returns those of them
   * that are unchanged all the same.
   */
  async #dropChanged(
    repository: Repository,
    names: ReadonlySet<string>,
    clean: Map<string, string>,
    scope: readonly string[],
  ): Promise<ReadonlySet<string>> {
    const conversion = findConversion(repository, this.#place, names);
    const prefix = toName(path.relative(repository.top, this.#place.workspace));
    const words = ['status', '--porcelain=v1', '-z', '--no-renames', '--untracked-files=no'];
    for (const line of split(await readGit(repository, [...words, ...scope]))) {
      const name = nameInside(prefix, line.slice(3));
      // the second letter: how the file differs from the index
      if (name !== null && line[1] !== ' ') clean.delete(name);
    }
    const unchanged = new Set(clean.keys());
    // git's blobs may then hold other bytes than clean files
    if (conversion === 'any') clean.clear();
    if (conversion === 'lineEnds') await this.#dropConverted(repository, clean);
    return new Set([...unchanged].filter((name) => !clean.has(name)));
  }

  /** Drops files that git stores with other line ends, which shows in their size. */
  async #dropConverted(repository: Repository, clean: Map<string, string>): Promise<void> {
    const input = [...clean.values()].map((blob) => `${blob}\n`).join('');
    const words = ['cat-file', '--batch-check'];
    const { output } = await repository.run(words, { ...OPTIONS, input });
    const sizes = new Map<string, number>();
    for (const line of output.toString('latin1').split('\n')) {
      const [blob = '', , size] = line.split(' ');
      sizes.set(blob, Number(size));
    }
    for (const [name, blob] of clean)
      if (lookAt(this.#place.workspace, name)?.bytes !== sizes.get(blob)) clean.delete(name);
  }
}

/** The paths whose change may change which names of a folder git lists. */
const listingPlaces = (workspace: string, folder: string): readonly string[] => {
  const place = folder === '' ? workspace : `${workspace}/${showName(folder)}`;
  return [place, `${place}/.gitignore`];
};

/**
 * The stamp of a path; null if it changed after that time. The times of a folder change with the
 * names in it.
 */
const stampAt = (place: string, beforeMs = Number.POSITIVE_INFINITY): string | null => {
  let status: Stats | undefined;
  try {
    status = statSync(place, { throwIfNoEntry: false });
  } catch {
    return 'closed';
  }
  if (status === undefined) return 'absent';
  return status.ctimeMs > beforeMs ? null : makeStamp(status);
};

/** Maximum number of folders that hold nothing that git lists. */
const BARE_FOLDERS_MAX = 2_000;

/**
 * Adds these folders, and those below in which git would see a new file and that hold nothing that
 * it lists. The workspace is ''. False: there are too many, or a name is no UTF-8.
 */
const addFolders = async (
  repository: Repository,
  workspace: string,
  folders: Set<string>,
  more: readonly string[],
): Promise<boolean> => {
  for (const folder of more) folders.add(folder);
  const prefix = path.relative(repository.top, workspace);
  let bare = 0;
  for (let added = more; added.length > 0; ) {
    const found: string[] = [];
    for (const [at, folder] of added.entries()) {
      if (at % 100 === 99) await nextTurn();
      if (toName(showName(folder)) !== folder) return false; // no UTF-8
      const entries = readFolderIfThere(placeOf(workspace, folder));
      if (folder !== '' && entries.some(({ name }) => name === '.git')) continue;
      for (const entry of entries) {
        const inner = folder === '' ? entry.name : `${folder}/${entry.name}`;
        if (entry.isDirectory() && inner !== '.git' && !folders.has(inner)) found.push(inner);
      }
    }
    bare += found.length;
    if (bare > BARE_FOLDERS_MAX) return false;
    if (found.length === 0) return true;
    // with ./ before it, git takes no name for a pattern
    const fromTop = (name: string): string => `./${path.join(prefix, showName(name))}`;
    const input = found.map((name) => `${fromTop(name)}\0`).join('');
    const words = ['--no-literal-pathspecs', 'check-ignore', '-z', '--stdin'];
    const { code, output } = await repository.run(words, { ...OPTIONS, input });
    if (code !== 0 && code !== 1) return false; // 1: none of them
    const ignored = new Set(output.toString('utf8').split('\0'));
    added = found.filter((name) => !ignored.has(fromTop(name)));
    for (const name of added) folders.add(name);
  }
  return true;
};

/** How git may store files in another form than the working tree has them. */
const findConversion = (
  { top, shared, config }: Repository,
  { workspace, environment }: GitPlace,
  names: Iterable<string>,
): 'none' | 'lineEnds' | 'any' => {
  const files: string[] = [...attributesFiles(config, environment)];
  // git obeys those that it ignores as well
  for (const folder of ['', ...foldersAround([...names])])
    files.push(path.join(workspace, showName(folder), '.gitattributes'));
  for (let folder = workspace; folder !== top && folder !== '/'; ) {
    folder = path.dirname(folder);
    files.push(path.join(folder, '.gitattributes'));
  }
  files.push(path.join(shared, 'info', 'attributes'));
  // most are not there, and an error costs ten times a look
  const texts = files
    .filter((file) => existsSync(file))
    .map((file) => readTextOrEmptySync(file, ATTRIBUTES_BYTES_MAX));
  if (texts.some((text) => /\b(filter|ident|working-tree-encoding)\b/.test(text))) return 'any';
  const isConverting = config.has('core.autocrlf') || config.has('core.eol');
  return isConverting || texts.some((text) => /\b(text|eol|crlf)\b/.test(text))
    ? 'lineEnds'
    : 'none';
};

const ATTRIBUTES_BYTES_MAX = 1024 * 1024;
