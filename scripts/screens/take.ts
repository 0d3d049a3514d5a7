/**
 * Plays a scene with the real program in a pseudo-terminal, and takes its picture: the cells of
 * the screen at its end, and all output with its times.
 */

import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Theme } from '../pictures/svg.js';
import type { Scene } from './scenes.js';
import { type Output, openWindow, type Shot } from './window.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const bin = path.join(root, 'packages/pawl/bin/pawl.js');

/** COLORFGBG of a terminal: foreground and background among the sixteen colours. */
const COLORFGBG: Readonly<Record<Theme, string>> = { dark: '15;0', light: '0;15' };

type Take = {
  readonly scene: Scene;
  readonly columns: number;
  readonly rows: number;
  readonly theme: Theme;
};

type TakeResult = { readonly shot: Shot; readonly outputs: readonly Output[] };

/** A fresh copy of the demo's project, as a repository. */
const makeProject = (folder: string): string => {
  const workspace = path.join(folder, 'bill-splitter');
  cpSync(path.join(root, 'packages/pawl/demo/project'), workspace, { recursive: true });
  const git = (...words: readonly string[]): void =>
    void execFileSync('git', ['-c', 'user.name=Ann', '-c', 'user.email=ann@localhost', ...words], {
      cwd: workspace,
    });
  git('init', '--quiet', '--initial-branch=main');
  git('add', '--all');
  git('commit', '--quiet', '--message', 'Split a bill between friends');
  git('config', 'user.name', 'Ann');
  git('config', 'user.email', 'ann@localhost');
  return workspace;
};

/** Plays a scene with the real program in a fresh home and a fresh project. */
export const take = async ({ scene, columns, rows, theme }: Take): Promise<TakeResult> => {
  const folder = realpathSync(mkdtempSync(path.join(tmpdir(), 'pawl-screens-')));
  const workspace = makeProject(folder);
  // Within the project, where git does not see it. Its name is the model's name on the screen.
  const script = path.join(workspace, '.git', 'claude-sonnet-5');
  writeFileSync(
    script,
    JSON.stringify({
      facts: { prices: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 } },
      replies: scene.replies,
    }),
  );
  const programs = path.join(folder, 'bin');
  mkdirSync(programs);
  writeFileSync(
    path.join(programs, 'pawl'),
    `#!/bin/sh\nexec '${process.execPath}' '${bin}' "$@"\n`,
    {
      mode: 0o755,
    },
  );
  const environment = {
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
  const window = openWindow({
    columns,
    rows,
    folder: workspace,
    program:
      scene.flags === null
        ? ['bash', '--noprofile', '--norc']
        : [process.execPath, bin, ...scene.flags],
    environment,
  });
  try {
    await scene.play(window);
    // The screen follows the output by one frame.
    await new Promise((resolve) => void setTimeout(resolve, 300));
    return { shot: window.shot(rows), outputs: [...window.outputs()] };
  } finally {
    await window.close();
    if (scene.end !== undefined)
      execFileSync('sh', ['-c', scene.end], {
        cwd: workspace,
        env: environment,
        stdio: 'ignore',
      });
    // A program that has lost its window still writes for a moment.
    rmSync(folder, { recursive: true, force: true, maxRetries: 20 });
  }
};
