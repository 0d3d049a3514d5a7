/**
 * What is known of each name (a path in the workspace): its state at the last look, and where its
 * content is.
 */

import type { FileEntry, KnownContent } from './scan.js';

/** The state of a name at the last look, and where its content is. */
export type Known = {
  readonly entry: FileEntry;
  readonly content: KnownContent;
  /** It may hold text of the user that no commit has. */
  readonly isUsers?: true;
};

export class KnownFiles {
  readonly #files = new Map<string, Known>();
  /** Names that have changed since they were written for the next process. */
  readonly unsaved = new Set<string>();

  get(name: string): Known | undefined {
    return this.#files.get(name);
  }

  has(name: string): boolean {
    return this.#files.has(name);
  }

  set(name: string, known: Known): void {
    this.#files.set(name, known);
    this.unsaved.add(name);
  }

  delete(name: string): void {
    this.#files.delete(name);
    this.unsaved.add(name);
  }

  /** Whether a name, as it is now, may differ from what is known. `entry` null: it is not there. */
  differs(name: string, entry: FileEntry | null): boolean {
    const known = this.#files.get(name)?.entry;
    if (entry === null) return known !== undefined;
    return entry.stamp === '' || entry.stamp !== known?.stamp;
  }

  get size(): number {
    return this.#files.size;
  }

  names(): readonly string[] {
    return [...this.#files.keys()];
  }

  /** The contents that are in the store. */
  stored(): readonly string[] {
    return [...this.#files.values()].flatMap(({ content }) =>
      content.kind === 'stored' ? [content.sha256] : [],
    );
  }
}
