import path from 'node:path';
import { isWithin } from '../../platform/files/is-within.js';
import { type Fingerprint, isSettled, joinFingerprints, listingFingerprintOf } from '../file-fingerprint.js';
import { type GitPlace, locateRepository, type Repository, workWith } from '../git/git.js';
import { openFolder, strongest } from './formatter-detection.js';
import { formatters } from './formatter-table.js';

/**
 * Decides whether a formatter may apply to files that a command changes below the workspace. Only then is a snapshot of
 * the tree worth its cost.
 *
 * 1. Signs are searched in the workspace, in tracked folders, and in folders of files that calls have named. A
 *    formatter with signs only elsewhere is used for files that calls name, but not for files that commands change.
 * 2. In doubt the answer is yes, at the cost of a needless snapshot. A positive answer is final.
 * 3. Nothing is read again while the index and the files have not changed.
 */

const SIGNS = formatters.flatMap(({ signs }) => signs);
const SIGN_FILES = [...new Set(SIGNS.flatMap(({ files }) => files))];
const TRACKED = [
  ...['--no-literal-pathspecs', 'ls-files', '-z', '--'],
  ...SIGN_FILES.map((name) => `:(top,glob)**/${name}`),
];
/** Maximum number of folders to read: rule 2. */
const FOLDERS_MAX = 200;

type Tracked = { readonly fingerprint: string; readonly folders: readonly string[] };

export class FormatterReach {
  readonly #now: () => number;
  readonly #named = new Set<string>();
  #tracked: Tracked | null = null;
  /** Folders without a sign, with their fingerprints. */
  readonly #without = new Map<string, { readonly places: readonly string[]; readonly fingerprint: string }>();
  #found = false;

  /** `now`: the file system's time, in ms since 1970. */
  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  /** Records the absolute paths of files that calls name. */
  name(files: readonly string[]): void {
    for (const file of files) if (this.#named.size < FOLDERS_MAX) this.#named.add(path.dirname(file));
  }

  /** Whether a formatter may apply. Rejects if git fails. */
  async isReached(place: GitPlace): Promise<boolean> {
    if (this.#found) return true;
    const { workspace } = place;
    const tracked = await this.#trackedFolders(place);
    const folders = [...new Set([workspace, ...tracked, ...this.#named])].filter((folder) =>
      isWithin(folder, workspace),
    );
    this.#found = folders.length > FOLDERS_MAX;
    for (const folder of folders) this.#found ||= await this.#hasSign(folder);
    return this.#found;
  }

  async #hasSign(folder: string): Promise<boolean> {
    const known = this.#without.get(folder);
    if (known !== undefined && fingerprintOfAll(known.places).text === known.fingerprint) return false;
    const at = this.#now();
    const opened = await openFolder(folder);
    const own = SIGN_FILES.filter((name) => opened.names.has(name));
    const places = [folder, ...own.map((name) => path.join(folder, name))];
    const fingerprint = fingerprintOfAll(places);
    if ((await strongest(SIGNS, opened)) !== null) return true;
    if (isSettled(fingerprint, at)) this.#without.set(folder, { places, fingerprint: fingerprint.text });
    else this.#without.delete(folder);
    return false;
  }

  /** Folders with tracked files that may be signs; empty without a repository. */
  async #trackedFolders(place: GitPlace): Promise<readonly string[]> {
    const opened = await locateRepository(place);
    if (opened === null) return [];
    const at = this.#now();
    const fingerprint = listingFingerprintOf(opened.location.indexFile);
    if (this.#tracked?.fingerprint === fingerprint.text) return this.#tracked.folders;
    const folders = await workWith(place, opened, trackedFolders);
    this.#tracked = isSettled(fingerprint, at) ? { fingerprint: fingerprint.text, folders } : null;
    return folders;
  }
}

const fingerprintOfAll = (places: readonly string[]): Fingerprint =>
  joinFingerprints(places.map(listingFingerprintOf));

const trackedFolders = async (repository: Repository): Promise<readonly string[]> => {
  const names = (await repository.ask(TRACKED)).split('\0').filter((name) => name !== '');
  return [...new Set(names.map((name) => path.dirname(path.join(repository.top, name))))];
};
