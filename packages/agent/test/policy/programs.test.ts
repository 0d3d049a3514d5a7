import assert from 'node:assert/strict';
import { test } from 'node:test';
import { uncoveredWord } from '../../src/policy/command-options.js';
import { listWords, namedRows } from '../../src/policy/paths.js';
import { SUBCOMMAND_ROWS } from '../../src/policy/programs/git.js';
import { matchesOption, type Program } from '../../src/policy/programs/program.js';
import { findRow, PROGRAM_ROWS } from '../../src/policy/programs/program-table.js';

const repeated = (names: readonly string[]): readonly string[] =>
  names.filter((name, index) => names.indexOf(name) !== index);

test('each program, and each command of git, has one row', () => {
  const programs = PROGRAM_ROWS.flatMap(namedRows).map(([name]) => name);
  const commands = SUBCOMMAND_ROWS.flatMap(([, rows]) => namedRows(rows)).map(([name]) => name);
  assert.deepEqual([repeated(programs), repeated(commands)], [[], []]);
  assert.deepEqual(repeated([...programs, 'git']), ['git'], 'control');
});

/** Harmless options of a row that are risky, too: the rule for risky ones wins, so they count for nothing. */
const contradictions = ({ risky = '', harmless = '' }: Program, name: string): readonly string[] =>
  typeof harmless === 'string' && harmless !== ''
    ? listWords(harmless).filter((option) =>
        typeof risky === 'string' ? matchesOption(option, risky) : risky(option, [name, option], 1),
      )
    : [];

test('no option of a program is both risky and harmless', () => {
  const found = PROGRAM_ROWS.flatMap(namedRows).flatMap(([name, row]) =>
    contradictions(row, name).map((option) => `${name} ${option}`),
  );
  assert.deepEqual(found, []);
  assert.deepEqual(contradictions({ risky: '-o', harmless: '-cov -v' }, 'x'), ['-cov'], 'control');
});

/** Words that a rule for the program alone covers in the sandbox, and words that it does not. */
const COVERED = [
  ['go', ['test', '-count=1', '-short', '-run=Foo'], ['test', '-exec=x', './...']],
  ['go', ['build', '-mod=vendor'], ['build', '--o', 'x']],
  ['tar', ['czf', 'a.tgz', 'LICENSE', 'Foo.txt'], ['xPf', 'a.tar']],
  ['date', ['-Iseconds'], ['-us', '12:00']],
] as const;

test('only the options that run or write something elsewhere are not covered by a rule', () => {
  for (const [name, covered, risky] of COVERED) {
    assert.equal(uncoveredWord([name, ...covered], [name], 'fenced'), null, covered.join(' '));
    assert.notEqual(uncoveredWord([name, ...risky], [name], 'fenced'), null, risky.join(' '));
  }
});

/** Names of one program, and a name that only looks like one. */
const SAME = [
  ['rm', '/bin/grm', 'grmdir'],
  ['sort', 'gsort', 'gsorted'],
  ['awk', 'mawk', 'awk2'],
  ['tar', 'bsdtar', 'tarsnap'],
  ['python', 'python3.11', 'pythonista'],
  ['ld.so', '/lib64/ld-linux-x86-64.so.2', 'ld'],
  ['lerna', 'git-lfs', 'gitfs'],
] as const;

test('a program has the same row under each of its names', () => {
  for (const [name, other, foreign] of SAME) {
    assert.notEqual(findRow(name), undefined, name);
    assert.equal(findRow(other), findRow(name), other);
    assert.notEqual(findRow(foreign), findRow(name), foreign);
  }
});
