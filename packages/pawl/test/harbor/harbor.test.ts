import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import type { PromptResponse } from '@agentclientprotocol/sdk';
import { fileJournals } from '@pawl/agent/journal/file-store';
import type { UsageTotals } from '@pawl/agent/machine/settings';
import { trajectoryFaults } from '../../../../test/kit/atif/trajectory-faults.js';
import { type Trial, trials } from '../../../../test/kit/harbor/trials.js';
import { testAccounts } from '../../../../test/kit/sandbox/fence.js';
import {
  type AnthropicServer,
  type ServerReply,
  startAnthropicServer,
  type WireBody,
} from '../../../../test/servers/anthropic.js';
import { removeFolderSync } from '../../../../test/temporary-folder.js';
import { chooseRows } from '../../../../test/tier.js';
import { splitLines } from '../acp/split-lines.js';
import { StrictClient, select } from '../acp/strict-client.js';
import { bin, root } from '../e2e/pawl.js';

/**
 * Harbor's part, played by a small runner: each task has a folder, a home and a user of its own, and a scripted model behind
 * HTTP. Harbor itself can't be installed here: its classes are stand-ins (test/kit/harbor/stand-ins) that mirror its
 * interface, and `npm` is a script that links the program that was built.
 */

type Way = 'installed' | 'acp';

/** How a task differs from one of a few calls that ends well. */
const kindOf = ({ error, taskReplies, resume, endsAfter, config }: Trial): string =>
  [error, taskReplies && 'task', resume && 'resumed', endsAfter && 'time', config && 'config']
    .filter((word) => typeof word === 'string')
    .join();

const chosen = chooseRows(trials, kindOf);

const MODEL = 'anthropic/claude-sonnet-5-5';
const kit = path.join(root, 'test/kit/harbor');
const entry = JSON.parse(readFileSync(path.join(root, 'bench/harbor/pawl.json'), 'utf8'));

const PYTHON = {
  PYTHONDONTWRITEBYTECODE: '1',
  PYTHONPATH: `${path.join(root, 'bench/harbor')}:${path.join(kit, 'stand-ins')}`,
};

const account = testAccounts().at(-1);
const folder = realpathSync(mkdtempSync(path.join(tmpdir(), 'pawl-harbor-')));
/** Compiled code of the program, shared by all tasks: to compile it costs more than most runs. */
const cache = path.join(folder, 'cache');
let server: AnthropicServer;

/** How often the model was asked, by task. */
const asked = new Map<string, number>();

const replyTo = (body: WireBody): ServerReply => {
  const first = JSON.stringify(body.messages[0]);
  const name = /\[\[(\w+):([\w-]+)\]\]/.exec(first);
  const isTask = first.includes('[[TASK]]');
  const key = isTask ? `task of ${body.messages.length}` : (name?.[0] ?? '');
  const count = asked.get(key) ?? 0;
  asked.set(key, count + 1);
  const trial = trials.find((one) => (isTask ? one.taskReplies : one.name === name?.[2]));
  const replies = (isTask ? trial?.taskReplies : trial?.replies) ?? [];
  const index = isTask ? (body.messages.length - 1) / 2 : count;
  const reply = replies[Math.min(index, replies.length - 1)];
  if (trial?.endsAfter === count + 1)
    writeFileSync(path.join(folder, `${name?.[1]}-${trial.name}`, 'ended'), '');
  return reply ?? assert.fail(`no reply to ${first}`);
};

type TrialPlace = {
  readonly folder: string;
  readonly workspace: string;
  readonly home: string;
  readonly logs: string;
  readonly environment: Readonly<Record<string, string>>;
};

const writeProgram = (file: string, text: string): void => {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, `#!/bin/bash\n${text}\n`);
  chmodSync(file, 0o755);
};

const giveAll = (place: string): void => {
  if (account === undefined) return;
  chownSync(place, account.uid, account.gid);
  for (const one of readdirSync(place, { withFileTypes: true })) {
    const whole = path.join(place, one.name);
    if (one.isDirectory()) giveAll(whole);
    else if (!one.isSymbolicLink()) chownSync(whole, account.uid, account.gid);
  }
};

/** Npm as the container has it: it takes the words of the class, and links the program that was built. */
const NPM = `
[ "$*" = "install -g --ignore-scripts pawl@0.1.0" ] || { echo "npm $*"; exit 1; }
ln -sf ${path.join(root, 'packages/pawl/bin/pawl.js')} "$HOME/.nvm/bin/pawl"`;

const makePlace = (way: Way, { name, config }: Trial): TrialPlace => {
  const own = path.join(folder, `${way}-${name}`);
  const [workspace, home, logs] = ['work', 'home', 'logs'].map((one) => path.join(own, one)) as [
    string,
    string,
    string,
  ]; // as many as there are names
  for (const one of [workspace, home, logs]) mkdirSync(one, { recursive: true });
  writeProgram(path.join(home, '.nvm/bin/npm'), NPM);
  writeFileSync(path.join(home, '.nvm/nvm.sh'), 'export PATH="$HOME/.nvm/bin:$PATH"\n');
  symlinkSync(process.execPath, path.join(home, '.nvm/bin/node'));
  if (config !== undefined) {
    mkdirSync(path.join(home, '.config/pawl'), { recursive: true });
    writeFileSync(path.join(home, '.config/pawl/config.toml'), config);
  }
  giveAll(own);
  const environment = {
    PATH: process.env.PATH ?? '',
    HOME: home,
    LANG: 'C.UTF-8',
    XDG_CACHE_HOME: cache,
    PAWL_RETRY_MS: '5',
    GIT_CEILING_DIRECTORIES: folder,
  };
  return { folder: own, workspace, home, logs, environment };
};

type Output = { readonly code: number | null; readonly stdout: string; readonly stderr: string };

const runAs = (
  place: TrialPlace,
  program: string,
  words: readonly string[],
  environment: Readonly<Record<string, string>> = {},
) =>
  spawn(program, words, {
    cwd: place.workspace,
    env: { ...place.environment, ...environment },
    ...(account === undefined ? {} : { uid: account.uid, gid: account.gid }),
  });

const finished = (child: ReturnType<typeof spawn>): Promise<Output> =>
  new Promise((resolve, reject) => {
    let [stdout, stderr] = ['', ''];
    child.stdout?.on('data', (piece) => (stdout += piece));
    child.stderr?.on('data', (piece) => (stderr += piece));
    child.on('error', reject).on('close', (code) => resolve({ code, stdout, stderr }));
  });

const prepare = async (way: Way, trial: Trial): Promise<TrialPlace> => {
  const place = makePlace(way, trial);
  if (trial.setup !== undefined) {
    const { code, stderr } = await finished(runAs(place, 'bash', ['-c', trial.setup]));
    assert.equal(code, 0, stderr);
  }
  return place;
};

const instruction = (way: Way, { name }: Trial): string => `It's "a task" [[${way}:${name}]]`;
const access = (): Readonly<Record<string, string>> => ({
  ANTHROPIC_API_KEY: 'key',
  ANTHROPIC_BASE_URL: server.url,
});

/** The journal of the only session that no other one started. */
const readJournal = async (state: string): Promise<{ usage: UsageTotals; sessionId: string }> => {
  const store = fileJournals({ folder: path.join(state, 'pawl') });
  const ids: string[] = [];
  for await (const { sessionId, startedBy } of store.list())
    if (startedBy === undefined) ids.push(sessionId);
  const [sessionId = assert.fail(`no session in ${state}`), ...others] = ids;
  assert.deepEqual(others, []);
  return { usage: (await store.peek(sessionId)).state.session.usage, sessionId };
};

const promptTokens = (usage: UsageTotals): number =>
  usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;

before(async () => {
  chmodSync(folder, 0o755);
  mkdirSync(cache);
  giveAll(cache);
  server = await startAnthropicServer({ replies: replyTo });
});

after(async () => {
  await server.close();
  removeFolderSync(folder);
});

type Context = {
  readonly name: string;
  readonly error: string | null;
  readonly version: string;
  readonly n_input_tokens: number | null;
  readonly n_cache_tokens: number | null;
  readonly n_output_tokens: number | null;
  readonly cost_usd: number | null;
};

const SKILL = '---\nname: count\ndescription: Counts.\n---\nCount.\n';

test(`${chosen.length} tasks end as they should by the installed agent, and Harbor is told the tokens and the cost of the journal`, async () => {
  assert.equal(trials.length, 20);
  const skills = path.join(folder, 'skills');
  mkdirSync(path.join(skills, 'count'), { recursive: true });
  writeFileSync(path.join(skills, 'count', 'SKILL.md'), SKILL);
  const places = new Map<string, TrialPlace>();
  for (const trial of chosen) places.set(trial.name, await prepare('installed', trial));
  const [first = assert.fail()] = chosen;
  const jobs = chosen.map((trial) => {
    const place = places.get(trial.name) ?? assert.fail();
    return {
      ...place,
      name: trial.name,
      instruction: instruction('installed', trial),
      resume: trial.resume ?? null,
      model: MODEL,
      kwargs: { max_rounds: 50, ...trial.kwargs },
      extra_env: access(),
      package: 'pawl',
      version: '0.1.0',
      skills_dir: trial === first ? skills : null,
      mcp_servers: [],
      ends_with: trial.endsAfter === undefined ? null : path.join(place.folder, 'ended'),
      uid: account?.uid ?? null,
      gid: account?.gid ?? null,
    };
  });
  const python = spawn('python3', [path.join(kit, 'run-trials.py')], {
    env: { ...process.env, ...PYTHON },
  });
  python.stdin.end(JSON.stringify(jobs));
  const { code, stdout, stderr } = await finished(python);
  assert.equal(code, 0, stderr);
  const contexts = JSON.parse(stdout) as readonly Context[]; // by run-trials.py
  for (const [index, trial] of chosen.entries()) {
    const context = contexts[index] ?? assert.fail();
    const place = places.get(trial.name) ?? assert.fail();
    assert.equal(context.error, trial.error, `${trial.name}\n${stderr}`);
    assert.equal(trial.check(place), '', trial.name);
    await checkContext(trial, place, context);
  }
  const { home } = places.get(first.name) ?? assert.fail();
  assert.equal(readFileSync(path.join(home, '.config/pawl/skills/count/SKILL.md'), 'utf8'), SKILL);
});

const checkContext = async (
  { name, error }: Trial,
  { logs }: TrialPlace,
  context: Context,
): Promise<void> => {
  const { usage, sessionId } = await readJournal(path.join(logs, 'state'));
  assert.deepEqual(
    [context.n_input_tokens, context.n_cache_tokens, context.n_output_tokens, context.cost_usd],
    [promptTokens(usage), usage.cacheReadTokens, usage.outputTokens, usage.costUsd],
    name,
  );
  const file = path.join(logs, 'trajectory.json');
  assert.equal(existsSync(file), error !== 'AgentTimeoutError', name);
  if (!existsSync(file)) return;
  assert.equal(statSync(file).mode & 0o044, 0o044, 'Harbor may read as another user');
  const trajectory = JSON.parse(readFileSync(file, 'utf8'));
  assert.deepEqual(trajectoryFaults(trajectory), [], name);
  assert.equal(trajectory.session_id, sessionId);
  assert.equal(trajectory.final_metrics.total_cost_usd, usage.costUsd, name);
  assert.equal(trajectory.subagent_trajectories?.length ?? 0, name === 'task' ? 1 : 0);
  assert.match(readFileSync(path.join(logs, 'pawl.txt'), 'utf8'), /"type":"result"/);
};

/** With the draft field of the protocol. */
type PromptAnswer = PromptResponse & { readonly usage?: Readonly<Record<string, unknown>> };

type AcpEnd = {
  readonly stop: string | null;
  readonly usage: unknown;
  readonly cost: number | null;
};

/** Drives a session as Harbor's generic agent does. */
const driveEditor = async (trial: Trial, place: TrialPlace): Promise<AcpEnd> => {
  const { args } = entry.distribution.npx;
  const more = trial.kwargs?.tasks === true ? ['--tasks'] : [];
  const state = { XDG_STATE_HOME: path.join(place.logs, 'state') };
  const child = runAs(place, process.execPath, [bin, ...args, ...more], { ...access(), ...state });
  const ended = finished(child);
  child.stdout?.setEncoding('utf8');
  const client = new StrictClient({
    write: (text) => void child.stdin?.write(text),
    listen(take) {
      const split = splitLines(take);
      child.stdout?.on('data', (text: string) => split(text));
    },
  });
  client.onPermission = ({ options }) =>
    select(options.find(({ kind }) => kind.startsWith('allow'))?.optionId ?? assert.fail());
  await client.initialize();
  const { sessionId, configOptions } = await client.newSession(place.workspace);
  const option = configOptions?.find(({ category }) => category === 'model') ?? assert.fail();
  await client.request('session/set_config_option', {
    sessionId,
    configId: option.id,
    value: MODEL,
  });
  const end: { stop: string | null; usage: Record<string, number> } = { stop: null, usage: {} };
  for (const text of [instruction('acp', trial), ...(trial.resume ? [trial.resume] : [])]) {
    const prompt = client
      .request('session/prompt', { sessionId, prompt: [{ type: 'text', text }] })
      .then((answer) => answer as PromptAnswer) // by the schema
      .catch(() => null);
    const limit = path.join(place.folder, 'ended');
    if (trial.endsAfter !== undefined) {
      while (!existsSync(limit)) await new Promise((resolve) => setTimeout(resolve, 20));
      client.notify('session/cancel', { sessionId });
    }
    const answer = await prompt;
    end.stop = answer?.stopReason ?? null;
    for (const [name, count] of Object.entries(answer?.usage ?? {}))
      if (typeof count === 'number') end.usage[name] = (end.usage[name] ?? 0) + count;
  }
  child.stdin?.end();
  const { code, stderr } = await ended;
  assert.equal(code, 0, stderr);
  client.expectNoFault();
  const cost = client.updatesOf(sessionId, 'usage_update').at(-1)?.cost?.amount ?? null;
  return { ...end, cost };
};

const checkEditor = async (trial: Trial): Promise<void> => {
  const place = await prepare('acp', trial);
  const { stop, usage, cost } = await driveEditor(trial, place);
  assert.equal(trial.check(place), '', trial.name);
  const journal = await readJournal(path.join(place.logs, 'state'));
  if (trial.error === null) assert.equal(stop, 'end_turn', trial.name);
  if (trial.endsAfter !== undefined) assert.equal(stop, 'cancelled', trial.name);
  if (stop === null) return; // the protocol has no usage in an error
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = journal.usage;
  assert.deepEqual(
    usage,
    {
      totalTokens: promptTokens(journal.usage) + outputTokens,
      inputTokens,
      outputTokens,
      cachedReadTokens: cacheReadTokens,
      cachedWriteTokens: cacheWriteTokens,
    },
    trial.name,
  );
  assert.equal(cost, journal.usage.costUsd, trial.name);
};

test('they end so through the protocol of editors, as the generic agent drives it', async () => {
  const waiting = [...chooseRows(chosen, undefined, 2)];
  const work = async (): Promise<void> => {
    for (let trial = waiting.shift(); trial !== undefined; trial = waiting.shift())
      await checkEditor(trial);
  };
  await Promise.all([work(), work(), work()]);
});

/** Runs lines of Python that may use the class, and reads what they print. */
const askPython = async (lines: string): Promise<unknown> => {
  const python = spawn('python3', ['-c', `import json\nfrom pawl_agent import *\n${lines}`], {
    env: { ...process.env, ...PYTHON },
  });
  const { code, stdout, stderr } = await finished(python);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
};

test('a job names model, address, key and servers as Pawl wants them, or is refused', async () => {
  const told = await askPython(`
from types import SimpleNamespace as Server
def tell(model, **env):
    agent = Pawl(logs_dir="/x", model_name=model, extra_env=env, effort="high", tasks=False, auto_commit=True)
    try:
        return [agent._model_flags(), agent.build_cli_flags(), agent._environment()]
    except ValueError as fault:
        return str(fault)
servers = [
    Server(name='a "b"', transport="stdio", command="npx", args=["-y", "x"], url=None),
    Server(name="docs", transport="streamable-http", command=None, args=None, url="https://example.com/mcp"),
]
print(json.dumps([
    tell("anthropic/claude-sonnet-5-5", ANTHROPIC_API_KEY="k"),
    tell("gemini/gemini-3.8-flash"),
    tell("acme/big one", ACME_API_KEY="k", ACME_BASE_URL="https://acme.example/v1"),
    tell("acme/big"),
    tell("claude-sonnet-5-5"),
    Pawl(logs_dir="/x", model_name="a/b", mcp_servers=servers)._mcp_config().split("\\n"),
]))`);
  const state = { XDG_STATE_HOME: '/logs/agent/state' };
  const commit = { PAWL_AUTO_COMMIT: 'true' };
  assert.deepEqual(told, [
    [
      '--model anthropic/claude-sonnet-5-5',
      '--effort high',
      { ANTHROPIC_API_KEY: 'k', ...commit, ...state },
    ],
    ['--model google/gemini-3.8-flash', '--effort high', { ...commit, ...state }],
    [
      "--model 'openai-compatible/big one' --base-url https://acme.example/v1",
      '--effort high',
      {
        ACME_API_KEY: 'k',
        ACME_BASE_URL: 'https://acme.example/v1',
        OPENAI_COMPATIBLE_API_KEY: 'k',
        ...commit,
        ...state,
      },
    ],
    'Pawl knows no provider acme: set its base URL.',
    'Name the model as provider/name: -m anthropic/claude-sonnet-5-5',
    [
      '[mcp.servers."a \\"b\\""]',
      'command = "npx"',
      'args = ["-y", "x"]',
      '[mcp.servers."docs"]',
      'url = "https://example.com/mcp"',
      '[rules.mcp]',
      'allow = ["a \\"b\\"", "docs"]',
    ],
  ]);
});

test('both ways trust the agent alike', () => {
  const source = readFileSync(path.join(root, 'bench/harbor/pawl_agent.py'), 'utf8');
  const [, flags] = /^FULL_TRUST = "(.*)"$/m.exec(source) ?? [];
  assert.equal(`acp ${flags}`, entry.distribution.npx.args.join(' '));
  const { version } = JSON.parse(
    readFileSync(path.join(root, 'packages/pawl/package.json'), 'utf8'),
  );
  assert.deepEqual([entry.version, entry.distribution.npx.package], [version, `pawl@${version}`]);
});
