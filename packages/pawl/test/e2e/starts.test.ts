import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { chooseRows } from '../../../../test/tier.js';
import { runInProcess } from './in-process.js';
import { expectCode, makePlace, readRecords, runPawl, sessionOf } from './pawl.js';

/**
 * Most tests here run the command line in their own process (in-process.ts). The program that users start must print the
 * same and end with the same code: one start for each kind of command and of ending.
 */

const MODEL = ['--model', 'scripted/script.json'];

const rows = (id: string): readonly (readonly [code: number, words: readonly string[]])[] => [
  [0, ['--help']],
  [2, ['sesions']],
  [2, ['-p', 'x', '--modle', 'y']],
  [2, ['ask', '--context', 'script.json']],
  [65, ['show', 'nobody']],
  [78, ['-p', 'x']],
  [0, ['sessions', '--json']],
  [0, ['show', id]],
  [0, ['replay', id]],
  [0, ['machine', '--view', 'loom', '--table']],
  [0, ['config', '--json']],
  [77, ['policy', 'explain', 'git push', '--sandbox', 'off', '--preset', 'plan']],
];

test('the program prints what the command line prints in the process of a test, and ends with its code', async (context) => {
  const place = makePlace(context);
  writeFileSync(
    join(place.workspace, 'script.json'),
    JSON.stringify({ replies: [{ text: 'Hello.' }] }),
  );
  const turn = await runPawl(place, ['-p', 'hello', '--json', ...MODEL]);
  expectCode(turn, 0);
  const result = readRecords(turn.stdout).at(-1);
  assert.ok(result?.type === 'result' && result.text === 'Hello.');
  for (const [code, words] of chooseRows(rows(sessionOf(place)), ([code]) => String(code), 2)) {
    const expected = await runInProcess(place, words);
    expectCode(expected, code);
    assert.notEqual(expected.stdout + expected.stderr, '');
    assert.deepEqual(await runPawl(place, words), expected, words.join(' '));
  }
});

test('a turn in the process of a test is the turn of the program: the same records but for times and ids', async (context) => {
  const recordsOf = async (run: typeof runPawl): Promise<readonly string[]> => {
    const place = makePlace(context);
    const replies = [
      { calls: [{ tool: 'bash', input: { command: 'cat; echo $HOME $PWD' } }] },
      { text: 'Done.' },
    ];
    writeFileSync(join(place.workspace, 'script.json'), JSON.stringify({ replies }));
    const ended = await run(place, ['-p', 'explain', '-', '--json', ...MODEL], 'piped text');
    expectCode(ended, 0);
    assert.equal(ended.stderr, '');
    return ended.stdout
      .replaceAll(place.folder, 'FOLDER')
      .replaceAll(sessionOf(place), 'SESSION')
      .replace(/\d+\.\d s/g, 'N s')
      .replace(/"(at|waitedMs|durationMs|activeMs|\w*Ms)":\d+(\.\d+)?/g, '"$1":0')
      .trimEnd()
      .split('\n');
  };
  assert.deepEqual(await recordsOf(runPawl), await recordsOf(runInProcess));
});
