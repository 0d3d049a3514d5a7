import { appendFileSync, closeSync, existsSync, ftruncateSync, openSync, writeSync } from 'node:fs';
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { headerOf, tell } from '../../../../test/kit/journal/story.js';
import { fileJournals } from '../../src/journal/file-store.js';
import { acquireLock } from '../../src/journal/lock.js';
import { importSession, verifyStored } from '../../src/journal/transfer.js';
import { initialState } from '../../src/machine/machine.js';
import type { State } from '../../src/machine/state.js';

/**
 * A process of its own, to be killed. Prints a line for everything that was promised to it.
 *
 * hold FILE PLATFORM     takes a lock and keeps it
 * take FILE              takes a lock from whoever holds it, and keeps it
 * takeSession FOLDER     takes session "a" from whoever has it open, and appends an entry
 * append FOLDER          appends to session "a" until that fails, one line a seq that was acknowledged
 * fill FOLDER            the same until the disk refuses; then says what a journal says, and what a blob says
 * create FOLDER          makes a session
 * useReserve FOLDER      fills the disk beside an open session, and appends to it
 * dieInImport FOLDER FILE  imports a session, and kills itself when the blobs are stored and the journal is not
 * readAll FOLDER         reads session "a" in every way, opens it, and says whether that took little memory
 * cutOnFullDisk FOLDER   opens a session with a torn end and a snapshot on a disk without room for the end
 * rescueOnFullDisk FOLDER  removes the journal of an open session, and appends to it: rescued has no room for a copy
 * snapshot FOLDER        lets a snapshot be written to a disk that has no room for it
 */
const say = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

const kindOf = (error: unknown): string =>
  error instanceof Error && 'kind' in error
    ? `${String(error.kind)}: ${error.message}`
    : String(error);

const hold = async (file: string, platform: string): Promise<void> => {
  try {
    await acquireLock(file, { platform });
  } catch (error) {
    say(`refused ${kindOf(error)}`);
    return;
  }
  say('held');
  setInterval(() => undefined, 1_000);
};

const take = async (file: string): Promise<void> => {
  await acquireLock(file, { takeOver: true });
  say('held');
  setInterval(() => undefined, 1_000);
};

/** Takes session "a" over, appends an entry, and closes it. */
const takeSession = async (folder: string): Promise<void> => {
  const { journal, state } = await fileJournals({ folder }).open('a', { takeOver: true });
  say(`took ${journal.seq}`);
  await journal.append(tell(1, state));
  say(`wrote ${journal.seq}`);
  await journal.close();
};

const appendForEver = async (folder: string): Promise<void> => {
  const journal = await fileJournals({ folder }).create(headerOf('a'));
  let state: State = initialState(journal.header.settings);
  for (;;) {
    const drafts = tell(8, state, (index) => `${index} `.repeat(200));
    const seqs = drafts.map((_, index) => journal.seq + index + 1);
    try {
      await Promise.all(
        drafts.map(async (draft, index) => {
          await journal.append([draft]);
          say(String(seqs[index]));
        }),
      );
    } catch (error) {
      say(`stopped ${kindOf(error)}`);
      return;
    }
    state = drafts.at(-1)?.state ?? state;
  }
};

const fill = async (folder: string): Promise<void> => {
  const store = fileJournals({ folder });
  const journal = await store.create(headerOf('a'));
  let state: State = initialState(journal.header.settings);
  for (;;) {
    const drafts = tell(4, state, () => 'x'.repeat(3_000));
    const failure = await journal.append(drafts).then(() => undefined, kindOf);
    if (failure !== undefined) {
      say(`append ${failure}`);
      break;
    }
    state = drafts.at(-1)?.state ?? state;
  }
  say(`seq ${journal.seq}`);
  say(`again ${await journal.append(tell(1, state)).then(() => 'was accepted', kindOf)}`);
  say(`blob ${await journal.blobs.put('y'.repeat(500_000)).then(() => 'was accepted', kindOf)}`);
  await journal.close();
  const opened = await store.open('a');
  say(`opened ${opened.journal.seq} ${opened.tornTail === null ? 'whole' : 'torn'}`);
  await opened.journal.close();
};

const cutOnFullDisk = async (folder: string): Promise<void> => {
  await snapshotOf(folder, 'a', Number.POSITIVE_INFINITY, 0);
  const sessions = join(folder, 'sessions');
  appendFileSync(join(sessions, 'a.jsonl'), 'x'.repeat(200_000));
  fillDisk(folder, 40_000);
  say(
    `open ${await fileJournals({ folder })
      .open('a')
      .then(() => 'was accepted', kindOf)}`,
  );
  const names = await readdir(sessions);
  say(`files ${names.filter((name) => /snapshot|torn/.test(name)).join(' ')}`);
};

const create = async (folder: string): Promise<void> => {
  say(
    `create ${await fileJournals({ folder })
      .create(headerOf('b'))
      .then(() => 'was accepted', kindOf)}`,
  );
};

/** Fills the disk, but for a number of bytes. */
const fillDisk = (folder: string, left = 0): void => {
  const disk = openSync(join(folder, 'filler'), 'w');
  let size = 0;
  try {
    for (const block = Buffer.alloc(4_096); ; ) size += writeSync(disk, block);
  } catch {
    // it is full
  }
  ftruncateSync(disk, size - left);
  closeSync(disk);
};

/** Appends 430 entries, a snapshot every 210; the disk is full but for `left` bytes before entry `fullAt`. */
const snapshotOf = async (
  folder: string,
  id: string,
  fullAt: number,
  left: number,
): Promise<void> => {
  const plan = { every: 210, later: (work: () => void): void => work() };
  const journal = await fileJournals({ folder, snapshots: plan }).create(headerOf(id));
  const drafts = tell(430, initialState(journal.header.settings), () => 'x'.repeat(150));
  for (let from = 0; from < drafts.length; from += 10) {
    if (from === fullAt) fillDisk(folder, left);
    await journal.append(drafts.slice(from, from + 10));
    await setImmediate();
    if (from >= fullAt) break;
  }
  const folderOf = join(folder, 'sessions');
  const names = (await readdir(folderOf)).filter((name) => name.startsWith(`${id}.snapshot`));
  for (const name of names) {
    const content: { readonly states: readonly { readonly seq: number }[] } = JSON.parse(
      await readFile(join(folderOf, name), 'utf8'),
    );
    say(`${name} ${content.states.at(-1)?.seq}`);
  }
  say(`${id} ${journal.full === null ? 'has room' : 'is full'}`);
  await rm(join(folder, 'filler'), { force: true });
  await journal.close();
};

const snapshot = async (folder: string): Promise<void> => {
  await snapshotOf(folder, 'control', 1_000, 0);
  await snapshotOf(folder, 'first', 200, 16_384);
  await snapshotOf(folder, 'next', 420, 16_384);
  await snapshotOf(folder, 'reserve', 200, 0);
};

const useReserve = async (folder: string): Promise<void> => {
  const store = fileJournals({ folder });
  const journal = await store.create(headerOf('a'));
  fillDisk(folder);
  const drafts = tell(4, initialState(journal.header.settings), () => 'x'.repeat(20_000));
  say(`append ${await journal.append(drafts).then(() => 'was accepted', kindOf)}`);
  say(`full ${kindOf(journal.full)}`);
  say(`seq ${journal.seq}`);
  const state = drafts.at(-1)?.state ?? initialState(journal.header.settings);
  const more = tell(4, state, () => 'x'.repeat(200_000));
  say(`more ${await journal.append(more).then(() => 'was accepted', kindOf)}`);
  await journal.close();
  const opened = await store.open('a');
  say(`opened ${opened.journal.seq} ${opened.tornTail === null ? 'whole' : 'torn'}`);
  await opened.journal.close();
};

const rescueOnFullDisk = async (folder: string): Promise<void> => {
  process.env.TMPDIR = folder;
  const journal = await fileJournals({ folder }).create(headerOf('a'));
  const drafts = tell(4, initialState(journal.header.settings), () => 'x'.repeat(20_000));
  await journal.append(drafts.slice(0, 2));
  await rm(join(folder, 'sessions', 'a.jsonl'));
  say(`append ${await journal.append(drafts.slice(2)).then(() => 'was accepted', kindOf)}`);
  say(`files ${(await readdir(join(folder, 'rescued'))).join(' ')}`);
  await journal.close();
};

const dieInImport = async (folder: string, file: string): Promise<void> => {
  const draft = join(folder, 'sessions', 'a.jsonl.import');
  const imported = importSession(folder, file).then(() => say('imported'));
  while (!existsSync(draft) || !existsSync(join(folder, 'blobs'))) await setImmediate();
  process.kill(process.pid, 'SIGKILL');
  await imported;
};

const readAll = async (folder: string): Promise<void> => {
  const store = fileJournals({ folder });
  const { fault, entries } = await verifyStored(join(folder, 'sessions', 'a.jsonl'));
  say(`verified ${entries}, line ${fault?.line} ${fault?.why}`);
  for await (const { sessionId, title } of store.list()) say(`listed ${sessionId} ${title}`);
  const { records, tornBytes } = await store.inspect('a');
  say(`inspected ${records.length} and ${tornBytes} torn`);
  const replay = await store.replay('a');
  say(`replayed ${replay.seq} and ${replay.tornBytes} torn`);
  const { journal, tornTail } = await store.open('a');
  say(`opened ${journal.seq} and cut ${tornTail?.bytes} off`);
  await journal.close();
  say(
    `memory ${process.resourceUsage().maxRSS < 250 * 1024 ? 'small' : process.resourceUsage().maxRSS}`,
  );
};

const [, , task = '', where = '', platform = process.platform] = process.argv;
const tasks: Readonly<Record<string, (where: string, platform: string) => Promise<void>>> = {
  hold,
  take,
  takeSession,
  append: appendForEver,
  fill,
  create,
  cutOnFullDisk,
  dieInImport,
  readAll,
  rescueOnFullDisk,
  useReserve,
  snapshot,
};
await tasks[task]?.(where, platform);
