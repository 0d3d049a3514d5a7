/**
 * Checks of a session's journal that look at the bytes of its file, without the code that reads
 * it.
 *
 * Beside the journal lie a mark, which says up to which entry it is acknowledged, and a reserve,
 * which keeps room for the end of the session on a full disk. `seq` is the number of an entry and
 * of its line; line 0 is the header.
 */

import { fileJournals } from '@pawl/agent/journal/file-store';
import { JournalError } from '@pawl/agent/journal/journal-error';
import { createStateCheck } from '@pawl/agent/journal/journaled-agent-machine';
import { decodeMarks, type Mark } from '@pawl/agent/journal/state-folder';
import type { Event } from '@pawl/agent/machine/event';
import type { State } from '@pawl/agent/machine/state';
import type { LocalRuntime } from '@pawl/agent/session/runtime';
import { type FileNode, GrowingBytes } from './disk.js';
import type { World } from './world.js';

export const SESSION_ID = 'session';

/** The file of the journal on the simulated disk: lines of JSON. */
const findJournal = (world: World): FileNode | undefined => {
  const node = world.disk.find(['home', 'state', 'sessions', `${SESSION_ID}.jsonl`]);
  return node?.kind === 'file' ? node : undefined;
};

/** Whether a power cut may take the journal's name or its last lines. */
export const isJournalUnsynced = (world: World): boolean => {
  const folder = world.disk.find(['home', 'state', 'sessions']);
  const node = findJournal(world);
  if (folder?.kind !== 'folder' || node === undefined) return false;
  return node.pending.length > 0 || folder.durable.get(`${SESSION_ID}.jsonl`) !== node;
};

/** The mark beside the journal; null if there is none. */
const readMark = (world: World): Mark | null => {
  const node = world.disk.find(['home', 'state', 'sessions', `${SESSION_ID}.mark`]);
  return node?.kind === 'file' ? decodeMarks(node.content.view()) : null;
};

/** Size of the file that keeps room for the end of a session. */
export const reservedBytes = (world: World): number => {
  const node = world.disk.find(['home', 'state', 'sessions', `${SESSION_ID}.reserve`]);
  return node?.kind === 'file' ? node.content.length : 0;
};

const NEWLINE = 0x0a;

/** Lines of a file that were counted already. */
type LineCount = { readonly node: FileNode; bytes: number; lines: number };
const lineCounts = new WeakMap<World, LineCount>();

/** Lines that a power cut would leave, counted on from the last time. */
const durableLines = (world: World): number => {
  const node = findJournal(world);
  if (node === undefined) return 0;
  const before = lineCounts.get(world);
  const isSame =
    before !== undefined && before.node === node && before.bytes <= node.durable.length;
  const counted = isSame ? before : { node, bytes: 0, lines: 0 };
  const fresh = node.durable.view(counted.bytes);
  for (let at = fresh.indexOf(NEWLINE); at >= 0; at = fresh.indexOf(NEWLINE, at + 1))
    counted.lines += 1;
  counted.bytes = node.durable.length;
  lineCounts.set(world, counted);
  return counted.lines;
};

/**
 * An event that was acknowledged is on the disk, together with the header and all events before it.
 */
export const checkDurable = (world: World, seq: number): void => {
  const lines = durableLines(world);
  if (lines < seq + 1)
    world.violate(
      'acknowledged-is-durable',
      `event ${seq} was acknowledged, and ${lines} lines are durable`,
    );
};

/** The JSON of events, kept because each crash looks for all of them. */
const eventJson = new WeakMap<Event, string>();

const toJson = (event: Event): string => {
  const known = eventJson.get(event);
  if (known !== undefined) return known;
  const json = JSON.stringify(event);
  eventJson.set(event, json);
  return json;
};

/** Every acknowledged event is in its line of the file. */
export const checkKept = (world: World, when: string): void => {
  const node = findJournal(world);
  const lines = node?.content.view().toString('utf8').split('\n') ?? [];
  if (world.isCreated && lines.length < 2)
    world.violate('acknowledged-is-kept', `the session is gone ${when}`);
  for (const [seq, { event }] of world.acknowledged) {
    if (lines[seq]?.startsWith(`{"seq":${seq},"event":${toJson(event)}`) === true) continue;
    world.violate(
      'acknowledged-is-kept',
      `event ${seq} (${event.type}) is not in its line ${when}`,
    );
    return;
  }
};

/** Checks that a created session is in the list of sessions, also after a crash. */
export const checkListed = async (
  world: World,
  runtime: Pick<LocalRuntime, 'list'>,
): Promise<void> => {
  for await (const { sessionId } of runtime.list()) if (sessionId === SESSION_ID) return;
  world.violate('session-is-listed', 'the session was created, and is not in the list');
};

/** A journal that is opened leads to the state that the session had: both have the same hash. */
export const checkReplay = (world: World, seq: number, state: State): void => {
  const live = world.acknowledged.get(seq)?.state;
  if (live !== undefined && createStateCheck()(state) !== createStateCheck()(live))
    world.violate(
      'replay-equals-live',
      `the journal leads to another state at ${seq} than the session had`,
    );
};

/** Events in the file after the acknowledged ones. A resumed session continues after them, too. */
export const unacknowledgedIn = (world: World, upTo: number): readonly Event[] => {
  const lines = findJournal(world)?.content.view().toString('utf8').split('\n') ?? [];
  const last = Math.max(0, ...world.acknowledged.keys());
  // the journal has written and read these lines
  return lines
    .slice(last + 1, upTo + 1)
    .map((line) => (JSON.parse(line) as { readonly event: Event }).event);
};

/** The bytes up to the last acknowledged line; empty without one. */
const acknowledgedPart = (
  world: World,
): { readonly node: FileNode; readonly bytes: number } | null => {
  const node = findJournal(world);
  const last = Math.max(0, ...world.acknowledged.keys());
  if (node === undefined || last === 0) return null;
  return { node, bytes: endOfLine(node, last) };
};

/** Offset after the line of an entry; 0 is the header. */
const endOfLine = ({ content }: FileNode, seq: number): number => {
  let end = -1;
  for (let line = 0; line <= seq; line++) end = content.view().indexOf(NEWLINE, end + 1);
  return end + 1;
};

/** Whether a whole last line misses only its line feed. */
export const missesLineFeed = (world: World): boolean => {
  const content = findJournal(world)?.content;
  return (
    content !== undefined &&
    /"crc":"\w{8}"}$/.test(content.view(content.length - 20).toString('latin1'))
  );
};

/** Length of the part of the last line that has no line feed. */
export const tornBytes = (world: World): number => {
  const bytes = findJournal(world)?.content.view();
  return bytes === undefined ? 0 : bytes.length - (bytes.lastIndexOf(NEWLINE) + 1);
};

/**
 * Whether a session may refuse to open after a power cut. The cut left zeros, and nobody can
 * know whether acknowledged lines lay there: there is no mark, or an old one and lines behind the
 * zeros. All that was acknowledged is good, and can be forked.
 */
export const mayBeDamage = (world: World, { kind, place }: JournalError): boolean => {
  const { zeros, acknowledged } = world;
  if (kind !== 'damaged' || place === null || place.seq < Math.max(0, ...acknowledged.keys()))
    return false;
  const mark = readMark(world);
  return mark === null
    ? zeros.has('atEnd') || zeros.has('hole')
    : zeros.has('hole') && mark.seq < place.seq;
};

/** The journal's version, as its first bytes say. */
const versionIn = (journal: Buffer): number =>
  Number(/^{"version":(\d+)/.exec(journal.toString('latin1', 0, 40))?.[1]);

/**
 * Damages what was acknowledged, as a failing disk does, and opens the session: that must be
 * refused, and the file must stay as it is. Then the damage is undone.
 *
 * Zeros not while the mark is old after a power cut: then nobody knows what was acknowledged
 * (docs/design/journal.md).
 */
export const checkDamage = async (world: World, folder: string): Promise<void> => {
  const part = acknowledgedPart(world);
  if (part === null) return;
  const { node, bytes } = part;
  const before = Buffer.from(node.content.view());
  const damaged = Buffer.from(before);
  const mark = readMark(world);
  const isOld = mark !== null && mark.seq < Math.max(...world.acknowledged.keys());
  // only the lines themselves tell of damage behind an old mark
  const from = isOld && world.choices.chance(0.7) ? endOfLine(node, mark.seq) : 0;
  const at = from + world.choices.below(bytes - 1 - from);
  const length = isOld ? 1 : world.choices.pick(1, 8, 600);
  // the last line feed stays: without it nobody can know that the line was whole
  for (let index = at; index < Math.min(at + length, bytes - 1); index++)
    damaged[index] = length === 1 ? (damaged[index] ?? 0) ^ 4 : 0;
  if (damaged.equals(before)) return;
  node.content = new GrowingBytes(damaged);
  const error: unknown = await fileJournals({ folder })
    .open(SESSION_ID)
    .then(
      () => null,
      (refusal: unknown) => refusal,
    );
  await checkListed(world, fileJournals({ folder }));
  // opening may have put a copy in the place of the file
  const now = acknowledgedPart(world)?.node ?? node;
  const isUnchanged = now.content.view().equals(damaged);
  now.content = new GrowingBytes(before);
  if (now !== node) now.durable = new GrowingBytes(before);
  world.noteSituation('acknowledged lines damaged');
  const kind = error instanceof JournalError ? error.kind : 'opened';
  // damage can make the version greater: like a newer journal, which may have other checksums
  const isRefused =
    kind === 'damaged' || (kind === 'newerVersion' && versionIn(damaged) > versionIn(before));
  if (!isRefused || !isUnchanged)
    world.violate(
      'damage-is-refused',
      `bytes from ${at} on were changed, and the answer was: ${kind}`,
    );
};
