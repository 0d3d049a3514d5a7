import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs, {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import '../../../../test/own-process.js';
import { tree } from '../../../../test/kit/workspace-tree.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { countCases, SEED } from '../../../../test/tier.js';
import { toolCall } from '../../src/machine/event.js';
import type { State } from '../../src/machine/state.js';
import type { Checkpoints } from '../../src/ports/checkpoints.js';
import type { Post, Posted } from '../../src/session/loop.js';
import { CheckpointRuns } from '../../src/session/perform.js';
import { createCheckpoints } from '../../src/workspace/checkpoints/session-checkpoints.js';
import { CheckpointStore, storeFolder } from '../../src/workspace/checkpoints/store.js';
import { makeFolder } from './whose-changes.js';

/** Random worlds: what commands changed is taken back to any point, and brought forward again. */

const WORLDS = countCases(4);

const RIVALS = countCases(2);

const command = (text: string) => toolCall({ callId: '1', tool: 'bash', input: { command: text } });

type Random = { below(bound: number): number; pick<T>(items: readonly T[]): T };

const randomFrom = (seed: number): Random => {
  let state = seed >>> 0;
  const next = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
  const below = (bound: number): number => Math.floor(next() * bound);
  return { below, pick: (items) => items[below(items.length)] as (typeof items)[number] };
};

const NAMES = [
  'a.ts',
  'A.ts',
  'SRC/c.ts',
  'b.ts',
  'src/c.ts',
  'src/deep/d.ts',
  'src/deep/e.ts',
  'with space.txt',
  'line\nfeed.txt',
  'ünïcode.md',
  '-dash',
  'docs/x',
];

/** In a large workspace. */
const NAMES_OF_FILLER = ['filler/1/1.txt', 'filler/2/new.txt', 'filler/3', 'filler/4/deep/one.txt'];

const git = (folder: string, ...words: readonly string[]): void => {
  const who = ['-c', 'user.name=a', '-c', 'user.email=a@example.com'];
  execFileSync('git', [...who, ...words], { cwd: folder, stdio: 'ignore' });
};

const write = (folder: string, name: string | Buffer, text: string): void => {
  const place = Buffer.concat([Buffer.from(`${folder}/`), Buffer.from(name)]);
  const parent = path.dirname(place.toString());
  if (existsSync(parent) && !lstatSync(parent).isDirectory()) return;
  mkdirSync(parent, { recursive: true });
  if (existsSync(place) && lstatSync(place).isDirectory()) rmSync(place, { recursive: true });
  rmSync(place, { force: true });
  writeFileSync(place, text);
};

const moveAside = (folder: string, place: string, random: Random): void => {
  const target = path.join(folder, `moved-${random.below(5)}`);
  rmSync(target, { recursive: true, force: true });
  renameSync(place, target);
};

const CHANGES =
  'write remove move chmod closeFolder link removeFolder many odd exchange ignore'.split(' ');

/** Once in a hundred changes as many files as an installation of packages makes. */
const MANY_FILES = [50, 5_000] as const;

const change = (folder: string, random: Random): unknown => {
  const isLarge = existsSync(path.join(folder, 'filler')) && random.below(2) === 0;
  const name = random.pick(isLarge ? NAMES_OF_FILLER : NAMES);
  const place = path.join(folder, name);
  const exists = lstatSync(place, { throwIfNoEntry: false }) !== undefined;
  switch (random.pick(CHANGES)) {
    case 'write':
      return write(folder, name, `text ${random.below(1_000)}\r\n`);
    case 'remove':
      return rmSync(place, { recursive: true, force: true });
    case 'move':
      return exists ? moveAside(folder, place, random) : null;
    case 'chmod':
      return exists && lstatSync(place).isFile()
        ? chmodSync(place, random.pick([0o600, 0o755, 0o644]))
        : null;
    case 'link':
      rmSync(place, { recursive: true, force: true });
      if (existsSync(path.dirname(place))) symlinkSync(random.pick(['a.ts', '../x', 'no']), place);
      return null;
    case 'removeFolder':
      return rmSync(path.join(folder, random.pick(['src', 'docs', 'src/deep'])), {
        recursive: true,
        force: true,
      });
    case 'closeFolder':
      return exists && lstatSync(path.dirname(place)).isDirectory() && path.dirname(name) !== '.'
        ? chmodSync(path.dirname(place), random.pick([0o755, 0o700, 0o555]))
        : null;
    case 'many': {
      const count = MANY_FILES[random.below(100) === 0 ? 1 : 0];
      for (let index = 0; index < count; index++) write(folder, `many/${index}.txt`, `${index}`);
      return null;
    }
    case 'odd':
      return write(folder, Buffer.from([0x66, 0xff, 0xfe]), `odd ${random.below(9)}`);
    case 'ignore':
      return write(folder, 'ignored/by-git.txt', `${random.below(9)}`);
    default:
      // a folder where a file was, and the other way round
      rmSync(place, { recursive: true, force: true });
      return write(folder, `${name}/inner.txt`, `inner ${random.below(9)}`);
  }
};

const makeRepository = (folder: string, file: string): void => {
  git(folder, 'init', '-q');
  write(folder, file, `${file}\n`);
  git(folder, 'add', '-A');
  git(folder, 'commit', '-qm', 'begin');
};

const addNested = (folder: string): void => {
  mkdirSync(path.join(folder, 'nested'));
  makeRepository(path.join(folder, 'nested'), 'inner.txt');
  const source = path.join(path.dirname(folder), 'source');
  mkdirSync(source);
  makeRepository(source, 'part.txt');
  git(folder, '-c', 'protocol.file.allow=always', 'submodule', 'add', '-q', source, 'module');
  git(folder, 'commit', '-qm', 'module');
};

/** So many files that their folders are watched. */
const fill = (folder: string): void => {
  for (let index = 0; index < 2_400; index++)
    write(folder, `filler/${index % 20}/${index}.txt`, `${index}`);
  NAMES_OF_FILLER.forEach((name) => {
    write(folder, name, 'first');
  });
};

/** A plain folder, a repository, or a worktree of one; some with a nested one and a submodule. */
const begin = (folder: string, random: Random): void => {
  const isWorktree = random.below(5) === 0;
  if (isWorktree) {
    const main = `${folder}-main`;
    mkdirSync(main);
    makeRepository(main, 'README');
    git(main, 'worktree', 'add', '-q', '--detach', folder);
  } else mkdirSync(folder, { recursive: true });
  for (const name of NAMES) if (random.below(3) > 0) write(folder, name, `first ${name}\n`);
  if (!isWorktree && random.below(4) === 0) return;
  if (!isWorktree) git(folder, 'init', '-q');
  write(folder, '.gitignore', 'ignored/\n');
  if (random.below(3) === 0) write(folder, '.gitattributes', '* text=auto\n');
  if (random.below(3) === 0) git(folder, 'config', 'core.autocrlf', 'input');
  if (random.below(3) === 0) write(folder, 'a.ts', 'with\r\nother ends\r\n');
  if (random.below(4) === 0) fill(folder);
  git(folder, 'add', '-A');
  git(folder, 'commit', '-qm', 'begin', '--allow-empty');
  if (random.below(4) === 0) addNested(folder);
  write(folder, random.pick(NAMES), 'dirty\n');
  write(folder, 'untracked.txt', 'untracked\n');
};

/** Not what the session works on: nested repositories are left alone, and so is what is ignored. */
const isOutOfScope = (line: string): boolean => /^\/(ignored|nested|module)\//.test(line);

const inScope = (folder: string): string =>
  tree(folder)
    .split('\n')
    .filter((line) => !isOutOfScope(line))
    .join('\n');

type World = { readonly checkpoints: Checkpoints; readonly workspace: string };

const openWorld = (context: TestContext, random: Random): World => {
  const folder = realpathSync(temporaryFolder(context, 'checkpoints'));
  const workspace = path.join(folder, 'work');
  begin(workspace, random);
  const checkpoints = createCheckpoints({
    workspace,
    sessionId: 'one',
    stateFolder: path.join(folder, 'state'),
    environment: process.env,
  });
  context.after(() => checkpoints.close());
  return { checkpoints, workspace };
};

const restore = async ({ checkpoints }: World, ids: readonly string[]): Promise<string | null> => {
  const takeBack = ids.map((id) => ({ id, isForeign: false }));
  const { plan, left } = await checkpoints.plan({ takeBack, force: false });
  assert.deepEqual(left, []);
  if (plan === null) return null;
  const restored = await checkpoints.restore(plan);
  assert.deepEqual(restored.left, []);
  return restored.checkpoint;
};

for (let index = 0; index < WORLDS; index++) {
  const seed = SEED + index;
  test(`what commands changed is taken back and brought forward: seed ${seed}`, async (context) => {
    const random = randomFrom(seed);
    const world = openWorld(context, random);
    const { checkpoints, workspace } = world;
    const trees = [inScope(workspace)];
    const taken: (string | null)[] = [];
    const call = command('a script');
    for (let round = 0; round < 6; round++) {
      await checkpoints.before(call);
      for (let left = random.below(6); left >= 0; left--) change(workspace, random);
      trees.push(inScope(workspace));
      taken.push((await checkpoints.take({ by: 'agent' }))?.checkpoint ?? null);
    }
    const to = random.below(6);
    const back = taken.slice(to).filter((id) => id !== null);
    const done = await restore(world, back);
    assert.equal(inScope(workspace), trees[to], `back to ${to}`);
    if (done !== null) await restore(world, [done]);
    assert.equal(inScope(workspace), trees[6], 'forward again');
  });
}

/** Somebody else writes files before the plan, before the restore and in the middle of it. */
for (let index = 0; index < RIVALS; index++) {
  const seed = SEED + index;
  test(`what a rival writes meanwhile stays: seed ${seed}`, async (context) => {
    const random = randomFrom(seed);
    const { checkpoints, workspace } = openWorld(context, random);
    const names = Array.from({ length: 40 }, (_, number) => `rival/${number % 4}/${number}.txt`);
    for (const name of names) if (random.below(2) === 0) write(workspace, name, 'before');
    const call = command('a script');
    await checkpoints.before(call);
    for (const name of names)
      if (random.below(4) > 0) write(workspace, name, `agent ${random.below(3)}`);
      else rmSync(path.join(workspace, name), { force: true });
    const taken = await checkpoints.take({ by: 'agent' });
    const written = new Map<string, string>();
    const rival = (): void => {
      const name = random.pick(names);
      const text = `rival ${written.size} ${random.below(1_000)}`;
      const place = path.join(workspace, name);
      mkdirSync(path.dirname(place), { recursive: true });
      if (random.below(2) === 0) writeFileSync(place, text);
      else {
        writeFileSync(`${place}.mine`, text);
        renameSync(`${place}.mine`, place);
      }
      written.set(name, text);
    };
    rival();
    const takeBack = [{ id: taken?.checkpoint ?? '', isForeign: false }];
    const { plan } = await checkpoints.plan({ takeBack, force: false });
    rival();
    let isOver = false;
    const restored = (plan === null ? Promise.resolve() : checkpoints.restore(plan)).finally(() => {
      isOver = true;
    });
    for (let round = 0; round < 12 && !isOver; round++) {
      rival();
      await nextTurn();
    }
    await restored;
    for (const [name, text] of written)
      assert.equal(readFileSync(path.join(workspace, name), 'utf8'), text, name);
    const drafts = readdirSync(workspace, { recursive: true, encoding: 'utf8' });
    assert.deepEqual(
      drafts.filter((name) => name.includes('.pawl-rewind')),
      [],
    );
  });
}

/** A plain folder, and nobody's rights: root is held up by no mode. */
const openAsNobody = (context: TestContext): World => {
  const user = process.geteuid?.();
  context.after(() => user === undefined || process.seteuid?.(user)); // before the folder goes
  const folder = realpathSync(temporaryFolder(context, 'closed'));
  const workspace = path.join(folder, 'work');
  write(workspace, 'closed/file.txt', 'precious\n');
  write(workspace, 'a.txt', 'before\n');
  if (process.getuid?.() === 0) {
    for (const name of ['', 'work', 'work/closed', 'work/closed/file.txt', 'work/a.txt'])
      chownSync(path.join(folder, name), 65_534, 65_534);
    process.seteuid?.(65_534);
  }
  const stateFolder = path.join(folder, 'state');
  const place = { workspace, sessionId: 'one', stateFolder, environment: process.env };
  const checkpoints = createCheckpoints(place);
  context.after(() => checkpoints.close());
  return { checkpoints, workspace };
};

test('what is in a folder that a command closes is not taken for deleted', async (context) => {
  const world = openAsNobody(context);
  const { checkpoints, workspace } = world;
  const [folder, before] = [path.join(workspace, 'closed'), tree(workspace)];
  const call = command('chmod 0 closed; echo after > a.txt');
  await checkpoints.before(call);
  chmodSync(folder, 0);
  write(workspace, 'a.txt', 'after\n');
  const taken = await checkpoints.take({ by: 'agent' });
  assert.equal(taken?.changes.deleted, 0);
  assert.match(taken?.leftOut.join('\n') ?? '', /closed to Pawl/);
  await checkpoints.before(call); // the look before the next command forgets nothing
  await checkpoints.take({ by: 'agent' });
  await restore(world, [taken?.checkpoint ?? '']);
  assert.equal(tree(workspace), before);
});

test('what was removed from a folder that can be written no more comes back', async (context) => {
  const world = openAsNobody(context);
  const { checkpoints, workspace } = world;
  const [folder, before] = [path.join(workspace, 'closed'), tree(workspace)];
  const call = command('rm closed/file.txt; chmod 555 closed; mkdir -m 555 new');
  await checkpoints.before(call);
  rmSync(path.join(folder, 'file.txt'));
  write(workspace, 'closed/other.txt', 'other\n');
  write(workspace, 'new/one.txt', 'one\n');
  for (const name of ['closed', 'new']) chmodSync(path.join(workspace, name), 0o555);
  const after = tree(workspace);
  const taken = await checkpoints.take({ by: 'agent' });
  const back = await restore(world, [taken?.checkpoint ?? '']);
  assert.equal(tree(workspace), before);
  await restore(world, [back ?? '']);
  assert.equal(tree(workspace), after);
  for (const name of ['closed', 'new']) chmodSync(path.join(workspace, name), 0o755);
});

test('where git can list nothing, the folders are walked', async (context) => {
  const world = openWorld(context, randomFrom(7));
  const { checkpoints, workspace } = world;
  assert.ok(existsSync(path.join(workspace, '.git')));
  writeFileSync(path.join(workspace, '.git', 'index'), 'damaged');
  const before = tree(workspace);
  const call = command('rm');
  await checkpoints.before(call);
  rmSync(path.join(workspace, 'untracked.txt'));
  const taken = await checkpoints.take({ by: 'agent' });
  assert.equal(taken?.changes.deleted, 1);
  await restore(world, [taken?.checkpoint ?? '']);
  assert.equal(tree(workspace), before);
});

test('files that no call changed keep their bytes and their times', async (context) => {
  const random = randomFrom(7);
  const { checkpoints, workspace } = openWorld(context, random);
  const other = path.join(workspace, 'other.txt');
  writeFileSync(other, 'other\n');
  utimesSync(other, 1_000, 1_000);
  const call = command('rm a.ts');
  await checkpoints.before(call);
  rmSync(path.join(workspace, 'a.ts'), { force: true });
  writeFileSync(path.join(workspace, 'new.txt'), 'new');
  const taken = await checkpoints.take({ by: 'agent' });
  const { ino, mtimeMs, ctimeMs } = lstatSync(other);
  await restore({ checkpoints, workspace }, [taken?.checkpoint ?? '']);
  const now = lstatSync(other);
  assert.deepEqual([now.ino, now.mtimeMs, now.ctimeMs], [ino, mtimeMs, ctimeMs]);
});

test('what no folder of a large workspace reports is found at the end of the turn', async (t) => {
  const folder = realpathSync(temporaryFolder(t, 'large'));
  const workspace = path.join(folder, 'work');
  mkdirSync(workspace);
  git(workspace, 'init', '-q');
  fill(workspace);
  for (const name of ['agents', 'users']) write(workspace, name, 'first');
  git(workspace, 'add', '-A');
  for (const name of ['agents', 'users'])
    linkSync(path.join(workspace, name), path.join(folder, name));
  const stateFolder = path.join(folder, 'state');
  const place = { workspace, sessionId: 'one', stateFolder, environment: process.env };
  const checkpoints = createCheckpoints(place);
  t.after(() => checkpoints.close());
  const before = tree(workspace);
  await sleep(50); // the stamps of younger files are not relied upon
  const call = command('echo agent > ../agents');
  await checkpoints.before(call);
  assert.equal(await checkpoints.take({ by: 'agent' }), null); // all was looked at
  await checkpoints.before(call);
  writeFileSync(path.join(folder, 'agents'), 'by the agent');
  rmSync(path.join(workspace, 'filler/2/new.txt'));
  const first = await checkpoints.take({ by: 'agent' });
  assert.deepEqual(
    first?.changes.files.map((file) => file.path),
    ['filler/2/new.txt'],
  );
  await sleep(50);
  writeFileSync(path.join(folder, 'users'), 'by the user');
  rmSync(path.join(workspace, 'filler/1/1.txt'));
  const rest = await checkpoints.sweep('agent');
  assert.deepEqual(
    rest?.changes.files.map((file) => file.path),
    ['agents'],
  );
  assert.equal(await checkpoints.sweep('agent'), null);
  await restore({ checkpoints, workspace }, [first?.checkpoint ?? '', rest?.checkpoint ?? '']);
  write(workspace, 'users', 'first');
  write(workspace, 'filler/1/1.txt', 'first');
  assert.equal(tree(workspace), before);
});

test('a command of the user changed what it wrote, although jobs run beside it', async (t) => {
  const folder = realpathSync(temporaryFolder(t, 'jobs'));
  const [workspace, stateFolder] = [path.join(folder, 'work'), path.join(folder, 'state')];
  mkdirSync(workspace);
  const place = { workspace, sessionId: 'one', stateFolder, environment: process.env };
  const checkpoints = createCheckpoints(place);
  t.after(() => checkpoints.close());
  await checkpoints.before(null);
  write(workspace, 'a', 'by the user');
  const taken = await checkpoints.take({ by: 'user', alsoRan: 'jobs' });
  const store = new CheckpointStore(storeFolder(stateFolder, workspace));
  const manifest = await store.manifest(taken?.checkpoint ?? '');
  assert.deepEqual(
    manifest?.changes.map(({ path: name, origin, unsure }) => [name, origin, unsure]),
    [['a', 'commands', undefined]],
  );
});

/** Two processes of a session one after the other, and a store that can refuse checkpoints. */
const refusing = (t: TestContext) => {
  const folder = realpathSync(temporaryFolder(t, 'refused'));
  const workspace = path.join(folder, 'work');
  mkdirSync(workspace);
  git(workspace, 'init', '-q');
  fill(workspace);
  git(workspace, 'add', '-A');
  const stateFolder = path.join(folder, 'state');
  const place = { workspace, sessionId: 'one', stateFolder, environment: process.env };
  const [first, next] = [createCheckpoints(place), createCheckpoints(place)];
  for (const checkpoints of [first, next]) t.after(() => checkpoints.close());
  const lists = path.join(storeFolder(stateFolder, workspace), 'sessions');
  const refuse = (): void => {
    mkdirSync(lists, { recursive: true });
    renameSync(lists, `${lists}-aside`);
    write(path.dirname(lists), 'sessions', '');
  };
  const accept = (): void => {
    rmSync(lists);
    renameSync(`${lists}-aside`, lists);
  };
  return { workspace, first, next, refuse, accept };
};

test('a sweep leaves the record of calls whose checkpoint the store refused', async (t) => {
  const { workspace, first, next, refuse, accept } = refusing(t);
  await sleep(50); // the stamps of younger files are not relied upon
  const call = command('rm filler/2/new.txt');
  await first.before(call);
  rmSync(path.join(workspace, 'filler/2/new.txt'));
  refuse();
  await assert.rejects(first.take({ by: 'agent' }));
  accept();
  assert.equal(await first.sweep('agent'), null);
  // the process is killed here
  const taken = await next.take({ by: 'agent', alsoRan: 'killedCalls' });
  assert.deepEqual(
    taken?.changes.files.map((file) => file.path),
    ['filler/2/new.txt'],
  );
});

test('a rewind whose checkpoint the store refuses says what it has changed', async (t) => {
  const { workspace, first, refuse } = refusing(t);
  await sleep(50);
  const call = command('rm filler/2/new.txt');
  await first.before(call);
  rmSync(path.join(workspace, 'filler/2/new.txt'));
  const { checkpoint = '' } = (await first.take({ by: 'agent' })) ?? {};
  const takeBack = [{ id: checkpoint, isForeign: false }];
  const { plan } = await first.plan({ takeBack, force: false });
  refuse();
  const restored = await first.restore(plan ?? '');
  assert.ok(existsSync(path.join(workspace, 'filler/2/new.txt')));
  assert.deepEqual([restored.checkpoint, restored.changes.created], [null, 1]);
  const reasons = restored.left.map(({ path: name, why }) => `${name}: ${why}`);
  assert.match(
    reasons.join(),
    /^checkpoints: what this rewind changed can’t be stored.*: E[A-Z]+:/,
  );
});

test('of a large repository a command costs no look at other files, and nobody reads clean ones', async (t) => {
  const folder = realpathSync(temporaryFolder(t, 'clean'));
  const workspace = path.join(folder, 'work');
  mkdirSync(workspace);
  git(workspace, 'init', '-q');
  fill(workspace);
  git(workspace, 'add', '-A');
  write(workspace, 'filler/2/mine.txt', 'not in git');
  await sleep(50); // the stamps of younger files are not relied upon
  const counts = { lstatSync: 0, openSync: 0 };
  for (const name of ['lstatSync', 'openSync'] as const) {
    const real = fs[name];
    const counting = (place: unknown, ...words: unknown[]): unknown => {
      if (String(place).endsWith('.txt')) counts[name] += 1;
      return Reflect.apply(real, fs, [place, ...words]);
    };
    Object.assign(fs, { [name]: counting });
    t.after(() => void Object.assign(fs, { [name]: real }));
  }
  syncBuiltinESMExports();
  t.after(syncBuiltinESMExports);
  const stateFolder = path.join(folder, 'state');
  const place = { workspace, sessionId: 'one', stateFolder, environment: process.env };
  const checkpoints = createCheckpoints(place);
  t.after(() => checkpoints.close());
  const call = command('echo more > filler/1/1.txt');
  await checkpoints.before(call);
  assert.equal(counts.openSync, 1); // the copy of what git does not hold
  assert.ok(counts.lstatSync > 2_000, 'control: the first scan looks at all files');
  counts.lstatSync = 0;
  write(workspace, 'filler/1/1.txt', 'more');
  const taken = await checkpoints.take({ by: 'agent' });
  assert.equal(taken?.changes.changed, 1);
  assert.ok(counts.lstatSync < 20, `${counts.lstatSync} looks`);
  assert.equal(await checkpoints.sweep('agent'), null);
  assert.equal(counts.openSync, 2);
});

for (const target of ['self', 'other', '../outside'])
  test(`what was in a folder that a command replaced by a link to ${target} comes back`, async (t) => {
    const world = openWorld(t, randomFrom(7));
    const { checkpoints, workspace } = world;
    for (const folder of ['self', 'other', '../outside'])
      write(workspace, `${folder}/file.txt`, `in ${folder}`);
    const before = tree(workspace);
    const call = command(`rm -r self; ln -s ${target} self`);
    await checkpoints.before(call);
    rmSync(path.join(workspace, 'self'), { recursive: true });
    symlinkSync(target, path.join(workspace, 'self'));
    const after = tree(workspace);
    const taken = await checkpoints.take({ by: 'agent' });
    const back = await restore(world, [taken?.checkpoint ?? '']);
    assert.equal(tree(workspace), before);
    await restore(world, [back ?? '']);
    assert.equal(tree(workspace), after);
  });

test('a folder of a large workspace that was removed and comes back is looked at', async (t) => {
  const folder = realpathSync(temporaryFolder(t, 'large'));
  const workspace = path.join(folder, 'work');
  mkdirSync(workspace);
  git(workspace, 'init', '-q');
  fill(workspace);
  write(workspace, 'src/deep/d.ts', 'first');
  git(workspace, 'add', '-A');
  const stateFolder = path.join(folder, 'state');
  const place = { workspace, sessionId: 'one', stateFolder, environment: process.env };
  const checkpoints = createCheckpoints(place);
  t.after(() => checkpoints.close());
  const call = command('rm -r src; a script');
  const take = async (work: () => void): Promise<string> => {
    await checkpoints.before(call);
    work();
    return (await checkpoints.take({ by: 'agent' }))?.checkpoint ?? '';
  };
  await take(() => rmSync(path.join(workspace, 'src'), { recursive: true }));
  const removed = tree(workspace);
  await take(() => write(workspace, 'other', 'other')); // no folder of git's list is watched now
  const again = await take(() => write(workspace, 'src/deep/d.ts', 'second'));
  rmSync(path.join(workspace, 'other'));
  await restore({ checkpoints, workspace }, [again]);
  assert.equal(tree(workspace), removed);
});

test('a folder that became a link out of the workspace is not followed', async (context) => {
  const { checkpoints, workspace } = openWorld(context, randomFrom(7));
  const outside = path.join(path.dirname(workspace), 'outside');
  mkdirSync(outside);
  write(workspace, 'inside/file.txt', 'before');
  const call = command('echo after > inside/file.txt');
  await checkpoints.before(call);
  write(workspace, 'inside/file.txt', 'after');
  const taken = await checkpoints.take({ by: 'agent' });
  renameSync(path.join(workspace, 'inside'), path.join(workspace, 'gone'));
  writeFileSync(path.join(outside, 'file.txt'), 'after');
  symlinkSync(outside, path.join(workspace, 'inside'));
  const takeBack = [{ id: taken?.checkpoint ?? '', isForeign: false }];
  const { plan, left } = await checkpoints.plan({ takeBack, force: true });
  if (plan !== null) await checkpoints.restore(plan);
  assert.equal(readFileSync(path.join(outside, 'file.txt'), 'utf8'), 'after');
  assert.ok(left.length > 0 || plan !== null);
});

test('a file of a checkpoint from elsewhere comes back only where the user stands', async (context) => {
  const { checkpoints, workspace } = openWorld(context, randomFrom(7));
  const call = command('echo after > new.txt');
  await checkpoints.before(call);
  write(workspace, 'new.txt', 'after');
  const taken = await checkpoints.take({ by: 'agent' });
  const checkpoint = { id: taken?.checkpoint ?? '', isForeign: true };
  const folder = path.dirname(workspace);
  const elsewhere = createCheckpoints({
    workspace,
    standsIn: folder,
    sessionId: 'one',
    stateFolder: path.join(folder, 'state'),
    environment: process.env,
  });
  context.after(() => elsewhere.close());
  const version = { checkpoint, path: 'new.txt', at: 0 };
  assert.notEqual((await checkpoints.planFile(version)).plan, null, 'control');
  const { plan, refusal } = await elsewhere.planFile(version);
  assert.equal(plan, null);
  assert.match(refusal ?? '', /only in the folder where you stand/);
});

test('the machine is told of a look at the end of a turn that failed', async () => {
  const events: Posted[] = [];
  const post: Post = (event, applied) => {
    events.push(event);
    applied?.(true, {} as State); // not looked at
  };
  const failing = {
    before: async () => 'kept',
    take: async () => null,
    sweep: () => Promise.reject(new Error('the disk is gone')),
    recorded: async () => undefined,
  } as unknown as Checkpoints; // no more of it is called
  const runs = new CheckpointRuns(failing, post, () => false);
  await runs.before('batch-1', command('echo x > y'));
  await runs.endTurn();
  assert.deepEqual(
    events.map((event) => (event.type === 'CheckpointTaken' ? event.leftOut : event.type)),
    [['What these calls changed can’t be taken back, or not all of it: the disk is gone']],
  );
});

test('a checkpoint that never reached the journal is not recorded', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const recorded: string[] = [];
  const checkpoints = {
    before: async () => 'kept',
    take: async () => ({ checkpoint: 'one', changes: {}, leftOut: [] }),
    recorded: async () => void recorded.push('one'),
  } as unknown as Checkpoints; // no more of it is called
  const applied: (() => void)[] = [];
  const post: Post = (_event, onApplied) => void applied.push(() => onApplied?.(true, {} as State)); // not looked at
  for (const isOver of [true, false]) {
    const runs = new CheckpointRuns(checkpoints, post, () => false);
    await runs.before('batch-1', command('echo x > y'));
    const settled = runs.settle();
    while (applied.length === 0) await Promise.resolve();
    if (isOver) t.mock.timers.tick(60_000);
    else applied[0]?.();
    applied.length = 0;
    await settled;
    assert.deepEqual(recorded, isOver ? [] : ['one']);
  }
});

for (const moment of ['before the look', 'during the look', 'after the look'] as const)
  test(`a command that is cancelled before it ran claims nothing: ${moment}`, async (t) => {
    const folder = makeFolder(t, { 'tracked.txt': 'one\n' });
    await folder.rest();
    const { checkpoints } = folder.session('one');
    const events: Posted[] = [];
    const runs = new CheckpointRuns(
      checkpoints,
      (event, applied) => {
        events.push(event);
        applied?.(true, {} as State); // not looked at
      },
      () => false,
    );
    const call = (callId: string) => toolCall({ callId, tool: 'bash', traits: { mutating: true } });
    const beginAndCancel = async (batchId: string) => {
      const cancel = new AbortController();
      if (moment === 'before the look') cancel.abort('cancelled');
      const looked = runs.before(batchId, call('1'), 'off', cancel.signal);
      if (moment === 'after the look') await looked;
      cancel.abort('cancelled');
      await looked;
      runs.withdraw(call('1'));
      await checkpoints.unkept([]); // when the look is over
      await folder.rest();
    };
    await beginAndCancel('batch-1');
    folder.write('user.txt', 'mine\n');
    await folder.rest();
    await runs.before('batch-1', call('2'));
    await runs.after(call('2'));
    await runs.endTurn();
    await beginAndCancel('batch-2');
    await runs.endTurn();
    folder.write('tracked.txt', 'mine\n');
    folder.git('commit', '-aqm', 'mine');
    await folder.rest();
    await runs.before('batch-3', call('3'));
    await runs.after(call('3'));
    await runs.endTurn();
    assert.deepEqual(events, []);
  });
