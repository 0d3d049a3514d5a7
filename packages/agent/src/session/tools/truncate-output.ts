import type { CallOutcome } from '../../machine/call.js';
import { groupDigits } from '../../platform/base/group-digits.js';
import type { Blobs } from '../../ports/journal.js';
import type { ToolOutcome } from '../../ports/tool.js';
import { attempt } from '../attempt.js';

/** Cuts long output: head and tail stay, and a line between them counts the missing part. */

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

/** The nearest start of a character at or before `index`. */
const beforeCharacter = (bytes: Buffer, index: number): number => {
  let at = index;
  while (at > 0 && isContinuation(bytes[at])) at -= 1;
  return at;
};

/** The nearest start of a character at or after `index`. */
const afterCharacter = (bytes: Buffer, index: number): number => {
  let at = index;
  while (at < bytes.length && isContinuation(bytes[at])) at += 1;
  return at;
};

export type Cut = { readonly head: string; readonly tail: string; readonly leftOutBytes: number };

/** Head and tail of about half the limit each, split between characters; null if the text is within the limit. */
export const cutText = (text: string, limitBytes: number): Cut | null => {
  if (text.length * 3 <= limitBytes || Buffer.byteLength(text) <= limitBytes) return null;
  const bytes = Buffer.from(text);
  const headEnd = beforeCharacter(bytes, Math.ceil(limitBytes / 2));
  const tailStart = afterCharacter(bytes, bytes.length - Math.floor(limitBytes / 2));
  return {
    head: bytes.toString('utf8', 0, headEnd),
    tail: bytes.toString('utf8', tailStart),
    leftOutBytes: tailStart - headEnd,
  };
};

/** The cut text with a line about the missing part for the model. `kept` says where the whole text is. */
const showCut = (cut: Cut, kept: string): string =>
  `${cut.head}\n… ${groupDigits(cut.leftOutBytes)} bytes left out; ${kept} …\n${cut.tail}`;

const whereKept = (blob: string, droppedBytes = 0): string =>
  droppedBytes === 0
    ? `the whole output can be read as blob:${blob}`
    : `${groupDigits(droppedBytes)} more are gone, since the output was too long to be kept; its beginning and its end can be read as blob:${blob}`;

/** The outcome with its text cut to the limit. The whole text becomes a blob before the event names it. */
export const cutOutcome = async (
  { droppedBytes, ...outcome }: ToolOutcome,
  limitBytes: number,
  blobs: Blobs,
): Promise<CallOutcome> => {
  const diffCut = outcome.diff === undefined ? null : cutText(outcome.diff, limitBytes);
  const diff = diffCut === null ? {} : { diff: showCut(diffCut, 'this is for display only') };
  const cut = cutText(outcome.text, limitBytes);
  if (cut === null) return { ...outcome, ...diff };
  const kept = await attempt(() => blobs.put(outcome.text));
  if (kept.kind === 'fault') {
    return {
      ...outcome,
      ...diff,
      text: showCut(cut, `the whole output could not be kept: ${kept.fault.message}`),
    };
  }
  const text = showCut(cut, whereKept(kept.value, droppedBytes));
  return { ...outcome, ...diff, text, blob: kept.value };
};
