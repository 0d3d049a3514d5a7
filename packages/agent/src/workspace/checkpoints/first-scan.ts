/**
 * The first scan of a workspace, before the first command: all files are known after it. A clean
 * file of git can be read from there later. All others are copied, as long as there is room.
 */

import { setImmediate as nextTurn } from 'node:timers/promises';
import { plural } from '../../platform/text.js';
import { TICK_MS, TOO_LARGE } from './file-entries.js';
import { type KnownFiles, TOO_MANY } from './known-files.js';
import type { WorkspaceLooks } from './looks.js';
import { showName } from './manifest.js';
import type { Listing, WorkspaceLister } from './workspace-lister.js';

type ScanSources = {
  readonly known: KnownFiles;
  readonly lister: WorkspaceLister;
  readonly looks: WorkspaceLooks;
};

/** After so many copies other work gets a turn. */
const SLICE = 16;

/** `except`: what tools have just made. `notices`: sentences about files that are not copied. */
export const scanFirst = async (
  { known, lister, looks }: ScanSources,
  except: ReadonlySet<string>,
): Promise<{ readonly listing: Listing; readonly notices: readonly string[] }> => {
  const listedAtMs = Date.now() - TICK_MS;
  const listing = await lister.list(true); // also which files equal git's blobs
  const tooLarge: string[] = [];
  /** How many other files are not kept, by the reason. */
  const notKept = new Map<string, number>();
  let copied = 0;
  for (const [name, entry] of await looks.scan(listing)) {
    if (known.has(name) || except.has(name)) continue;
    // a file that changed since git looked may differ from git's blob
    const isAsListed = entry.changedAtMs < listedAtMs;
    const blob = isAsListed ? listing.clean?.get(name) : undefined;
    if (blob !== undefined) {
      known.noteClean(name, entry, blob);
      continue;
    }
    if (++copied % SLICE === 0) await nextTurn();
    const content = await known.noteFirst(
      name,
      entry,
      isAsListed && listing.converted?.has(name) === true ? 'committed' : 'users',
    );
    if (content.kind !== 'notKept') continue;
    if (content.why === TOO_LARGE) tooLarge.push(showName(name));
    else notKept.set(content.why, 1 + (notKept.get(content.why) ?? 0));
  }
  const notices: string[] = [];
  if (tooLarge.length > 0)
    notices.push(
      `${plural(tooLarge.length, 'file')} of more than 20 MB can’t be taken back: ` +
        `${tooLarge.slice(0, 5).join(', ')}${tooLarge.length > 5 ? ', …' : ''}`,
    );
  for (const [why, count] of notKept)
    notices.push(
      why === TOO_MANY
        ? `${plural(count, 'file')} that git does not hold can’t be taken back: at most ` +
            '20,000 files and 200 MB are copied.'
        : `${plural(count, 'file')} can’t be taken back: ${why}.`,
    );
  return { listing, notices };
};
