import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { chooseRows } from '../../../../test/tier.js';
import { bin, type Ended, makePlace, type Place, start } from './pawl.js';

/** Where few files can be opened, the program works or says so: never with a stack. */

const script = JSON.stringify({
  replies: [
    {
      calls: [
        { tool: 'bash', input: { command: 'echo hi' } },
        { tool: 'search', input: { pattern: 'x' } },
        { tool: 'write', input: { path: 'made', content: 'x' } },
      ],
    },
    { text: 'done' },
  ],
});

const runWith = (place: Place, files: number, ...words: readonly string[]): Promise<Ended> =>
  start(place, '/bin/sh', [
    ...['-c', 'ulimit -n "$1"; shift; exec "$@"', 'sh', String(files)],
    ...[process.execPath, bin, ...words],
  ]).ended;

/** Files that Node itself needs until it runs us. */
const leastFiles = async (place: Place): Promise<number> => {
  let [few, enough] = [11, 64];
  while (enough - few > 1) {
    const files = Math.floor((few + enough) / 2);
    if ((await runWith(place, files, '--help')).code === 0) enough = files;
    else few = files;
  }
  return enough;
};

const OUTPUT_OF_US = /^[!✗✓•·\s]|^pawl: |^done$/;

test('few open files: a session works, or ends with a sentence and an exit code that says so', async (t) => {
  const place = makePlace(t);
  writeFileSync(join(place.workspace, 'script.json'), script);
  execFileSync('git', ['init', '-q', place.workspace]);
  const least = await leastFiles(place);
  let refused = 0;
  const few = [0, 3, 6, 9, 12, 15].map((more) => least + more);
  for (const files of chooseRows(few, (one) => String(one === least))) {
    const { code, stderr } = await runWith(
      place,
      files,
      '--model',
      'scripted/script.json',
      '-p',
      'hi',
    );
    assert.doesNotMatch(stderr, /internal fault|^\s+at \S+ \(/m, `${files} files`);
    // The cause is the limit, and not bubblewrap.
    assert.doesNotMatch(stderr, /bubblewrap does not work/, `${files} files`);
    assert.ok([0, 65, 74, 78].includes(code ?? 1), `${files} files: exit ${code}\n${stderr}`);
    for (const line of stderr
      .trimEnd()
      .split('\n')
      .filter((one) => one !== ''))
      assert.match(line, OUTPUT_OF_US, `${files} files`);
    if (/EMFILE/.test(stderr)) refused += 1;
  }
  assert.ok(refused > 0, 'control: there were too few for some');
  const { code } = await runWith(place, 256, '--model', 'scripted/script.json', '-p', 'hi');
  assert.equal(code, 0, 'control: 256 are enough');
});

test('too little space for the reserve of a session: it is said at the start', async (t) => {
  const place = makePlace(t);
  writeFileSync(join(place.workspace, 'script.json'), script);
  const runWithSpace = (blocks: string): Promise<Ended> =>
    start(place, '/bin/sh', [
      ...['-c', 'ulimit -f "$1"; shift; exec "$@"', 'sh', blocks],
      ...[process.execPath, bin, '--model', 'scripted/script.json', '-p', 'hi'],
    ]).ended;
  assert.match((await runWithSpace('200')).stderr, /Too little space is free for the session/);
  assert.doesNotMatch((await runWithSpace('unlimited')).stderr, /Too little space/);
});
