import assert from 'node:assert/strict';
import { chmod, cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { chooseRows } from '../../../../test/tier.js';
import { type Repository, useRepository } from '../../src/workspace/git.js';
import { takeSnapshot } from '../../src/workspace/repository-snapshot.js';
import { type Environment, makePlace, makeSession, type Place } from './place.js';
import { kindsOfTraps, type Trap, traps } from './traps.js';

/** Commands of ours, and worse ones that the wrapper must be able to bear. */
const commands: readonly (readonly string[])[] = [
  ['status', '--porcelain=v2', '-z', '--branch', '--untracked-files=all'],
  ['status'],
  ['for-each-ref', '--format=%(objectname) %(refname)'],
  ['rev-list', '--count', 'HEAD'],
  ['rev-list', '--alternate-refs', '--count'],
  ['merge-base', 'HEAD', 'HEAD~1'],
  ['diff-tree', '-r', '--root', '--numstat', '-z', 'HEAD'],
  ['diff-tree', '-p', 'HEAD~1', 'HEAD'],
  ['check-attr', '-z', 'filter', 'f.x'],
  ['ls-files', '--stage', '-z'],
  ['cat-file', '-p', 'old:f.x'],
  ['cat-file', '--textconv', 'HEAD:f.x'],
  ['read-tree', 'HEAD'],
  ['update-index', '--add', '--remove', 'f.x', 'a'],
  ['write-tree', '--missing-ok'],
  ['commit-tree', '-m', 'x', 'HEAD^{tree}'],
  ['diff'],
  ['diff', '--ext-diff', '--textconv', 'HEAD'],
  ['log', '-p', '-1', '--show-signature'],
  ['show', 'HEAD'],
  ['blame', 'f.x'],
  ['add', 'f.x', 'a'],
  ['checkout-index', '--force', '--prefix=../out/', '--all'],
  ['archive', '--format=evil', 'HEAD'],
  ['interpret-trailers', '--trailer', 'see=1'],
  ['st'],
  ['trap'],
  ['fetch', 'origin'],
  ['credential', 'fill'],
];

const marksOf = (place: Place): Promise<string[]> => readdir(path.join(place.root, 'marks'));

/** What a trap needs, in a folder that is copied for each. */
const makeGround = async (test: TestContext): Promise<Place> => {
  const place = await makePlace(test);
  await mkdir(path.join(place.root, 'marks'));
  await place.shell(`
    git init -q -b main --template=; mkdir -p .git/hooks .git/info
    git config user.name Ada; git config user.email ada@example.org
    git config --global init.defaultBranch main
    echo '*.x filter=evil diff=evil merge=evil' > .gitattributes; echo a > a
    seq 3 > f.x; git add .; git commit -qm first; git tag old
    git checkout -qb side; echo side >> f.x; git commit -qam side; git checkout -q main
    echo main >> f.x; git commit -qam second
    # of the same length: only its content tells that it is changed
    sed -i s/1/9/ f.x; sed -i s/a/b/ a`);
  return place;
};

/** The program of a trap: the mark that it leaves is its number. */
const programOf = (place: Place, trap: Trap): string =>
  path.join(place.root, `trap-${traps.indexOf(trap)}`);

const fill = (place: Place, trap: Trap, text: string): string =>
  text.replaceAll('TRAP', programOf(place, trap)).replaceAll('ROOT', place.root);

const environmentOf = (place: Place, trap: Trap): Environment =>
  Object.fromEntries(
    Object.entries(trap.environment ?? {}).map(([name, text]) => [name, fill(place, trap, text)]),
  );

const setTrap = async (place: Place, trap: Trap): Promise<void> => {
  const program = programOf(place, trap);
  const mark = path.join(place.root, 'marks', path.basename(program));
  await writeFile(program, `#!/bin/bash\n: > '${mark}'\n[ -t 0 ] || timeout 0.5 cat\n`);
  await chmod(program, 0o755);
  await place.shell(fill(place, trap, trap.set));
};

const copyOf = async (test: TestContext, ground: Place): Promise<Place> => {
  const place = await makePlace(test);
  await cp(ground.root, place.root, { recursive: true });
  return place;
};

const configOf = (place: Place): Promise<readonly string[]> =>
  Promise.all(
    [place.path('.git/config'), path.join(place.root, 'home/.gitconfig')].map((file) =>
      readFile(file, 'utf8'),
    ),
  );

/** A session that looks, edits, runs a command, and commits. */
const runPhases = async (place: Place, environment: Environment): Promise<void> => {
  const session = makeSession(place, { environment });
  const calls = await session.batch([
    { edit: 'agent.x', text: 'agent' },
    { edit: 'agent', text: 'agent' },
    { command: 'echo more >> b' },
  ]);
  const context = session.context(calls, { write: async () => 'feat: something' });
  assert.equal((await session.check(context)).dirty, true);
  assert.deepEqual(await marksOf(place), [], 'the look for commits ran it');
  const { note } = await session.hooks.run('AutoCommitting', context);
  assert.match(
    note,
    /Your changes were committed to main as [0-9a-f]{8}(, not signed)?: feat: something/,
  );
  assert.deepEqual(await marksOf(place), [], 'the commit ran it');
};

test('each trap of a repository fires on a naive call and on none of ours', async (t) => {
  const ground = await makeGround(t);
  const chosen = Object.values(kindsOfTraps).flatMap((kind) => chooseRows(kind));
  for (const trap of chosen) {
    await t.test(trap.name, async (t) => {
      const place = await copyOf(t, ground);
      await setTrap(place, trap);
      const extra = environmentOf(place, trap);
      const config = await configOf(place);
      await runPhases(place, { ...place.environment, ...extra });
      assert.deepEqual(await configOf(place), config);
      const exports = Object.entries(extra).map(([name, value]) => `export ${name}='${value}'; `);
      await place.tryShell(exports.join('') + fill(place, trap, trap.control));
      assert.deepEqual(
        await marksOf(place),
        [path.basename(programOf(place, trap))],
        'the control must fire',
      );
    });
  }
});

const runAll = async (place: Place, repository: Repository): Promise<void> => {
  for (const words of commands) {
    const indexFile = path.join(repository.scratch, 'index');
    await cp(repository.indexFile, indexFile);
    await repository.run(words, { indexFile, input: '' });
    assert.deepEqual(await marksOf(place), [], `git ${words.join(' ')}`);
  }
  const to = (await repository.ask(['rev-parse', 'HEAD'])).trim();
  const move = { ref: 'refs/heads/ours', from: null, to, why: 'a test' };
  assert.equal((await repository.moveRef(move)).code, 0);
  assert.deepEqual(await marksOf(place), [], 'git update-ref');
  await assert.rejects(repository.moveRef({ ...move, to: null }), /only with the hash/);
};

test('with all traps set together no command fires one, whatever it is', async (t) => {
  const place = await copyOf(t, await makeGround(t));
  let environment = place.environment;
  for (const trap of traps) {
    if (trap.alone === true) continue;
    await setTrap(place, trap);
    environment = { ...environment, ...environmentOf(place, trap) };
  }
  await place.tryShell(`rm -f ${place.root}/marks/*`);
  const config = await configOf(place);
  const signal = new AbortController().signal;
  const opened = await useRepository(
    { workspace: place.workspace, environment, signal },
    async (repository) => {
      await takeSnapshot(repository);
      assert.deepEqual(await marksOf(place), []);
      await runAll(place, repository);
      return repository;
    },
  );
  assert.notEqual(opened, null);
  await runPhases(place, environment);
  assert.deepEqual(await configOf(place), config);
});
