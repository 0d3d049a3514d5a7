import path from 'node:path';
import type { ProcessEnvironment } from '../../platform/base/process-environment-type.js';
import { type Fingerprint, fingerprintOf, isSettled, joinFingerprints } from '../file-fingerprint.js';
import { includedFiles } from './find-blocking-files.js';
import { configFilesOf, type GitConfig } from './safe-git-config.js';

/**
 * Caches the location and configuration of a repository until a relevant file changes. Asking git would take two
 * processes before and after every call.
 *
 * 1. An answer is cached only if all relevant files had been unchanged for a while, so that no change during git's
 *    answer is missed.
 * 2. Included files count whether or not their condition holds, and so does HEAD, on which conditions may depend. If an
 *    include is not understood, nothing is cached.
 */

/** The folders of a repository, as absolute paths. */
export type RepositoryLocation = {
  readonly top: string;
  readonly gitFolder: string;
  /** The folder that several working trees share; often the same as `gitFolder`. */
  readonly shared: string;
  readonly indexFile: string;
};

export type LocatedRepository = { readonly location: RepositoryLocation; readonly config: GitConfig };

export class KnownRepository {
  readonly #environment: ProcessEnvironment;
  readonly #now: () => number;
  #last: {
    readonly located: LocatedRepository;
    readonly places: readonly string[];
    readonly fingerprint: string;
  } | null = null;

  /** `now`: the file system's time, in ms since 1970. */
  constructor(environment: ProcessEnvironment, now: () => number = Date.now) {
    this.#environment = environment;
    this.#now = now;
  }

  /** The cached or new answer of `ask`. `marked`: the folder around the workspace that contains `.git`. */
  async locate(
    marked: string,
    ask: () => Promise<LocatedRepository | null>,
  ): Promise<LocatedRepository | null> {
    const kept = this.kept(marked);
    if (kept !== null) return kept;
    const askedAt = this.#now();
    const located = await ask();
    if (located !== null) this.#keep(marked, located, askedAt);
    return located;
  }

  /** The cached answer if it is still valid; otherwise null. */
  kept(marked: string): LocatedRepository | null {
    const last = this.#last;
    if (last === null) return null;
    if (
      last.places[0] === path.join(marked, '.git') &&
      fingerprintOfAll(last.places).text === last.fingerprint
    )
      return last.located;
    this.#last = null;
    return null;
  }

  #keep(marked: string, located: LocatedRepository, askedAt: number): void {
    const places = this.#placesOf(marked, located);
    if (places === null) return; // rule 2
    const fingerprint = fingerprintOfAll(places);
    if (isSettled(fingerprint, askedAt)) this.#last = { located, places, fingerprint: fingerprint.text }; // rule 1
  }

  /** All paths on which the answer depends, `.git` first; null if they can't be determined. */
  #placesOf(marked: string, { location, config }: LocatedRepository): readonly string[] | null {
    const { top, gitFolder, shared } = location;
    const configs = [
      ...[path.join(shared, 'config'), path.join(gitFolder, 'config.worktree')],
      ...configFilesOf(this.#environment),
    ];
    const included = includedFiles(configs, this.#environment.HOME ?? '');
    const includes = [...config.keys()].some((name) => name.startsWith('include'));
    if (included === null || (includes && included.length === 0)) return null;
    return [
      ...[path.join(marked, '.git'), top, gitFolder, shared],
      ...['commondir', 'gitdir'].map((name) => path.join(gitFolder, name)),
      ...configs,
      ...included,
      ...(included.length === 0 ? [] : [path.join(gitFolder, 'HEAD')]),
    ];
  }
}

const fingerprintOfAll = (places: readonly string[]): Fingerprint =>
  joinFingerprints(places.map(fingerprintOf));
