import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import path from 'node:path';
import type { TestContext } from 'node:test';
import type { JsonObject } from '@pawl/machine/kernel/shape';
import { atEnd, temporaryFolder } from '../../../../test/temporary-folder.js';
import { createSessionSandbox } from '../../src/command/session-sandbox.js';
import type { CommandLevel } from '../../src/policy/decide.js';
import {
  createJobs,
  type FileHashes,
  type FileMemory,
  type Jobs,
  type Judgement,
  type Tool,
  type ToolContext,
  type ToolOutcome,
} from '../../src/ports/tool.js';
import { takeHashes, takeJudgement, takeOutcome } from '../../src/session/outside-values.js';
import { type BuiltinOptions, builtinTools } from '../../src/tools/builtin-tools.js';
import { createFileMemory } from '../../src/tools/file-change.js';

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
  runAfter(
    name: string,
    input: JsonObject,
    meanwhile: () => Promise<unknown>,
  ): Promise<ToolOutcome>;
  before(name: string, input: JsonObject): Promise<FileHashes | undefined>;
  path(name: string): string;
};

export type Stop = Pick<ToolContext, 'widened'> & {
  /** Default: the level of the place. */
  readonly level?: CommandLevel;
  readonly signal?: AbortSignal;
  readonly force?: AbortSignal;
  readonly progress?: (text: string) => void;
};

type Allowed = Extract<Judgement, { kind: 'ok' }>;
type Facts = Pick<Allowed['facts'], 'paths' | 'hosts'>;

type Environment = Readonly<Record<string, string | undefined>>;

let places = 0;

/** A session checks what tools of others give, and trusts ours: so the values of ours are checked here. */
const OTHERS = {} as Tool; // only its identity counts
const judged = (value: Judgement): Judgement => {
  assert.deepEqual(takeJudgement(OTHERS, value), value);
  return value;
};
const ended = (value: ToolOutcome): ToolOutcome => {
  assert.deepEqual(takeOutcome(OTHERS, value), { outcome: value, usageFault: null });
  return value;
};

/** The folders of fenced commands are not made in the home of who runs the tests. */
const stateOf = (test: TestContext, given: Environment): Environment =>
  given.XDG_STATE_HOME === process.env.XDG_STATE_HOME
    ? { XDG_STATE_HOME: temporaryFolder(test, 'tools-state') }
    : {};

export const makePlace = async (
  test: TestContext,
  given: Environment = process.env,
  level: CommandLevel = 'off',
  more: Pick<BuiltinOptions, 'protectedGitFiles'> = {},
): Promise<Place> => {
  const workspace = temporaryFolder(test, 'tools');
  const environment = level === 'off' ? given : { ...given, ...stateOf(test, given) };
  const sandbox = createSessionSandbox({ environment });
  const tools = builtinTools({ environment, sandbox, ...more });
  const jobs = createJobs();
  const files = createFileMemory();
  const blobs = new Map<string, string>();
  const progress: string[] = [];
  places += 1;
  const callId = `test-${process.pid}-${places}`;
  const over = new AbortController();
  const running = new Set<Promise<ToolOutcome>>();
  atEnd(test, async () => {
    over.abort('cancelled');
    await Promise.allSettled([...running, ...jobs.list().map((job) => job.kill())]);
    await sandbox.close();
  });
  const never = new AbortController().signal;
  const tool = (name: string): Tool => {
    const found = tools.find((each) => each.name === name);
    if (found === undefined) throw new Error(`there is no tool ${name}`);
    return found;
  };
  const contextOf = ({ paths, hosts }: Facts, stop: Stop): ToolContext => ({
    workspace,
    batchId: 'batch',
    callId,
    paths,
    hosts,
    sandbox: stop.level ?? level,
    ...(stop.widened === undefined ? {} : { widened: stop.widened }),
    signal: stop.signal ?? never,
    force: stop.force === undefined ? over.signal : AbortSignal.any([stop.force, over.signal]),
    files,
    jobs,
    left: () => ({ usd: { type: 'unlimited' }, tokens: { type: 'unlimited' } }),
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
    const judgement = judged(await tool(name).judge(input, workspace));
    if (judgement.kind === 'invalid') throw new Error(`${judgement.field} ${judgement.why}`);
    return judgement;
  };
  const start = (name: string, { input, facts }: Allowed, stop: Stop): Promise<ToolOutcome> => {
    const outcome = tool(name).run(input, contextOf(facts, stop)).then(ended);
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
    judge: async (name, input) => judged(await tool(name).judge(input, workspace)),
    run: async (name, input, stop = {}) => start(name, await judgeOk(name, input), stop),
    runAfter: async (name, input, meanwhile) => {
      const judgement = await judgeOk(name, input);
      await meanwhile();
      return start(name, judgement, {});
    },
    before: async (name, input) => {
      const judgement = await judgeOk(name, input);
      const hashes = await tool(name).before?.(judgement.input, contextOf(judgement.facts, {}));
      assert.deepEqual(hashes && takeHashes(OTHERS, hashes), hashes);
      return hashes;
    },
    path: (name) => path.join(workspace, name),
  };
};
