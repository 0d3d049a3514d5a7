import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { makeRepository, wrapGit } from './place.js';
import { assertGone } from './processes.js';

const GIT = new URL('../../src/workspace/git/git.ts', import.meta.url).href;
const CLAIM = new URL('../../src/workspace/git/commit-claim.ts', import.meta.url).href;
const LOCK = new URL('../../src/workspace/git/lock-index.ts', import.meta.url).href;

test('a program that exits in the middle of it leaves no git, no folder and no lock', async (t) => {
  const place = await makeRepository(t);
  const environment = await wrapGit(
    place,
    'case "$*" in *status*) echo $$ > ROOT/pid; sleep 1000;; esac; exec REAL "$@"',
  );
  const temporary = path.join(place.root, 'tmp');
  await mkdir(temporary);
  const program = `
    import { existsSync } from 'node:fs';
    import { useRepository } from '${GIT}';
    import { CommitClaim, newClaimName } from '${CLAIM}';
    import { lockIndex } from '${LOCK}';
    const signal = new AbortController().signal;
    const place = { workspace: ${JSON.stringify(place.workspace)}, environment: process.env, signal };
    await useRepository(place, async (repository) => {
      const claim = new CommitClaim(repository.gitFolder, newClaimName());
      claim.make({ ref: 'HEAD', before: null, commit: '' });
      lockIndex(repository.indexFile, claim);
      if (!existsSync(repository.indexFile + '.lock')) process.exit(1);
      setInterval(() => existsSync('${place.root}/pid') && process.exit(0), 10);
      await repository.run(['status']);
    });`;
  const words = ['--import', 'tsx', '--input-type=module', '--eval', program];
  await promisify(execFile)(process.execPath, words, { env: { ...environment, TMPDIR: temporary } });
  await assertGone([Number(await readFile(path.join(place.root, 'pid'), 'utf8'))]);
  assert.deepEqual(
    (await readdir(temporary)).filter((name) => name.startsWith('pawl-')),
    [],
  );
  assert.deepEqual(
    (await readdir(place.path('.git'))).filter((name) => name.endsWith('.lock') || name.startsWith('pawl-')),
    [],
  );
});
