import assert from 'node:assert/strict';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import path from 'node:path';
import { test } from 'node:test';
import '../../../../test/own-process.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import {
  copyRegular,
  copyRegularSync,
  holdFolderSync,
  readRegular,
  readRegularSync,
} from '../../src/platform/files.js';

// On systems without /proc, a symlink that takes the place of a file between two steps is not followed. The
// change is made by the first system call that looks at the path, or opens it.

Object.defineProperty(process, 'platform', { value: 'darwin' });

type Reader = (file: string, copy: string) => Promise<string> | string;

const textOf = (loaded: Awaited<ReturnType<typeof readRegular>>): string =>
  loaded.kind === 'file' ? loaded.bytes.toString() : loaded.kind;

const FOLDERS = { follow: 'folders' } as const;

const READERS: Readonly<Record<string, Reader>> = {
  readRegular: async (file) => textOf(await readRegular(file, 99, FOLDERS)),
  readRegularSync: (file) => textOf(readRegularSync(file, 99, FOLDERS)),
  async copyRegular(file, copy) {
    await copyRegular(file, copy, FOLDERS);
    return fs.readFileSync(copy, 'utf8');
  },
  copyRegularSync(file, copy) {
    copyRegularSync(file, copy, FOLDERS);
    return fs.readFileSync(copy, 'utf8');
  },
};

const { lstatSync } = fs;
const { lstat, open } = fs.promises;

for (const [name, read] of Object.entries(READERS))
  test(`${name} reads a file, and not where a symlink that takes its place leads`, async (t) => {
    const folder = temporaryFolder(t, 'files');
    const at = (one: string): string => path.join(folder, one);
    fs.writeFileSync(at('secret'), 'secret');
    fs.writeFileSync(at('file'), 'text', { mode: 0o640 });
    assert.equal(await read(at('file'), at('copy')), 'text', 'control');
    if (name.startsWith('copy')) assert.equal(fs.statSync(at('copy')).mode & 0o777, 0o640);
    let isExchanged = false;
    const exchange = (): void => {
      if (isExchanged) return;
      isExchanged = true;
      fs.unlinkSync(at('file'));
      fs.symlinkSync('secret', at('file'));
    };
    t.after(() => {
      Object.assign(fs, { lstatSync });
      Object.assign(fs.promises, { lstat, open });
      syncBuiltinESMExports();
    });
    const look = (place: string) => {
      const status = lstatSync(place);
      exchange();
      return status;
    };
    Object.assign(fs, { lstatSync: look });
    if (name === 'copyRegular')
      Object.assign(fs.promises, {
        async open(place: string, flags: number) {
          const file = await open(place, flags);
          exchange();
          return file;
        },
      });
    else Object.assign(fs.promises, { lstat: async (place: string) => look(place) });
    syncBuiltinESMExports();
    const ended = await Promise.resolve()
      .then(() => read(at('file'), at('other')))
      .catch(String);
    assert.doesNotMatch(ended, /secret/);
    assert.equal(fs.readlinkSync(at('file')), 'secret', 'control: it was exchanged');
  });

test('a folder whose path leads through a symlink is not held', (t) => {
  const folder = fs.realpathSync(temporaryFolder(t, 'files'));
  fs.mkdirSync(path.join(folder, 'real/inner'), { recursive: true });
  fs.symlinkSync('real', path.join(folder, 'link'));
  holdFolderSync(path.join(folder, 'real/inner')).close();
  assert.throws(() => holdFolderSync(path.join(folder, 'link/inner')), { code: 'ELOOP' });
  const file = path.join(folder, 'link/inner/file');
  fs.writeFileSync(file, 'text');
  assert.equal(readRegularSync(file, 99, { follow: 'none' }).kind, 'unusable');
  const { realpathSync } = fs;
  t.after(() => {
    Object.assign(fs, { realpathSync });
    syncBuiltinESMExports();
  });
  const gone = (): never => assert.fail('removed meanwhile');
  Object.assign(fs, { realpathSync: gone });
  syncBuiltinESMExports();
  assert.throws(() => holdFolderSync(path.join(folder, 'real/inner')), /removed meanwhile/);
  const open = fs.readdirSync('/proc/self/fd').map((name) => {
    const descriptor = path.join('/proc/self/fd', name);
    return fs.lstatSync(descriptor, { throwIfNoEntry: false }) && fs.readlinkSync(descriptor);
  });
  assert.equal(open.includes(path.join(folder, 'real/inner')), false, 'its descriptor is closed');
});
