/**
 * The ordinary user of a run that root starts. The whole run shares one: a fence that is planned
 * while the list of users changes can't be built.
 */

import { execFileSync, spawnSync } from 'node:child_process';

/** Tries again while another run holds the list of users. */
const changeUsers = (program: 'useradd' | 'userdel', words: readonly string[]): void => {
  for (let tries = 1; ; tries++) {
    const { status, stderr } = spawnSync(program, words, { encoding: 'utf8' });
    if (status === 0) return;
    if (tries === 300 || !stderr.includes('cannot lock'))
      throw new Error(`${program} ${words.join(' ')}: ${stderr}`);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
  }
};

/** Adds the user for as long as this process runs; tests read PAWL_TEST_USER. */
export const addTestUser = (): void => {
  if (process.getuid?.() !== 0) return;
  const name = `pawl-test-${process.pid}`;
  changeUsers('useradd', ['--no-create-home', '--shell', '/bin/bash', name]);
  // by force: a process of a test may still be ending
  process.once('exit', () => changeUsers('userdel', ['--force', name]));
  const [uid, gid] = ['-u', '-g'].map((kind) => Number(execFileSync('id', [kind, name])));
  process.env.PAWL_TEST_USER = JSON.stringify({ uid, gid });
};
