import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import '../../../../test/own-process.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { toolCall } from '../../src/machine/event.js';
import type { Checkpoints } from '../../src/ports/checkpoints.js';
import { createCheckpoints } from '../../src/workspace/checkpoints/session-checkpoints.js';

/** Random worlds: what commands changed is taken back to any point, and brought forward again. */

const SEED = Number(process.env.PAWL_SEED ?? Math.floor(Math.random() * 2 ** 31));
const WORLDS = Number(process.env.PAWL_WORLDS ?? 12);

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

/** All that is in the workspace but `.git`: kinds, modes, targets and contents. */
const tree = (folder: string): string => {
  const lines: string[] = [];
  const visit = (place: Buffer, name: string): void => {
    const status = lstatSync(place);
    const mode = (status.mode & 0o7777).toString(8);
    if (status.isSymbolicLink()) lines.push(`${name} -> ${readlinkSync(place, 'latin1')}`);
    else if (status.isDirectory()) {
      const inside = readdirSync(place, { encoding: 'buffer' });
      if (name !== '' && inside.length > 0) lines.push(`${name}/ ${mode}`);
      for (const one of inside)
        if (name !== '' || one.toString() !== '.git')
          visit(Buffer.concat([place, Buffer.from('/'), one]), `${name}/${one.toString('latin1')}`);
    } else
      lines.push(
        `${name} ${mode} ${createHash('sha256').update(readFileSync(place)).digest('hex')}`,
      );
  };
  visit(Buffer.from(folder), '');
  return lines.sort().join('\n');
};

const moveAside = (folder: string, place: string, random: Random): void => {
  const target = path.join(folder, `moved-${random.below(5)}`);
  rmSync(target, { recursive: true, force: true });
  renameSync(place, target);
};

const CHANGES = 'write remove move chmod link removeFolder many odd exchange'.split(' ');

const change = (folder: string, random: Random): unknown => {
  const name = random.pick(NAMES);
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
    case 'many':
      for (let index = 0; index < 50; index++) write(folder, `many/${index}.txt`, `${index}`);
      return null;
    case 'odd':
      return write(folder, Buffer.from([0x66, 0xff, 0xfe]), `odd ${random.below(9)}`);
    default:
      // a folder where a file was, and the other way round
      rmSync(place, { recursive: true, force: true });
      return write(folder, `${name}/inner.txt`, `inner ${random.below(9)}`);
  }
};

const begin = (folder: string, random: Random): void => {
  mkdirSync(folder, { recursive: true });
  for (const name of NAMES) if (random.below(3) > 0) write(folder, name, `first ${name}\n`);
  if (random.below(4) === 0) return;
  git(folder, 'init', '-q');
  if (random.below(3) === 0) write(folder, '.gitattributes', '* text=auto\n');
  if (random.below(3) === 0) git(folder, 'config', 'core.autocrlf', 'input');
  if (random.below(3) === 0) write(folder, 'a.ts', 'with\r\nother ends\r\n');
  git(folder, 'add', '-A');
  git(folder, 'commit', '-qm', 'begin', '--allow-empty');
  write(folder, random.pick(NAMES), 'dirty\n');
  write(folder, 'untracked.txt', 'untracked\n');
};

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

const restore = async (
  { checkpoints }: World,
  takeBack: readonly string[],
): Promise<string | null> => {
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
    const trees = [tree(workspace)];
    const taken: (string | null)[] = [];
    const call = command('a script');
    for (let round = 0; round < 6; round++) {
      await checkpoints.before(call);
      for (let left = random.below(6); left >= 0; left--) change(workspace, random);
      trees.push(tree(workspace));
      taken.push((await checkpoints.take({ by: 'agent', calls: [call] }))?.checkpoint ?? null);
    }
    const to = random.below(6);
    const back = taken.slice(to).filter((id) => id !== null);
    const done = await restore(world, back);
    assert.equal(tree(workspace), trees[to], `back to ${to}`);
    if (done !== null) await restore(world, [done]);
    assert.equal(tree(workspace), trees[6], 'forward again');
  });
}

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
  const taken = await checkpoints.take({ by: 'agent', calls: [call] });
  const { ino, mtimeMs, ctimeMs } = lstatSync(other);
  await restore({ checkpoints, workspace }, [taken?.checkpoint ?? '']);
  const now = lstatSync(other);
  assert.deepEqual([now.ino, now.mtimeMs, now.ctimeMs], [ino, mtimeMs, ctimeMs]);
});

test('a folder that became a link out of the workspace is not followed', async (context) => {
  const { checkpoints, workspace } = openWorld(context, randomFrom(7));
  const outside = path.join(path.dirname(workspace), 'outside');
  mkdirSync(outside);
  write(workspace, 'inside/file.txt', 'before');
  const call = command('echo after > inside/file.txt');
  await checkpoints.before(call);
  write(workspace, 'inside/file.txt', 'after');
  const taken = await checkpoints.take({ by: 'agent', calls: [call] });
  renameSync(path.join(workspace, 'inside'), path.join(workspace, 'gone'));
  writeFileSync(path.join(outside, 'file.txt'), 'after');
  symlinkSync(outside, path.join(workspace, 'inside'));
  const takeBack = [taken?.checkpoint ?? ''];
  const { plan, left } = await checkpoints.plan({ takeBack, force: true });
  if (plan !== null) await checkpoints.restore(plan);
  assert.equal(readFileSync(path.join(outside, 'file.txt'), 'utf8'), 'after');
  assert.ok(left.length > 0 || plan !== null);
});
