import { readdirSync } from 'node:fs';
import path from 'node:path';
import { readSmall } from '../../command/sandbox/protected/git-folders.js';
import { fingerprintOf, isSettled } from '../file-fingerprint.js';
import { readPackedRefs } from './packed-refs.js';
import type { LocatedRepository } from './repository-cache.js';

/**
 * Reads HEAD, the branches and the stash of a repository from git's files, without starting a process.
 *
 * 1. Refs in another storage or an unusual form are not read. The result is then null, and git is asked.
 * 2. Loose refs are read before packed ones, since git packs a ref before it removes the loose file.
 * 3. Unchanged files are not read again.
 */

export type Head = {
  /** Null: nothing is committed yet. */
  readonly hash: string | null;
  /** Null: HEAD is detached. */
  readonly branch: string | null;
};

export type Refs = {
  readonly top: string;
  readonly gitFolder: string;
  readonly head: Head;
  /** Hashes of local and remote branches and the stash. */
  readonly tips: readonly string[];
  readonly remoteTips: readonly string[];
  readonly stash: string | null;
};

const TIPS_MAX = 20_000;
/** With more loose refs git is asked, until it packs them. */
const LOOSE_MAX = 1_000;

const HASH = /^([0-9a-f]{64}|[0-9a-f]{40})\s*$/;
const ON_BRANCH = /^ref:\s*refs\/heads\/(.*[^\s])\s*$/;
/** Branch name in HEAD with reftable storage. */
const NO_BRANCH = '.invalid';
const LOOKED_AT = ['heads', 'remotes'];

const hashIn = (text: string): string | null => HASH.exec(text)?.[1] ?? null;

/** A loose ref: full name, such as `refs/heads/main`, and file. */
type Loose = { readonly name: string; readonly file: string };

/** The files below a folder of refs; null if there are too many or entries of another kind. */
const looseIn = (folder: string, name: string, found: Loose[]): Loose[] | null => {
  let entries: ReturnType<typeof entriesOf>;
  try {
    entries = entriesOf(folder);
  } catch (error) {
    // git has removed an empty folder of refs
    return error instanceof Error && 'code' in error && error.code === 'ENOENT' ? found : null;
  }
  for (const entry of entries) {
    const own = { name: `${name}/${entry.name}`, file: path.join(folder, entry.name) };
    if (entry.isDirectory()) {
      if (looseIn(own.file, own.name, found) === null) return null;
    } else if (!entry.isFile()) return null;
    else if (!entry.name.endsWith('.lock')) found.push(own);
    if (found.length > LOOSE_MAX) return null;
  }
  return found;
};

const entriesOf = (folder: string) => readdirSync(folder, { withFileTypes: true });

/** Reads files, and reads them again only after a change. */
class CachedFiles<T> {
  readonly #read: (file: string) => T;
  readonly #now: () => number;
  #known: ReadonlyMap<string, { readonly fingerprint: string; readonly value: T }> = new Map();

  constructor(read: (file: string) => T, now: () => number) {
    this.#read = read;
    this.#now = now;
  }

  /** The values of these files. Forgets all other files. */
  of(files: readonly string[]): readonly T[] {
    const known = new Map<string, { readonly fingerprint: string; readonly value: T }>();
    const values = files.map((file) => {
      const fingerprint = fingerprintOf(file);
      const last = this.#known.get(file);
      const at = this.#now();
      const value = last?.fingerprint === fingerprint.text ? last.value : this.#read(file);
      const isKnown = last?.fingerprint === fingerprint.text || isSettled(fingerprint, at);
      if (isKnown) known.set(file, { fingerprint: fingerprint.text, value });
      return value;
    });
    this.#known = known;
    return values;
  }
}

/** Reads the refs of repositories. `now`: the file system's time, in ms since 1970. */
export class RefFiles {
  readonly #loose: CachedFiles<string>;
  readonly #packed: CachedFiles<ReadonlyMap<string, string> | null>;

  constructor(now: () => number = Date.now) {
    this.#loose = new CachedFiles(readSmall, now);
    this.#packed = new CachedFiles(readPackedRefs, now);
  }

  /** Reads the refs. Null: git has to be asked. */
  read({ location, config }: LocatedRepository): Refs | null {
    const { top, gitFolder, shared } = location;
    if ((config.get('extensions.refstorage') ?? 'files') !== 'files') return null;
    const loose: Loose[] = [];
    for (const kind of LOOKED_AT) {
      if (looseIn(path.join(shared, 'refs', kind), `refs/${kind}`, loose) === null) return null;
    }
    const stash = { name: 'refs/stash', file: path.join(shared, 'refs/stash') };
    const head = path.join(gitFolder, 'HEAD');
    const [headText = '', ...texts] = this.#loose.of([head, stash.file, ...loose.map(({ file }) => file)]);
    const [packed] = this.#packed.of([path.join(shared, 'packed-refs')]);
    if (packed === null || packed === undefined) return null;
    const refs = new Map(packed);
    const broken = new Set<string>();
    for (const [index, { name }] of [stash, ...loose].entries()) {
      const text = texts[index] ?? '';
      const hash = hashIn(text);
      // a symbolic ref leads to another ref in this list
      if (hash !== null) refs.set(name, hash);
      else if (name !== stash.name || text !== '') broken.add(name);
    }
    const own = headOf(headText, refs, broken);
    return own === null ? null : { top, gitFolder, head: own, ...tipsOf(refs) };
  }
}

const headOf = (
  text: string,
  refs: ReadonlyMap<string, string>,
  broken: ReadonlySet<string>,
): Head | null => {
  const detached = hashIn(text);
  if (detached !== null) return { hash: detached, branch: null };
  const branch = ON_BRANCH.exec(text)?.[1];
  if (branch === undefined || branch === NO_BRANCH || broken.has(`refs/heads/${branch}`)) return null;
  return { hash: refs.get(`refs/heads/${branch}`) ?? null, branch };
};

/** `refs`: hashes by full names. */
export const tipsOf = (refs: ReadonlyMap<string, string>): Pick<Refs, 'tips' | 'remoteTips' | 'stash'> => {
  const hashes = [...refs.values()];
  const remote = [...refs].flatMap(([name, hash]) => (name.startsWith('refs/remotes/') ? [hash] : []));
  return {
    tips: [...new Set(hashes.slice(0, TIPS_MAX))],
    remoteTips: [...new Set(remote.slice(0, TIPS_MAX))],
    stash: refs.get('refs/stash') ?? null,
  };
};
