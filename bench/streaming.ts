import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { spawn } from '@lydell/node-pty';
import { build } from 'esbuild';
import { median } from './figures.js';

const FACES = ['plain', 'rewriting', 'pawl'] as const;

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

/** 5,000 tokens of Markdown in a terminal: the product's face beside plain writing, in alternation. */
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
    ].join('\n');
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};
