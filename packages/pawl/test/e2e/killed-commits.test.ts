import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { WireBody } from '../../../../test/servers/anthropic.js';
import { countCases, SEED } from '../../../../test/tier.js';
import { runInProcess } from './in-process.js';
import { compileKiller, type KillOrder, killVariables, pointsIn } from './kill-points.js';
import { type Ended, expectCode, expectValid, makeServed, runPawl } from './pawl.js';
import { call, done, last, message, text } from './wire-words.js';

/**
 * The program is killed at each change that it makes in its own folders while it asks git and commits, and resumed: the
 * commit is made once or not at all, no lock is left, and the user's next commit loses nothing.
 *
 * PAWL_COUNT sets how many points are tried (4 if not set, 160 are all).
 */

const RUNS = countCases(4);

const SHAPES = [
  'a branch',
  'packed refs',
  'a linked worktree',
  'a detached HEAD',
  'no commit yet',
] as const;
type Shape = (typeof SHAPES)[number];

/** How many points of each shape are all, spread over the whole run. */
const TURNS = 32;
const ALL = TURNS * SHAPES.length;

type Ground = Awaited<ReturnType<typeof makeGround>>;

const replyTo = (body: WireBody) => {
  const wanted = JSON.stringify(last(body));
  if (/Write the message of one git commit/.test(JSON.stringify(body)))
    return message(text('feat: add new'));
  if (wanted.includes('make a file'))
    return message(call('w', 'write', { path: 'new.txt', content: 'of the agent\n' }));
  return done;
};

const makeGround = async (context: TestContext, shape: Shape) => {
  const place = await makeServed(context, replyTo);
  const { workspace, folder, home } = place;
  const named = { GIT_AUTHOR_NAME: 'Ada', GIT_AUTHOR_EMAIL: 'ada@example.org' };
  const committer = { GIT_COMMITTER_NAME: 'Ada', GIT_COMMITTER_EMAIL: 'ada@example.org' };
  const env = { PATH: process.env.PATH, HOME: home, ...named, ...committer };
  const shell = (command: string, cwd = workspace): string =>
    execFileSync('bash', ['-ec', command], {
      cwd,
      env,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  const first = 'echo one >a; git add a; git commit -qm first';
  if (shape === 'a linked worktree') {
    shell(
      `mkdir main; cd main; git init -qb main; ${first}; git worktree add -q ../work -b other`,
      folder,
    );
  } else shell(`git init -qb main; ${shape === 'no commit yet' ? ':' : first}`);
  if (shape === 'packed refs') shell('git pack-refs --all');
  if (shape === 'a detached HEAD') shell('git checkout -q --detach');
  const gitFolders = [join(workspace, '.git'), join(folder, 'main', '.git')].filter((name) =>
    existsSync(join(name, 'HEAD')),
  );
  return { ...place, shell, gitFolders };
};

const go = (ground: Ground, kill: KillOrder | null, words: readonly string[]): Promise<Ended> =>
  runPawl(
    kill === null
      ? ground
      : { ...ground, environment: { ...ground.environment, ...killVariables(kill) } },
    ['--auto-commit', ...words],
  );

/** Locks in a git folder. */
const leftovers = (folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    /\.lock$|pawl-/.test(name),
  );

const subjects = ({ shell }: Ground): readonly string[] =>
  shell('git log --format=%s 2>/dev/null || true').split('\n').filter(Boolean);

/** What holds after the resumed session, whatever was done before the kill. */
const checkAfter = (ground: Ground, ended: Ended): 'made' | 'not made' => {
  const { shell, gitFolders, server } = ground;
  expectCode(ended, 0);
  expectValid(server);
  // git notes that a branch without commits has none
  assert.equal(shell('git fsck --strict --no-dangling 2>&1 | sed "/^notice: /d"'), '');
  assert.deepEqual(gitFolders.flatMap(leftovers), []);
  const made = subjects(ground).filter((subject) => subject === 'feat: add new').length;
  assert.ok(made <= 1, `${made} commits`);
  const status = shell('git status --porcelain');
  const told = JSON.stringify(server.requests.map(({ body }) => body.messages));
  if (made === 1) {
    assert.equal(status, '');
    assert.match(told, /Your changes were committed to/);
  } else {
    assert.equal(status, '?? new.txt\n');
    assert.match(told + ended.stderr, /Not committed: new\.txt/);
  }
  shell('echo user >b; git add b; git commit -qm user');
  assert.equal(shell('git ls-tree --name-only HEAD').includes('new.txt'), made === 1);
  assert.equal(shell('cat new.txt'), 'of the agent\n');
  return made === 1 ? 'made' : 'not made';
};

/** Kills at one point, resumes, and checks. Returns what the point was and how it ended. */
const killAt = async (context: TestContext, shape: Shape, at: number): Promise<string> => {
  const ground = await makeGround(context, shape);
  const log = join(ground.folder, 'points');
  const killed = await go(
    ground,
    { library: compileKiller(ground.folder), path: '/pawl-git-', at, log },
    ['-p', 'make a file'],
  );
  const point = pointsIn(log).at(-1) ?? '';
  assert.equal(killed.code, null, `not killed at ${at}: ${killed.stderr}`);
  const ended = await runInProcess(ground, ['--auto-commit', '--continue', '-p', 'and now?']);
  return `${point}: ${checkAfter(ground, ended)}`;
};

const countPoints = async (context: TestContext, shape: Shape): Promise<number> => {
  const ground = await makeGround(context, shape);
  const log = join(ground.folder, 'points');
  const library = compileKiller(ground.folder);
  const ended = await go(ground, { library, path: '/pawl-git-', at: null, log }, [
    '-p',
    'make a file',
  ]);
  expectCode(ended, 0);
  assert.deepEqual(subjects(ground)[0], 'feat: add new');
  assert.deepEqual(ground.gitFolders.flatMap(leftovers), []);
  return pointsIn(log).length;
};

/** How many points a whole run has, by the shape of its repository. */
const known = new Map<Shape, number>();
const pointsOf = async (context: TestContext, shape: Shape): Promise<number> => {
  const points = known.get(shape) ?? (await countPoints(context, shape));
  known.set(shape, points);
  return points;
};

/** The points of every shape; a few runs are spread over all of them. */
const choose = async (context: TestContext, run: number) => {
  const number = RUNS >= ALL ? run : Math.floor(((run + ((SEED * 0.618) % 1)) / RUNS) * ALL);
  const shape = SHAPES[number % SHAPES.length] ?? 'a branch';
  const points = await pointsOf(context, shape);
  return { shape, at: 1 + Math.floor((Math.floor(number / SHAPES.length) * points) / TURNS) };
};

for (let run = 0; run < RUNS; run++) {
  test(`a commit that is cut off is made once, or not at all (${run + 1} of ${RUNS})`, async (context) => {
    const { shape, at } = await choose(context, run);
    context.diagnostic(`${shape}, point ${at}: ${await killAt(context, shape, at)}`);
  });
}
