/**
 * `pawl attach` to a detached session of 2,000 rounds, in a terminal, beside `pawl --version`
 * there; and what the process of such a session and of an empty one cost at rest.
 */

import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { median } from './figures.js';
import { IDLE_MS, paintMs, readTicks, SETTLE_MS } from './first-paint.js';
import { SESSION, writeJournal } from './replay.js';

/** A turn of ten rounds has 52 entries. */
const TURNS = 174;
const ENTRIES_OF_A_TURN = 52;
/**
 * Rounds that the process itself does, so that it leaves snapshots as it does in a long session.
 */
const OWN_ROUNDS = 260;
const SHAPE = { deltas: 0, found: 500 };
const BIN = path.resolve('packages/pawl/bin/pawl.js');

/**
 * Memory of a process in kB, as the kernel counts it: `resident` with all it shares, `own` alone.
 */
const readMemory = async (pid: number) => {
  const rollup = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8');
  const sum = (name: RegExp): number =>
    [...rollup.matchAll(name)].reduce((total, [, kB]) => total + Number(kB), 0);
  return {
    resident: sum(/^Rss: +(\d+)/gm),
    proportional: sum(/^Pss: +(\d+)/gm),
    own: sum(/^Private_\w+: +(\d+)/gm),
  };
};

const readRecord = async (folder: string, sessionId: string) =>
  JSON.parse(await readFile(path.join(folder, 'pawl', 'detached', `${sessionId}.json`), 'utf8'));

const untilAnswered = async (folder: string, sessionId: string): Promise<number> => {
  for (;;) {
    const { activity, process: identity } = await readRecord(folder, sessionId);
    if (activity.words === 'has answered') return identity.pid;
    await sleep(100);
  }
};

/** What the model says: many rounds that read a file, and an answer. */
const modelScript = (rounds: number) => ({
  replies: [
    ...Array.from({ length: rounds }, (_, round) => ({
      text: `I look at it, time ${round}.`,
      calls: [{ tool: 'read', input: { path: 'note.txt', offset: round + 1, limit: 60 } }],
    })),
    { text: 'Here I am.' },
  ],
});

/** What a process takes while nobody does anything: a row of the table. */
const restRow = async (name: string, pid: number): Promise<string> => {
  await sleep(SETTLE_MS);
  const ticks = await readTicks(pid);
  await sleep(IDLE_MS);
  const { resident, proportional, own } = await readMemory(pid);
  const taken = (await readTicks(pid)) - ticks;
  const megabytes = [resident, proportional, own].map((kB) => (kB / 1_024).toFixed(1));
  return `| ${name} | ${megabytes.join(' | ')} | ${taken} |`;
};

export const benchAttach = async (times = 15): Promise<string> => {
  const folder = await mkdtemp(path.join(tmpdir(), 'pawl-bench-attach-'));
  const state = path.join(folder, 'pawl');
  const env = { ...process.env, HOME: folder, XDG_STATE_HOME: folder };
  const detach = (...words: readonly string[]): string =>
    execFileSync(process.execPath, [BIN, '-p', 'Are you there?', '--detach', ...words], {
      cwd: folder,
      env,
      encoding: 'utf8',
    }).trim();
  const sessions: string[] = [];
  try {
    const writeModel = async (rounds: number): Promise<readonly string[]> => {
      const file = path.join(folder, `model-${rounds}.json`);
      await writeFile(file, JSON.stringify(modelScript(rounds)));
      return ['--model', `scripted/${file}`];
    };
    await writeFile(path.join(folder, 'note.txt'), 'found words that mean nothing\n'.repeat(400));
    await mkdir(state, { mode: 0o700 });
    await writeJournal(state, TURNS * ENTRIES_OF_A_TURN, SHAPE, folder);
    sessions.push(detach('--resume', SESSION, ...(await writeModel(OWN_ROUNDS))));
    await untilAnswered(folder, SESSION);
    const words = [BIN, 'attach', SESSION];
    const wanted = /Here I am\.[\s\S]*ready/;
    // The first start ever keeps what it compiled.
    await paintMs(words, folder, wanted);
    const [bare, attach]: [number[], number[]] = [[], []];
    for (let time = 0; time < times; time += 1) {
      bare.push(await paintMs([BIN, '--version'], folder, null));
      attach.push(await paintMs(words, folder, wanted));
    }
    sessions.push(detach('--same-folder', ...(await writeModel(0))));
    const rows: string[] = [];
    for (const [index, sessionId] of sessions.entries())
      rows.push(
        await restRow(
          ['2,000 rounds', 'one answer'][index] ?? '',
          await untilAnswered(folder, sessionId),
        ),
      );
    return [
      `| median of ${times}, in a terminal | ms |`,
      '|---|--:|',
      `| pawl --version, to its end | ${median(bare).toFixed(1)} |`,
      `| pawl attach, 2,000 rounds, to the last reply and the status | ${median(attach).toFixed(1)} |`,
      '',
      `| a detached process at rest | resident, MB | with its share, MB | its own, MB | ticks of CPU in ${IDLE_MS / 1_000} s |`,
      '|---|--:|--:|--:|--:|',
      ...rows,
    ].join('\n');
  } finally {
    for (const sessionId of sessions)
      execFileSync(process.execPath, [BIN, 'stop', sessionId], { env });
    await rm(folder, { recursive: true, force: true });
  }
};
