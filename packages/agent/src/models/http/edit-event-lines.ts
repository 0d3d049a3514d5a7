import { isObject, type Loose } from '../untyped-json.js';

/**
 * Edits events of a server-sent event stream before a package reads them, for servers whose events differ from what the
 * package accepts.
 *
 * 1. A line is handed on when its end is there. Bytes of a line that is not edited stay as they are.
 * 2. Only an event whose data is JSON on one line can be edited; any other line stays.
 */

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const DATA = /^(\ufeff?data: ?)(\{.*\})\s*$/s;

/** Puts an event into the form that its package reads. Returns the same object if nothing changes. */
export type EditEvent = (event: Loose) => Loose;

const editLine = (line: Buffer, edit: EditEvent): Buffer => {
  const [, field, json] = DATA.exec(line.toString('utf8')) ?? [];
  if (field === undefined || json === undefined) return line;
  let event: unknown;
  try {
    event = JSON.parse(json);
  } catch {
    return line; // the package names the fault
  }
  if (!isObject(event)) return line;
  const edited = edit(event);
  return edited === event ? line : Buffer.from(field + JSON.stringify(edited));
};

/** Returns a function that takes the bytes of a body in order, and null at its end, and returns those to hand on. */
export const editEventLines = (edit: EditEvent): ((bytes: Uint8Array | null) => Buffer) => {
  /** Beginning of the current line. */
  let pieces: Buffer[] = [];
  const endLine = (): Buffer => {
    const line = pieces.length === 1 ? (pieces[0] ?? Buffer.alloc(0)) : Buffer.concat(pieces);
    pieces = [];
    return editLine(line, edit);
  };
  return (bytes) => {
    if (bytes === null) return endLine();
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const lines: Buffer[] = [];
    let start = 0;
    for (let end = 0; end < buffer.length; end++) {
      const byte = buffer[end];
      if (byte !== LINE_FEED && byte !== CARRIAGE_RETURN) continue;
      pieces.push(buffer.subarray(start, end));
      lines.push(endLine(), buffer.subarray(end, end + 1));
      start = end + 1;
    }
    if (start < buffer.length) pieces.push(buffer.subarray(start));
    return Buffer.concat(lines);
  };
};
