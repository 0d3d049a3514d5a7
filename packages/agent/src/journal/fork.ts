/**
 * What a forked session begins with: a new header, and the entries of the other session up
 * to a line.
 */

import { openRegular } from '../platform/files.js';
import type { Header, MachineTypes } from '../ports/journal.js';
import { encodeHeader, encodeRecord } from './codec.js';
import { cannotRead, outOfRange } from './journal-error.js';
import { refuseNewerAgent } from './journaled-agent-machine.js';
import { JournalScan } from './reader.js';

/**
 * The header of a session that is forked from another one at `seq`. A fork of a task (a session
 * that a call of another one started) is a session of the user.
 */
export const forkHeader = <M extends MachineTypes>(
  { startedBy: _, ...header }: Header<M>,
  seq: number,
  sessionId: string,
  createdAt: number,
): Header<M> => ({
  ...header,
  sessionId,
  createdAt,
  parent: { sessionId: header.sessionId, seq },
});

/**
 * The bytes of a fork: a new header and the entries up to `seq` with new checksums. State checks
 * stay valid, since a state does not contain its session's id. A damaged journal can be forked at
 * any seq before the damage. Throws `newerVersion` for entries of a later machine.
 */
export async function* copyEntries(
  path: string,
  seq: number,
  sessionId: string,
  createdAt: number,
): AsyncGenerator<Buffer, undefined> {
  const { file, status } = await openRegular(path).catch((error: unknown) => {
    throw cannotRead(path, error);
  });
  try {
    const scan = await JournalScan.begin(file, path, status.size);
    yield* copyFrom(scan, path, seq, forkHeader(scan.header, seq, sessionId, createdAt));
  } finally {
    await file.close();
  }
}

async function* copyFrom(
  scan: JournalScan<MachineTypes>,
  path: string,
  seq: number,
  header: Header<MachineTypes>,
): AsyncGenerator<Buffer, undefined> {
  refuseNewerAgent(path, header, []);
  const head = encodeHeader(header);
  yield head.bytes;
  let { crc } = head;
  let copied = 0;
  for await (const records of scan.records()) {
    const lines: Buffer[] = [];
    for (const recorded of records) {
      if (recorded.entry.seq > seq) break;
      refuseNewerAgent(path, header, [recorded]);
      const line = encodeRecord(recorded, crc);
      lines.push(line.bytes);
      crc = line.crc;
      copied = recorded.entry.seq;
    }
    yield Buffer.concat(lines);
    if (copied === seq) return;
  }
  if (scan.ending.kind === 'damaged') throw scan.ending.error;
  throw outOfRange(path, seq, scan.seq);
}
