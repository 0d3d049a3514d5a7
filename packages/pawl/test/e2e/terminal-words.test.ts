import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bin, expectCode, makeServed, runPawl } from './pawl.js';
import { openProgram, openTerminal } from './pty.js';
import { done, last } from './wire-words.js';

/** Around a session in the terminal: what is refused, what is said at the start, the shell beside it. */

const CONTROL_C = '\u0003';
const CONTROL_D = '\u0004';
const CONTROL_Z = '\u001a';

test('Ctrl-Z gives the terminal back to the shell; fg goes on with the line as it was', async (context) => {
  const place = await makeServed(context, [done]);
  const terminal = openProgram(context, place, ['bash', '--norc', '--noprofile', '-i'], {
    PS1: 'shell: ',
  });
  terminal.press(`'${process.execPath}' '${bin}'\r`);
  await terminal.sees('ready');
  terminal.press('say he');
  await terminal.sees('> say he');
  terminal.press(CONTROL_Z);
  await terminal.sees('Stopped');
  terminal.press('stty -a\r');
  await terminal.sees(/ icanon .* echo /s);
  terminal.mark();
  terminal.press('fg\r');
  await terminal.sees(/ready · .*> say he/s);
  // A key that is pressed as soon as the frame shows must not meet the shell's modes.
  const again = terminal.raw().slice(terminal.raw().lastIndexOf('fg\r'));
  const [modes, frame] = [again.indexOf('\u001b[>1u'), again.indexOf('say he')];
  assert.ok(0 <= modes && modes < frame, JSON.stringify(again));
  terminal.press('llo\r');
  await terminal.sees('Done.');
  assert.equal(last(place.server.requests[0]?.body)[0]?.text, 'say hello');
  terminal.press(CONTROL_D);
  await terminal.sees('To continue');
  terminal.press('exit\r');
  assert.equal(await terminal.ended, 0);
});

test('the list of sessions to resume from: a wrong number is wrong usage, Ctrl-C is no choice', async (context) => {
  const place = await makeServed(context, [done]);
  expectCode(await runPawl(place, ['-p', 'one']), 0);
  for (const [keys, code] of [
    ['seven\r', 2],
    [CONTROL_C, 130],
    [CONTROL_D, 2],
  ] as const) {
    const terminal = openTerminal(context, place, ['--resume']);
    await terminal.sees('Which one?');
    terminal.press(keys);
    assert.equal(await terminal.ended, code, terminal.shown());
  }
});
