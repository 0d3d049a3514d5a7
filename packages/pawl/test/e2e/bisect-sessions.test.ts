import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { countCases, SEED, testDeep } from '../../../../test/tier.js';
import { runInProcess } from './in-process.js';
import { expectCode, makePlace, type Place, sessionOf } from './pawl.js';

/**
 * Generated sessions with one planted call: `pawl bisect` names it. PAWL_SEED chooses the sessions,
 * PAWL_COUNT their number. Daily two that are written down.
 */

const SESSIONS = countCases(4);

type Random = (below: number) => number;

/** Mulberry32. */
const createRandom = (seed: number): Random => {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
};

/** Commands that change files, and never what a plant is about. */
const noise = (random: Random, index: number): string => {
  const name = `src/f${random(6)}.txt`;
  const commands = [
    `echo ${index} >> ${name}`,
    `rm -f ${name}; echo new ${index} > src/g${random(6)}.txt`,
    `mkdir -p d${random(3)} && touch d${random(3)}x${index}`,
    `for f in src/*.txt; do echo ${index} >> "$f"; done`,
    `mv ${name} src/moved${index}.txt 2>/dev/null || echo ${index} > ${name}`,
    `ln -sf keep/need.txt link${random(3)}; echo ${index} > at${index}`,
    `chmod 600 keep/other.txt; echo ${index} > 'a name ${index}'`,
  ];
  return commands[random(commands.length)] ?? '';
};

type Plant = { readonly breaks: string; readonly check: string };

const PLANTS: readonly Plant[] = [
  { breaks: 'echo BROKEN >> keep/need.txt', check: '! grep -q BROKEN keep/need.txt' },
  { breaks: 'rm -rf keep', check: 'test -e keep/need.txt' },
  { breaks: 'chmod 644 keep/run.sh', check: 'test -x keep/run.sh && ./keep/run.sh' },
  { breaks: 'mv keep/need.txt keep/elsewhere.txt', check: 'grep -q needed keep/need.txt' },
  { breaks: 'rm keep/run.sh && ln -s /nowhere keep/run.sh', check: 'bash keep/run.sh' },
];

type Generated = Plant & { readonly commands: readonly string[] };

const generate = (random: Random): Generated => {
  const plant = PLANTS[random(PLANTS.length)] ?? PLANTS[0];
  assert.ok(plant);
  const commands = Array.from({ length: 3 + random(10) }, (_, index) => noise(random, index));
  const at = random(commands.length + 1);
  return { ...plant, commands: [...commands.slice(0, at), plant.breaks, ...commands.slice(at)] };
};

/** A session in which the model runs one command after the other. */
const runAll = async (place: Place, commands: readonly string[]): Promise<void> => {
  const replies = [
    ...commands.map((command) => ({ calls: [{ tool: 'bash', input: { command } }] })),
    { text: 'Done.' },
  ];
  const script = join(place.home, 'script.json');
  writeFileSync(script, JSON.stringify({ replies }));
  const turn = ['-p', 'go', '--model', `scripted/${script}`, '--preset', 'auto'];
  expectCode(await runInProcess(place, turn), 0);
};

for (let index = 0; index < SESSIONS; index += 1)
  testDeep(`bisect finds the planted call of generated session ${index + 1}`, async (context) => {
    const random = createRandom(SEED + index * 7919);
    const { commands, breaks, check } = generate(random);
    const place = makePlace(context);
    for (const folder of ['src', 'keep']) mkdirSync(join(place.workspace, folder));
    writeFileSync(join(place.workspace, 'keep/need.txt'), 'needed\n');
    writeFileSync(join(place.workspace, 'keep/other.txt'), 'other\n');
    writeFileSync(join(place.workspace, 'keep/run.sh'), '#!/bin/sh\nexit 0\n', { mode: 0o755 });
    const hasGit = random(2) === 0;
    if (hasGit)
      for (const words of [
        ['init', '-q'],
        ['add', '.'],
        ['commit', '-qm', 'one'],
      ])
        execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...words], {
          cwd: place.workspace,
          env: { ...place.environment, GIT_CONFIG_GLOBAL: '/dev/null' },
        });
    await runAll(place, commands);
    const found = await runInProcess(place, ['bisect', sessionOf(place), '--', check]);
    expectCode(found, 0);
    const [, call] = /^call: bash (.*)$/m.exec(found.stdout) ?? [];
    assert.equal(call, breaks, `${commands.join('\n')}\n${found.stdout}\n${found.stderr}`);
    assert.doesNotMatch(found.stderr, /not in the copies/);
  });

test('a command that needs a file of the session begins where it passes, and blames what broke it', async (context) => {
  const place = makePlace(context);
  const breaks = "sed -i 's/+/-/' calc.sh";
  const commands = [
    "echo 'echo $(($1 + $2))' > calc.sh",
    `echo 'test "$(sh calc.sh 2 3)" = 5' > test.sh`,
    'echo read me > README',
    breaks,
    'echo more >> README',
  ];
  await runAll(place, commands);
  // bash ends with 127, as for a program that is not there
  for (const shell of ['sh', 'bash']) {
    const found = await runInProcess(place, ['bisect', sessionOf(place), '--', shell, 'test.sh']);
    expectCode(found, 0);
    assert.match(found.stdout, /^call: bash sed -i /m);
    assert.match(found.stderr, /fails before the first checkpoint .*: looking for one/);
    assert.match(found.stderr, /fails after seq .*\n.*passes after seq /);
  }
});

test('bisect and diff say of a change that a command ran meanwhile, and of an edit nothing', async (context) => {
  const place = makePlace(context);
  const write = (content: string) => ({ tool: 'write', input: { path: 'edited', content } });
  const replies = [
    { calls: [write('good\n')] },
    { calls: [{ tool: 'bash', input: { command: 'echo good > run' } }] },
    { calls: [write('bad\n')] },
    { calls: [{ tool: 'bash', input: { command: 'echo bad > run' } }] },
    { text: 'Done.' },
  ];
  const script = join(place.home, 'script.json');
  writeFileSync(script, JSON.stringify({ replies }));
  const turn = ['-p', 'go', '--model', `scripted/${script}`, '--preset', 'auto'];
  expectCode(await runInProcess(place, turn), 0);
  const id = sessionOf(place);
  const DURING = 'changed while a command ran';
  for (const [name, note] of [
    ['edited', ''],
    ['run', ` (${DURING})`],
  ] as const) {
    const search = await runInProcess(place, ['bisect', id, '--', `! grep bad ${name}`]);
    expectCode(search, 0);
    assert.match(search.stdout, new RegExp(`^${name}${note.replace(/[()]/g, '\\$&')}$`, 'm'));
  }
  const shown = await runInProcess(place, ['diff', id, '--at', '0..']);
  assert.match(shown.stdout, /^edited \(created\)$/m);
  assert.match(shown.stdout, new RegExp(`^run \\(created; ${DURING}\\)$`, 'm'));
  const json = await runInProcess(place, ['diff', id, '--at', '0..', '--json']);
  const { files } = JSON.parse(json.stdout);
  assert.deepEqual(
    files.map(({ path, duringCommands }: Record<string, unknown>) => [path, duringCommands]),
    [
      ['edited', undefined],
      ['run', 'yes'],
    ],
  );
});
