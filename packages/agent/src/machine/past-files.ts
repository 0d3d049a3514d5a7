/** What the events of a session tell of files, for a session that is resumed. */

import type { SeenFile } from './call.js';
import type { Event } from './event.js';

/** sha256 of a file before and after a call, as `ToolStarted` recorded it. */
type RecordedHashes = { readonly before: string; readonly after?: string };

export type PastFiles = {
  /** The time until which the session ran, by the last event; null if none was seen. */
  readonly lastAt: number | null;
  /** By call; only of the last batch, since only its calls can still be running. */
  readonly hashes: ReadonlyMap<string, RecordedHashes>;
  readonly batchId: string | null;
  /**
   * sha256 of the files that calls and hooks read or wrote, by real path: what was seen last
   * counts.
   */
  readonly seen: ReadonlyMap<string, string>;
};

type PastFilesCollector = { see(event: Event): void; past(): PastFiles };

const NO_FILES: PastFiles = { lastAt: null, hashes: new Map(), batchId: null, seen: new Map() };

/**
 * The time until which the session ran, if this is its last event. Changed settings of a resumed
 * session do not count: if it was killed before Resumed, nobody has run since the event before.
 */
export const ranUntil = (event: Event): number =>
  event.type === 'SettingsChanged' ? (event.stoppedAt ?? event.at) : event.at;

/** Collects them from all events in order, or from those that follow `earlier`. */
export const collectPastFiles = (earlier: PastFiles = NO_FILES): PastFilesCollector => {
  const hashes = new Map(earlier.hashes);
  const seen = new Map(earlier.seen);
  let { batchId, lastAt } = earlier;
  const remember = (files: readonly SeenFile[] = []): void => {
    for (const { path, sha256 } of files) seen.set(path, sha256);
  };
  return {
    see(event) {
      lastAt = ranUntil(event);
      if (event.type === 'ToolStarted') {
        if (event.batchId !== batchId) hashes.clear();
        batchId = event.batchId;
        const { callId, before, after } = event;
        if (before !== undefined)
          hashes.set(callId, after === undefined ? { before } : { before, after });
      } else if (event.type === 'ToolCompleted') remember(event.outcome.seen);
      else if (event.type === 'HookCompleted') remember(event.seen);
      else if (event.type === 'ShutdownRequested')
        for (const { outcome } of event.outcomes ?? []) remember(outcome.seen);
    },
    past: () => ({ lastAt, hashes, batchId, seen }),
  };
};
