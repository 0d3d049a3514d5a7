import { open } from 'node:fs/promises';
import type { Header } from '../needs.js';
import type { MachineTypes } from '../needs-machine.js';
import { encodeHeader, encodeRecord } from './codec.js';
import { cannotRead, outOfRange } from './error.js';
import { Scan } from './scan.js';

/** The header of a session that begins as a copy of another one up to `seq`. */
export const forkHeader = <M extends MachineTypes>(
  header: Header<M>,
  seq: number,
  sessionId: string,
  createdAt: number,
): Header<M> => ({
  ...header,
  sessionId,
  createdAt,
  parent: { sessionId: header.sessionId, seq },
});

async function* copyFrom(
  scan: Scan<MachineTypes>,
  path: string,
  seq: number,
  header: Header<MachineTypes>,
): AsyncGenerator<Buffer, undefined> {
  const head = encodeHeader(header);
  yield head.bytes;
  let { crc } = head;
  let copied = 0;
  for await (const records of scan.records()) {
    const lines: Buffer[] = [];
    for (const recorded of records) {
      if (recorded.entry.seq > seq) break;
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

/**
 * The bytes of a fork: new header, the entries up to `seq` sealed anew, their checks as they are (a state holds
 * nothing of its session's id). Of a damaged journal everything before the damage can be forked.
 */
export async function* copyEntries(
  path: string,
  seq: number,
  sessionId: string,
  createdAt: number,
): AsyncGenerator<Buffer, undefined> {
  const handle = await open(path, 'r').catch((error: unknown) => {
    throw cannotRead(path, error);
  });
  try {
    const scan = await Scan.begin(handle, path, (await handle.stat()).size);
    yield* copyFrom(scan, path, seq, forkHeader(scan.header, seq, sessionId, createdAt));
  } finally {
    await handle.close();
  }
}
