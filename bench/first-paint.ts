/**
 * The interactive face in a pseudo-terminal: the time until its first words are on the screen, and
 * what it costs while nobody does anything. A tick is a hundredth of a second of CPU.
 */

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { spawn } from '@lydell/node-pty';
import { median } from './figures.js';

const ESCAPES = /\u001b(?:\[[?>\d;]*[A-Za-z]|\][^\u0007]*\u0007)/g;

const start = (words: readonly string[], folder: string) => {
  const environment = {
    ...process.env,
    TERM: 'xterm-256color',
    HOME: folder,
    XDG_STATE_HOME: folder,
  };
  return spawn(process.execPath, [...words], {
    cols: 100,
    rows: 30,
    cwd: folder,
    env: environment,
  });
};

export const IDLE_MS = 10_000;
/** V8 collects twice after a start, some 8 and 17 seconds later, and then no more. */
export const SETTLE_MS = 20_000;

/** Of a process and all its threads, in ticks of the kernel, as /proc counts them. */
export const readTicks = async (pid: number): Promise<number> => {
  const line = await readFile(`/proc/${pid}/stat`, 'utf8');
  const [user, system] = line
    .slice(line.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
    .map(Number);
  return (user ?? Number.NaN) + (system ?? Number.NaN);
};

/** Ticks that the program takes, and bytes that it writes, while nobody does anything. */
const idle = async (words: readonly string[], folder: string) => {
  const child = start(words, folder);
  let shown = '';
  const isReady = new Promise<void>((resolve) => {
    child.onData((text) => {
      shown += text;
      if (/ready/.test(shown)) resolve();
    });
  });
  await isReady;
  await sleep(SETTLE_MS);
  const [ticks, written] = [await readTicks(child.pid), shown.length];
  await sleep(IDLE_MS);
  const taken = { ticks: (await readTicks(child.pid)) - ticks, bytes: shown.length - written };
  const ended = new Promise<void>((resolve) => child.onExit(() => resolve()));
  child.kill('SIGTERM');
  await ended; // it may still write into the folder, which is removed next
  return taken;
};

/**
 * From the start of a program in a terminal to the first words of it on the screen, or to its end
 * where it writes none.
 */
export const paintMs = (
  words: readonly string[],
  folder: string,
  wanted: RegExp | null,
): Promise<number> =>
  new Promise((resolve, reject) => {
    const startedAt = performance.now();
    const child = start(words, folder);
    let shown = '';
    let tookMs: number | null = null;
    child.onData((text) => {
      shown += text.replace(ESCAPES, '');
      if (tookMs !== null || wanted === null || !wanted.test(shown)) return;
      tookMs = performance.now() - startedAt;
      child.kill('SIGTERM');
    });
    child.onExit(() => {
      if (wanted === null) tookMs = performance.now() - startedAt;
      if (tookMs === null) reject(new Error(`the program ended without ${wanted}: ${shown}`));
      else resolve(tookMs);
    });
  });

/** The interactive face: its first paint against `node -e 0` in a terminal, in alternation. */
export const benchFirstPaint = async (times = 15): Promise<string> => {
  const folder = await mkdtemp(path.join(tmpdir(), 'pawl-bench-'));
  try {
    const script = path.join(folder, 'model.json');
    await writeFile(script, JSON.stringify({ replies: [{ text: 'Hello.' }] }));
    const bin = path.resolve('packages/pawl/bin/pawl.js');
    const words = [bin, '--model', `scripted/${script}`];
    // The first start ever keeps what it compiled.
    await paintMs(words, folder, /ready/);
    const bare: number[] = [];
    const first: number[] = [];
    const ready: number[] = [];
    for (let time = 0; time < times; time++) {
      bare.push(await paintMs(['-e', '0'], folder, null));
      first.push(await paintMs(words, folder, /\S/));
      ready.push(await paintMs(words, folder, /ready/));
    }
    const rested = await idle(words, folder);
    const row = (name: string, figures: readonly number[]): string =>
      `| ${name} | ${median(figures).toFixed(1)} | ${(median(figures) / median(bare)).toFixed(2)} |`;
    return [
      `| median of ${times}, in a terminal | ms | times \`node -e 0\` |`,
      '|---|--:|--:|',
      row('node -e 0, to its end', bare),
      row('pawl, first words on the screen', first),
      row('pawl, its status says ready', ready),
      '',
      `Idle for ${IDLE_MS / 1_000} s, ${SETTLE_MS / 1_000} s after the start: ${rested.ticks} ticks of CPU (10 ms each), ${rested.bytes} bytes written.`,
    ].join('\n');
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};
