import assert from 'node:assert/strict';
import {
  access,
  chown,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import test from 'node:test';
import { headerOf, makeFolder } from '../../../../test/kit/journal/story.js';
import { fileJournals } from '../../src/journal/file-store.js';
import {
  acquireLock,
  checkHolder,
  claimPath,
  createFile,
  describeSelf,
  type Holder,
  isLocked,
  readLockText,
  replaceFile,
} from '../../src/journal/lock.js';
import { ALL_PROCESSES } from '../../src/platform/processes.js';
import { startChild } from './start-child.js';

const NEVER = 2 ** 30;

for (const platform of ['linux', 'darwin']) {
  test(`on ${platform} a lock is held by one at a time, and free when released`, async (context) => {
    const folder = await makeFolder(context);
    const path = join(folder, 'a.lock');
    const lock = await acquireLock(path, { platform });
    const locked = {
      kind: 'locked',
      message: /^The session a is open in this process \(\d+\) already\. Close it there/,
    };
    await assert.rejects(acquireLock(path, { platform }), locked);
    const other = await acquireLock(join(folder, 'b.lock'), { platform });
    await lock.release();
    await other.release();
    assert.deepEqual(await readdir(folder), []);
    await (await acquireLock(path, { platform })).release();
  });

  test(`on ${platform} one of many that ask at the same time gets it`, async (context) => {
    const path = join(await makeFolder(context), 'a.lock');
    const asked = Array.from({ length: 20 }, () => acquireLock(path, { platform }));
    const results = await Promise.allSettled(asked);
    const locks = results.flatMap((result) =>
      result.status === 'fulfilled' ? [result.value] : [],
    );
    assert.equal(locks.length, 1);
    await locks[0]?.release();
  });

  test(`on ${platform} another process is refused with the pid, and let in when that is killed`, async (context) => {
    const path = join(await makeFolder(context), 'a.lock');
    const child = startChild(context, ['hold', path, platform]);
    assert.equal(await child.nextLine(), 'held', child.complaints());
    const locked = { kind: 'locked', message: new RegExp(`process ${child.pid} on`) };
    await assert.rejects(acquireLock(path, { platform }), locked);
    await child.kill();
    await access(path); // nobody tidied up
    const lock = await acquireLock(path, { platform });
    assert.equal(JSON.parse(await readFile(path, 'utf8')).pid, process.pid);
    await lock.release();
  });
}

test('another way to the same folder is the same lock', async (context) => {
  const folder = await makeFolder(context);
  await mkdir(join(folder, 'real'));
  await symlink(join(folder, 'real'), join(folder, 'link'));
  const lock = await acquireLock(join(folder, 'real', 'a.lock'));
  await assert.rejects(acquireLock(join(folder, 'link', 'a.lock')), { kind: 'locked' });
  await lock.release();
});

test('a lock in a folder that does not exist cannot be taken', async (context) => {
  const path = join(await makeFolder(context), 'none', 'a.lock');
  await assert.rejects(acquireLock(path), { kind: 'cannotWrite', message: /ENOENT/ });
});

test('a lock file that makes no sense names nobody and is taken over', async (context) => {
  const path = join(await makeFolder(context), 'a.lock');
  await writeFile(path, '{"pid":');
  const lock = await acquireLock(path);
  assert.equal(JSON.parse(await readFile(path, 'utf8')).pid, process.pid);
  await lock.release();
});

test('a lock file that can not be read may be held: it is not taken over', async (context) => {
  context.after(() => process.seteuid?.(process.getuid?.() ?? 0)); // before the folder goes
  const folder = await makeFolder(context);
  const path = join(folder, 'a.lock');
  await writeFile(path, '{"pid":', { mode: 0 });
  if (process.getuid?.() === 0) {
    // root reads every file
    await chown(folder, 65_534, 65_534);
    process.seteuid?.(65_534);
  }
  const refused = { kind: 'cannotRead', message: /a\.lock: EACCES/ };
  await assert.rejects(acquireLock(path), refused);
  await assert.rejects(acquireLock(path, { takeOver: true }), refused);
  assert.equal(await isLocked(path), true);
  assert.deepEqual(await readdir(folder), ['a.lock']);
});

test('a symlink in place of a lock file names nobody and is taken over', async (context) => {
  const path = join(await makeFolder(context), 'a.lock');
  await symlink('missing', path);
  await (await acquireLock(path)).release();
});

const textOf = (holder: Partial<Holder>, self: Holder): string =>
  `${JSON.stringify({ ...self, ...holder })}\n`;

test('a lock file that cannot be written is refused with the reason of the write', async (context) => {
  const path = join(await makeFolder(context), 'missing', 'a.lock');
  await assert.rejects(createFile(path, 'mine'), { code: 'ENOENT', syscall: 'open' });
});

test('a lock file from another computer is respected, and can be taken over', async (context) => {
  const path = join(await makeFolder(context), 'a.lock');
  const text = textOf({ host: 'elsewhere', bootId: 'other', pid: 4 }, await describeSelf());
  assert.ok(await createFile(path, text));
  await assert.rejects(acquireLock(path), {
    kind: 'locked',
    message: /process 4 on elsewhere, another computer.*--take-over/,
  });
  assert.equal(await readLockText(path), text);
  const lock = await acquireLock(path, { takeOver: true });
  assert.equal(lock.predecessor, 'unknown');
  assert.equal(lock.loss(), null);
  await lock.release();
  assert.equal(await readLockText(path), null);
});

test('the lock of a dead process that somebody is about to take is refused, unless that one is dead, too', async (context) => {
  const path = join(await makeFolder(context), 'a.lock');
  const self = await describeSelf();
  const dead = textOf({ pid: NEVER, socket: '' }, self);
  const claim = claimPath(path, dead);
  await writeFile(path, dead);
  await writeFile(claim, textOf({ host: 'elsewhere', bootId: 'other', pid: 4 }, self));
  await assert.rejects(acquireLock(path), { kind: 'locked', message: /process 4 on elsewhere/ });
  assert.equal(await readLockText(path), dead);
  await writeFile(claim, textOf({ pid: NEVER - 1, socket: '' }, self));
  await (await acquireLock(path)).release();
});

test('whose lock was taken over is told by whom, and leaves the lock of the other one alone', async (context) => {
  const path = join(await makeFolder(context), 'a.lock');
  const lock = await acquireLock(path);
  assert.equal(lock.loss(), null);
  const child = startChild(context, ['take', path]);
  assert.equal(await child.nextLine(), 'held', child.complaints());
  const loss = lock.loss();
  assert.equal(loss?.kind, 'takenOver');
  assert.match(loss?.message ?? '', new RegExp(`taken over by process ${child.pid} on`));
  await lock.release();
  await assert.rejects(acquireLock(path), {
    kind: 'locked',
    message: new RegExp(`process ${child.pid} on`),
  });
});

test('a lock whose file could not be removed is free for the same process', async (context) => {
  const folder = await makeFolder(context);
  const path = join(folder, 'a.lock');
  const lock = await acquireLock(path);
  const claim = claimPath(path, await readFile(path, 'utf8'));
  await mkdir(claim); // as a full disk, it takes no claim
  await lock.release();
  await access(path);
  await rm(claim, { recursive: true });
  await (await acquireLock(path)).release();
  assert.deepEqual(await readdir(folder), []);
});

test('a new session removes what killed processes left of theirs, and nothing else', async (context) => {
  const folder = await makeFolder(context);
  const sessions = join(folder, 'sessions');
  await (await fileJournals({ folder }).create(headerOf('whole'))).close();
  const own = await describeSelf();
  const dead = JSON.stringify({ ...own, pid: NEVER, socket: 'killed.lock.1' });
  for (const [name, text] of [
    ...[
      ['killed.lock', dead] as const,
      ['killed.lock.1', ''] as const,
      ['killed.jsonl.new', '{"ver'] as const,
    ],
    ...[
      ['whole.lock', dead] as const,
      ['elsewhere.lock', JSON.stringify({ ...own, host: 'there' })] as const,
    ],
    ...[['elsewhere.jsonl.new', '{'] as const, ['notes.txt', ''] as const],
  ])
    await writeFile(join(sessions, name), text);
  const alive = await acquireLock(join(sessions, 'alive.lock'));
  await writeFile(join(sessions, 'alive.jsonl.new'), '{');
  await (await fileJournals({ folder }).create(headerOf('new'))).close();
  await alive.release();
  const kept = [
    'alive.jsonl.new',
    'elsewhere.jsonl.new',
    'elsewhere.lock',
    'new.jsonl',
    'new.mark',
    'new.owner',
    'notes.txt',
  ];
  assert.deepEqual(
    (await readdir(sessions)).sort(),
    [...kept, 'whole.jsonl', 'whole.lock', 'whole.mark', 'whole.owner'].sort(),
  );
});

test('what a killed import and killed takers of locks leave is removed once their processes are proved dead', async (context) => {
  const folder = await makeFolder(context);
  const sessions = join(folder, 'sessions');
  await (await fileJournals({ folder }).create(headerOf('whole'))).close();
  const own = await describeSelf();
  /** The lock and the socket of a process that was killed. */
  const kill = async (id: string): Promise<string> => {
    const child = startChild(context, ['hold', join(sessions, `${id}.lock`)]);
    assert.equal(await child.nextLine(), 'held');
    await child.kill();
    return readFile(join(sessions, `${id}.lock`), 'utf8');
  };
  const dead = await kill('import');
  const socket = /"socket":"([^"]+)"/.exec(dead)?.[1] ?? '';
  await kill('socket');
  await rm(join(sessions, 'socket.lock')); // killed between the lock file and the socket
  await kill('claim');
  await rename(join(sessions, 'claim.lock'), join(sessions, 'claim.lock.0123456789ab'));
  await kill('unsure');
  await rm(join(sessions, 'unsure.lock'));
  await writeFile(
    join(sessions, 'unsure.lock.0123456789ab'),
    JSON.stringify({ ...own, host: 'there', bootId: 'x' }),
  );
  await writeFile(join(sessions, 'import.jsonl.import'), '{"ver');
  await writeFile(join(sessions, 'whole.jsonl.import'), '{"ver'); // the journal stands, the draft is still there
  const alive = await acquireLock(join(sessions, 'alive.lock'));
  await writeFile(join(sessions, 'alive.jsonl.import'), '{"ver');
  await kill('young');
  await rm(join(sessions, 'young.lock'));
  const before = await readdir(sessions);
  for (const name of before)
    if (/\.lock\.[0-9a-f]{8}$/.test(name) && !name.startsWith('young'))
      await utimes(join(sessions, name), new Date(), new Date(own.since - 2 * 60 * 60 * 1_000));
  assert.ok(before.includes(socket));
  const unsure = before.filter((name) => /^(unsure|young)\.lock\./.test(name));
  assert.equal(
    unsure.length,
    3,
    'a claim of an unknown process, a socket that may be its own, and a new socket',
  );
  const living = before.filter((name) => name.startsWith('alive.lock'));
  await (await fileJournals({ folder }).create(headerOf('new'))).close();
  const expected = [
    ...unsure,
    ...living,
    'alive.jsonl.import',
    'new.jsonl',
    'new.mark',
    'new.owner',
  ];
  assert.deepEqual(
    (await readdir(sessions)).sort(),
    [...expected, 'whole.jsonl', 'whole.mark', 'whole.owner'].sort(),
  );
  await alive.release();
});

test('who took a lock over and died leaves its duty to renew the journal to the next, and that one to the next', async (context) => {
  const path = join(await makeFolder(context), 'a.lock');
  const own = await describeSelf();
  await writeFile(path, JSON.stringify({ ...own, bootId: 'b0', host: 'there' }));
  const taker = await acquireLock(path, { takeOver: true });
  assert.equal(taker.predecessor, 'unknown');
  let text = await readFile(path, 'utf8');
  await taker.release();
  for (let count = 0; count < 3; count++) {
    await writeFile(path, JSON.stringify({ ...JSON.parse(text), pid: NEVER, socket: '' })); // it was killed
    const next = await acquireLock(path);
    assert.equal(next.predecessor, 'unknown');
    text = await readFile(path, 'utf8');
    await next.release();
  }
  await writeFile(path, JSON.stringify({ ...own, pid: NEVER }));
  const control = await acquireLock(path);
  assert.equal(control.predecessor, 'gone');
  await control.release();
});

test('a lock that somebody deleted is no longer held', async (context) => {
  const path = join(await makeFolder(context), 'a.lock');
  const lock = await acquireLock(path);
  await rm(path);
  assert.equal(lock.loss()?.kind, 'foreignChange');
  await lock.release();
});

/** Judges by the text: the dead wrote "dead". */
const judge = async (text: string): Promise<void> => {
  if (!text.startsWith('dead')) throw new Error('it lives');
};

test('one of many replaces the file of a dead process, whatever claims dead processes left', async (context) => {
  const path = join(await makeFolder(context), 'a.lock');
  await createFile(path, 'dead 1');
  // a process died between its claim and the replacement; another one died while it replaced that claim
  await createFile(claimPath(path, 'dead 1'), 'dead 2');
  await createFile(claimPath(claimPath(path, 'dead 1'), 'dead 2'), 'dead 3');
  const owns = Array.from({ length: 20 }, (_, index) => `own ${index}`);
  const results = await Promise.allSettled(
    owns.map((own) => replaceFile(path, 'dead 1', own, judge)),
  );
  const winners = owns.filter((_, index) => {
    const result = results[index];
    return result?.status === 'fulfilled' && result.value;
  });
  assert.equal(winners.length, 1);
  assert.equal(await readLockText(path), winners[0]);
  assert.deepEqual(await readdir(dirname(path)), ['a.lock']);
});

test('who saw an earlier holder does not replace the lock of a later one', async (context) => {
  const path = join(await makeFolder(context), 'a.lock');
  await createFile(path, 'later');
  assert.equal(await replaceFile(path, 'earlier', 'own', judge), false);
  assert.equal(await readLockText(path), 'later');
  assert.deepEqual(await readdir(dirname(path)), ['a.lock']);
});

const linux: Partial<Holder> = { host: 'here', system: 's1', bootId: 'b1', pids: 'p1' };
const other: Partial<Holder> = { host: 'here', system: '', bootId: '', pids: '', started: '' };
type Row = readonly [
  title: string,
  holder: Partial<Holder>,
  self: Partial<Holder>,
  known: Awaited<ReturnType<typeof checkHolder>>,
];
const rows: readonly Row[] = [
  // a holder that,                    as it wrote itself down,              seen from
  ['is alive', linux, linux, 'unknown'],
  ['is dead', { ...linux, pid: NEVER }, linux, 'gone'],
  ['had the pid of a later process', { ...linux, started: '1' }, linux, 'gone'],
  [
    'runs in a container, and has no socket',
    { ...linux, pids: 'p2', pid: NEVER },
    linux,
    'unknown',
  ],
  ['ran before the last start of this computer', { ...linux, bootId: 'b0' }, linux, 'restarted'],
  ['ran on another computer', { ...linux, host: 'there', bootId: 'b0' }, linux, 'unknown'],
  [
    'ran on another computer of the same name',
    { ...linux, system: 's2', bootId: 'b0', pid: NEVER },
    linux,
    'unknown',
  ],
  ['ran on a system without identity', { ...linux, system: '', bootId: 'b0' }, linux, 'unknown'],
  ['is alive where there are no sockets', { ...other, pid: process.ppid }, other, 'unknown'],
  ['is dead where there are no sockets', { ...other, pid: NEVER }, other, 'gone'],
  ['had our own pid where there are no sockets', other, other, 'gone'],
  ['ran before the start where there are no sockets', { ...other, since: 1 }, other, 'restarted'],
  [
    'ran elsewhere where there are no sockets',
    { ...other, host: 'there', pid: NEVER },
    other,
    'unknown',
  ],
];
/** As macOS has it: no machine id, no namespaces, no socket. */
const mac: Partial<Holder> = { host: 'here', system: '', bootId: 'b1', pids: ALL_PROCESSES };
const earlierMac: Partial<Holder> = { ...mac, bootId: 'b0' };
const macRows: readonly Row[] = [
  ['is alive on a Mac', { ...mac, pid: process.ppid, started: '' }, mac, 'unknown'],
  ['is dead on a Mac', { ...mac, pid: NEVER }, mac, 'gone'],
  ['had our own pid on a Mac', mac, mac, 'gone'],
  ['had the pid of a later process on a Mac', { ...mac, started: '1' }, mac, 'gone'],
  ['ran on a Mac before its last start', { ...earlierMac, since: 1 }, mac, 'restarted'],
  [
    'ran in another boot since, on a Mac of that name',
    { ...earlierMac, pid: NEVER },
    mac,
    'unknown',
  ],
  ['ran on another Mac', { ...earlierMac, host: 'there', since: 1 }, mac, 'unknown'],
  ['ran with an earlier version on a Mac', { ...other, pid: NEVER }, mac, 'gone'],
  ['is alive with an earlier version on a Mac', { ...other, pid: process.ppid }, mac, 'unknown'],
  ['ran on Linux', { ...linux, pid: NEVER }, mac, 'unknown'],
];
for (const [title, holder, self, known] of [...rows, ...macRows]) {
  test(`a holder that ${title}: ${known}`, async () => {
    const own = await describeSelf();
    const check = checkHolder('/nowhere/a.lock', { ...own, ...holder }, { ...own, ...self });
    assert.equal(await check, known);
  });
}

/** As a child that is just being started answers for the parent whose sockets it still has. */
test('a socket that answers proves nothing of a holder whose process is gone; in another container it does', async (context) => {
  const folder = await makeFolder(context);
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => server.listen(join(folder, 'a.lock.1'), resolve));
  context.after(() => server.close());
  const own = await describeSelf();
  const check = (holder: Partial<Holder>) =>
    checkHolder(join(folder, 'a.lock'), { ...own, socket: 'a.lock.1', ...holder }, own);
  assert.equal(await check({ pid: NEVER }), 'gone');
  assert.equal(await check({ pid: process.ppid }), 'unknown');
  assert.equal(await check({ pid: NEVER, pids: 'of another container' }), 'unknown');
});
