import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { loadMarkdown } from '@pawl/terminal/markdown';
import { safe } from '@pawl/terminal/safe-text';
import { removeFolderSync } from '../../../../test/temporary-folder.js';
import { chooseRows, countCases } from '../../../../test/tier.js';
import { buildProgram } from '../../src/commands/command-line.js';
import { commandChoices } from '../../src/sessions/typed-input.js';
import { captureOutput } from './surfaces/capture.js';
import { commandSurfaces } from './surfaces/command-surfaces.js';
import { createHostile } from './surfaces/hostile.js';
import { slashSurfaces } from './surfaces/slash-surfaces.js';
import type { Surface } from './surfaces/surface.js';
import { viewSurfaces } from './surfaces/view-surfaces.js';
import { watchTerminal } from './surfaces/watched-terminal.js';

/**
 * Hostile text on every surface that shows foreign text, into an emulated terminal.
 *
 * TERMINAL_FUZZ_BYTES is how much each surface gets (by default some), TERMINAL_FUZZ_ONLY a part of the names of
 * those that are meant.
 */
const BYTES = Number(process.env.TERMINAL_FUZZ_BYTES ?? countCases(12_000));
const ONLY = process.env.TERMINAL_FUZZ_ONLY ?? '';
/** At most so much at once: an answer, a file, a message. */
const SIZE = Math.min(BYTES / 2, 60_000);

const root = fileURLToPath(new URL('../../../..', import.meta.url));
const surfaces: readonly Surface[] = [...viewSurfaces, ...slashSurfaces, ...commandSurfaces];
/** Each command has a session of its own to show: a third of them a day. */
const tried =
  ONLY === ''
    ? [...viewSurfaces, ...slashSurfaces, ...chooseRows(commandSurfaces, undefined, 11)]
    : surfaces;

/** What prints and shows nothing foreign, or is driven elsewhere; with the reason. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  'packages/terminal/src/write.ts': 'the writer, packages/pawl/test/terminal/stray-output.test.ts',
  'packages/pawl/src/main.ts':
    'one constant sentence; errors outside of any await as run-command-line.ts prints them',
  'packages/pawl/src/commands/command-line.ts':
    'packages/pawl/test/terminal/stray-output.test.ts, packages/pawl/test/e2e/terminal.test.ts',
  'packages/pawl/src/commands/machine-check.ts': 'prints what it computes from the table',
  'packages/pawl/src/commands/machine.ts': 'prints the table',
  'packages/pawl/src/commands/shell-completion.ts': 'prints scripts made from our own flags',
  'packages/pawl/src/headless/headless.ts': 'one constant sentence',
  'packages/pawl/src/detached/launch.ts':
    'warnings made safe, as those of every command; packages/pawl/test/e2e/detached.test.ts',
  'packages/pawl/src/detached/worker.ts': 'its stderr is a log file; what it writes is made safe',
  'packages/pawl/src/commands/demo.ts': 'our own script and project; its story is that of a turn',
  'packages/pawl/src/commands/sessions.ts':
    'prints what the list of sessions prints, in the same way',
  'packages/pawl/src/interactive/ask-key.ts':
    'its texts are its own, and faults that `pawl models` prints, too',
  'packages/pawl/src/interactive/ask-trust.ts':
    'warnings made safe; the questions are those of ask-trust.ts',
  'packages/pawl/src/editor/acp-command.ts':
    'two constant sentences; the rest goes to the editor as JSON',
  'packages/pawl/src/editor/mcp-server.ts':
    'a constant sentence, and the warnings of sessions; the rest goes to the caller as JSON',
  ...Object.fromEntries(
    [
      ...['sessions/stored-sessions', 'interactive/run-sessions', 'interactive/paste-picture'],
      'interactive/terminal-session',
    ].map((name) => [`packages/pawl/src/${name}.ts`, 'packages/pawl/test/e2e/terminal.test.ts']),
  ),
};
const COMMANDS_ELSEWHERE = ['acp', 'demo', 'machine', 'completion'];

let folder = '';
const kept = { folder: process.cwd(), environment: { ...process.env } };

before(async () => {
  folder = realpathSync(mkdtempSync(path.join(tmpdir(), 'pawl-surfaces-')));
  const workspace = path.join(folder, createHostile(7).name());
  mkdirSync(workspace);
  symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules')); // workers load tsx from the current folder
  process.chdir(workspace);
  for (const name of ['HOME', 'XDG_STATE_HOME', 'XDG_CONFIG_HOME', 'XDG_CACHE_HOME'])
    process.env[name] = folder;
  process.env.NO_COLOR = '1'; // no style is expected, so that a foreign one is seen
  await loadMarkdown();
});

after(() => {
  process.chdir(kept.folder);
  Object.assign(process.env, kept.environment);
  removeFolderSync(folder);
});

const fuzz = async (surface: Surface, bytes: number): Promise<readonly string[]> => {
  const watched = watchTerminal(!commandSurfaces.includes(surface));
  let written = 0;
  const write = (text: string): void => {
    written += text.length;
    watched.write(text);
  };
  const stop = captureOutput(write);
  try {
    const look = { colour: 'no', columns: 100 } as const;
    for (let seed = 1, given = 0; given < bytes; seed += 1) {
      const hostile = createHostile(seed);
      await surface.show(hostile, { look, write, print: (text) => write(safe`${text}\r\n`) }, SIZE);
      given += hostile.given();
    }
  } finally {
    stop();
  }
  assert.ok(written > 100, `${surface.name} has shown nothing`);
  return watched.faults();
};

for (const surface of tried.filter(({ name }) => name.includes(ONLY))) {
  test(`no effect on the terminal: ${surface.name}`, async () => {
    assert.deepEqual(await fuzz(surface, BYTES), []);
  });
}

test('control: the same text without the writer has effects', async () => {
  for (const isWindow of [true, false]) {
    const watched = watchTerminal(isWindow);
    watched.write(createHostile(1).text(20_000));
    const faults = await watched.faults();
    assert.ok(faults.length > 0);
  }
});

const sources = (at: string): readonly string[] =>
  readdirSync(path.join(root, at), { recursive: true, encoding: 'utf8' })
    .filter((name) => /^[^/]+\/src\/.*\.ts$/.test(name))
    .map((name) => path.posix.join(at, name));

test('every file that prints, every command and every slash command has a surface', () => {
  const printing = sources('packages').filter((file) =>
    /from '@pawl\/terminal\/write'|\b(?:view|area)\.print\(/.test(
      readFileSync(path.join(root, file), 'utf8'),
    ),
  );
  const covered = new Set([...surfaces.flatMap(({ covers }) => covers), ...Object.keys(ELSEWHERE)]);
  assert.deepEqual(
    printing.filter((file) => !covered.has(file)),
    [],
    'files that print and have no surface in packages/pawl/test/terminal/surfaces',
  );
  assert.deepEqual(
    [...covered]
      .filter((file) => !printing.includes(file))
      .filter((file) => !/terminal\//.test(file)),
    [],
  );
  const names = buildProgram(() => undefined).commands.map((command) => command.name());
  const shown = new Set([
    ...surfaces.flatMap(({ commands = [] }) => commands),
    ...COMMANDS_ELSEWHERE,
  ]);
  assert.deepEqual(
    names.filter((name) => !shown.has(name)),
    [],
  );
  const typedNames = commandChoices.map(({ text }) => text);
  const typed = new Set(surfaces.flatMap(({ slash = [] }) => slash));
  assert.deepEqual(
    typedNames.filter((name) => !typed.has(name)),
    [],
  );
  assert.ok(surfaces.length >= 15);
});
