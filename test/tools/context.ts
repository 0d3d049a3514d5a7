import { createHash } from 'node:crypto';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { TestContext } from 'node:test';
import type { JsonObject } from '../../src/agent/message.js';
import type {
  FileHashes,
  FileMemory,
  Jobs,
  Judgement,
  Tool,
  ToolContext,
  ToolOutcome,
} from '../../src/needs.js';
import { builtinTools } from '../../src/tools/builtin.js';
import { createFileMemory } from '../../src/tools/file-memory.js';
import { createJobs } from '../../src/tools/jobs.js';

/** A workspace with the built-in tools, gone with all its processes when the test ends. */
export type Place = {
  readonly workspace: string;
  readonly files: FileMemory;
  readonly jobs: Jobs;
  readonly blobs: Map<string, string>;
  readonly progress: string[];
  /** Marks the processes of this place, see `processesOf`. */
  readonly callId: string;
  tool(name: string): Tool;
  judge(name: string, input: JsonObject): Promise<Judgement>;
  /** Judges and runs, as the runtime does. */
  run(name: string, input: JsonObject, stop?: Stop): Promise<ToolOutcome>;
  /** Judges, lets `meanwhile` happen, and runs: what another call of the same reply can do. */
  runAfter(name: string, input: JsonObject, meanwhile: () => Promise<unknown>): Promise<ToolOutcome>;
  before(name: string, input: JsonObject): Promise<FileHashes | undefined>;
  path(name: string): string;
};

export type Stop = {
  readonly signal?: AbortSignal;
  readonly force?: AbortSignal;
  readonly progress?: (text: string) => void;
};

type Allowed = Extract<Judgement, { kind: 'ok' }>;
type Facts = Pick<Allowed['facts'], 'paths' | 'hosts'>;

let places = 0;

export const makePlace = async (
  test: TestContext,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): Promise<Place> => {
  const workspace = await realpath(await mkdtemp(path.join(tmpdir(), 'pawl-tools-')));
  const tools = builtinTools({ environment });
  const jobs = createJobs();
  const files = createFileMemory();
  const blobs = new Map<string, string>();
  const progress: string[] = [];
  places += 1;
  const callId = `test-${process.pid}-${places}`;
  const over = new AbortController();
  const running = new Set<Promise<ToolOutcome>>();
  test.after(async () => {
    over.abort('cancelled');
    await Promise.allSettled([...running, ...jobs.list().map((job) => job.kill())]);
    await rm(workspace, { recursive: true, force: true });
  });
  const never = new AbortController().signal;
  const tool = (name: string): Tool => {
    const found = tools.find((each) => each.name === name);
    if (found === undefined) throw new Error(`there is no tool ${name}`);
    return found;
  };
  const contextOf = ({ paths, hosts }: Facts, stop: Stop): ToolContext => ({
    workspace,
    callId,
    paths,
    hosts,
    signal: stop.signal ?? never,
    force: stop.force === undefined ? over.signal : AbortSignal.any([stop.force, over.signal]),
    files,
    jobs,
    left: () => ({ usd: null, tokens: null }),
    blobs: {
      get: async (sha256) => blobs.get(sha256),
      put: async (text) => {
        const sha256 = createHash('sha256').update(text).digest('hex');
        blobs.set(sha256, text);
        return sha256;
      },
    },
    progress: (text) => {
      progress.push(text);
      stop.progress?.(text);
    },
  });
  const judgeOk = async (name: string, input: JsonObject) => {
    const judgement = await tool(name).judge(input, workspace);
    if (judgement.kind === 'invalid') throw new Error(`${judgement.field} ${judgement.why}`);
    return judgement;
  };
  const start = (name: string, { input, facts }: Allowed, stop: Stop): Promise<ToolOutcome> => {
    const outcome = tool(name).run(input, contextOf(facts, stop));
    running.add(outcome);
    return outcome;
  };
  return {
    workspace,
    files,
    jobs,
    blobs,
    progress,
    callId,
    tool,
    judge: async (name, input) => tool(name).judge(input, workspace),
    run: async (name, input, stop = {}) => start(name, await judgeOk(name, input), stop),
    runAfter: async (name, input, meanwhile) => {
      const judgement = await judgeOk(name, input);
      await meanwhile();
      return start(name, judgement, {});
    },
    before: async (name, input) => {
      const judgement = await judgeOk(name, input);
      return tool(name).before?.(judgement.input, contextOf(judgement.facts, {}));
    },
    path: (name) => path.join(workspace, name),
  };
};
