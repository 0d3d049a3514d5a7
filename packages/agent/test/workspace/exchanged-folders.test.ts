import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { inflateRawSync } from 'node:zlib';
import '../../../../test/own-process.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { chooseRows, countCases } from '../../../../test/tier.js';
import { readPromptText } from '../../src/extensions/skills/read-skill.js';
import { toolCall } from '../../src/machine/event.js';
import { readRegularSync } from '../../src/platform/files.js';
import {
  createFile,
  createLink,
  removeBelow,
  replaceKeepingCopy,
  setAside,
  writeBack,
} from '../../src/platform/replaceable-files.js';
import { loadAgentsFiles } from '../../src/session/instructions.js';
import { loadFile } from '../../src/tools/files.js';
import { lookAt, readState } from '../../src/workspace/checkpoints/file-entries.js';
import { copyFiles } from '../../src/workspace/checkpoints/files-at.js';
import { createCheckpoints } from '../../src/workspace/checkpoints/session-checkpoints.js';
import { CheckpointStore } from '../../src/workspace/checkpoints/store.js';
import { WorkspaceLister } from '../../src/workspace/checkpoints/workspace-lister.js';
import { KnownRepository } from '../../src/workspace/git.js';

/**
 * A command exchanges a folder of the workspace and a link to a folder outside, before any call of the file system
 * that Pawl makes. Nothing of outside is read or written.
 */

const SYNC = [
  'fstatSync',
  'lstatSync',
  'mkdirSync',
  'openSync',
  'readdirSync',
  'readlinkSync',
] as const;
const MORE = [
  'copyFileSync',
  'lutimesSync',
  'readSync',
  'rmdirSync',
  'statSync',
  'unlinkSync',
  'symlinkSync',
  'writeFileSync',
] as const;
const ASYNC = ['copyFile', 'lstat', 'mkdir', 'open', 'readdir', 'readlink', 'realpath'] as const;

const real = { ...fs };
const realPromises = { ...fs.promises };
let beforeCall: (() => void) | null = null;

const watching = (call: unknown) =>
  function watched(this: unknown, ...words: unknown[]): unknown {
    const notify = beforeCall;
    beforeCall = null; // not for the calls of the exchange itself
    notify?.();
    beforeCall = notify;
    return (call as (...words: unknown[]) => unknown).apply(this, words);
  };
for (const name of [...SYNC, ...MORE]) Object.assign(fs, { [name]: watching(real[name]) });
for (const name of ASYNC) Object.assign(fs.promises, { [name]: watching(realPromises[name]) });
syncBuiltinESMExports();
after(() => {
  for (const name of [...SYNC, ...MORE]) Object.assign(fs, { [name]: real[name] });
  for (const name of ASYNC) Object.assign(fs.promises, { [name]: realPromises[name] });
  syncBuiltinESMExports();
});

const SECRET = 'of outside';

type Place = { readonly root: string; readonly workspace: string; readonly outside: string };

const makePlace = (root: string): Place => {
  const place = { root, workspace: path.join(root, 'work'), outside: path.join(root, 'outside') };
  for (const name of ['work', 'outside', 'copy', 'state', 'work/d', 'outside/only'])
    real.mkdirSync(path.join(root, name), { recursive: true });
  for (const [folder, text] of [
    ['work/d', 'own'],
    ['outside', SECRET],
  ] as const) {
    real.writeFileSync(path.join(root, folder, 'x'), text);
    real.writeFileSync(path.join(root, folder, 'AGENTS.md'), text);
    real.symlinkSync(text, path.join(root, folder, 'link'));
  }
  real.writeFileSync(path.join(root, 'outside', `only/${SECRET}`), '');
  real.writeFileSync(path.join(root, 'work/AGENTS.md'), '@d/AGENTS.md\n');
  return place;
};

/** The folder is elsewhere, and a link to the one outside in its place; or the other way round. */
const exchange = ({ root, workspace, outside }: Place): void => {
  const [folder, aside] = [path.join(workspace, 'd'), path.join(root, 'aside')];
  if (real.existsSync(aside)) {
    real.unlinkSync(folder);
    real.renameSync(aside, folder);
  } else {
    real.renameSync(folder, aside);
    real.symlinkSync(outside, folder);
  }
};

/** How often the folder is exchanged back, in calls after it was exchanged; null: never. */
const BACK_AFTER = [null, 1, 2, 3, 4, 5];
const CALLS_MAX = 200;

const show = (root: string): string =>
  real
    .readdirSync(root, { withFileTypes: true })
    .map((entry) => {
      const place = path.join(root, entry.name);
      if (entry.isDirectory()) return `${entry.name}(${show(place)})`;
      return `${entry.name}=${entry.isFile() ? real.readFileSync(place) : real.readlinkSync(place)}`;
    })
    .join(' ');

type Face = {
  readonly when: string;
  /** Returns what was read. */
  readonly run: (place: Place) => unknown;
  /** What it reads or makes if nobody exchanges the folder. */
  readonly usual: RegExp;
};

const environment = { PATH: process.env.PATH };

const FACES: readonly Face[] = [
  {
    when: 'the state of a file is read for a checkpoint',
    run: async ({ workspace }) => {
      const kept: string[] = [];
      const state = await readState(workspace, 'd/x', (bytes) => `${kept.push(bytes.toString())}`);
      return [kept, state];
    },
    usual: /own/,
  },
  {
    when: 'the state of a link is read for a checkpoint',
    run: ({ workspace }) => readState(workspace, 'd/link'),
    usual: /own/,
  },
  {
    when: 'a link is looked at',
    run: ({ workspace }) => lookAt(workspace, 'd/link')?.target,
    usual: /own/,
  },
  {
    when: 'a workspace without git is listed',
    run: async ({ workspace }) => {
      const { signal } = new AbortController();
      const known = new KnownRepository(environment);
      const lister = new WorkspaceLister({ workspace, environment, signal, known });
      return [...(await lister.list(false)).names];
    },
    usual: /d\/x/,
  },
  {
    when: 'the workspace is copied',
    run: async ({ root, workspace }) => {
      const [target, store] = [
        path.join(root, 'copy'),
        new CheckpointStore(path.join(root, 'state')),
      ];
      const { signal } = new AbortController();
      const left = await copyFiles({
        workspace,
        target,
        states: new Map(),
        store,
        environment,
        signal,
      });
      return [left, show(target)];
    },
    usual: /x=own/,
  },
  {
    when: 'a skill is read',
    run: ({ workspace }) =>
      readPromptText(path.join(workspace, 'd/x'), {
        folder: workspace,
        owner: 'project',
        kind: 'skill',
        within: [workspace],
      }),
    usual: /own/,
  },
  {
    when: 'AGENTS.md and its imports are read',
    run: async ({ workspace }) => (await loadAgentsFiles(workspace)).files,
    usual: /own/,
  },
  {
    when: 'a tool reads a file',
    run: async ({ workspace }) => {
      const loaded = await loadFile(path.join(workspace, 'd/x'));
      return loaded.kind === 'file' ? loaded.bytes.toString() : loaded;
    },
    usual: /own/,
  },
  {
    when: 'a protected file is remembered',
    run: ({ workspace }) => {
      const loaded = readRegularSync(path.join(workspace, 'd/x'), 64, { follow: 'none' });
      return loaded.kind === 'file' ? loaded.bytes.toString() : loaded;
    },
    usual: /own/,
  },
  {
    when: 'a protected file is written back',
    run: ({ workspace }) =>
      writeBack(path.join(workspace, 'd/x'), Buffer.from('back'), path.join(workspace, '../copy')),
    usual: /copy.x/,
  },
  {
    when: 'a configuration is cleaned',
    run: ({ workspace }) => {
      const aside = path.join(workspace, '..', 'aside');
      const moved = replaceKeepingCopy(path.join(workspace, 'd/x'), Buffer.from('cleaned'), aside);
      return [moved !== null, moved === null ? '' : show(aside)];
    },
    usual: /^\[true,.*x=own/,
  },
  {
    when: 'a protected file is made again',
    run: ({ workspace }) => createFile(path.join(workspace, 'd/made'), Buffer.from('back'), 0o644),
    usual: /true/,
  },
  {
    when: 'a protected link is made again',
    run: ({ workspace }) => createLink(path.join(workspace, 'd/made'), 'back'),
    usual: /true/,
  },
  {
    when: 'a folder is removed with all that is in it',
    run: ({ workspace }) => {
      removeBelow(path.join(workspace, 'd'));
      return !real.existsSync(path.join(workspace, 'd'));
    },
    usual: /true/,
  },
];

/** Of a file system that is another one than that of the workspace. */
const OTHER_DISK = '/dev/shm';
const hasOtherDisk =
  fs.existsSync(OTHER_DISK) && fs.statSync(OTHER_DISK).dev !== fs.statSync(tmpdir()).dev;

const MOVE: Face = {
  when: 'a protected folder is moved to another file system',
  run: ({ workspace }) => {
    const target = real.mkdtempSync(path.join(OTHER_DISK, 'pawl-moved-'));
    try {
      const moved = setAside(path.join(workspace, 'd'), target);
      return [moved !== null && real.existsSync(path.join(workspace, 'd')), show(target)];
    } finally {
      real.rmSync(target, { recursive: true });
    }
  },
  usual: /^\[false,.*x=own/,
};

/** Runs it once in a new place. Returns how many calls it made. */
const attack = async (t: TestContext, { run, usual }: Face, at: number, back: number | null) => {
  const place = makePlace(fs.realpathSync(temporaryFolder(t, 'exchanged')));
  const outside = show(place.outside);
  let calls = 0;
  beforeCall = () => {
    calls += 1;
    if (calls === at || (back !== null && calls === at + back)) exchange(place);
  };
  let result: string;
  try {
    result = JSON.stringify(await run(place)) ?? '';
  } catch (error) {
    result = String(error);
  } finally {
    beforeCall = null;
  }
  const words = `exchanged before call ${at}, back after ${back}: ${result}`;
  assert.doesNotMatch(result, new RegExp(SECRET), words);
  assert.equal(show(place.outside), outside, words);
  if (at > CALLS_MAX) assert.match(result, usual);
  return calls;
};

for (const face of [...FACES, ...(hasOtherDisk ? [MOVE] : [])])
  test(`nothing of outside is read or written while ${face.when}`, async (t) => {
    const calls = await attack(t, face, CALLS_MAX + 1, null);
    assert.ok(calls > 2, 'the calls are seen');
    for (let at = 1; at <= calls + 1; at++)
      for (const back of chooseRows(BACK_AFTER, (after) => (after === null ? '' : `${at}`)))
        await attack(t, face, at, back);
  });

test('a file that grows while it is read is not kept once it is too large', async (t) => {
  const { workspace } = makePlace(fs.realpathSync(temporaryFolder(t, 'exchanged')));
  const file = path.join(workspace, 'd/x');
  assert.equal((await readState(workspace, 'd/x')).kind, 'file');
  beforeCall = () => real.truncateSync(file, real.statSync(file).size + 10 * 1024 * 1024);
  const state = await readState(workspace, 'd/x').finally(() => {
    beforeCall = null;
  });
  assert.deepEqual(state, { kind: 'notKept', why: 'it has more than 20 MB' });
});

// ---- The same by another process, at any moment ----

/** Exchanges the folder and the link until its input ends. */
const EXCHANGER = `
const { renameSync } = require('node:fs');
const [folder, link, aside] = process.argv.slice(1);
let isOver = false;
process.stdin.resume().on('end', () => { isOver = true; });
process.stdout.write('ready');
const run = () => {
  for (let time = 0; time < 500; time++) {
    renameSync(folder, aside);
    renameSync(link, folder);
    renameSync(folder, link);
    renameSync(aside, folder);
  }
  if (!isOver) setImmediate(run);
};
run();
`;

/** Without held folders, 200 scans keep about 10 of the 20 files outside. */
const SCANS = countCases(60);

/** All contents and manifests. */
const readStore = (folder: string): readonly string[] =>
  real
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.parentPath.includes('objects'))
    .map((entry) => {
      const stored = real.readFileSync(path.join(entry.parentPath, entry.name));
      const content = stored.subarray(1);
      return (stored[0] === 1 ? inflateRawSync(content) : content).toString();
    });

test(`in ${SCANS} scans beside a process that exchanges a folder nothing of outside is kept`, async (t) => {
  const place = makePlace(fs.realpathSync(temporaryFolder(t, 'exchanged')));
  const { root, workspace, outside } = place;
  const link = path.join(root, 'link');
  real.symlinkSync(outside, link);
  for (let file = 0; file < 20; file++)
    for (const [folder, text] of [
      ['work/d', 'own'],
      ['outside', SECRET],
    ] as const)
      real.writeFileSync(path.join(root, folder, `${file}`), `${text} ${file}`);
  const [stateFolder, call] = [
    path.join(root, 'state'),
    toolCall({ callId: '1', tool: 'bash', input: { command: 'make' } }),
  ];
  const checkpoints = createCheckpoints({ workspace, sessionId: 'one', stateFolder, environment });
  t.after(() => checkpoints.close());
  const words = ['-e', EXCHANGER, path.join(workspace, 'd'), link, path.join(root, 'aside')];
  const child = spawn(process.execPath, words, { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(child, 'close');
  await once(child.stdout, 'data');
  for (let scan = 0; scan < SCANS; scan++) {
    await checkpoints.before(call);
    real.writeFileSync(path.join(workspace, 'own'), `${scan}`);
    await checkpoints.take({ by: 'agent' });
  }
  child.stdin.end();
  await ended;
  const kept = readStore(stateFolder);
  assert.ok(kept.includes(`${SCANS - 1}`), 'control: what the command made is kept');
  assert.deepEqual(
    kept.filter((text) => text.includes(SECRET)),
    [],
  );
});
