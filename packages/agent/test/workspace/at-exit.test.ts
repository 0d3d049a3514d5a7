import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { bundleProgram } from '../../../../test/bundled-program.js';
import { makeRepository, wrapGit } from './place.js';
import { assertGone } from './processes.js';

test('a program that exits in the middle of it leaves no git and no folder', async (t) => {
  const place = await makeRepository(t);
  const environment = await wrapGit(
    place,
    'case "$*" in *status*) echo $$ > ROOT/pid; sleep 1000;; esac; exec REAL "$@"',
  );
  const temporary = path.join(place.root, 'tmp');
  await mkdir(temporary);
  const program = await bundleProgram(t, {
    file: fileURLToPath(new URL('ask-and-exit.ts', import.meta.url)),
  });
  const words = [program, place.workspace, path.join(place.root, 'pid')];
  await promisify(execFile)(process.execPath, words, {
    env: { ...environment, TMPDIR: temporary },
  });
  await assertGone([Number(await readFile(path.join(place.root, 'pid'), 'utf8'))]);
  assert.deepEqual(
    (await readdir(temporary)).filter((name) => name.startsWith('pawl-')),
    [],
  );
});
