import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { median } from './figures.js';
import { IDLE_MS, paintMs, SETTLE_MS, ticksOf } from './first-paint.js';
import { SESSION, writeJournal } from './replay.js';

/**
 * `pawl attach` to a detached session of 2,000 rounds, in a terminal, beside `pawl --version` there;
 * and what the process of such a session and of an empty one cost at rest.
 */

/** A turn of ten rounds has 52 entries. */
const ENTRIES = 200 * 52;
const SHAPE = { deltas: 0, found: 500 };
const BIN = path.resolve('packages/pawl/bin/pawl.js');

/** Memory of a process in kB, as the kernel counts it: `resident` with all it shares, `own` alone. */
const memoryOf = async (pid: number) => {
  const rollup = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8');
  const sum = (name: RegExp): number =>
    [...rollup.matchAll(name)].reduce((total, [, kB]) => total + Number(kB), 0);
  return {
    resident: sum(/^Rss: +(\d+)/gm),
    proportional: sum(/^Pss: +(\d+)/gm),
    own: sum(/^Private_\w+: +(\d+)/gm),
  };
};

const processOf = async (folder: string, sessionId: string): Promise<number> => {
  const file = path.join(folder, 'pawl', 'detached', `${sessionId}.json`);
  return JSON.parse(await readFile(file, 'utf8')).process.pid;
};

/** What a process takes while nobody does anything: a row of the table. */
const restRow = async (name: string, pid: number): Promise<string> => {
  await sleep(SETTLE_MS);
  const ticks = await ticksOf(pid);
  await sleep(IDLE_MS);
  const { resident, proportional, own } = await memoryOf(pid);
  const taken = (await ticksOf(pid)) - ticks;
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
    const script = path.join(folder, 'model.json');
    await writeFile(script, JSON.stringify({ replies: [{ text: 'Here I am.' }] }));
    await mkdir(state, { mode: 0o700 });
    await writeJournal(state, ENTRIES, SHAPE, folder);
    const model = ['--model', `scripted/${script}`];
    sessions.push(detach('--resume', SESSION, ...model));
    const words = [BIN, 'attach', SESSION];
    const wanted = /Here I am\.[\s\S]*ready/;
    // The first start ever keeps what it compiled.
    await paintMs(words, folder, wanted);
    const [bare, attach]: [number[], number[]] = [[], []];
    for (let time = 0; time < times; time += 1) {
      bare.push(await paintMs([BIN, '--version'], folder, null));
      attach.push(await paintMs(words, folder, wanted));
    }
    sessions.push(detach('--same-folder', ...model));
    const rows: string[] = [];
    for (const [index, sessionId] of sessions.entries())
      rows.push(
        await restRow(['2,000 rounds', '1 round'][index] ?? '', await processOf(folder, sessionId)),
      );
    return [
      `| median of ${times}, in a terminal | ms |`,
      '|---|--:|',
      `| pawl --version, to its end | ${median(bare).toFixed(1)} |`,
      `| pawl attach, ${ENTRIES.toLocaleString('en-US')} entries, to the last reply and the status | ${median(attach).toFixed(1)} |`,
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
