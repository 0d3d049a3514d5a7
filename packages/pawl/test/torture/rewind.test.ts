import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { processesWith } from '../../../../test/kit/tools/processes.js';
import { tree } from '../../../../test/kit/workspace-tree.js';
import { moveSecret } from '../../../../test/move-secret.js';
import { removeFolderSync } from '../../../../test/temporary-folder.js';
import { countCases, SEED } from '../../../../test/tier.js';
import { startPatience } from '../../../../test/until.js';
import { runInProcess } from '../e2e/in-process.js';
import { bin, makeServed, type Place, start } from '../e2e/pawl.js';
import { buildKillPoints, type KillPoint, killEnvironment, readSteps } from './kill-points.js';
import { randomFrom } from './run-trials.js';
import { idOf, newestSession } from './stage.js';

/**
 * The real program is killed at steps of a checkpoint, a rewind and a redo: no file is ever half
 * old, none is lost, and the next start finishes what was begun and says so.
 *
 * PAWL_COUNT: how many kills of each, before and after a step or in the middle of a write.
 * PAWL_SEED chooses.
 */

const KILLS = countCases(2);
/** For each of them. */
const TRIES_MAX = 10;

const PREPARE = `
git init -q && git config user.name Ada && git config user.email a@b.c
mkdir -p src/deep && for n in 1 2 3; do echo "first $n" > src/$n.txt; done
echo deep > src/deep/x.txt; echo kept > kept.txt; printf '#!/bin/sh\\n' > run.sh; ln -s kept.txt link
git add . && git commit -qm first
echo dirty >> kept.txt; echo precious > precious.txt`;
const COMMAND =
  'rm -rf src precious.txt; echo agent > kept.txt; chmod 755 run.sh; ln -sfn run.sh link; ' +
  'mkdir -p made/deep; echo new > made/deep/new.txt';

const folder = mkdtempSync(join(tmpdir(), 'pawl-rewind-torture-'));
after(() => removeFolderSync(folder));
const library = buildKillPoints(folder);

type Stage = Place & { readonly id: string; readonly trees: readonly [string, string] };

const bash = (place: Place, command: string): void => {
  execFileSync('bash', ['-ec', command], { cwd: place.folder, env: place.environment });
};

const TURN = ['-p', 'Clean up.', '--sandbox', 'off'] as const;

/** A workspace as the session finds it, and as it leaves it. Both are kept in copies. */
const begin = async (): Promise<Stage> => {
  const place = await makeServed({ after }, ({ messages }) =>
    JSON.stringify(messages).includes('tool_result')
      ? { type: 'message', parts: [{ type: 'text', text: 'Done.' }] }
      : {
          type: 'message',
          parts: [{ type: 'call', id: 'call_1', name: 'bash', input: { command: COMMAND } }],
        },
  );
  bash(place, `cd work\n${PREPARE}\ncd ..; mkdir kept-0 && cp -a work state kept-0`);
  const before = tree(place.workspace);
  const { code, stderr } = await runInProcess(place, TURN);
  assert.equal(code, 0, stderr);
  const id = idOf(newestSession(place) ?? '');
  bash(place, 'mkdir kept-1 && cp -a work state kept-1');
  const changed = tree(place.workspace);
  assert.equal((await runInProcess(place, ['rewind', id, '--at', '0'])).code, 0);
  assert.equal(tree(place.workspace), before);
  bash(place, 'mkdir kept-2 && cp -a work state kept-2');
  return { ...place, id, trees: [before, changed] };
};

/** Each line is one file: all have to be as before, or as after. */
const expectWhole = ({ workspace, trees }: Stage): void => {
  const known = new Set(trees.flatMap((text) => text.split('\n')));
  const isFolder = /\/ \d+$/;
  for (const line of tree(workspace).split('\n'))
    if (!isFolder.test(line) && !line.includes('.pawl-rewind'))
      assert.ok(known.has(line) || isBetween(line, known), line);
};

/** An old content with a new mode: what the command itself leaves in the middle of its work. */
const isBetween = (line: string, known: ReadonlySet<string>): boolean => {
  const [name, , hash] = line.split(' ');
  return [...known].some((one) => one.split(' ')[0] === name && one.endsWith(` ${hash}`));
};

const expectNoDrafts = ({ folder: place, workspace }: Stage): void => {
  const names = readdirSync(workspace, { recursive: true, encoding: 'utf8' });
  assert.deepEqual(
    names.filter((name) => name.includes('.pawl-rewind')),
    [],
    place,
  );
};

type Life = {
  readonly name: string;
  /** The copy from which it begins. */
  readonly from: 0 | 1 | 2;
  words(stage: Stage): readonly string[];
  /** What the workspace is when it has been finished: as before the turn, or as after it. */
  finish(stage: Stage): Promise<void>;
};

const run = async (stage: Stage, ...words: readonly string[]): Promise<string> => {
  const { code, stdout, stderr } = await runInProcess(stage, words);
  assert.equal(code, 0, `pawl ${words.join(' ')}\n${stdout}${stderr}`);
  return stdout + stderr;
};

/** The types of the events in the newest journal; a line that was cut off is none. */
const eventsOf = (stage: Stage): readonly string[] =>
  readFileSync(newestSession(stage) ?? assert.fail('no session'), 'utf8')
    .split('\n')
    .slice(0, -1)
    .flatMap((line) => /^\{"seq":.*?"event":\{"type":"(\w+)"/.exec(line)?.[1] ?? []);

/** A start tells of the rewind that a killed one left, and of none where nothing was left. */
const expectTold = (isCut: boolean, output: string): void => {
  const told = [/^! the program ended while files were taken back/m, /^! .*changed back/m];
  for (const words of told) assert.equal(words.test(output), isCut, output);
};

const isCutIn = (stage: Stage): boolean =>
  eventsOf(stage).findLast((type) => /^(RewindRequested|Rewound)$/.test(type)) ===
  'RewindRequested';

const takeBack = async (stage: Stage, id: string): Promise<void> => {
  const isCut = isCutIn(stage);
  const listed = await run(stage, 'rewind', id);
  assert.equal(listed.includes('the next start takes the rest back first'), isCut, listed);
  expectTold(isCut, await run(stage, 'rewind', id, '--at', '0'));
  expectNoDrafts(stage);
  assert.equal(tree(stage.workspace), stage.trees[0]);
};

const LIVES: readonly Life[] = [
  {
    name: 'a turn with a checkpoint',
    from: 0,
    words: () => TURN,
    finish: async (stage) => {
      const session = newestSession(stage);
      if (session === null) assert.equal(tree(stage.workspace), stage.trees[0]);
      else await takeBack(stage, idOf(session));
    },
  },
  {
    name: 'a rewind',
    from: 1,
    words: ({ id }) => ['rewind', id, '--at', '0'],
    finish: async (stage) => {
      await takeBack(stage, stage.id);
      await run(stage, 'redo', stage.id);
      assert.equal(tree(stage.workspace), stage.trees[1]);
    },
  },
  {
    name: 'a redo',
    from: 2,
    words: ({ id }) => ['redo', id],
    finish: async (stage) => {
      const isCut = isCutIn(stage);
      // the next start finishes it if it was begun: then there is nothing to go forward to
      const { stdout, stderr } = await runInProcess(stage, ['redo', stage.id]);
      expectTold(isCut, stdout + stderr);
      expectNoDrafts(stage);
      assert.equal(tree(stage.workspace), stage.trees[1]);
      await takeBack(stage, stage.id);
    },
  },
];

const reset = (stage: Stage, from: Life['from']): void => {
  bash(stage, `rm -rf work state log && cp -a kept-${from}/work kept-${from}/state .`);
  if (from !== 0) moveSecret(join(stage.state, 'pawl')); // the copy is no session from elsewhere
};

const nobodyLives = async (stage: Stage): Promise<void> => {
  const isOver = startPatience();
  while (processesWith(stage.folder).length > 0 && !isOver()) await delay(25);
};

/** The life, killed at the point; null: not at all. The steps that it took. */
const live = async (stage: Stage, life: Life, point: KillPoint | null) => {
  reset(stage, life.from);
  const log = join(stage.folder, 'log');
  const killing = killEnvironment(library, stage.folder, log, point);
  const watched = { ...stage, environment: { ...stage.environment, ...killing } };
  const { code, stderr } = await start(watched, process.execPath, [bin, ...life.words(stage)])
    .ended;
  await nobodyLives(stage); // also what it had started
  if (point === null) assert.equal(code, 0, stderr);
  return readSteps(log);
};

const stage = await begin();

for (const life of LIVES)
  test(`${life.name}, killed at ${KILLS} steps`, async (context) => {
    const steps = await live(stage, life, null);
    const random = randomFrom(SEED);
    const points = steps.flatMap(({ number: at, name }): KillPoint[] =>
      (name === 'write'
        ? (['before', 'half', 'after'] as const)
        : (['before', 'after'] as const)
      ).map((when) => ({ ending: 'kill', at, when })),
    );
    let tried = 0;
    let reached = 0;
    let cut = 0;
    // another run may take a step or two less: what it does not reach does not count
    while (reached < KILLS && tried < TRIES_MAX * KILLS) {
      const point = points[Math.floor(random() * points.length)] ?? assert.fail('no steps');
      tried += 1;
      const taken = await live(stage, life, point);
      if (taken.length >= point.at) reached += 1;
      if (newestSession(stage) !== null && isCutIn(stage)) cut += 1;
      try {
        expectWhole(stage);
        await life.finish(stage);
      } catch (error) {
        const step = taken.at(-1);
        throw new Error(
          `killed ${point.when} step ${point.at}: ${step?.name} ${step?.place}\n${error}`,
        );
      }
    }
    context.diagnostic(`${points.length} points, ${tried} tried, ${reached} reached, ${cut} cut`);
    assert.equal(reached, KILLS);
  });
