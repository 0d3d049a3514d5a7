import assert from 'node:assert/strict';
import { rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { useRepository } from '../../src/workspace/git.js';
import { makePlace, type Place } from './place.js';

/** A folder whose `.git` names a repository of the user somewhere else, and folders whose repository is rightly elsewhere. */

const MADE = 'git init -q -b main && echo one > a && git add . && git commit -qm first';

const use = (place: Place, workspace = place.workspace): Promise<string | null> =>
  useRepository(
    { workspace, environment: place.environment, signal: new AbortController().signal },
    (repository) => repository.ask(['rev-parse', 'HEAD']),
  );

const HOSTILE: Readonly<Record<string, (place: Place, other: string) => Promise<unknown>>> = {
  'a file': (place, other) => writeFile(place.path('.git'), `gitdir: ${other}/.git\n`),
  'a symlink': (place, other) => symlink(`${other}/.git`, place.path('.git')),
  'a common folder': async (place, other) => {
    await place.shell('git init -q -b main');
    await writeFile(place.path('.git/commondir'), `${other}/.git\n`);
  },
};

for (const [kind, plant] of Object.entries(HOSTILE)) {
  test(`another repository of the user that is named by ${kind} is not used`, async (t) => {
    const place = await makePlace(t);
    const other = path.join(place.root, 'other');
    await place.shell(`mkdir ${other} && cd ${other} && ${MADE}`);
    await plant(place, other);
    const head = await place.shell(`git -C ${other} rev-parse HEAD`);
    assert.equal(
      await place.shell('git rev-parse HEAD'),
      head,
      'the control: git itself believes it',
    );
    await assert.rejects(use(place), { kind: 'refused', message: /^git is not asked: / });
  });
}

test('a linked worktree, a submodule and a folder below are used', async (t) => {
  const place = await makePlace(t);
  await place.shell(`${MADE}; mkdir sub; git worktree add -q ../linked`);
  const source = path.join(place.root, 'source');
  await place.shell(`git clone -q . ${source}`);
  await place.shell(`git -c protocol.file.allow=always submodule --quiet add ${source} inner`);
  const head = await place.shell('git rev-parse HEAD');
  for (const folder of [
    place.workspace,
    place.path('sub'),
    place.path('inner'),
    path.join(place.root, 'linked'),
  ]) {
    assert.equal(await use(place, folder), head, folder);
  }
  await rm(place.path('.git'), { recursive: true });
});
