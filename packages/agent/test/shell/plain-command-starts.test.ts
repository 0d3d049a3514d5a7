// biome-ignore-all lint/suspicious/noTemplateCurlyInString: shell texts, not ours
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countCases, SEED } from '../../../../test/tier.js';
import { commandStarts } from '../../src/policy/shell/grammar.js';
import { readCommands } from '../../src/policy/shell/read-statements.js';
import { plainStarts } from '../../src/policy/shell/shell-facts.js';
import { EVERYDAY } from './everyday/commands.js';
import { fuzzed } from './hostile/fuzz.js';
import { mutated } from './hostile/mutations.js';
import { pick, type Random, seeded } from './hostile/random.js';
import { HOSTILE } from './hostile/strings.js';

type Difference = {
  readonly text: string;
  readonly plain: unknown;
  readonly others: readonly unknown[];
};

const sorted = (starts: Iterable<number>): readonly number[] => [...starts].sort((a, b) => a - b);

const byGrammar = async (text: string): Promise<unknown> => {
  const starts = await commandStarts(text);
  return starts.kind === 'starts' ? sorted(starts.at) : starts.why;
};

const byReader = (text: string): unknown => {
  const reading = readCommands(text);
  if (reading.kind === 'unclear') return reading.why;
  return sorted(reading.commands.filter(({ words }) => words.length > 0).map(({ start }) => start));
};

/** Which of the texts are plain, and where a plain text is read differently by the grammar or by our reader. */
const compare = async (texts: readonly string[]) => {
  let plainTexts = 0;
  const differences: Difference[] = [];
  for (const text of texts) {
    const starts = plainStarts(text);
    if (starts === null) continue;
    plainTexts++;
    const plain = sorted(starts);
    const others = [await byGrammar(text), byReader(text)];
    if (others.some((other) => JSON.stringify(other) !== JSON.stringify(plain)))
      differences.push({ text, plain, others });
  }
  return { plainTexts, differences };
};

const PIECES =
  `a b1 git -x --y=1 a=b * ? . / ./x.sh 'q_r' "d_q" '' "" 2>&1 >/dev/null 2>/dev/null 1 10 ; | || && in do time test if echo [ ] - + % @ ! x: = == =a , '$(x)' '\`x\`' "a;b" "(a)" export let exec builtin 0x1 1a & > .. a+=b += *.ts ?x "*" 5. %1 a@b +a ++ __ then fi { } ~`.split(
    ' ',
  );

const pieced = (random: Random): string =>
  Array.from(
    { length: 1 + Math.floor(random() * 9) },
    () => `${pick(PIECES, random).replace('_', ' ')}${random() < 0.7 ? ' ' : ''}`,
  ).join('');

/** PAWL_SEED gives the texts of another run again; PAWL_COUNT makes more random ones. */
const seed = SEED;
const RANDOM_TEXTS = countCases(8_000);

test('most everyday commands are plain, and are read as the grammar reads them', async () => {
  const { plainTexts, differences } = await compare(EVERYDAY.commands);
  assert.deepEqual(differences, []);
  assert.ok(plainTexts > EVERYDAY.commands.length * 0.6, `${plainTexts} are plain`);
});

test(`a hostile or random text that is plain is read as the grammar reads it (seed ${seed})`, async () => {
  const random = seeded(seed);
  const texts = [...HOSTILE, ...mutated(HOSTILE, 2_500, random), ...fuzzed(RANDOM_TEXTS, random)];
  const { plainTexts, differences } = await compare(texts);
  assert.deepEqual(differences, []);
  assert.ok(plainTexts > texts.length / 50, `${plainTexts} of ${texts.length} are plain`);
});

test(`words and operators in any order: those that are plain are read as the grammar reads them (seed ${seed})`, async () => {
  const random = seeded(seed);
  const texts = Array.from({ length: RANDOM_TEXTS }, () => pieced(random));
  const { plainTexts, differences } = await compare(texts);
  assert.deepEqual(differences, []);
  assert.ok(plainTexts > texts.length / 20, `${plainTexts} of ${texts.length} are plain`);
});

test('a text that bash expands, groups or reads in several lines is not plain', () => {
  const texts = [
    ...[
      'echo $x',
      'echo "$x"',
      'echo `x`',
      'echo "`x`"',
      'echo \\;',
      'echo "a\\"b"',
      'a\nb',
      'a\tb',
      'a &',
    ],
    ...[
      'a & b',
      '(a)',
      '{ a; }',
      'if a; then b; fi',
      '! a',
      'x=1 a',
      'a <b',
      'a >b',
      'a <<E',
      'a <<<b',
    ],
    ...[
      'echo {a,b}',
      'echo [a]',
      'a # b',
      "echo 'a",
      'echo "a',
      'a;;b',
      'a |& b',
      'a |',
      '',
      ' ',
      '~/a',
    ],
    ...[
      '"a" b',
      'a""',
      'a\u00a0b',
      'é',
      "echo 'é'",
      'a 2>&1x',
      'a >/dev/nullx',
      'a >/dev/tcp/x/1',
      'a&&b)',
    ],
  ];
  assert.deepEqual(
    texts.filter((text) => plainStarts(text) !== null),
    [],
  );
});

test('commands begin behind each operator of a plain text, and nowhere else', () => {
  const text = 'cd "a;b" && npm test -- --x=\'y | z\' 2>&1 | tail -5;ls *.ts >/dev/null || true';
  const names = ['cd', 'npm', 'tail', 'ls', 'true'];
  assert.deepEqual(
    sorted(plainStarts(text) ?? []),
    names.map((name) => text.indexOf(name)),
  );
});

test('a text is read also where the machine lets this process wait', async (context) => {
  let nowMs = 0;
  context.mock.method(performance, 'now', () => (nowMs += 10_000));
  const { kind } = await commandStarts('echo a; '.repeat(2_000));
  assert.equal(kind, 'starts');
});
