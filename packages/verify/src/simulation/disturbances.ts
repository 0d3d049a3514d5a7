/**
 * What happens to a simulated process from outside: another program changes its journal, a rival
 * process opens the session, the clock jumps; not when the faults of the session are over
 * (`isHealed`). Crashes are planned in simulated-process.ts.
 */

import { fileJournals } from '@pawl/agent/journal/file-store';
import { JournalError } from '@pawl/agent/journal/journal-error';
import type { State } from '@pawl/agent/machine/state';
import { type FileNode, GrowingBytes } from './disk.js';
import { SESSION_ID } from './journal-checks.js';
import type { SimulatedProcess } from './simulated-process.js';
import type { World } from './world.js';

const FOLDER = ['home', 'state', 'sessions'];
const NAME = `${SESSION_ID}.jsonl`;

/**
 * While a write is under way only the size changes: a process notices an overwrite by the time of
 * the file, and this time would be the one of its own write.
 */
const changeContent = ({ world, isAppending }: SimulatedProcess, file: FileNode): string => {
  const { choices, disk } = world;
  const { length } = file.content;
  const at = world.wallNow();
  switch (
    isAppending ? choices.pick('extend', 'cut') : choices.pick('extend', 'cut', 'overwrite')
  ) {
    case 'extend':
      disk.write(file, Buffer.from('{}\n'), length, at);
      return 'appended to';
    case 'cut':
      disk.truncate(file, choices.below(length), at);
      return 'cut';
    default: {
      const place = choices.below(length);
      const byte = file.content.view(place, place + 1)[0] ?? 0;
      disk.write(file, Buffer.from([byte ^ 4]), place, at); // one bit
      return 'overwritten';
    }
  }
};

const changeName = (world: World, file: FileNode): string => {
  const { choices, disk } = world;
  const folder = disk.getFolder([...FOLDER, NAME]);
  const at = world.wallNow();
  const kind = choices.pick('remove', 'move', 'replace');
  disk.setNames(folder, [{ name: NAME, node: null }], at);
  if (kind === 'move') disk.setNames(folder, [{ name: 'moved.txt', node: file }], at);
  if (kind === 'replace')
    disk.write(
      disk.createFile([...FOLDER, NAME], at),
      file.content.view(0, file.content.length >> 1),
      0,
      at,
    );
  return `${kind}d`;
};

/**
 * Another program changes the journal of an open session. From then on nothing more may be
 * acknowledged. When the session has ended, the user puts the file back as it was: the
 * `restoreJournal` of the process does it.
 */
export const changeJournal = (process: SimulatedProcess): void => {
  const { world } = process;
  const { disk, timeline } = world;
  const file = disk.find([...FOLDER, NAME]);
  if (file?.kind !== 'file' || file.content.length === 0) return;
  timeline.pass(2); // a change within the same millisecond has the same time, and is not to be seen
  const before = Buffer.from(file.content.view());
  const how = world.choices.chance(0.5) ? changeName(world, file) : changeContent(process, file);
  world.log(`another program has ${how} the journal`);
  world.noteSituation('journal changed by another program');
  process.restoreJournal = () => {
    process.restoreJournal = null;
    file.content = new GrowingBytes(before);
    file.durable = new GrowingBytes(before);
    file.pending = [];
    const folder = disk.getFolder([...FOLDER, NAME]);
    disk.setNames(
      folder,
      [
        { name: NAME, node: file },
        { name: 'moved.txt', node: null },
      ],
      world.wallNow(),
    );
    disk.sync(folder);
  };
};

/**
 * Another process tries to open a session that is open. It must be refused, unless its holder has
 * ended meanwhile (`isHeld`).
 */
export const tryAsRival = async (
  rival: SimulatedProcess,
  folder: string,
  isHeld: () => boolean,
): Promise<void> => {
  const { world } = rival;
  const refusal: unknown = await fileJournals({ folder })
    .open(SESSION_ID)
    .then(
      () => null,
      (error: unknown) => error,
    );
  if (!isHeld()) return;
  const kind = refusal instanceof JournalError ? refusal.kind : String(refusal);
  if (refusal === null)
    world.violate('one-writer', 'a second process has opened the session beside the first one');
  else if (kind !== 'locked')
    world.violate('one-writer', `a second process was refused for another reason: ${kind}`);
  else world.noteSituation('second process refused');
};

const DAY_MS = 86_400_000;

/**
 * The clock of the wall is set, or the computer sleeps. `state`: the session's, or the one that is
 * being written.
 */
export const disturbClock = ({ world }: SimulatedProcess, state: State | null): void => {
  const isRetrying = state?.name === 'Error';
  if (!world.plan.clockJumps || world.isHealed || !world.choices.chance(isRetrying ? 0.5 : 0.02))
    return;
  const by = world.choices.pick(7_200_000, -DAY_MS, 3_650 * DAY_MS, -3_650 * DAY_MS);
  world.log(`the clock is set by ${by / 1000} s`);
  world.setWallClock(by);
  if (isRetrying)
    world.noteSituation(
      by < 0 ? 'clock set back while waiting to retry' : 'clock set forward while waiting to retry',
    );
};
