import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { bundleProgram } from '../bundled-program.js';
import { makeRepository, wrapGit } from './place.js';
import { assertGone } from './processes.js';

test('a program that exits in the middle of it leaves no git, no folder and no lock', async (t) => {
  const place = await makeRepository(t);
  const environment = await wrapGit(
    place,
    'case "$*" in *status*) echo $$ > ROOT/pid; sleep 1000;; esac; exec REAL "$@"',
  );
  const temporary = path.join(place.root, 'tmp');
  await mkdir(temporary);
  const code = `
    import { existsSync } from 'node:fs';
    import { useRepository } from './packages/agent/src/workspace/git.ts';
    import { CommitClaim, newClaimName } from './packages/agent/src/workspace/commit-claim.ts';
    import { lockIndex } from './packages/agent/src/workspace/make-commit.ts';
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
  const program = await bundleProgram(t, { code });
  await promisify(execFile)(process.execPath, [program], { env: { ...environment, TMPDIR: temporary } });
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
