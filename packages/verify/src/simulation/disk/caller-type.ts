import type { Disk } from './disk.js';

/** The process that calls, as the disk sees it. */
export type Caller = {
  readonly disk: Disk;
  readonly isDead: boolean;
  /** Called before each operation; returns the code of the error with which it fails. May end the life. */
  enter(operation: string, isBlocking: boolean): string | null;
  /** Time that an operation takes if the caller blocks. */
  block(): void;
  /** Runs `run` after the time that an operation takes in another thread; never if the process has ended. */
  later(run: () => void): void;
  /** Whether a write takes a part of its bytes only, and says so. */
  writesShort(): boolean;
  /** Wall clock. */
  now(): number;
};
