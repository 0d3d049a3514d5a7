import assert from 'node:assert/strict';
import test from 'node:test';
import { chooseSample, pairMutants } from '../../scripts/mutation/sample/choose-sample.js';
import {
  sampleFaults,
  sampleSection,
  sectionIn,
  withSection,
} from '../../scripts/mutation/sample/sample-page.js';
import type { Mutation } from '../../scripts/mutation/score.js';

const mutantsOf = (file: string, count: number, firstLine = 1): readonly Mutation[] =>
  Array.from({ length: count }, (_, index) => ({
    file,
    mutator: 'ConditionalExpression',
    was: `word ${Math.floor(index / 2)}`, // each twice
    becomes: 'true',
    line: firstLine + index,
    status: 'Pending',
    why: '',
  }));
const all = [
  ...mutantsOf('packages/large.ts', 600),
  ...mutantsOf('packages/middle.ts', 300),
  ...mutantsOf('packages/small.ts', 100),
];

const textsOf = (sample: readonly Mutation[]): readonly string[] =>
  sample.map(({ file, was }) => `${file} ${was}`).sort();

test('a sample takes from each file its share, a larger one contains it, and another seed gives another', () => {
  const sample = chooseSample(all, { seed: 7, count: 50 });
  const share = (file: string): number =>
    sample.filter((mutation) => mutation.file === file).length;
  for (const [file, expected] of [
    ['packages/large.ts', 30],
    ['packages/middle.ts', 15],
    ['packages/small.ts', 5],
  ] as const)
    assert.ok(Math.abs(share(file) - expected) <= 1, `${file}: ${share(file)}`);
  const larger = new Set(chooseSample(all, { seed: 7, count: 200 }));
  assert.equal(larger.size, 200);
  assert.ok(sample.every((mutation) => larger.has(mutation)));
  assert.notDeepEqual(textsOf(chooseSample(all, { seed: 8, count: 50 })), textsOf(sample));
});

test('a sample stays the same when the lines of a file move', () => {
  const moved = [...mutantsOf('packages/large.ts', 600, 40), ...all.slice(600)];
  const size = { seed: 7, count: 50 };
  assert.deepEqual(textsOf(chooseSample(moved, size)), textsOf(chooseSample(all, size)));
});

test('two equal mutants on one line are two', () => {
  const [first] = all as [Mutation];
  const [one, twin, third] = [{ ...first }, { ...first }, { ...first }];
  const pairs = pairMutants(
    [one, twin, third],
    [
      { ...first, why: 'a' },
      { ...first, why: 'b' },
    ],
  );
  assert.deepEqual(
    [pairs.get(one)?.why, pairs.get(twin)?.why, pairs.get(third)],
    ['a', 'b', undefined],
  );
});

test('the section says what was tried again, and gives no share of a few', () => {
  const sample = { at: '2026-01-01', seed: 7, all: 600 };
  const mutations = mutantsOf('packages/large/a.ts', 5).map((one) => ({
    ...one,
    status: 'Killed' as const,
  }));
  const again = [{ at: '2026-01-02', count: 3, caught: 2, how: 'by hand' }];
  const section = sampleSection({ 'packages/large': { ...sample, mutations, again } }, []);
  assert.match(section, /\n- large: 3 on 2026-01-02, by hand: 2 caught\n/);
  assert.match(section, /\| large \| 2026-01-01 .* \| too few \| too few \|/);
  const caught = mutantsOf('packages/large/a.ts', 40).map((one) => ({
    ...one,
    status: 'Killed' as const,
  }));
  const later = [{ at: '2026-01-02', count: 20, caught: 20, how: 'by hand' }];
  const larger = sampleSection(
    { 'packages/large': { ...sample, mutations: caught, again: later } },
    [],
  );
  assert.match(larger, /\| 100\.0 \| 35 to 65 \|/, 'bounds by what was caught at first');
});

test('a survivor needs a reason, and a reason a survivor or no place in the sample', () => {
  const [first, , second] = all as [Mutation, Mutation, Mutation];
  const mutations: readonly Mutation[] = [
    { ...first, status: 'Survived' },
    { ...second, status: 'Killed' },
  ];
  const samples = { 'packages/large': { at: '2026-01-01', seed: 7, all: 600, mutations } };
  const listed = ({ file, mutator, was, becomes }: Mutation) => ({
    file,
    mutator,
    was,
    becomes,
    because: 'x',
  });
  assert.match(sampleFaults(samples, []).join('\n'), /^packages\/large\.ts:1: .*survives/);
  const outside = { ...listed(first), was: 'not in the sample' };
  assert.deepEqual(sampleFaults(samples, [listed(first), outside]), []);
  assert.match(
    sampleFaults(samples, [listed(first), listed(second)]).join('\n'),
    /does not survive/,
  );
});

test('the section of the samples is exchanged, and the rest of the page stays', () => {
  const once = withSection('# Page\n\nwords\n', '<!-- samples -->\none\n');
  assert.equal(once, '# Page\n\nwords\n\n<!-- samples -->\none\n');
  assert.equal(withSection(once, '<!-- samples -->\ntwo\n'), once.replace('one', 'two'));
  assert.deepEqual([sectionIn('# Page\n'), sectionIn(once)], ['', '<!-- samples -->\none\n']);
});
