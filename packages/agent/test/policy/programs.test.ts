import assert from 'node:assert/strict';
import { test } from 'node:test';
import { namedRows } from '../../src/policy/paths.js';
import { SUBCOMMAND_ROWS } from '../../src/policy/programs/git.js';
import { findRow, PROGRAM_ROWS } from '../../src/policy/programs/program-table.js';

const repeated = (names: readonly string[]): readonly string[] =>
  names.filter((name, index) => names.indexOf(name) !== index);

test('each program, and each command of git, has one row', () => {
  const programs = PROGRAM_ROWS.flatMap(namedRows).map(([name]) => name);
  const commands = SUBCOMMAND_ROWS.flatMap(([, rows]) => namedRows(rows)).map(([name]) => name);
  assert.deepEqual([repeated(programs), repeated(commands)], [[], []]);
  assert.deepEqual(repeated([...programs, 'git']), ['git'], 'control');
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
