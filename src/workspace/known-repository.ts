import { statSync } from 'node:fs';
import path from 'node:path';
import { configFilesOf, type Environment, type GitConfig } from './git-config.js';

/**
 * Where a repository is and what its configuration says, for as long as nothing that says so has changed: to ask git
 * takes two processes, before and after every call.
 *
 * 1. What was asked is kept only if all files that say it had lain still for a while before; so no change goes unseen
 *    that comes while git answers.
 * 2. A configuration that includes others is asked for each time: which ones it takes in depends on more than files.
 */

/** Where git keeps what belongs to a working tree. Absolute paths. */
export type Found = {
  readonly top: string;
  readonly gitFolder: string;
  /** What several working trees share; often the same folder. */
  readonly shared: string;
  readonly indexFile: string;
};

export type Opened = { readonly found: Found; readonly config: GitConfig };

/** Longer than the steps in which any file system counts time. */
const STILL_MS = 2_000;

/** How a place stands; two that stand alike have not changed. `changedAt` in milliseconds since 1970. */
type Standing = { readonly text: string; readonly changedAt: number };

const ABSENT: Standing = { text: 'absent', changedAt: 0 }; // that it comes into being is a change

/** Of a folder, which one it is and whose: what is in it changes all the time. */
const standingOf = (place: string): Standing => {
  try {
    const entry = statSync(place, { bigint: true, throwIfNoEntry: false });
    if (entry === undefined) return ABSENT;
    const { dev, ino, mode, uid, size, mtimeNs, ctimeNs } = entry;
    const which = [dev, ino, mode, uid];
    return entry.isDirectory()
      ? { text: which.join(' '), changedAt: 0 }
      : { text: [...which, size, mtimeNs, ctimeNs].join(' '), changedAt: Number(ctimeNs / 1_000_000n) };
  } catch {
    return { text: 'unknown', changedAt: Number.POSITIVE_INFINITY }; // not known to lie still: asked each time
  }
};

export class KnownRepository {
  readonly #environment: Environment;
  readonly #now: () => number;
  #last: { readonly opened: Opened; readonly standing: string } | null = null;

  /** `now`: milliseconds since 1970, as the file system has it. */
  constructor(environment: Environment, now: () => number = Date.now) {
    this.#environment = environment;
    this.#now = now;
  }

  /** What `ask` says, or said. `marked`: the folder with a `.git` in it that the workspace lies in. */
  async open(marked: string, ask: () => Promise<Opened | null>): Promise<Opened | null> {
    const last = this.#last;
    if (last !== null && this.#standingOf(marked, last.opened.found).text === last.standing)
      return last.opened;
    this.#last = null;
    const askedAt = this.#now();
    const opened = await ask();
    if (opened !== null) this.#keep(marked, opened, askedAt);
    return opened;
  }

  #keep(marked: string, opened: Opened, askedAt: number): void {
    if ([...opened.config.keys()].some((name) => name.startsWith('include'))) return; // rule 2
    const { text, changedAt } = this.#standingOf(marked, opened.found);
    if (changedAt < askedAt - STILL_MS) this.#last = { opened, standing: text }; // rule 1
  }

  #standingOf(marked: string, { top, gitFolder, shared }: Found): Standing {
    const places = [
      ...[path.join(marked, '.git'), top, gitFolder, shared],
      ...[path.join(shared, 'config'), path.join(gitFolder, 'config.worktree')],
      ...configFilesOf(this.#environment),
    ];
    const standings = places.map(standingOf);
    return {
      text: [...places, ...standings.map(({ text }) => text)].join('\n'),
      changedAt: Math.max(...standings.map(({ changedAt }) => changedAt)),
    };
  }
}
