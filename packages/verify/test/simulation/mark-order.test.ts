import assert from 'node:assert/strict';
import test from 'node:test';
import { fileJournals } from '@pawl/agent/journal/file-store';
import { decodeMarks } from '@pawl/agent/journal/state-folder';
import { headerOf, tell, tellFrom } from '../../../../test/kit/journal/story.js';
import { Disk, type FileNode } from '../../src/simulation/disk.js';
import { mountDisk, simulateFiles, unmountDisks } from '../../src/simulation/node-files.js';
import { closeSockets } from '../../src/simulation/sockets.js';

/** On a disk that knows what is durable. */

const COUNT = 8;

/** A process on the disk. `look` is called before each of its calls, and says whether the process is killed there. */
const processOn = (disk: Disk, look: (operation: string) => boolean) => {
  let isDead = false;
  return {
    disk,
    get isDead() {
      return isDead;
    },
    enter: (operation: string): null => {
      isDead ||= look(operation);
      return null;
    },
    block: () => undefined,
    later: (run: () => void) => {
      void Promise.resolve().then(() => {
        if (!isDead) run();
      });
    },
    writesShort: () => false,
    now: () => 1_000,
  };
};

const fileOn = (disk: Disk, end: string): FileNode | null => {
  const node = disk.find(['home', 'state', 'sessions', `a${end}`]);
  return node?.kind === 'file' ? node : null;
};

const marked = (disk: Disk): number =>
  decodeMarks(fileOn(disk, '.mark')?.content.view() ?? Buffer.of())?.seq ?? 0;

const durableEntries = (disk: Disk): number =>
  (fileOn(disk, '.jsonl')?.durable.view().toString('utf8').split('\n').length ?? 2) - 2;

/** Nothing of a mark is written before the lines that it names are durable: a power cut may keep the mark alone. */
const neverAhead = (disk: Disk) => (): boolean => {
  assert.ok(marked(disk) <= durableEntries(disk), `the mark names entry ${marked(disk)} too early`);
  return false;
};

test('a mark names only durable lines, also those that a killed process had not synced', async (context) => {
  const restoreFiles = simulateFiles();
  context.after(() => {
    unmountDisks();
    closeSockets();
    restoreFiles();
  });
  const disk = new Disk();
  const drafts = tellFrom(headerOf('a'), COUNT);
  let dies = false;
  const first = fileJournals({
    folder: mountDisk(
      1,
      processOn(disk, (operation) => neverAhead(disk)() || (dies && operation === 'fdatasync')),
    ),
  });
  const journal = await first.create(headerOf('a'));
  await journal.append(drafts);
  dies = true;
  const last = tell(1, drafts.at(-1)?.state ?? assert.fail());
  journal.append(last).catch(() => undefined); // of a process that is killed: it never settles, or fails
  await new Promise(setImmediate);
  assert.equal(durableEntries(disk), COUNT, 'control: the last line was written, and not synced');

  const second = fileJournals({ folder: mountDisk(2, processOn(disk, neverAhead(disk))) });
  const opened = await second.open('a');
  neverAhead(disk)();
  assert.deepEqual([opened.journal.seq, marked(disk)], [COUNT + 1, COUNT + 1]);
  await opened.journal.close();
});

test('the name of a journal of a killed process is durable once it is open', async (context) => {
  const restoreFiles = simulateFiles();
  context.after(() => {
    unmountDisks();
    closeSockets();
    restoreFiles();
  });
  const disk = new Disk();
  const header = headerOf('b');
  const journalIn = (kind: 'entries' | 'durable') => {
    const folder = disk.find(['home', 'state', 'sessions']);
    return folder?.kind === 'folder' ? folder[kind].get('b.jsonl') : undefined;
  };
  const dying = processOn(disk, () => journalIn('entries') !== undefined);
  const first = fileJournals({ folder: mountDisk(1, dying) });
  first.create(header).catch(() => undefined); // its process is killed
  for (let tick = 0; tick < 1_000 && !dying.isDead; tick++) await new Promise(setImmediate);
  assert.ok(dying.isDead && journalIn('durable') === undefined, 'control: the name is not durable');

  const second = fileJournals({
    folder: mountDisk(
      2,
      processOn(disk, () => false),
    ),
  });
  const { journal } = await second.open('b');
  assert.equal(journalIn('durable'), journalIn('entries'));
  await journal.close();
});
