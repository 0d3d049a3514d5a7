import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { type SeenRequest, startAnthropicServer } from '../test/servers/anthropic.js';

const run = promisify(execFile);

/** Pawl and the minimal loop on the same task, one after the other, against the same kind of local server. */

export type Contestant = 'minimal loop' | 'pawl';
export const contestants: readonly Contestant[] = ['minimal loop', 'pawl'];

export type Heat = {
  /** Milliseconds from the end of reply i to the arrival of request i + 1. */
  readonly gapsMs: readonly number[];
  /** From the start of the process to the arrival of its first request. */
  readonly firstRequestMs: number;
  readonly firstRequestBytes: number;
  readonly requests: number;
  readonly peakMegabytes: number;
};

export type Arena = { heat(contestant: Contestant, rounds: number): Promise<Heat>; close(): Promise<void> };

const gapsOf = (requests: readonly SeenRequest[]): readonly number[] =>
  requests.slice(1).map((request, index) => request.arrivedAt - (requests[index]?.answeredAt ?? Number.NaN));

/** Bundles the minimal loop as the product is bundled, and makes a folder for each heat. */
export const openArena = async (): Promise<Arena> => {
  const folder = await mkdtemp(path.join(tmpdir(), 'pawl-contest-'));
  const minimal = path.join(folder, 'minimal-loop.mjs');
  await build({
    entryPoints: ['bench/minimal-loop.ts'],
    outfile: minimal,
    bundle: true,
    minify: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    logLevel: 'error',
  });
  const peak = path.join(folder, 'peak.cjs');
  const { writeFile, mkdir } = await import('node:fs/promises');
  await writeFile(
    peak,
    "process.on('exit', () => require('node:fs').writeFileSync(process.env.BENCH_PEAK, String(process.resourceUsage().maxRSS)));",
  );
  let heats = 0;

  const words = (contestant: Contestant, place: string): readonly string[] =>
    contestant === 'pawl'
      ? [
          path.resolve('bin/pawl.js'),
          '-p',
          'go',
          '--model',
          'anthropic/bench',
          '--workspace',
          place,
          '--max-rounds',
          '1000',
        ]
      : [minimal, path.join(place, 'minimal.jsonl'), 'go'];

  const heat = async (contestant: Contestant, rounds: number): Promise<Heat> => {
    const place = path.join(folder, `heat-${heats++}`);
    await mkdir(place);
    const server = await startAnthropicServer({
      replies: (_body, index) =>
        index < rounds
          ? {
              type: 'message',
              parts: [
                { type: 'call', id: `call_${index}`, name: 'bash', input: { command: `echo step-${index}` } },
              ],
            }
          : { type: 'message', parts: [{ type: 'text', text: 'done' }] },
    });
    const peakFile = path.join(place, 'peak');
    const environment = {
      PATH: process.env['PATH'],
      HOME: place,
      XDG_STATE_HOME: place,
      ANTHROPIC_API_KEY: 'bench',
      ANTHROPIC_BASE_URL: server.url,
      NODE_OPTIONS: `--require ${peak}`,
      BENCH_PEAK: peakFile,
    };
    const startedAt = performance.now();
    await run(process.execPath, words(contestant, place), { env: environment, cwd: place });
    const [first] = server.requests;
    if (first === undefined || server.requests.length !== rounds + 1) {
      throw new Error(`${contestant} sent ${server.requests.length} requests in place of ${rounds + 1}`);
    }
    await server.close();
    return {
      gapsMs: gapsOf(server.requests),
      firstRequestMs: first.arrivedAt - startedAt,
      firstRequestBytes: Buffer.byteLength(first.text),
      requests: server.requests.length,
      peakMegabytes: Number(await readFile(peakFile, 'utf8')) / 1_024,
    };
  };
  return { heat, close: () => rm(folder, { recursive: true, force: true }) };
};
