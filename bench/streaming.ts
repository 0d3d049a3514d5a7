/**
 * What streaming a reply costs in a terminal: CPU and bytes of two faces (streaming-face.ts),
 * and the time from a key to its letter on the screen while a reply streams.
 */

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { spawn } from '@lydell/node-pty';
import { build } from 'esbuild';
import { median } from './figures.js';

const FACES = ['plain', 'pawl'] as const;

type Cost = {
  readonly tokens: number;
  readonly characters: number;
  readonly cpuMs: number;
  readonly bytes: number;
  readonly largest: number;
};

const inTerminal = (program: string, face: string, file: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [program, face, file], { cols: 100, rows: 30 });
    let end = '';
    child.onData((text) => {
      end = (end + text).slice(-2_000);
    });
    child.onExit(({ exitCode }) =>
      exitCode === 0 ? resolve() : reject(new Error(`${face} ended with ${exitCode}: ${end}`)),
    );
  });

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ';
const KEY_MS = 150;
/** Two hundred pieces a second, for longer than the letters are typed. */
const PIECE_MS = 5;
const PIECES = 4_000;
const ECHOING = `process.stdin.setRawMode(true); process.stdin.on('data', (key) => process.stdout.write(key));
process.stdout.write('answering');`;

/** Milliseconds from each key to its letter in the output, while a reply streams. */
const echoes = async (words: readonly string[], folder: string): Promise<readonly number[]> => {
  const environment = { ...process.env, TERM: 'xterm-256color', HOME: folder };
  const child = spawn(process.execPath, [...words], {
    ...{ cols: 100, rows: 30, cwd: folder },
    env: { ...environment, XDG_STATE_HOME: folder, PAWL_MODEL: 'scripted/model.json' },
  });
  let shown = '';
  let look = (): void => undefined;
  child.onData((text) => {
    shown += text;
    look();
  });
  const sees = (wanted: string): Promise<void> =>
    new Promise((resolve) => {
      look = () => void (shown.includes(wanted) && resolve());
      look();
    });
  const ended = new Promise<void>((resolve) => child.onExit(() => resolve()));
  await sees('answering');
  const times: number[] = [];
  for (const letter of LETTERS) {
    await sleep(KEY_MS);
    shown = '';
    const at = performance.now();
    child.write(letter);
    await sees(letter);
    times.push(performance.now() - at);
  }
  child.kill('SIGKILL');
  await ended;
  return times;
};

const echoTable = async (folder: string, times: number): Promise<readonly string[]> => {
  const text = 'word '.repeat(4 * PIECES);
  await writeFile(
    path.join(folder, 'model.json'),
    JSON.stringify({ replies: [{ text, delayMs: PIECE_MS }] }),
  );
  const floor: number[] = [];
  const ours: number[] = [];
  const program = path.resolve('packages/pawl/bin/pawl.js');
  for (let time = 0; time < times; time++) {
    floor.push(...(await echoes(['-e', ECHOING], folder)));
    ours.push(...(await echoes([program, 'go'], folder)));
  }
  return [
    '| a key, to its letter in the output | median, ms |',
    '|---|--:|',
    `| a bare echo in Node | ${median(floor).toFixed(1)} |`,
    `| pawl, while it streams | ${median(ours).toFixed(1)} |`,
    '',
    `${ours.length} keys each; the reply comes in 200 pieces a second.`,
  ];
};

/**
 * 5,000 tokens of Markdown in a terminal: the product's face beside plain writing, in alternation.
 */
export const benchStreaming = async (times = 5): Promise<string> => {
  const folder = await mkdtemp(path.join(tmpdir(), 'pawl-bench-'));
  try {
    const program = path.join(folder, 'face.mjs');
    await build({
      entryPoints: ['bench/streaming-face.ts'],
      outfile: program,
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node20',
      logLevel: 'error',
    });
    const costs = new Map<string, Cost[]>(FACES.map((face) => [face, []]));
    for (let time = 0; time < times; time++) {
      for (const face of FACES) {
        const file = path.join(folder, `${face}.json`);
        await inTerminal(program, face, file);
        costs.get(face)?.push(JSON.parse(await readFile(file, 'utf8')) as Cost); // written by the face
      }
    }
    const rows = FACES.map((face) => {
      const all = costs.get(face) ?? [];
      const [{ tokens = 1, bytes = 0, largest = 0 } = {}] = all;
      const cpu = median(all.map(({ cpuMs }) => cpuMs));
      return `| ${face} | ${cpu.toFixed(0)} | ${((1_000 * cpu) / tokens).toFixed(0)} | ${(bytes / tokens).toFixed(1)} | ${largest} |`;
    });
    const [{ tokens = 0, characters = 0 } = {}] = costs.get('plain') ?? [];
    return [
      '| face | CPU, ms | µs a token | bytes a token | largest write, bytes |',
      '|---|--:|--:|--:|--:|',
      ...rows,
      '',
      `${tokens} tokens, ${characters} characters, a thousand a second, 100 × 30. Median of ${times} runs.`,
      '',
      ...(await echoTable(folder, times)),
    ].join('\n');
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};
