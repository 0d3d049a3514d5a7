import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import {
  openRegular,
  readBytes,
  readRawName,
  readRegular,
  readRegularSync,
  readSmall,
  readUpTo,
  systemFault,
  systemPath,
} from '../../src/platform/files.js';
import {
  createLink,
  replaceEntry,
  replaceKeepingCopy,
  setAside,
} from '../../src/platform/replaceable-files.js';

/** Only files are opened, and never more of them is read than allowed. */

const makeFolder = (t: TestContext): string => {
  const folder = temporaryFolder(t, 'regular');
  return folder;
};

/** What is open of these paths. Node opens descriptors of its own at any time. */
const openOf = (...paths: readonly string[]): readonly string[] =>
  readdirSync('/proc/self/fd').flatMap((name) => {
    const target = readlinkIfThere(`/proc/self/fd/${name}`);
    return paths.some((one) => target === one || target.startsWith(`${one}/`)) ? [target] : [];
  });

const readlinkIfThere = (file: string): string => {
  try {
    return readlinkSync(file);
  } catch {
    return ''; // the one by which the folder was read
  }
};

test('pipes, devices, sockets and folders are not opened; what is said of each', async (t) => {
  const folder = makeFolder(t);
  const at = (name: string): string => path.join(folder, name);
  execFileSync('mkfifo', [at('pipe')]);
  mkdirSync(at('folder'));
  symlinkSync('pipe', at('link-to-pipe'));
  symlinkSync('/dev/zero', at('device'));
  symlinkSync('loop', at('loop'));
  writeFileSync(at('file'), 'text');
  symlinkSync('file', at('link'));
  writeFileSync(at('large'), 'x'.repeat(100));
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(at('socket'), resolve));
  t.after(() => server.close());
  const rows: readonly (readonly [name: string, kind: string, why: RegExp | null])[] = [
    ['pipe', 'unusable', /not a regular file/],
    ['link-to-pipe', 'unusable', /not a regular file/],
    ['device', 'unusable', /not a regular file/],
    ['socket', 'unusable', /not a regular file/],
    ['loop', 'unusable', /ELOOP/],
    ['large', 'unusable', /100 bytes, at most 64 are read/],
    ['folder', 'folder', null],
    ['none', 'absent', null],
    ['file/below', 'absent', null],
    ['file', 'file', null],
    ['link', 'file', null],
  ];
  for (const [name, kind, why] of rows) {
    for (const loaded of [await readRegular(at(name), 64), readRegularSync(at(name), 64)]) {
      assert.equal(loaded.kind, kind, name);
      if (loaded.kind === 'unusable' && why !== null) assert.match(loaded.why, why);
      if (loaded.kind === 'file') assert.equal(loaded.bytes.toString(), 'text');
    }
    // these follow no symlink; the short one reads the start of a larger file
    const text = kind === 'file' && name !== 'link' ? 'text' : null;
    assert.equal(readBytes(at(name), 64)?.toString() ?? null, text, name);
    assert.equal(readSmall(at(name)), name === 'large' ? 'x'.repeat(100) : (text ?? ''), name);
  }
  const link = await readRegular(at('link'), 64, { follow: 'folders' });
  assert.deepEqual(link, { kind: 'unusable', why: 'it is a symlink', code: 'ENOTREG' });
  assert.deepEqual(openOf(folder, '/dev/zero'), [], 'every descriptor is closed');
});

test('a file that claims to be empty, or grows, is read up to the limit', async (t) => {
  const folder = makeFolder(t);
  const file = path.join(folder, 'file');
  writeFileSync(file, 'x'.repeat(200_000));
  const opened = await openRegular(file);
  const lying = Object.assign(Object.create(opened.status), { size: 0 });
  assert.equal((await readUpTo(opened.file, lying, 150_000)).length, 150_000);
  assert.equal((await readUpTo(opened.file, lying, 300_000)).length, 200_000);
  await opened.file.close();
  // files of /proc have no size
  if (process.platform === 'linux') {
    assert.equal((await readRegular('/proc/version', 8)).kind, 'unusable');
    assert.equal((await readRegular('/proc/version', 8_000)).kind, 'file');
    assert.equal(readRegularSync('/proc/version', 8).kind, 'unusable');
  }
});

test('what takes the place of a file has its mode and owner, and a failure changes nothing', (t) => {
  const folder = makeFolder(t);
  const at = (name: string): string => path.join(folder, name);
  for (const mode of [0o600, 0o755]) {
    writeFileSync(at('file'), 'old');
    chmodSync(at('file'), mode);
    if (process.geteuid?.() === 0) chownSync(at('file'), 1, 2);
    const { uid, gid } = statSync(at('file'));
    assert.notEqual(replaceKeepingCopy(at('file'), Buffer.from('new'), at(`aside-${mode}`)), null);
    const now = statSync(at('file'));
    assert.deepEqual([now.mode & 0o777, now.uid, now.gid], [mode, uid, gid]);
    assert.equal(readBytes(at('file'), 9)?.toString(), 'new');
  }
  mkdirSync(at('in-the-way'));
  const before = readdirSync(folder);
  assert.equal(replaceKeepingCopy(at('in-the-way'), Buffer.from('new'), at('aside-384')), null);
  // a command put a symlink in place of the new file
  const link = (fresh: string): void => symlinkSync(at('aside-384/file'), fresh);
  const owned = { uid: 3, gid: 3, mode: 0o777 };
  assert.throws(() => replaceEntry(folder, 'file', owned, link), { code: 'ELOOP' });
  assert.equal(statSync(at('aside-384/file')).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(folder), before);
});

test('what is moved, copied or linked keeps a name that is no UTF-8', (t) => {
  const folder = makeFolder(t);
  const at = (name: string): string => path.join(folder, name);
  const place = at('a\udcff');
  writeFileSync(systemPath(place), 'old');
  const copy = replaceKeepingCopy(place, Buffer.from('new'), at('copies')) ?? '';
  assert.equal(readBytes(copy, 9)?.toString(), 'old');
  const moved = setAside(place, at('moved')) ?? '';
  assert.equal(readBytes(moved, 9)?.toString(), 'new');
  assert.ok(createLink(at('link'), 'b\udcff'));
  assert.equal(readRawName(readlinkSync(at('link'), 'buffer')), 'b\udcff');
});

test('a fault names the path of its caller, whatever is in it', () => {
  const fault = new Error("EACCES: denied, open '/proc/self/fd/7/x'");
  assert.equal(systemFault(fault, '/a/$&$1'), "EACCES: denied, open '/a/$&$1'");
});

test('a name without a folder is never taken for one in the root', () => {
  for (const name of ['tmp', Buffer.from('tmp')])
    assert.equal(readRegularSync(name, 1, { follow: 'none' }).kind, 'unusable');
});
