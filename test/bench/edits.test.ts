import assert from 'node:assert/strict';
import { test } from 'node:test';
import { measureEdits } from '../../bench/edits/measure.js';

/**
 * Edits with the mistakes of models, over real packages: PAWL_COUNT of each of the twelve kinds, always the same ones
 * so that the shares below can be compared. Known: with seed 1879114216 one edit of three short lines (`}`, `i++;`, `}`), from which a
 * line was left out, fits another place of the file at another depth, and goes there.
 */

const COUNT = Number(process.env.PAWL_COUNT ?? 20);
const SEED = 11;

test('edits with mistakes: none in a wrong place, most right at once, nearly all after one refusal', () => {
  const tried = measureEdits(COUNT, Math.ceil(COUNT / 5), SEED);
  const story = (fate: string): string => tried.find((one) => one.fate === fate)?.story ?? '';
  const count = (...fates: readonly string[]): number =>
    tried.filter(({ fate }) => fates.includes(fate)).length;
  assert.equal(count('wrongPlace'), 0, story('wrongPlace'));
  assert.ok(count('right') >= tried.length * 0.8, `${count('right')} of ${tried.length} at once`);
  const soon = count('right', 'rightAfterRefusal');
  assert.ok(
    soon >= tried.length * 0.97,
    `${soon} of ${tried.length} after one refusal\n${story('refused')}`,
  );
  const silent = tried.filter(({ named }) => named?.lines === false);
  assert.deepEqual(silent, [], 'every refusal names lines');
  const overlooked = tried.filter(
    ({ kind, fate }) => kind === 'one character wrong' && fate === 'right',
  );
  assert.deepEqual(overlooked, [], 'a wrong character is never overlooked');
});
