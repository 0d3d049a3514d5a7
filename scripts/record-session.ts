/**
 * `npm run record [-- session] [inspector]`: records the pictures of README.md that need the real
 * program. The session is played in a pseudo-terminal, and what it writes is recorded; `npm run
 * update` draws the moving pictures from the recordings. `asciinema play
 * docs/pictures/session-dark.cast` plays one. The inspector shows the prepared session of a long
 * day, in a real browser.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { storeDay } from '../packages/inspector/test/day-session.js';
import { inspect } from '../packages/inspector/test/inspected-page.js';
import { openWindow } from '../packages/pawl/test/e2e/window.js';
import { type TestScope, temporaryFolder, withScope } from '../test/temporary-folder.js';
import { encodeRecording, type Output } from './pictures/session.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const SIZE = { columns: 84, rows: 22 };
const THEMES = ['dark', 'light'] as const;
/** COLORFGBG of a terminal: foreground and background among the sixteen colours. */
const COLORFGBG = { dark: '15;0', light: '0;15' } as const;

const pictureFile = (name: string): string => path.join(root, 'docs/pictures', name);

const COMMAND = 'for n in 1 2 3 4 5 6 7 8; do echo "step $n of 8"; sleep 1; done; echo all passed';
const MODEL_SCRIPT = {
  facts: { prices: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 } },
  replies: [
    {
      text: 'I run the slow check.',
      calls: [{ tool: 'bash', input: { command: COMMAND } }],
      usage: { inputTokens: 5_200, outputTokens: 90 },
    },
    {
      text: 'The check ran **once**, from beginning to end: all eight steps passed.',
      usage: { inputTokens: 6_100, outputTokens: 40 },
    },
  ],
};

/** A fresh copy of the demo's project, as a repository, with the script of its model. */
const makeProject = (folder: string): string => {
  const workspace = path.join(folder, 'bill-splitter');
  cpSync(path.join(root, 'packages/pawl/demo/project'), workspace, { recursive: true });
  const git = (...words: readonly string[]): void =>
    void execFileSync('git', words, { cwd: workspace });
  git('init', '--quiet', '--initial-branch=main');
  git('config', 'user.name', 'Ann');
  git('config', 'user.email', 'ann@localhost');
  git('add', '--all');
  git('commit', '--quiet', '--message', 'Split a bill between friends');
  // Within the project, where git does not see it. Its name is the model's name on the screen.
  writeFileSync(path.join(workspace, '.git', 'claude-sonnet-5'), JSON.stringify(MODEL_SCRIPT));
  return workspace;
};

/** The variables of a shell in a fresh home that finds `pawl`. */
const makeEnvironment = (folder: string, theme: 'dark' | 'light') => {
  const programs = path.join(folder, 'bin');
  mkdirSync(programs);
  const start = `#!/bin/sh\nexec '${process.execPath}' '${root}/packages/pawl/bin/pawl.js' "$@"\n`;
  writeFileSync(path.join(programs, 'pawl'), start, { mode: 0o755 });
  return {
    PATH: `${programs}:${process.env.PATH}`,
    PS1: '$ ',
    PAWL_MODEL: 'scripted/.git/claude-sonnet-5',
    HOME: folder,
    XDG_STATE_HOME: path.join(folder, 'state'),
    LANG: 'C.UTF-8',
    COLORTERM: 'truecolor',
    COLORFGBG: COLORFGBG[theme],
  };
};

const KEY_MS = 60;
const READ_MS = 1_500;

/** Pawl is killed while a command runs, and goes on with it. Returns all output with its times. */
const playSession = async (
  scope: TestScope,
  theme: 'dark' | 'light',
): Promise<readonly Output[]> => {
  const folder = temporaryFolder(scope, 'record');
  const environment = makeEnvironment(folder, theme);
  const outputs: Output[] = [];
  const startedAtMs = performance.now();
  const window = openWindow(
    scope,
    { folder, workspace: makeProject(folder), home: folder, state: folder, environment },
    {
      program: ['bash', '--noprofile', '--norc'],
      environment: { TERM_PROGRAM: '' },
      ...SIZE,
      onOutput: (text) => void outputs.push([(performance.now() - startedAtMs) / 1000, text]),
    },
  );
  /** Types as people do. */
  const type = async (text: string): Promise<void> => {
    for (const letter of text) {
      window.press(letter);
      await sleep(KEY_MS);
    }
    await sleep(4 * KEY_MS);
    window.press('\r');
  };
  await window.sees(/\$/);
  await type('pawl');
  await window.sees(/ready ·/);
  await type('run the slow check and tell me what it says');
  await window.sees(/step 3 of 8/);
  const children = readFileSync(`/proc/${window.pid}/task/${window.pid}/children`, 'utf8');
  for (const pid of children.trim().split(' ')) process.kill(Number(pid), 'SIGKILL');
  await window.sees(/Killed/);
  await sleep(READ_MS);
  await type('pawl --continue');
  await window.sees(/all eight steps passed[\s\S]*ready ·/);
  return outputs;
};

const recordSession = async (): Promise<void> => {
  for (const theme of THEMES) {
    const outputs = await withScope((scope) => playSession(scope, theme));
    const file = pictureFile(`session-${theme}.cast`);
    writeFileSync(file, encodeRecording({ ...SIZE, outputs }));
    console.log(file);
  }
};

const photographInspector = async (scope: TestScope): Promise<void> => {
  const inspected = await inspect(scope);
  const { page } = await inspected.open('day', await storeDay(inspected.folder));
  await page.setViewportSize({ width: 1100, height: 620 });
  for (const theme of THEMES) {
    await page.emulateMedia({ colorScheme: theme });
    const file = pictureFile(`inspector-${theme}.png`);
    await page.screenshot({ path: file });
    console.log(file);
  }
};

const asked = process.argv.slice(2);
if (asked.length === 0 || asked.includes('session')) await recordSession();
if (asked.length === 0 || asked.includes('inspector')) await withScope(photographInspector);
