import assert from 'node:assert/strict';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { until } from '../../../../test/until.js';
import { runInProcess } from './in-process.js';
import { expectCode, makePlace, type Place, readRecords, sessionOf, startPawl } from './pawl.js';

/** A session that no longer writes to its own journal stops with exit code 74, and says what happened. */

const MODEL = ['--model', 'scripted/script.json', '--sandbox', 'off', '--hooks', 'never'];

/** The model runs one command in a shell outside of the sandbox, then says that it is done. */
const makeScripted = (
  context: Parameters<typeof makePlace>[0],
  command: string,
  where: (place: Place) => string = ({ workspace }) => workspace,
): Place => {
  const place = makePlace(context);
  const calls = [{ tool: 'bash', input: { command: `cd '${where(place)}' && ${command}` } }];
  writeFileSync(
    join(place.workspace, 'script.json'),
    // a session that was taken over may end its turn before it reads the next prompt
    JSON.stringify({
      replies: [{ calls }, ...Array.from({ length: 3 }, () => ({ text: 'Done.' }))],
    }),
  );
  return place;
};

const inSessions = (context: Parameters<typeof makePlace>[0], command: string): Place =>
  makeScripted(context, `J=$(echo *.jsonl) && ${command}`, ({ state }) =>
    join(state, 'pawl', 'sessions'),
  );

const changes: readonly (readonly [title: string, command: string, says: RegExp])[] = [
  ['removed', 'rm $J', /was removed while/],
  ['moved', 'mv $J $J.old', /was moved to \S+\.old while/],
  ['replaced', 'cp $J copy && mv copy $J', /was replaced by another file/],
  ['cut at a line end', 'head -n 2 $J > copy && cat copy > $J', /was cut shorter/],
  ['appended to', 'echo "{}" >> $J', /was appended to by another program/],
  ['removed with its folder', 'rm -r ../sessions', /was removed with its folder/],
  ['made read-only', 'chmod a-w $J', /was made read-only/],
];

for (const [title, command, says] of changes) {
  test(`a journal that is ${title} during a turn: exit 74 and a copy to go on with`, async (context) => {
    const place = inSessions(context, command);
    const ended = await runInProcess(place, ['-p', 'go', '--json', ...MODEL]);
    expectCode(ended, 74);
    assert.match(ended.stderr, says);
    const result = readRecords(ended.stdout).at(-1);
    assert.ok(result?.type === 'result' && result.exit === 74 && result.reason === 'foreignChange');
    assert.deepEqual(readdirSync(join(place.state, 'pawl', 'rescued')).length, 1);
  });
}

test('control: a turn whose journal is left alone ends with 0', async (context) => {
  const place = inSessions(context, 'cat $J > /dev/null');
  expectCode(await runInProcess(place, ['-p', 'go', ...MODEL]), 0);
});

test('a session that is open elsewhere is refused, and can be taken over; the other process stops with 74', async (context) => {
  const place = makeScripted(context, 'touch begun; until test -e release; do sleep 0.05; done');
  const first = startPawl(place, ['-p', 'go', ...MODEL]);
  await until('the command', () => readdirSync(place.workspace).includes('begun'));
  const id = sessionOf(place);
  const refused = await runInProcess(place, ['--resume', id, '-p', 'more', ...MODEL]);
  expectCode(refused, 75);
  assert.match(refused.stderr, /is open in process \d+ on .* since .*--take-over/);
  const second = startPawl(place, [
    '--resume',
    id,
    '--take-over',
    '-p',
    'more',
    '--json',
    ...MODEL,
  ]);
  await until('the take-over', () => second.stdout().includes('"type":"session"'));
  writeFileSync(join(place.workspace, 'release'), '');
  const [stopped, taken] = await Promise.all([first.ended, second.ended]);
  expectCode(stopped, 74);
  assert.match(stopped.stderr, /was taken over by/);
  expectCode(taken, 0);
  const result = readRecords(taken.stdout).find((record) => record.type === 'toolResult');
  assert.equal(result?.status, 'ok', 'it waited for the command of the other process');
  expectCode(await runInProcess(place, ['replay', id]), 0);
});

test('--take-over without a session to go on with is wrong usage', async (context) => {
  const place = makeScripted(context, 'true');
  expectCode(await runInProcess(place, ['-p', 'go', '--take-over', ...MODEL]), 2);
});
