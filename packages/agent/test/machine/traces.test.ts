import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import test from 'node:test';
import { play } from '../../../../test/kit/agent/trace-player.js';
import { agent } from '../../src/machine/machine.js';

/** Golden traces. `UPDATE=1` writes the machine's lines anew; the diff is the review. */

const FOLDER = new URL('../../../../test/traces/', import.meta.url);
const isUpdate = (process.env.UPDATE ?? '') !== '';
const files = readdirSync(FOLDER).filter((name) => name.endsWith('.trace'));

for (const file of files) {
  test(file.replace('.trace', '').replaceAll('-', ' '), () => {
    const place = new URL(file, FOLDER);
    const written = readFileSync(place, 'utf8');
    assert.match(
      written,
      /^# [A-Z].*[.!?]\n/,
      'a trace begins with a sentence that tells its story',
    );
    const { text } = play(written);
    if (isUpdate) writeFileSync(place, text);
    else assert.equal(written, text, 'if this is what you meant: UPDATE=1, and read the diff');
  });
}

test('every arrow of the table is walked by some trace', () => {
  const taken = new Set(
    files.flatMap((file) => [...play(readFileSync(new URL(file, FOLDER), 'utf8')).taken]),
  );
  assert.deepEqual(
    agent.edges.map((edge) => edge.id).filter((id) => !taken.has(id)),
    [],
  );
});

test('a line that is not understood is refused, not skipped', () => {
  const lines = [
    'Sart',
    'UserInput fix',
    'UserInput "fix" soon',
    'LlmCompleted req-1 calls',
    'LlmCompleted req-1 stop=tired',
    'LlmFailed req-1 sleepy "zzz"',
    'ApproveBudget usd much',
  ];
  for (const line of lines)
    assert.throws(() => play(`# Wrong.\n> ${line}\n`), / in the line "/, line);
  assert.throws(() => play('# Wrong.\n>Start\n'), /">Start" begins with none/);
  assert.throws(() => play('# Wrong.\n! reckless\n> Start\n'), /reckless is no preset/);
});
