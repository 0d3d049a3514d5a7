/**
 * What is known of the workspace, in a file for the next process of the session. Its first line has
 * the version; each further one is a name and what is known of it.
 */

import { appendFile, readFile } from 'node:fs/promises';
import { attempt } from '../../platform/attempt.js';
import type { Known, KnownFiles } from './known-files.js';
import { replaceFile } from './store.js';

const HEAD = '{"version":3}';
/** A scan of more files is not saved. */
const FILES_MAX = 20_000;

/** A name; what is known of it, null: absent; missing: a tool has named it. */
type Line = readonly [name: string, known?: Known | null];

export class SavedScan {
  readonly #file: string;
  readonly #known: KnownFiles;
  readonly #named: Set<string>;
  /** What the file holds; null: it has to be written as a whole. */
  #saved: { readonly lines: number; readonly named: number } | null = null;

  /** `named`: files that tools have named. */
  constructor(file: string, known: KnownFiles, named: Set<string>) {
    this.#file = file;
    this.#known = known;
    this.#named = named;
  }

  /** Adds what has changed since the last time, or writes the file as a whole. */
  async save(): Promise<void> {
    const [known, named] = [this.#known, this.#named];
    if (known.size > FILES_MAX) return;
    const { lines: last, named: lastNamed } = this.#saved ?? { lines: 0, named: 0 };
    const areMany = last + known.unsaved.size > 2 * (known.size + named.size) + 1_000;
    const isWhole = this.#saved === null || areMany;
    const changed = isWhole ? known.names() : [...known.unsaved];
    const lines: Line[] = changed.map((name) => [name, known.get(name) ?? null]);
    for (const name of [...named].slice(isWhole ? 0 : lastNamed)) lines.push([name]);
    const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
    if (isWhole) await replaceFile(this.#file, `${HEAD}\n${text}`);
    else if ((await attempt(() => appendFile(this.#file, text))).kind === 'fault') {
      this.#saved = null; // a full disk
      return replaceFile(this.#file, null);
    }
    known.unsaved.clear();
    this.#saved = { lines: lines.length + (isWhole ? 0 : last), named: named.size };
  }

  /** Reads the scan of an earlier process. False: there is none. */
  async load(): Promise<boolean> {
    try {
      const [head, ...lines] = (await readFile(this.#file, 'utf8')).split('\n');
      if (head !== HEAD || lines.pop() !== '') return false; // cut off, so it is out of date
      for (const text of lines) {
        const [name, known]: Line = JSON.parse(text);
        if (known === undefined) this.#named.add(name);
        else this.#known.set(name, known);
      }
      this.#known.unsaved.clear();
      this.#saved = { lines: lines.length, named: this.#named.size };
      return true;
    } catch {
      return false; // the first command scans the workspace
    }
  }
}
