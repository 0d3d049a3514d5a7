import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, linkSync, mkdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import '../../../../test/own-process.js';
import { fillFolder } from '../../../../test/made-folder.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { chooseRows } from '../../../../test/tier.js';
import { toolCall } from '../../src/machine/event.js';
import type { Checkpoints } from '../../src/ports/checkpoints.js';
import { createCheckpoints } from '../../src/workspace/checkpoints/session-checkpoints.js';

/** HEAD, branches and the index go back and forward, only if nobody else has moved them. */

const call = toolCall({ callId: '1', tool: 'bash', input: { command: 'git commit' } });

const run = (folder: string, ...words: readonly string[]): string => {
  const who = [
    '-c',
    'user.name=a',
    '-c',
    'user.email=a@example.com',
    '-c',
    'init.defaultBranch=main',
  ];
  return execFileSync('git', [...who, ...words], { cwd: folder, encoding: 'utf8', stdio: 'pipe' });
};

type World = {
  readonly workspace: string;
  git(...words: readonly string[]): string;
  write(name: string, text: string): void;
  /** HEAD, branches, what is staged and what is in the files. */
  look(): string;
  /** Runs as the agent; returns the checkpoint. */
  agent(work: () => void): Promise<string>;
  back(checkpoints: readonly string[]): Promise<Outcome>;
  restart(): Promise<void>;
  checkpoints(): Checkpoints;
};
type Outcome = {
  readonly checkpoint: string | null;
  readonly left: readonly string[];
  readonly text: string;
};

const begin = async (
  t: TestContext,
  init: readonly string[] = [],
  hasCommit = true,
  isLinked = false,
): Promise<World> => {
  const folder = realpathSync(temporaryFolder(t, 'pawl-refs-'));
  const top = path.join(folder, 'top');
  mkdirSync(top);
  fillFolder(top, `${init.join(' ')} ${hasCommit}`, (made) => {
    run(made, 'init', '-q', ...init);
    writeFileSync(path.join(made, 'a.txt'), 'one\n');
    if (!hasCommit) return;
    run(made, 'add', '.');
    run(made, 'commit', '-qm', 'one');
  });
  const workspace = isLinked ? path.join(folder, 'linked') : top;
  if (isLinked) run(top, 'worktree', 'add', '-q', '-b', 'linked', workspace);
  const open = () =>
    createCheckpoints({
      workspace,
      sessionId: 'one',
      stateFolder: path.join(folder, 'state'),
      environment: { PATH: process.env.PATH, HOME: folder },
    });
  let checkpoints = open();
  t.after(() => checkpoints.close());
  const git = (...words: readonly string[]): string => run(workspace, ...words);
  return {
    workspace,
    git,
    write: (name, text) => writeFileSync(path.join(workspace, name), text),
    look: () =>
      [
        git('status', '--porcelain=v2', '--branch'),
        git('for-each-ref', '--format=%(refname) %(objectname)', 'refs/heads'),
        git('ls-files', '-s'),
      ].join(''),
    agent: async (work) => {
      await checkpoints.before(call);
      work();
      const taken = await checkpoints.take({ by: 'agent' });
      assert.ok(taken !== null && taken.checkpoint !== '', 'nothing was kept');
      await checkpoints.recorded();
      return taken.checkpoint;
    },
    back: async (ids) => {
      const takeBack = ids.map((id) => ({ id, isForeign: false }));
      const planned = await checkpoints.plan({ takeBack, force: false, refs: true });
      const restored = planned.plan === null ? null : await checkpoints.restore(planned.plan);
      const left = (restored ?? planned).left.map(({ path: name, why }) => `${name}: ${why}`);
      const text = (restored?.refs ?? []).map((moved) => moved.text).join('; ');
      return { checkpoint: restored?.checkpoint ?? null, left, text };
    },
    checkpoints: () => checkpoints,
    restart: async () => {
      await checkpoints.close();
      checkpoints = open();
    },
  };
};

const commit = ({ git, write }: World, text: string): void => {
  write('a.txt', `${text}\n`);
  git('add', '-A');
  git('commit', '-qm', text);
};

type Story = readonly [kind: string, title: string, work: (world: World) => void];
const STORIES: readonly Story[] = [
  ['commit', 'a commit', (world) => commit(world, 'two')],
  [
    'commits',
    'two commits and staged changes',
    (world) => {
      commit(world, 'two');
      commit(world, 'three');
      world.write('b.txt', 'new\n');
      world.git('add', 'b.txt');
    },
  ],
  [
    'HEAD',
    'a new branch with a commit',
    (world) => {
      world.git('checkout', '-qb', 'feature/x');
      commit(world, 'two');
    },
  ],
  [
    'HEAD',
    'a detached HEAD',
    (world) => {
      world.git('checkout', '-q', '--detach');
      commit(world, 'two');
    },
  ],
  ['names', 'a branch that was renamed', ({ git }) => git('branch', '-m', 'other')],
  [
    'commit',
    'an amended commit',
    ({ git, write }) => {
      write('a.txt', 'amended\n');
      git('commit', '-qa', '--amend', '-m', 'amended');
    },
  ],
  [
    'names',
    'refs that were packed',
    (world) => {
      commit(world, 'two');
      world.git('pack-refs', '--all');
    },
  ],
  [
    'index',
    'only staged changes',
    ({ git, write }) => {
      write('a.txt', 'staged\n');
      git('add', 'a.txt');
    },
  ],
];

const PLACES: readonly (readonly [string, (t: TestContext) => Promise<World>])[] = [
  ['a repository', (t) => begin(t)],
  ['a linked worktree', (t) => begin(t, [], true, true)],
  ['a repository with sha256', (t) => begin(t, ['--object-format=sha256'])],
];

/** Of the other places, those that differ there. */
const storiesOf = (place: string): readonly Story[] =>
  place === 'a repository'
    ? chooseRows(STORIES, ([kind]) => kind)
    : chooseRows(STORIES.filter(([kind]) => ['commits', 'HEAD'].includes(kind)));

for (const [place, open] of PLACES)
  for (const [, title, work] of storiesOf(place))
    test(`${title} in ${place}: back, forward, and back again`, async (t) => {
      const world = await open(t);
      const [before, hash] = [world.look(), world.git('rev-parse', 'HEAD').trim()];
      const checkpoint = await world.agent(() => work(world));
      const [after, made] = [world.look(), world.git('rev-parse', 'HEAD').trim()];
      assert.notEqual(after, before);
      const back = await world.back([checkpoint]);
      assert.deepEqual(back.left, []);
      assert.equal(world.look(), before);
      world.git('fsck', '--no-dangling');
      if (made !== hash && !title.includes('staged')) {
        // kept even if git cleans up, and no reflog of HEAD or a branch is left
        world.git('-c', 'gc.reflogExpire=now', 'reflog', 'expire', '--expire=now', 'HEAD');
        world.git('prune', '--expire=now');
        assert.equal(world.git('cat-file', '-t', made).trim(), 'commit');
      }
      await world.restart();
      const forward = await world.back([back.checkpoint ?? '']);
      assert.deepEqual(forward.left, []);
      assert.equal(world.look(), after);
      assert.deepEqual((await world.back([forward.checkpoint ?? ''])).left, []);
      assert.equal(world.look(), before);
    });

test('the first commit of a branch is taken back: it has none again', async (t) => {
  const world = await begin(t, [], false);
  const before = world.look();
  const checkpoint = await world.agent(() => commit(world, 'first'));
  const after = world.look();
  const back = await world.back([checkpoint]);
  // there was no index: what is staged stays
  assert.deepEqual(back.left, []);
  assert.match(back.text, /branch \S+ is removed/);
  assert.equal(world.look().split('\n').slice(0, 2).join(), before.split('\n').slice(0, 2).join());
  assert.deepEqual((await world.back([back.checkpoint ?? ''])).left, []);
  assert.equal(world.look(), after);
});

test('a refreshed index and a command that changes nothing are no checkpoint', async (t) => {
  const world = await begin(t);
  await assert.rejects(
    world.agent(() => {
      world.write('a.txt', 'one\n');
      world.git('update-index', '--refresh');
    }),
    /nothing was kept/,
  );
});

const LEFT: readonly (readonly [title: string, rival: (world: World) => void, why: RegExp])[] = [
  ['a rival has moved the branch', (world) => commit(world, 'rival'), /branch main: somebody else/],
  [
    'a rival has staged something',
    ({ write, git }) => {
      write('r.txt', 'rival\n');
      git('add', 'r.txt');
    },
    /the index: somebody else/,
  ],
  [
    'the index is locked',
    ({ workspace }) => writeFileSync(path.join(workspace, '.git', 'index.lock'), 'theirs'),
    /index\.lock/,
  ],
  [
    'the branch is locked',
    ({ workspace }) =>
      writeFileSync(path.join(workspace, '.git', 'refs', 'heads', 'main.lock'), ''),
    /could not move it/,
  ],
  [
    'a merge is in progress',
    ({ workspace, git }) =>
      writeFileSync(path.join(workspace, '.git', 'MERGE_HEAD'), git('rev-parse', 'HEAD')),
    /in progress/,
  ],
  [
    'the old commit is gone',
    ({ git }) => {
      git('update-ref', '-d', 'refs/tags/none');
      git('reflog', 'expire', '--expire=now', '--all');
      git('prune', '--expire=now');
    },
    /branch main: its commit/,
  ],
];

for (const [title, rival, why] of LEFT)
  test(`what can't go back stays where it is, and is named: ${title}`, async (t) => {
    const world = await begin(t);
    const isGone = title === 'the old commit is gone';
    const checkpoint = await world.agent(() => {
      if (!isGone) return commit(world, 'two');
      world.write('a.txt', 'amended\n');
      world.git('commit', '-qa', '--amend', '-m', 'amended');
    });
    rival(world);
    const before = world.git('rev-parse', 'main');
    const back = await world.back([checkpoint]);
    assert.match(back.left.join('\n'), why);
    const stays = !/index/.test(why.source);
    assert.equal(world.git('rev-parse', 'main') === before, stays);
    assert.equal(
      existsSync(path.join(world.workspace, '.git', 'index.lock')),
      title === 'the index is locked',
    );
    if (title.includes('rival')) assert.doesNotMatch(back.text, stays ? /branch main/ : /index/);
  });

test('a branch that another working tree has checked out stays where it is', async (t) => {
  const world = await begin(t);
  world.git('branch', 'other');
  const checkpoint = await world.agent(() => {
    commit(world, 'two');
    world.git('branch', '-f', 'other', 'main');
  });
  world.git('worktree', 'add', '-q', path.join(world.workspace, '..', 'second'), 'other');
  const before = world.git('rev-parse', 'other');
  const back = await world.back([checkpoint]);
  assert.match(back.left.join('\n'), /branch other: it is checked out in another working tree/);
  assert.equal(world.git('rev-parse', 'other'), before);
});

/** The agent works on a branch of its own, from main. */
const startFeature = (world: World): Promise<string> =>
  world.agent(() => {
    world.git('checkout', '-qb', 'feature');
    commit(world, 'two');
  });

const HEAD_STAYS: readonly (readonly [
  title: string,
  rival: (world: World) => void,
  why: RegExp,
])[] = [
  [
    'its branch is checked out in another working tree',
    ({ workspace, git }) =>
      git('worktree', 'add', '-q', path.join(workspace, '..', 'second'), 'main'),
    /HEAD: branch main is checked out in another working tree/,
  ],
  [
    'its branch is gone',
    ({ git }) => git('branch', '-m', 'main', 'trunk'),
    /HEAD: HEAD would be on a branch that does not exist/,
  ],
  [
    'git refuses to move it',
    ({ workspace }) => writeFileSync(path.join(workspace, '.git', 'HEAD.lock'), ''),
    /HEAD: git could not move it: .*HEAD\.lock/,
  ],
];

for (const [title, rival, why] of HEAD_STAYS)
  test(`the branch on which HEAD stays is not removed: ${title}`, async (t) => {
    const world = await begin(t);
    const checkpoint = await startFeature(world);
    rival(world);
    const before = world.git('rev-parse', 'feature');
    const { left } = await world.back([checkpoint]);
    assert.match(left.join('\n'), why);
    assert.match(left.join('\n'), /branch feature: HEAD would be on a branch that does not exist/);
    assert.equal(world.git('rev-parse', 'HEAD'), before);
  });

test('a branch is not removed if somebody has moved HEAD to it in between', async (t) => {
  const world = await begin(t);
  const first = await startFeature(world);
  world.git('checkout', '-q', 'main');
  const second = await world.agent(() => world.git('checkout', '-q', 'feature'));
  const { left } = await world.back([first, second]);
  assert.match(left.join('\n'), /branch feature: HEAD would be on a branch that does not exist/);
  assert.equal(world.git('symbolic-ref', 'HEAD'), 'refs/heads/feature\n');
  assert.equal(world.git('cat-file', '-t', 'feature'), 'commit\n');
});

test('the HEAD of a bare repository is no working tree', async (t) => {
  const world = await begin(t, [], true, true);
  const shared = path.join(world.workspace, '..', 'top', '.git');
  world.git('config', 'core.bare', 'true');
  writeFileSync(path.join(shared, 'HEAD'), 'ref: refs/heads/linked\n');
  const before = world.look();
  const checkpoint = await world.agent(() => commit(world, 'two'));
  assert.deepEqual((await world.back([checkpoint])).left, []);
  assert.equal(world.look(), before);
});

test('an index that can’t be written stays; what went back is told', async (t) => {
  const world = await begin(t);
  const checkpoint = await world.agent(() => commit(world, 'two'));
  const request = { takeBack: [{ id: checkpoint, isForeign: false }], force: false, refs: true };
  const { plan } = await world.checkpoints().plan(request);
  mkdirSync(path.join(world.workspace, '.git', `index.pawl-${plan?.slice(0, 12)}`));
  const restored = await world.checkpoints().restore(plan ?? '');
  assert.deepEqual(
    restored.left.map(({ path: name }) => name),
    ['the index'],
  );
  assert.deepEqual(
    restored.refs.map(({ name }) => name),
    ['branch main'],
  );
  assert.notEqual(restored.checkpoint, null);
});

test('the hooks of the repository do not run', async (t) => {
  const world = await begin(t);
  const checkpoint = await world.agent(() => commit(world, 'two'));
  const mark = path.join(world.workspace, '..', 'ran');
  for (const name of ['reference-transaction', 'post-checkout', 'post-index-change']) {
    const hook = path.join(world.workspace, '.git', 'hooks', name);
    writeFileSync(hook, `#!/bin/sh\necho ${name} >> '${mark}'\n`, { mode: 0o755 });
  }
  assert.deepEqual((await world.back([checkpoint])).left, []);
  assert.equal(existsSync(mark), false);
  rmSync(mark, { force: true });
});

test('a restore that was killed between its steps is finished by the next start', async (t) => {
  const world = await begin(t);
  const [before, old] = [world.look(), world.git('rev-parse', 'HEAD').trim()];
  const checkpoint = await world.agent(() => commit(world, 'two'));
  const request = { takeBack: [{ id: checkpoint, isForeign: false }], force: false, refs: true };
  const { plan } = await world.checkpoints().plan(request);
  assert.ok(plan !== null);
  // what a kill right before the index takes its place leaves
  world.git('update-ref', 'refs/heads/main', old);
  const index = path.join(world.workspace, '.git', 'index');
  writeFileSync(`${index}.pawl-${plan.slice(0, 12)}`, 'half');
  linkSync(`${index}.pawl-${plan.slice(0, 12)}`, `${index}.lock`);
  await world.restart();
  const { left, refs } = await world.checkpoints().restore(plan);
  assert.deepEqual(left, []);
  assert.deepEqual(refs.map(({ name }) => name).sort(), ['branch main', 'the index']);
  assert.equal(world.look(), before);
  assert.equal(existsSync(`${index}.lock`), false);
});

test('what a killed process has done to branches is taken back too', async (t) => {
  const world = await begin(t);
  const before = world.look();
  await world.checkpoints().before(call);
  commit(world, 'two');
  await world.restart();
  const taken = await world.checkpoints().take({ by: 'agent', alsoRan: 'killedCalls' });
  assert.deepEqual((await world.back([taken?.checkpoint ?? ''])).left, []);
  assert.equal(world.look(), before);
});
