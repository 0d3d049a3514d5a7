import assert from 'node:assert/strict';
import { chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { repositoryFolders } from '@pawl/agent/platform/trusted-folders';
import { loadAgentsFiles } from '@pawl/agent/session/instructions';
import { FormatterChoice } from '@pawl/agent/workspace/formatters';
import { useRepository } from '@pawl/agent/workspace/git';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { loadConfig } from '../../src/settings/configuration.js';

/**
 * What Pawl reads above a workspace, and what not because it belongs to another user. Files of another user can be made
 * by root only; the ordinary user is this process after it has put its rights down for a moment.
 */

const OTHER = 54_321;
const ORDINARY = 54_322;
const isRoot = process.geteuid?.() === 0;

type Place = { readonly root: string; readonly above: string; readonly workspace: string };

const write = (file: string, text: string): void => {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
};

/** A workspace without `.git` in a folder that has one, with instructions, settings and a formatter. */
const makePlace = (t: TestContext): Place => {
  const root = temporaryFolder(t, 'above');
  chmodSync(root, 0o755);
  const above = path.join(root, 'above');
  const workspace = path.join(above, 'mine');
  for (const name of ['objects', 'refs'])
    mkdirSync(path.join(above, '.git', name), { recursive: true });
  write(path.join(above, '.git/HEAD'), 'ref: refs/heads/main\n');
  write(path.join(above, 'AGENTS.md'), 'planted instructions');
  write(path.join(above, '.pawl/config.toml'), 'max_rounds = 3\n');
  write(path.join(above, 'node_modules/.bin/prettier'), '#!/bin/sh\n');
  chmodSync(path.join(above, 'node_modules/.bin/prettier'), 0o755);
  write(path.join(workspace, 'package.json'), '{"prettier":{}}');
  write(path.join(workspace, 'a.js'), 'x');
  return { root, above, workspace };
};

const giveTo = (place: string, uid: number): void => chownSync(place, uid, uid);

const giveAll = ({ above, workspace }: Place, uid: number): void => {
  for (const file of ['', '.git', 'AGENTS.md', '.pawl', '.pawl/config.toml'])
    giveTo(path.join(above, file), uid);
  giveTo(workspace, ORDINARY);
};

/** Everything of the folder above that is used for the workspace. */
const usedOf = async ({ workspace }: Place): Promise<readonly string[]> => {
  const environment = { PATH: '/usr/bin:/bin', HOME: '/nowhere' };
  const signal = new AbortController().signal;
  const { files } = await loadAgentsFiles(workspace);
  const config = await loadConfig(workspace, environment);
  const formatters = await new FormatterChoice(workspace, environment).choose(
    path.join(workspace, 'a.js'),
  );
  const asked = await useRepository({ workspace, environment, signal }, async () => true).catch(
    () => true,
  );
  return [
    ...files.map(({ path: file }) => file),
    ...(config.files.length > 0 ? ['settings'] : []),
    ...formatters.map(() => 'formatter'),
    ...(asked === null ? [] : ['git was asked']),
  ];
};

const ALL = ['../AGENTS.md', 'settings', 'formatter', 'git was asked'];

/** Runs as an ordinary user; as itself where that is one already. */
const asOrdinary = async <T>(work: () => Promise<T>): Promise<T> => {
  if (!isRoot) return work();
  process.setegid?.(ORDINARY);
  process.seteuid?.(ORDINARY);
  try {
    return await work();
  } finally {
    process.seteuid?.(0);
    process.setegid?.(0);
  }
};

test('control: what belongs to the user, or to root, is used', async (t) => {
  const place = makePlace(t);
  assert.deepEqual(await usedOf(place), ALL);
  if (isRoot) {
    giveAll(place, ORDINARY);
    assert.deepEqual(await asOrdinary(() => usedOf(place)), ALL, 'of the ordinary user itself');
    giveAll(place, 0);
    assert.deepEqual(await asOrdinary(() => usedOf(place)), ALL, 'of root');
  }
});

test('a folder above that belongs to another user is not read', async (t) => {
  if (!isRoot) return t.diagnostic('needs root to make files of another user');
  const place = makePlace(t);
  giveAll(place, OTHER);
  assert.deepEqual(await asOrdinary(() => usedOf(place)), []);
  assert.deepEqual(await usedOf(place), [], 'nor by root');
  const { warnings } = await loadAgentsFiles(place.workspace);
  assert.deepEqual(warnings, [
    `${place.above} belongs to another user, so the repository, instructions and settings there are not used.`,
  ]);
});

test('files of another user in a shared folder are not read', async (t) => {
  if (!isRoot) return t.diagnostic('needs root to make files of another user');
  const place = makePlace(t);
  giveAll(place, OTHER);
  giveTo(place.above, 0);
  chmodSync(place.above, 0o1777);
  assert.deepEqual(await asOrdinary(() => usedOf(place)), []);
  giveTo(path.join(place.above, '.git'), 0);
  assert.deepEqual(
    (await asOrdinary(() => usedOf(place))).filter(
      (used) => used !== 'formatter' && used !== 'git was asked',
    ),
    [],
    'with a repository of root there, instructions and settings are still those of the other user',
  );
});

test('a repository of somebody else is used as a whole by who works in it, as in a container', (t) => {
  if (!isRoot) return t.diagnostic('needs root to make files of another user');
  const place = makePlace(t);
  giveAll(place, OTHER);
  giveTo(place.workspace, OTHER);
  assert.equal(repositoryFolders(place.workspace).top, place.above);
});

test('root that came by sudo is still the user who called it', (t) => {
  if (!isRoot) return t.diagnostic('needs root to make files of another user');
  const place = makePlace(t);
  giveAll(place, OTHER);
  const before = process.env.SUDO_UID;
  t.after(() => {
    if (before === undefined) delete process.env.SUDO_UID;
    else process.env.SUDO_UID = before;
  });
  process.env.SUDO_UID = String(OTHER);
  assert.equal(repositoryFolders(place.workspace).top, place.above);
  process.env.SUDO_UID = 'no number';
  assert.equal(repositoryFolders(place.workspace).top, null);
});
