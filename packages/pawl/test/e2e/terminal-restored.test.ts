import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { chooseRows } from '../../../../test/tier.js';
import { until } from '../../../../test/until.js';
import { bin, makeServed } from './pawl.js';
import { openProgram } from './pty.js';
import { message, text } from './wire-words.js';

/** However the program ends, the shell gets its terminal back: in a shell, in a real pseudo-terminal. */

/** Bracketed paste off, Kitty's keys off, wrapping on, cursor shown; no reports of the focus, and the title of before. */
const GIVEN_BACK = [
  '\u001b[?2004l',
  '\u001b[<u',
  '\u001b[?7h',
  '\u001b[?25h',
  '\u001b[?1004l',
  '\u001b[23;2t',
];

/** What ends it; `given`: it can clean up itself (nobody can after SIGKILL: there the shell does what it can). */
const ends: readonly (readonly [title: string, signal: NodeJS.Signals, given: boolean])[] = [
  ['SIGTERM', 'SIGTERM', true],
  ['an exception that nobody catches', 'SIGUSR2', true],
  ['SIGKILL', 'SIGKILL', false],
];

const rows = ends.flatMap((end) => [false, true].map((busy) => [...end, busy] as const));
for (const [title, signal, given, busy] of chooseRows(rows, ([, signal]) => signal)) {
  test(`after ${title} ${busy ? 'in the middle of a reply' : 'at rest'} the shell works as before`, async (context) => {
    const place = await makeServed(context, [
      { type: 'message', parts: [text('A long answer. '.repeat(200))], delayMs: 40 },
    ]);
    const thrower = join(place.folder, 'throw.cjs');
    writeFileSync(
      thrower,
      `process.on('SIGUSR2', () => { throw new Error('a fault of the program'); });`,
    );
    const shell = openProgram(context, place, ['bash', '--norc', '--noprofile', '-i'], {
      PS1: 'shell: ',
    });
    shell.press(`'${process.execPath}' --require '${thrower}' '${bin}' & echo "pid=$!."; fg\r`);
    await shell.sees(/pid=\d+\./);
    const pid = Number(/pid=(\d+)\./.exec(shell.shown())?.[1]);
    await shell.sees('ready');
    if (busy) {
      shell.press('go\r');
      await shell.sees('A long answer.');
    }
    const from = shell.raw().length;
    shell.mark();
    process.kill(pid, signal);
    await shell.sees('shell: ');
    const after = shell.raw().slice(from);
    if (given)
      for (const sequence of GIVEN_BACK) assert.ok(after.includes(sequence), JSON.stringify(after));
    shell.press('stty -a; echo "all is $((40+2))"\r');
    await shell.sees('all is 42');
    assert.match(shell.shown(), / icanon .* echo /s);
    await until('no process', () => {
      try {
        process.kill(pid, 0);
        return false;
      } catch {
        return true;
      }
    });
  });
}

test('title and reports of the focus begin and end together, and only where the user wants them', async (context) => {
  const environments = [
    [{}, 1],
    [{ PAWL_NOTIFICATIONS: 'off' }, 0],
    [{ PAWL_PLAIN: '1' }, 0],
  ] as const;
  for (const [environment, count] of chooseRows(environments, ([, count]) => String(count))) {
    const place = await makeServed(context, [message(text('x'))]);
    const shell = openProgram(context, place, [process.execPath, bin], environment);
    await shell.sees('/help');
    shell.press('hello\r');
    await shell.sees(/\nx|x\r/);
    shell.press('/quit\r');
    assert.equal(await shell.ended, 0);
    const raw = shell.raw();
    for (const sequence of ['\u001b[22;2t', '\u001b[?1004h', '\u001b[?1004l', '\u001b[23;2t'])
      assert.equal(raw.split(sequence).length - 1, count, JSON.stringify([environment, sequence]));
    // Kitty's keys, too
    if (count === 1) assert.ok(raw.includes('\u001b[>1u'));
    assert.ok(raw.lastIndexOf('\u001b[<u') >= raw.lastIndexOf('\u001b[>1u'));
    assert.equal(raw.includes('\u001b]2;working · work · pawl\u0007'), count === 1);
  }
});
