import { fileJournals } from '@pawl/agent/journal/file-store';
import { JournalError } from '@pawl/agent/journal/journal-error';
import { GrowingBytes } from '../disk/growing-bytes.js';
import type { World } from '../world.js';
import { acknowledgedPart, checkListed, endOfLine, markOf, SESSION_ID } from './journal.js';

/**
 * Zeros that may lie over acknowledged lines, as far as the journal knows: there is no mark, or an old one and lines
 * behind the zeros. All that was acknowledged is good, and can be forked.
 */
export const mayBeDamage = (world: World, { kind, place }: JournalError): boolean => {
  const { zeros, acknowledged } = world;
  if (kind !== 'damaged' || place === null || place.seq < Math.max(0, ...acknowledged.keys())) return false;
  const mark = markOf(world);
  return mark === null ? zeros.has('atEnd') || zeros.has('hole') : zeros.has('hole') && mark.seq < place.seq;
};

/** The journal's version, as its first bytes say. */
const versionIn = (journal: Buffer): number =>
  Number(/^{"version":(\d+)/.exec(journal.toString('latin1', 0, 40))?.[1]);

/**
 * Damages what was acknowledged, as a failing disk does, and opens the session: that must be refused, and the file must
 * stay as it is. Then the damage is undone.
 *
 * Zeros not while the mark is old after a power cut: then nobody knows what was acknowledged (docs/journal.md).
 */
export const checkDamage = async (world: World, folder: string): Promise<void> => {
  const part = acknowledgedPart(world);
  if (part === null) return;
  const { node, bytes } = part;
  const before = Buffer.from(node.content.view());
  const damaged = Buffer.from(before);
  const mark = markOf(world);
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
  world.meet('acknowledged lines damaged');
  const kind = error instanceof JournalError ? error.kind : 'opened';
  // a journal whose version became a greater one can't be told from a newer one, which may have other checksums
  const isRefused = kind === 'damaged' || (kind === 'newerVersion' && versionIn(damaged) > versionIn(before));
  if (!isRefused || !isUnchanged)
    world.violate('damage-is-refused', `bytes from ${at} on were changed, and the answer was: ${kind}`);
};
