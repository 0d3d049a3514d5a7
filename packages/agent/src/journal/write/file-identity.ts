import { existsSync, fstatSync, readlinkSync, type Stats, statSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { descriptorPath, hasDescriptorPaths } from '../../platform/files/regular-file.js';

/** What somebody else did to the file of an open journal. */
export type ForeignChange =
  | { readonly kind: 'removed' | 'folderRemoved' | 'replaced' | 'readOnly' | 'truncated' | 'extended' }
  /** `to` is null where the system does not tell the new path. */
  | { readonly kind: 'moved'; readonly to: string | null };

/** `touched`: the size is right, but somebody has written to the file or set its time. */
export type IdentityLook = { readonly kind: 'own' } | { readonly kind: 'touched' } | ForeignChange;

const OWNER_CAN_WRITE = 0o200;

/** Path of an open file that is no longer at its old path; null if it has none. */
const newPathOf = (handle: FileHandle): string | null => {
  if (!hasDescriptorPaths()) return null;
  const path = readlinkSync(descriptorPath(handle.fd));
  return path.endsWith(' (deleted)') ? null : path;
};

/**
 * Recognises the file of an open journal.
 *
 * The path must lead to the file that was opened, with the size that this process gave it. A file system that reuses
 * inode numbers can't hide an exchange, since the open file keeps its number.
 */
export class FileIdentity {
  readonly #handle: FileHandle;
  readonly #path: string;
  readonly #opened: Stats;
  #changedMs: number;

  constructor(handle: FileHandle, path: string) {
    this.#handle = handle;
    this.#path = path;
    this.#opened = fstatSync(handle.fd);
    this.#changedMs = this.#opened.mtimeMs;
  }

  /** Looks at the file before a write of this process. */
  look(size: number): IdentityLook {
    const status = this.#status();
    if ('kind' in status) return status;
    const wrong = this.#judge(status, size);
    if (wrong !== null) return wrong;
    return { kind: status.mtimeMs === this.#changedMs ? 'own' : 'touched' };
  }

  /** Looks at the file after a write of this process, and remembers its time. */
  lookAfterWrite(size: number): IdentityLook {
    const status = this.#status();
    if ('kind' in status) return status;
    this.#changedMs = status.mtimeMs;
    return this.#judge(status, size) ?? { kind: 'own' };
  }

  /** Accepts the time that the file has now. */
  accept(): void {
    this.#changedMs = fstatSync(this.#handle.fd).mtimeMs;
  }

  #status(): Stats | ForeignChange {
    const status = statSync(this.#path, { throwIfNoEntry: false });
    if (status?.ino === this.#opened.ino && status.dev === this.#opened.dev) return status;
    if (fstatSync(this.#handle.fd).nlink > 0) return { kind: 'moved', to: newPathOf(this.#handle) };
    if (status !== undefined) return { kind: 'replaced' };
    return { kind: existsSync(dirname(this.#path)) ? 'removed' : 'folderRemoved' };
  }

  #judge({ size, mode }: Stats, expected: number): ForeignChange | null {
    if (size < expected) return { kind: 'truncated' };
    if (size > expected) return { kind: 'extended' };
    return (mode & OWNER_CAN_WRITE) === 0 ? { kind: 'readOnly' } : null;
  }
}
