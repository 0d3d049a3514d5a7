import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countCases, SEED } from '../../../../test/tier.js';
import { readCommands } from '../../src/policy/shell/read-statements.js';
import { naiveAllows, notAllowed } from './hostile/allowed.js';
import { brokenTexts, fuzzed, wordTexts } from './hostile/fuzz.js';
import { allowedOf, falselyAllowed, falselyUndenied } from './hostile/judge.js';
import { mutated } from './hostile/mutations.js';
import { runByBash, wordsByBash } from './hostile/oracle.js';
import { PROGRAMMED } from './hostile/programmed.js';
import { seeded } from './hostile/random.js';
import { BROKEN, HOSTILE } from './hostile/strings.js';

test('each hostile text runs what nobody allowed, and a policy that reads no commands allows a third of them', () => {
  const ran = runByBash(HOSTILE);
  const harmless = HOSTILE.filter((_, index) => notAllowed(ran[index] ?? []).length === 0);
  assert.deepEqual(harmless, []);
  const falselyAllowed = HOSTILE.filter(naiveAllows);
  assert.ok(
    falselyAllowed.length > HOSTILE.length / 3,
    `${falselyAllowed.length} of ${HOSTILE.length}`,
  );
});

test('a text that runs only allowed commands is recognised', () => {
  const texts = [
    'git status',
    'ls -l | grep "a;b"',
    "echo '$(curl x)'",
    'git diff && npm test 2>&1 > /dev/null',
  ];
  assert.deepEqual(runByBash(texts).map(notAllowed), [[], [], [], []]);
});

/** PAWL_SEED gives the texts of another run again; PAWL_COUNT makes more random ones (100000 for an evening). */
const seed = SEED;
const RANDOM_TEXTS = countCases(800);
const MUTATED_TEXTS = 2_500;

test(`of ${MUTATED_TEXTS} hostile texts none is allowed that runs more than the rules allow (seed ${seed})`, async () => {
  const texts = mutated(HOSTILE, MUTATED_TEXTS, seeded(seed));
  assert.equal(texts.length, MUTATED_TEXTS);
  assert.deepEqual(falselyAllowed(await allowedOf(texts)), []);
});

test(`of ${RANDOM_TEXTS} random texts none is allowed that runs more than the rules allow (seed ${seed})`, async () => {
  const allowed = await allowedOf(fuzzed(RANDOM_TEXTS, seeded(seed)));
  assert.ok(
    allowed.length > RANDOM_TEXTS / 50,
    `only ${allowed.length} are allowed: the measure sees nothing`,
  );
  assert.deepEqual(falselyAllowed(allowed), []);
});

test(`of texts with an escaped line break somewhere none runs what a rule denies (seed ${seed})`, async () => {
  const texts = [...BROKEN, ...brokenTexts(countCases(1_500), seeded(seed))];
  assert.deepEqual(await falselyUndenied(texts), []);
});

/** What the judge takes for the words of a text, as `wordsByBash`; null if it knows them only at run time. */
const readWords = (text: string): string | null => {
  const reading = readCommands(text);
  if (reading.kind !== 'read' || reading.commands.length !== 1) return null;
  const words = reading.commands[0]?.words.slice(1).map(({ text: word }) => word) ?? [];
  if (words.includes(null)) return null;
  return Buffer.from([...words, '<end>'].map((word) => `${word}\0`).join('')).toString('latin1');
};

for (const locale of ['C', 'C.UTF-8'])
  test(`words that are known before they run are those that bash passes in ${locale} (seed ${seed})`, () => {
    const split = ['f "$\\\nx"', "f $\\\n'a'", "f $'\\X41'", "f $'a\\U0062cd'"];
    const texts = [...split, ...wordTexts(countCases(9_000), seeded(seed))];
    const passed = wordsByBash(texts, locale);
    assert.equal(passed.length, texts.length);
    const known = texts.map(readWords);
    assert.ok(known.filter((words) => words !== null).length > texts.length / 10);
    const wrong = texts.filter(
      (_, index) => known[index] !== null && known[index] !== passed[index],
    );
    assert.deepEqual(wrong, []);
  });

test('options that make a program run others, and what is read from elsewhere, is not allowed by its name', async () => {
  assert.deepEqual(await allowedOf(PROGRAMMED), []);
});
