/**
 * `npm run record [-- session] [inspector]`: records the pictures of README.md that need the real
 * program. The session is played in a pseudo-terminal, and what it writes is recorded; `npm run
 * update` draws the moving pictures from the recordings. `asciinema play
 * docs/pictures/session-dark.cast` plays one. The inspector shows the prepared session of a long
 * day, in a real browser.
 */
import { execFileSync } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { spawn } from '@lydell/node-pty';
import xterm from '@xterm/headless';
import { storeDay } from '../packages/inspector/test/day-session.js';
import { inspect } from '../packages/inspector/test/inspected-page.js';
import { encodeRecording, type Output } from './pictures/session.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const SIZE = { cols: 84, rows: 22 };
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
    TERM: 'xterm-256color',
    COLORTERM: 'truecolor',
    COLORFGBG: COLORFGBG[theme],
  };
};

const LIMIT_MS = 60_000;
const KEY_MS = 60;
const READ_MS = 1_500;
const READY = /ready ·/;

/** Pawl is killed while a command runs, and goes on with it. Returns all output with its times. */
const playSession = async (theme: 'dark' | 'light'): Promise<readonly Output[]> => {
  const folder = realpathSync(mkdtempSync(path.join(tmpdir(), 'pawl-record-')));
  const place = { cwd: makeProject(folder), env: makeEnvironment(folder, theme) };
  const terminal = new xterm.Terminal({ ...SIZE, scrollback: 2_000, allowProposedApi: true });
  const child = spawn('bash', ['--noprofile', '--norc'], { ...SIZE, ...place });
  const outputs: Output[] = [];
  const startedAtMs = performance.now();
  child.onData((text) => {
    outputs.push([(performance.now() - startedAtMs) / 1000, text]);
    terminal.write(text);
  });
  const ended = new Promise<void>((resolve) => child.onExit(() => resolve()));
  const { active } = terminal.buffer;
  const sees = async (wanted: RegExp): Promise<void> => {
    for (const endsAt = performance.now() + LIMIT_MS; ; await sleep(KEY_MS)) {
      const rows = Array.from({ length: active.length }, (_, row) => active.getLine(row));
      const text = rows.map((row) => row?.translateToString(true)).join('\n');
      if (wanted.test(text)) return;
      if (performance.now() > endsAt) throw new Error(`waited in vain for ${wanted} in\n${text}`);
    }
  };
  /** Types as people do. */
  const type = async (text: string): Promise<void> => {
    for (const letter of text) {
      child.write(letter);
      await sleep(KEY_MS);
    }
    await sleep(4 * KEY_MS);
    child.write('\r');
  };
  try {
    await sees(/\$ /);
    await type('pawl');
    await sees(READY);
    await type('run the slow check and tell me what it says');
    await sees(/step 3 of 8/);
    const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8');
    for (const pid of children.trim().split(' ')) process.kill(Number(pid), 'SIGKILL');
    await sees(/Killed/);
    await sleep(READ_MS);
    await type('pawl --continue');
    await sees(/all eight steps passed[\s\S]*ready ·/);
    return outputs;
  } finally {
    child.kill('SIGKILL');
    await ended;
    terminal.dispose();
    // A program that has lost its window still writes for a moment.
    rmSync(folder, { recursive: true, force: true, maxRetries: 20 });
  }
};

const recordSession = async (): Promise<void> => {
  for (const theme of THEMES) {
    const outputs = await playSession(theme);
    const file = pictureFile(`session-${theme}.cast`);
    writeFileSync(file, encodeRecording({ columns: SIZE.cols, rows: SIZE.rows, outputs }));
    console.log(file);
  }
};

const photographInspector = async (): Promise<void> => {
  const ends: (() => Promise<void>)[] = [];
  try {
    const inspected = await inspect({ after: (end) => void ends.push(end) });
    const { page } = await inspected.open('day', await storeDay(inspected.folder));
    await page.setViewportSize({ width: 1100, height: 620 });
    for (const theme of THEMES) {
      await page.emulateMedia({ colorScheme: theme });
      const file = pictureFile(`inspector-${theme}.png`);
      await page.screenshot({ path: file });
      console.log(file);
    }
  } finally {
    for (const end of ends.toReversed()) await end();
  }
};

const asked = process.argv.slice(2);
if (asked.length === 0 || asked.includes('session')) await recordSession();
if (asked.length === 0 || asked.includes('inspector')) await photographInspector();
