import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { Disk } from '../../src/simulation/disk.js';
import { DiskCalls } from '../../src/simulation/file-operations.js';

/** The simulated disk makes folders as a real one does: both get the same calls, beside a folder `d` and a file `f`. */

const codeOf = (make: () => unknown): string => {
  try {
    make();
    return 'made';
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : String(error);
  }
};

const calls: readonly (readonly [path: string, recursive: boolean, code: string])[] = [
  ['new', false, 'made'],
  ['d', false, 'EEXIST'],
  ['f', false, 'EEXIST'],
  ['d/a/b', false, 'ENOENT'],
  ['f/a', false, 'ENOTDIR'],
  ['d', true, 'made'],
  ['d/a/b', true, 'made'],
  ['f', true, 'EEXIST'],
  ['f/a', true, 'ENOTDIR'],
];

for (const [path, recursive, code] of calls) {
  test(`mkdir ${path}${recursive ? ' recursive' : ''}: ${code}`, (context) => {
    const real = mkdtempSync(join(tmpdir(), 'pawl-disk-'));
    context.after(() => rmSync(real, { recursive: true }));
    mkdirSync(join(real, 'd'));
    writeFileSync(join(real, 'f'), '');
    const disk = new DiskCalls(new Disk(), () => 1_000);
    disk.mkdir(['home', 'd']);
    disk.writeFile(['home', 'f'], Buffer.of());
    const simulated = codeOf(() => disk.mkdir(['home', ...path.split('/')], { recursive }));
    assert.deepEqual(
      [codeOf(() => mkdirSync(join(real, path), { recursive })), simulated],
      [code, code],
    );
  });
}
