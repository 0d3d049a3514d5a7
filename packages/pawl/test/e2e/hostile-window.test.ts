import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ASK_FOCUS, ENABLE_CALLS, RESTORE_CALLS, RESTORE_TERMINAL } from '@pawl/terminal/paint';
import { createHostile } from '../terminal/surfaces/hostile.js';
import { watchTerminal } from '../terminal/surfaces/watched-terminal.js';
import { expectCode, makePlace, runPawl } from './pawl.js';
import { openTerminal } from './pty.js';

/** The whole program in a terminal, in a folder whose name, files and sessions are hostile. */

test('a hostile folder, its files, sessions and commands have no effect on the terminal', async (context) => {
  const hostile = createHostile(11);
  const place = makePlace(context, { NO_COLOR: '1' });
  const workspace = join(place.workspace, hostile.name());
  mkdirSync(workspace);
  for (let count = 0; count < 5; count += 1) writeFileSync(join(workspace, hostile.name()), 'x');
  writeFileSync(join(workspace, 'bytes'), hostile.text(20_000));
  const script = join(place.workspace, 'script.json');
  writeFileSync(script, JSON.stringify({ replies: [{ text: hostile.text(2_000) }] }));
  const words = ['--workspace', workspace, '--model', `scripted/${script}`];
  const said = `fix ${hostile.text(200).replaceAll('\0', '')}`;
  expectCode(await runPawl(place, [...words, '-p', said]), 0);

  const terminal = openTerminal(context, place, [...words, '--resume']);
  await terminal.sees('Which one?');
  terminal.press('1\r');
  await terminal.sees('ready');
  terminal.press('@n');
  await terminal.sees('› n');
  terminal.press('\u0015');
  terminal.press('!cat bytes\r');
  await terminal.sees('the model gets it with your next message');
  terminal.press('\u0016');
  await terminal.sees("Can't paste a picture");
  terminal.press('\u0004');
  await terminal.ended;

  const watched = watchTerminal(true);
  const own = [RESTORE_TERMINAL, ASK_FOCUS, ENABLE_CALLS, RESTORE_CALLS];
  const others = own.reduce<string>((raw, text) => raw.replaceAll(text, ''), terminal.raw());
  // Pawl's own titles: the folder's name is in them, without any control character.
  const title = /\u001b\]2;[^\u0000-\u001f\u007f-\u009f]* · pawl\u0007/g;
  assert.match(others, title);
  watched.write(others.replaceAll(title, ''));
  assert.deepEqual(await watched.faults(), []);
});
