import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { FormatterReach } from '../../src/workspace/formatters.js';
import { KnownRepository } from '../../src/workspace/git.js';
import { anHourLater, makePlace, makeRepository, type Place, wrapGit } from './place.js';

/** Whether a formatter may be used for what a command changes somewhere. */

const reachOf = async (place: Place, workspace = place.workspace) => {
  const environment = await wrapGit(place, 'exec REAL "$@"');
  const known = new KnownRepository(environment, anHourLater);
  const reach = new FormatterReach(anHourLater);
  const log = path.join(place.root, 'log');
  return {
    reach,
    async isReached(): Promise<boolean> {
      return reach.isReached({
        workspace,
        environment,
        signal: new AbortController().signal,
        known,
      });
    },
    async asked(): Promise<boolean> {
      const was = existsSync(log) && (await readFile(log, 'utf8')).includes('ls-files');
      await rm(log, { force: true });
      return was;
    },
  };
};

type Row = {
  readonly title: string;
  readonly given: string;
  readonly reached: boolean;
  readonly in?: string;
};
const rows: readonly Row[] = [
  { title: 'nothing', given: 'true', reached: false },
  { title: 'a package without a formatter', given: 'echo "{}" > package.json', reached: false },
  {
    title: 'settings in the workspace that nobody tracks',
    given: 'echo {} > .prettierrc',
    reached: true,
  },
  {
    title: 'a formatter that need not be used',
    given: `echo '{"devDependencies":{"prettier":"3"}}' > package.json`,
    reached: true,
  },
  {
    title: 'settings in a tracked folder',
    given: 'mkdir -p deep/er; touch deep/er/.clang-format; git add .',
    reached: true,
  },
  {
    title: 'a tracked package without a formatter',
    given: 'mkdir p; echo "{}" > p/package.json; git add .',
    reached: false,
  },
  {
    title: 'settings in a folder beside the workspace',
    given: 'mkdir sub other; touch other/.clang-format; git add .',
    in: 'sub',
    reached: false,
  },
  {
    title: 'settings above the workspace',
    given: 'mkdir sub; touch .clang-format; git add .',
    in: 'sub',
    reached: false,
  },
  {
    title: 'settings in a folder that is not tracked',
    given: 'mkdir sub; touch sub/.clang-format',
    reached: false,
  },
  {
    title: 'more packages than are read',
    given: 'mkdir p{1..201}; for i in {1..201}; do echo {} > p$i/package.json; done; git add .',
    reached: true,
  },
];
for (const row of rows) {
  test(`a formatter is reached ${row.reached ? 'by' : 'not by'} ${row.title}`, async (t) => {
    const place = await makeRepository(t);
    await place.shell(row.given);
    const { isReached } = await reachOf(place, path.join(place.workspace, row.in ?? '.'));
    assert.equal(await isReached(), row.reached);
  });
}

const changes: readonly (readonly [title: string, given: string, change: string, git: boolean])[] =
  [
    ['settings come into the workspace', 'true', 'touch .clang-format', false],
    [
      'a package gets a formatter',
      'echo "{}" > package.json',
      `echo '{"prettier":{}}' > package.json`,
      false,
    ],
    [
      'a tracked package gets one',
      'mkdir p; echo "{}" > p/package.json; git add .',
      `echo '{"prettier":{}}' > p/package.json`,
      false,
    ],
    ['settings are tracked', 'mkdir p; touch p/.clang-format', 'git add .', true],
  ];
for (const [title, given, change, git] of changes) {
  test(`a formatter is reached when ${title}; until then nothing is asked twice`, async (t) => {
    const place = await makeRepository(t);
    await place.shell(given);
    const { isReached, asked } = await reachOf(place);
    assert.deepEqual([await isReached(), await asked()], [false, true]);
    assert.deepEqual([await isReached(), await asked()], [false, false]);
    await place.shell(change);
    assert.deepEqual([await isReached(), await asked()], [true, git]);
    assert.deepEqual([await isReached(), await asked()], [true, false]);
  });
}

const untracked = async (t: TestContext) => {
  const place = await makeRepository(t);
  await place.shell('mkdir sub; touch sub/.clang-format');
  return { place, ...(await reachOf(place)) };
};

test('a folder counts when calls have named a file in it', async (t) => {
  const { place, reach, isReached } = await untracked(t);
  assert.equal(await isReached(), false);
  reach.remember([place.path('sub/a.c'), path.join(place.root, 'elsewhere/b.c')]);
  assert.equal(await isReached(), true);
});

test('more named folders than are read count as reached, wherever they are', async (t) => {
  const { place, reach, isReached } = await untracked(t);
  reach.remember(Array.from({ length: 200 }, (_, at) => path.join(place.root, `${at}/a.c`)));
  assert.equal(await isReached(), false);
  reach.remember([place.path('sub/a.c')]);
  assert.equal(await isReached(), true);
});

test('without a repository the workspace alone counts', async (t) => {
  const place = await makePlace(t);
  const { isReached, asked } = await reachOf(place);
  assert.equal(await isReached(), false);
  await place.write('.clang-format', '');
  assert.deepEqual([await isReached(), await asked()], [true, false]);
});
