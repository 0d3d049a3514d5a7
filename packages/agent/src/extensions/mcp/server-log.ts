/** The log of one MCP server, so that a user can read why a server did not start. */

import { appendFileSync, mkdirSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { RedactedStream } from '../../secrets/redactor.js';

/**
 * What a server writes to stderr: `mcp/logs/NAME.log` in the state folder.
 *
 * 1. At most two files of BYTES_MAX: a full file replaces NAME.old.log. A connection writes at most
 *    CONNECTION_MAX.
 * 2. Secrets of the server's settings are replaced.
 * 3. A log is a convenience. Faults while writing are ignored.
 */
export type ServerLog = {
  readonly file: string;
  add(text: string): void;
  /** The last line that was added; empty without one. */
  last(): string;
};

const BYTES_MAX = 512 * 1024;
const CONNECTION_MAX = 16 * 1024 * 1024;
const LAST_MAX = 300;

export const openServerLog = (
  stateFolder: string,
  server: string,
  redacted: RedactedStream,
): ServerLog => {
  const folder = join(stateFolder, 'mcp', 'logs');
  const file = join(folder, `${server}.log`);
  let remaining = CONNECTION_MAX;
  let last = '';
  return {
    file,
    last: () => last.trim().split('\n').at(-1)?.trim().slice(0, LAST_MAX) ?? '',
    add(piece) {
      const text = redacted.add(piece); // without secrets; the beginning of one is held back
      last = `${last}${text}`.slice(-2 * LAST_MAX);
      remaining -= text.length;
      if (remaining < 0) return;
      try {
        mkdirSync(folder, { recursive: true, mode: 0o700 });
        const status = statSync(file, { throwIfNoEntry: false });
        if (status !== undefined && !status.isFile()) return; // opening a pipe would block
        if ((status?.size ?? 0) > BYTES_MAX) renameSync(file, join(folder, `${server}.old.log`));
        appendFileSync(file, text, { mode: 0o600 });
      } catch {
        // a log is a convenience: nothing of the session depends on it
      }
    },
  };
};
