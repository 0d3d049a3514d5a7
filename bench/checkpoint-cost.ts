/**
 * What the first checkpoint of a workspace and going back by a hundred files take. A checkpoint
 * keeps the files of the workspace. It runs in a process of its own and prints `Times` as JSON for
 * checkpoints.ts.
 */

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { toolCall } from '../packages/agent/src/machine/event.js';
import type { Checkpoints } from '../packages/agent/src/ports/checkpoints.js';
import { createCheckpoints } from '../packages/agent/src/workspace/checkpoints/session-checkpoints.js';

export type Times = {
  readonly firstMs: readonly [cleanMs: number, untrackedMs: number];
  readonly rewindMs: number;
};

const FILES = 10_000;
const BACK = 100;

const call = toolCall({ callId: '1', tool: 'bash', input: { command: 'sh -c true' } });

const write = (folder: string, files: number): void => {
  for (let index = 0; index < files; index++) {
    const part = path.join(folder, `part-${Math.floor(index / 100)}`);
    if (index % 100 === 0) mkdirSync(part, { recursive: true });
    writeFileSync(path.join(part, `file-${index}.txt`), `${index} ${'some words\n'.repeat(200)}`);
  }
};

const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
};

const open = (folder: string, workspace: string): Checkpoints =>
  createCheckpoints({
    workspace,
    sessionId: 'one',
    stateFolder: path.join(folder, `state-${path.basename(workspace)}`),
    environment: { PATH: process.env.PATH, HOME: folder },
  });

const measure = async (): Promise<Times> => {
  const folder = realpathSync(mkdtempSync(path.join(tmpdir(), 'pawl-checkpoints-')));
  try {
    const first: number[] = [];
    let rewindMs = 0;
    for (const kind of ['clean', 'untracked']) {
      const workspace = path.join(folder, kind);
      write(workspace, FILES);
      const commands = ['git init -q .'];
      const author = '-c gc.auto=0 -c user.name=Ada -c user.email=ada@example.org';
      if (kind === 'clean') commands.push(`git add . && git ${author} commit -qm first`);
      execFileSync('bash', ['-c', [...commands, 'sleep 3'].join(' && ')], { cwd: workspace });
      const checkpoints = open(folder, workspace);
      first.push(await timed(() => checkpoints.before(call)));
      for (let index = 0; index < BACK; index++)
        writeFileSync(
          path.join(workspace, `part-${index}`, `file-${index * 100}.txt`),
          `other ${index}\n`,
        );
      const taken = await checkpoints.take({ by: 'agent', calls: [call] });
      if (taken === null) throw new Error('nothing was kept');
      rewindMs = await timed(async () => {
        const takeBack = [{ id: taken.checkpoint, isForeign: false }];
        const { plan } = await checkpoints.plan({ takeBack, force: false });
        if (plan === null) throw new Error('there is no plan');
        await checkpoints.restore(plan);
      });
      await checkpoints.close();
    }
    const [clean = Number.NaN, untracked = Number.NaN] = first;
    return { firstMs: [clean, untracked], rewindMs };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

if (process.argv.includes('--own-process')) console.log(JSON.stringify(await measure()));
