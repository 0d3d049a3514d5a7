/**
 * Runs contestants (Pawl, and the minimal loop of minimal-loop.ts) on the same task, one after the
 * other, against the same kind of local server. A heat is one run of one contestant. The arena is
 * the folder in which all heats of a benchmark run; a gap is the time from a reply to the next
 * request.
 */

import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import {
  type SeenRequest,
  type ServerReply,
  startAnthropicServer,
} from '../test/servers/anthropic.js';

const run = promisify(execFile);

export type Contestant = {
  readonly name: string;
  readonly program: 'minimal loop' | 'pawl';
  /**
   * Where it works: a folder of its own, or a repository that all heats share, since no round
   * changes a file.
   */
  readonly place: 'folder' | 'repository' | 'repository with a formatter' | 'large repository';
  /** Flags of pawl. */
  readonly flags?: readonly string[];
  /** Variables of pawl. */
  readonly environment?: Readonly<Record<string, string>>;
};

export type Task = {
  readonly rounds: number;
  /** `fresh`: as on the first start ever, without compiled code from an earlier one. */
  readonly caches: 'kept' | 'fresh';
  /** Milliseconds before each frame of a reply. Missing: a reply comes at once. */
  readonly frameMs?: number;
  /** What each round runs; missing: `echo`. */
  readonly command?: (round: number) => string;
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
  requests
    .slice(1)
    .map((request, index) => request.arrivedAt - (requests[index]?.answeredAt ?? Number.NaN));

const replyTo = (index: number, { rounds, frameMs, command }: Task): ServerReply =>
  index < rounds
    ? {
        type: 'message',
        ...(frameMs === undefined ? {} : { delayMs: frameMs }),
        parts: [
          {
            type: 'call',
            id: `call_${index}`,
            name: 'bash',
            input: { command: command?.(index) ?? `echo step-${index}` },
          },
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
    throw new Error(
      `${contestant.name} sent ${requests.length} requests in place of ${rounds + 1}`,
    );
  }
  return {
    gapsMs: gapsOf(requests),
    firstRequestMs: first.arrivedAt - startedAt,
    firstRequestBytes: Buffer.byteLength(first.text),
    requests: requests.length,
  };
};

const FILES = 50;
const FILES_OF_LARGE = 100_000;
const FILES_A_FOLDER = 100;

/** A repository whose configuration was not written a moment ago: as users have them. */
const makeRepository = async (
  workspace: string,
  files: number,
  more: Readonly<Record<string, string>> = {},
): Promise<string> => {
  for (let index = 0; index < files; index++) {
    const folder = path.join(workspace, `part-${Math.floor(index / FILES_A_FOLDER)}`);
    if (index % FILES_A_FOLDER === 0) mkdirSync(folder, { recursive: true });
    writeFileSync(path.join(folder, `file-${index}.txt`), `${index}\n`);
  }
  for (const [name, text] of Object.entries(more)) writeFileSync(path.join(workspace, name), text);
  const author = '-c gc.auto=0 -c user.name=Ada -c user.email=ada@example.org';
  const commands = `git init -q . && git add . && git ${author} commit -qm first && sleep 3`;
  await run('bash', ['-c', commands], { cwd: workspace });
  return workspace;
};

/** The shared places, each made when it is first asked for. */
const createPlaces = (folder: string) => {
  const made = new Map<Contestant['place'], Promise<string>>();
  const make = (place: Exclude<Contestant['place'], 'folder'>): Promise<string> => {
    const workspace = path.join(folder, place.replaceAll(' ', '-'));
    switch (place) {
      case 'repository':
        return makeRepository(workspace, FILES);
      case 'repository with a formatter':
        return makeRepository(workspace, FILES, { '.prettierrc': '{}\n' });
      case 'large repository':
        return makeRepository(workspace, FILES_OF_LARGE);
      default:
        return place satisfies never;
    }
  };
  return async (place: Contestant['place'], own: string): Promise<string> => {
    if (place === 'folder') {
      await mkdir(own, { recursive: true });
      return own;
    }
    const workspace = made.get(place) ?? make(place);
    made.set(place, workspace);
    return workspace;
  };
};

/** A folder for all heats, with one of its own for each. */
export const openArena = async (): Promise<Arena> => {
  const folder = await mkdtemp(path.join(tmpdir(), 'pawl-contest-'));
  const minimal = path.join(folder, 'minimal-loop.mjs');
  const peak = path.join(folder, 'peak.cjs');
  await Promise.all([bundleMinimal(minimal), writeFile(peak, PEAK)]);
  const pawl = [
    path.resolve('packages/pawl/bin/pawl.js'),
    '-p',
    'go',
    '--model',
    'anthropic/bench',
    '--max-rounds',
    '1000',
  ];
  const placeOf = createPlaces(folder);
  let heats = 0;

  const heat = async (contestant: Contestant, task: Task): Promise<Heat> => {
    const place = path.join(folder, `heat-${heats++}`);
    const workspace = await placeOf(contestant.place, path.join(place, 'project'));
    // beside the workspace: where the state lies in it, commands have no sandbox
    // and kept as the caches are: the first session of a home tries out the sandbox, and remembers
    // that it works
    const home = task.caches === 'kept' ? path.join(folder, 'home') : path.join(place, 'home');
    await Promise.all([mkdir(place, { recursive: true }), mkdir(home, { recursive: true })]);
    const server = await startAnthropicServer({ replies: (_body, index) => replyTo(index, task) });
    const env = {
      PATH: process.env.PATH,
      HOME: home,
      XDG_STATE_HOME: home,
      XDG_CACHE_HOME: task.caches === 'kept' ? folder : home,
      ANTHROPIC_API_KEY: 'bench',
      ANTHROPIC_BASE_URL: server.url,
      NODE_OPTIONS: `--require ${peak}`,
      BENCH_PEAK: path.join(place, 'peak'),
      ...contestant.environment,
    };
    const words =
      contestant.program === 'minimal loop'
        ? [minimal, path.join(place, 'minimal.jsonl'), 'go']
        : [...pawl, ...(contestant.flags ?? [])];
    const startedAt = performance.now();
    const running = run(process.execPath, words, { env, cwd: workspace });
    running.child.stdin?.end(); // a pipe in which nothing comes is waited for
    await running;
    await server.close();
    const peakMegabytes = Number(await readFile(env.BENCH_PEAK, 'utf8')) / 1_024;
    return { ...heatOf(contestant, startedAt, server.requests, task), peakMegabytes };
  };
  return { heat, close: () => rm(folder, { recursive: true, force: true }) };
};
