import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { type SeenRequest, type ServerReply, startAnthropicServer } from '../test/servers/anthropic.js';

const run = promisify(execFile);

/** Pawl and the minimal loop on the same task, one after the other, against the same kind of local server. */

export type Contestant = 'minimal loop' | 'pawl' | 'pawl without hooks' | 'pawl in a repository';

export type Task = {
  readonly rounds: number;
  /** `fresh`: as on the first start ever, without compiled code from an earlier one. */
  readonly caches: 'kept' | 'fresh';
};

export type Heat = {
  /** Milliseconds from the end of reply i to the arrival of request i + 1. */
  readonly gapsMs: readonly number[];
  /** From the start of the process to the arrival of its first request. */
  readonly firstRequestMs: number;
  readonly firstRequestBytes: number;
  readonly requests: number;
  readonly peakMegabytes: number;
};

export type Arena = {
  heat(contestant: Contestant, task: Task): Promise<Heat>;
  close(): Promise<void>;
};

const gapsOf = (requests: readonly SeenRequest[]): readonly number[] =>
  requests.slice(1).map((request, index) => request.arrivedAt - (requests[index]?.answeredAt ?? Number.NaN));

const replyTo = (index: number, rounds: number): ServerReply =>
  index < rounds
    ? {
        type: 'message',
        parts: [
          { type: 'call', id: `call_${index}`, name: 'bash', input: { command: `echo step-${index}` } },
        ],
      }
    : { type: 'message', parts: [{ type: 'text', text: 'done' }] };

const PEAK =
  "process.on('exit', () => require('node:fs').writeFileSync(process.env.BENCH_PEAK, String(process.resourceUsage().maxRSS)));";

/** The minimal loop, bundled as the product is. */
const bundleMinimal = (outfile: string) =>
  build({
    entryPoints: ['bench/minimal-loop.ts'],
    outfile,
    bundle: true,
    minify: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    logLevel: 'error',
  });

const heatOf = (
  contestant: Contestant,
  startedAt: number,
  requests: readonly SeenRequest[],
  { rounds }: Task,
) => {
  const [first] = requests;
  if (first === undefined || requests.length !== rounds + 1) {
    throw new Error(`${contestant} sent ${requests.length} requests in place of ${rounds + 1}`);
  }
  return {
    gapsMs: gapsOf(requests),
    firstRequestMs: first.arrivedAt - startedAt,
    firstRequestBytes: Buffer.byteLength(first.text),
    requests: requests.length,
  };
};

/** A repository of fifty files, whose configuration was not written a moment ago: as users have them. */
const REPOSITORY = `git init -q . && git config user.name Ada && git config user.email ada@example.org &&
for n in $(seq 50); do echo $n > file-$n.txt; done && git add . && git commit -qm first && sleep 3`;

/** A folder for all heats, with one of its own for each. */
export const openArena = async (): Promise<Arena> => {
  const folder = await mkdtemp(path.join(tmpdir(), 'pawl-contest-'));
  const minimal = path.join(folder, 'minimal-loop.mjs');
  const peak = path.join(folder, 'peak.cjs');
  await Promise.all([bundleMinimal(minimal), writeFile(peak, PEAK)]);
  const pawl = [
    path.resolve('bin/pawl.js'),
    '-p',
    'go',
    '--model',
    'anthropic/bench',
    '--max-rounds',
    '1000',
  ];
  let heats = 0;

  const heat = async (contestant: Contestant, task: Task): Promise<Heat> => {
    const place = path.join(folder, `heat-${heats++}`);
    const workspace = path.join(place, 'project');
    await mkdir(workspace, { recursive: true });
    if (contestant === 'pawl in a repository') await run('bash', ['-c', REPOSITORY], { cwd: workspace });
    const server = await startAnthropicServer({ replies: (_body, index) => replyTo(index, task.rounds) });
    const env = {
      PATH: process.env.PATH,
      HOME: place,
      XDG_STATE_HOME: place,
      XDG_CACHE_HOME: task.caches === 'kept' ? folder : place,
      ANTHROPIC_API_KEY: 'bench',
      ANTHROPIC_BASE_URL: server.url,
      NODE_OPTIONS: `--require ${peak}`,
      BENCH_PEAK: path.join(place, 'peak'),
    };
    const words =
      contestant === 'minimal loop'
        ? [minimal, path.join(place, 'minimal.jsonl'), 'go']
        : [...pawl, ...(contestant === 'pawl without hooks' ? ['--hooks', 'never'] : [])];
    const startedAt = performance.now();
    await run(process.execPath, words, { env, cwd: workspace });
    await server.close();
    const peakMegabytes = Number(await readFile(env.BENCH_PEAK, 'utf8')) / 1_024;
    return { ...heatOf(contestant, startedAt, server.requests, task), peakMegabytes };
  };
  return { heat, close: () => rm(folder, { recursive: true, force: true }) };
};
