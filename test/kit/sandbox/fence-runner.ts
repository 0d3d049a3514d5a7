import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import type {
  CommandSandbox,
  CommandSpec,
} from '../../../packages/agent/src/command/command-sandbox.js';
import { createCommandSandbox } from '../../../packages/agent/src/command/command-sandbox.js';
import { probeFence } from '../../../packages/agent/src/command/session-sandbox.js';
import { attemptNow } from '../../../packages/agent/src/platform/attempt.js';
import type { ProgramPath } from '../../../packages/agent/src/platform/find-program.js';
import type { CommandLevel } from '../../../packages/agent/src/policy/decide.js';
import type { RepositoryAccess } from '../../../packages/agent/src/policy/repository-access.js';
import { readUserPlaces } from '../../../packages/agent/src/secrets/user-places.js';
import { shareHostView } from './share-host-view.js';

/**
 * Runs the commands of scenarios through the sandbox and prints what came of them: as a program of its own, so that an
 * ordinary user can run it too. Reads the scenarios from the file that is named.
 */

export type Step =
  /**
   * Through the sandbox. `holds`: it is left running until the scenario ends. `killedAt`: once this file exists. `apart`:
   * in a session of its own and without the launcher, as a server of MCP.
   */
  | {
      readonly level: CommandLevel;
      readonly command: string;
      readonly holds?: true;
      readonly killedAt?: string;
      readonly apart?: true;
      readonly repository?: RepositoryAccess;
    }
  /** By itself, as if there were no sandbox and nobody who starts programs with care. */
  | { readonly host: string };

export type Scenario = {
  readonly name: string;
  readonly workspace: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly sessionFolder: string;
  readonly pass?: readonly string[];
  readonly steps: readonly Step[];
};

export type StepEnd = {
  readonly code: number | null;
  readonly output: string;
  readonly notes: readonly string[];
};
export type ScenarioEnd = {
  readonly name: string;
  readonly ends: readonly StepEnd[];
  readonly fault: string | null;
};

type Running = {
  kill(): void;
  readonly ended: Promise<number | null>;
  readonly output: () => string;
  readonly finish: () => Promise<readonly string[]>;
};

const TIMEOUT_MS = 120_000;

/** Both outputs, as they come. */
const outputOf = (child: ChildProcess): (() => string) => {
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (bytes: Buffer) => {
      output += bytes.toString('utf8');
    });
  }
  return () => output;
};

const endOf = (child: ChildProcess): Promise<number | null> =>
  new Promise((resolve) => {
    const timer = setTimeout(() => child.kill('SIGKILL'), TIMEOUT_MS);
    child.once('close', (code) => {
      clearTimeout(timer);
      resolve(code);
    });
  });

/** Not fenced: there is nothing that could wait. */
const start = async (sandbox: CommandSandbox, order: CommandSpec): Promise<Running> => {
  const prepared = await sandbox.prepare(order);
  const child = spawn(prepared.program, prepared.words, {
    cwd: prepared.folder,
    env: prepared.environment,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', ...prepared.descriptors],
  });
  prepared.started();
  const [output, ended] = [outputOf(child), endOf(child)];
  return { kill: () => child.kill('SIGKILL'), ended, output, finish: () => prepared.finish() };
};

/** Through the launcher, as commands of a session. */
const launch = async (sandbox: CommandSandbox, order: CommandSpec): Promise<Running> => {
  const parked = await sandbox.takeParked(order);
  if (parked === null) throw new Error('no command waits');
  let output = '';
  const launched = parked.start({
    bytes: (bytes) => {
      output += bytes.toString('utf8');
    },
    skipped: () => undefined,
  });
  const kill = (): void => {
    const running = launched.process;
    // It may have ended by itself.
    if (running !== null) attemptNow(() => process.kill(running.pid, 'SIGKILL'));
  };
  const timer = setTimeout(kill, TIMEOUT_MS);
  const ended = launched.ended.then(({ how }) => {
    clearTimeout(timer);
    return how.kind === 'exited' ? how.code : null;
  });
  return { kill, ended, output: () => output, finish: () => parked.finish() };
};

type Sandboxes = { readonly usual: CommandSandbox; readonly apart: CommandSandbox };

const runStep = async (
  scenario: Scenario,
  sandboxes: Sandboxes,
  step: Step,
  held: Running[],
): Promise<StepEnd> => {
  if ('host' in step) {
    const { status, stdout, stderr } = spawnSync('/bin/bash', ['-c', step.host], {
      cwd: scenario.workspace,
      env: scenario.environment,
      encoding: 'utf8',
      // What this program was started with is passed on, as Node does with what it did not open itself.
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    return { code: status, output: stdout + stderr, notes: [] };
  }
  const { level, command, repository = 'approved', apart = false } = step;
  const order = {
    level,
    repository,
    program: '/bin/bash' as ProgramPath,
    words: ['-c', command],
    environment: {},
    sharesNetwork: !apart,
  };
  const running =
    level === 'off' || apart
      ? await start(apart ? sandboxes.apart : sandboxes.usual, order)
      : await launch(sandboxes.usual, order);
  if (step.holds) {
    held.push(running);
    return { code: null, output: '', notes: [] };
  }
  const { killedAt } = step;
  while (killedAt !== undefined && !existsSync(killedAt))
    await new Promise((resolve) => setTimeout(resolve, 5));
  if (killedAt !== undefined) running.kill();
  const code = await running.ended;
  return { code, output: running.output(), notes: await running.finish() };
};

const viewOnce = shareHostView();

/** Scenarios that prepare nothing outside their own folders share one view of the machine. */
const changesHost = ({ steps }: Scenario): boolean =>
  steps.some((step) => 'host' in step && /\/(?:opt|etc|usr)\//.test(step.host));

const runScenario = async (scenario: Scenario, cacheFolder: string): Promise<ScenarioEnd> => {
  const { name, workspace, environment, sessionFolder, pass = [] } = scenario;
  const create = (folder: string): CommandSandbox =>
    createCommandSandbox({
      workspace,
      environment,
      sessionFolder: folder,
      userPlaces: readUserPlaces(environment),
      ...(changesHost(scenario) ? {} : { viewHost: viewOnce }),
      passEnvironment: pass,
      probe: () => probeFence({ workspace, environment, cacheFolder }),
    });
  const sandboxes = { usual: create(sessionFolder), apart: create(`${sessionFolder}-apart`) };
  const ends: StepEnd[] = [];
  const held: Running[] = [];
  try {
    for (const step of scenario.steps) ends.push(await runStep(scenario, sandboxes, step, held));
    return { name, ends, fault: null };
  } catch (error) {
    return { name, ends, fault: String(error) };
  } finally {
    for (const { kill, ended, finish } of held) {
      kill();
      await ended.then(finish);
    }
    await sandboxes.usual.close();
    await sandboxes.apart.close();
  }
};

/** What a command may not reach: a server of the machine, with a port and with a path. */
const listen = (at: number | string): Promise<net.Server> =>
  new Promise((resolve) => {
    const server = net.createServer((socket) => socket.end('REACHED\n'));
    server.listen(at, () => resolve(server));
  });

const main = async (): Promise<void> => {
  const [file = '', port = '0', ...sockets] = process.argv.slice(2);
  for (const socket of sockets) rmSync(socket, { force: true });
  const servers = await Promise.all([Number(port), ...sockets].map(listen));
  const scenarios: readonly Scenario[] = JSON.parse(readFileSync(file, 'utf8'));
  const results: ScenarioEnd[] = [];
  for (const scenario of scenarios) results.push(await runScenario(scenario, path.dirname(file)));
  console.log(JSON.stringify(results));
  for (const server of servers) server.close();
};

void main();
