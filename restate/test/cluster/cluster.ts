import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { type Edit, plant } from '../../../packages/agent/test/journal/planted-machine.js';
import { removeFolderSync } from '../../../test/temporary-folder.js';
import { createRestateRuntime, httpLive, type RestateRuntime } from '../../src/index.js';
import { type Engine, freePorts, startEngine } from '../../src/start-engine.js';
import { startBalancer } from './balancer.js';
import type { Answer, ClusterNodeOptions, Question } from './cluster-node.js';

/** The engine, nodes that are processes of their own, one address for all of them, and a user of their sessions. */

export type Cluster = {
  readonly folder: string;
  readonly engine: Engine;
  readonly runtime: RestateRuntime;
  readonly nodes: readonly ClusterNode[];
  /** The program of its nodes. */
  readonly program: string;
  /** The program of a node with these edits in its sources. */
  plant(edits: readonly Edit[]): Promise<string>;
  /** Lets the shared address lead to this node, as far as it answers. */
  prefer(node: ClusterNode): void;
  /** Invocations that the engine still has. */
  pending(): Promise<readonly string[]>;
  stop(): Promise<void>;
};

export type ClusterNode = {
  readonly name: string;
  kill(): Promise<void>;
  /** With the program that it had, or another one. */
  start(program?: string): Promise<void>;
  /** Ends as `pawl serve` does: takes no new work, and lets running turns end. */
  drain(): Promise<void>;
  signal(signal: NodeJS.Signals): void;
  /** Asks the runtime of the node. Rejects if it refuses, or ends meanwhile. */
  ask(question: Question): Promise<unknown>;
  figures(): Promise<NodeFigures>;
};

export type NodeFigures = {
  readonly states: number;
  readonly workers: number;
  readonly rssBytes: number;
  readonly heapBytes: number;
};

const restateFolder = fileURLToPath(new URL('../..', import.meta.url));

let bundles = 0;

/** One file for the node's program: a start takes a fraction of a second. */
const bundleNode = async (edits: readonly Edit[]): Promise<string> => {
  bundles += 1;
  const outfile = path.join(
    restateFolder,
    'node_modules',
    '.cache',
    `cluster-node-${process.pid}-${bundles}.mjs`,
  );
  mkdirSync(path.dirname(outfile), { recursive: true });
  await build({
    entryPoints: [path.join(restateFolder, 'test/cluster/cluster-node.ts')],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    tsconfig: path.join(restateFolder, 'tsconfig.json'),
    external: ['@restatedev/*'],
    plugins: edits.length === 0 ? [] : [plant(edits)],
    logLevel: 'error',
  });
  return outfile;
};

class NodeProcess implements ClusterNode {
  #program: string;
  readonly #options: ClusterNodeOptions;
  #process: ChildProcess | null = null;
  #asked = 0;

  constructor(program: string, options: ClusterNodeOptions) {
    this.#program = program;
    this.#options = options;
  }

  get name(): string {
    return this.#options.name;
  }

  async start(program = this.#program): Promise<void> {
    this.#program = program;
    const started = fork(this.#program, [JSON.stringify(this.#options)], {
      execArgv: ['--expose-gc', '--no-warnings'],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    this.#process = started;
    const died = once(started, 'exit').then(([code]) => {
      if (this.#process !== started) return;
      this.#process = null;
      if (code !== null && code !== 0) throw new Error(`node ${this.name} ended: ${code}`);
    });
    await Promise.race([once(started, 'message'), died]);
  }

  async kill(): Promise<void> {
    const running = this.#process;
    this.#process = null;
    if (running === null || running.exitCode !== null || running.signalCode !== null) return;
    const exited = once(running, 'exit');
    running.kill('SIGKILL');
    await exited;
  }

  async drain(): Promise<void> {
    const running = this.#process;
    if (running === null) return;
    const exited = once(running, 'exit');
    await this.ask({ kind: 'drain' });
    this.#process = null;
    await exited;
  }

  signal(signal: NodeJS.Signals): void {
    this.#process?.kill(signal);
  }

  ask(question: Question): Promise<unknown> {
    const running = this.#process;
    if (running === null) return Promise.reject(new Error(`node ${this.name} does not run`));
    this.#asked += 1;
    const number = this.#asked;
    return new Promise((resolve, reject) => {
      const end = (): void => {
        running.off('message', hear);
        running.off('exit', gone);
      };
      const gone = (): void => {
        end();
        reject(new Error(`node ${this.name} has ended`));
      };
      const hear = (message: Answer): void => {
        if (message.number !== number) return;
        end();
        if ('fault' in message) reject(new Error(message.fault));
        else resolve(message.value);
      };
      running.setMaxListeners(1_000).on('message', hear).on('exit', gone);
      running.send({ number, question }, (fault) => fault !== null && gone());
    });
  }

  async figures(): Promise<NodeFigures> {
    return (await this.ask({ kind: 'figures' })) as NodeFigures; // written by cluster-node.ts
  }
}

const pendingAt = async (adminUrl: string): Promise<readonly string[]> => {
  const query =
    "select target, status, retry_count, last_failure from sys_invocation where status <> 'completed'";
  const response = await fetch(`${adminUrl}/query`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json' },
    body: JSON.stringify({ query }),
  });
  const { rows } = (await response.json()) as { readonly rows: readonly Record<string, unknown>[] };
  return rows.map((row) => JSON.stringify(row));
};

export const startCluster = async (
  count: number,
  delayMs: number,
  idleMs: number,
): Promise<Cluster> => {
  const folder = mkdtempSync(path.join(tmpdir(), 'pawl-cluster-'));
  const programs = [await bundleNode([])];
  const [program = ''] = programs;
  const engine = await startEngine(path.join(folder, 'engine'));
  process.once('exit', () => {
    try {
      process.kill(engine.pid, 'SIGKILL');
    } catch {
      // it has ended already
    }
  });
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => process.exit(1));
  const { ingressUrl, adminUrl } = engine;
  const ports = await freePorts(3 * count);
  const livePorts = ports.slice(2 * count);
  const peers = livePorts.map((port) => `http://127.0.0.1:${port}`);
  const balancer = await startBalancer(ports.slice(0, count));
  const nodes = Array.from({ length: count }, (_, index): NodeProcess => {
    return new NodeProcess(program, {
      name: `n${index + 1}`,
      ingressUrl,
      adminUrl,
      nodesUrl: `http://127.0.0.1:${balancer.port}`,
      folder,
      delayMs,
      idleMs,
      sharedPort: ports[index] ?? 0,
      ownPort: ports[count + index] ?? 0,
      livePort: livePorts[index] ?? 0,
      peers: peers.filter((_peer, other) => other !== index),
    });
  });
  await Promise.all(nodes.map((node) => node.start()));
  const live = await httpLive({ peers, token: 'of the cluster' });
  let placed = 0;
  const runtime = createRestateRuntime({
    ingressUrl,
    live,
    placeOn: () => `n${(placed++ % count) + 1}`,
  });
  return {
    folder,
    engine,
    runtime,
    nodes,
    program,
    async plant(edits) {
      const planted = await bundleNode(edits);
      programs.push(planted);
      return planted;
    },
    prefer: (node) =>
      balancer.prefer(ports[nodes.findIndex(({ name }) => name === node.name)] ?? 0),
    pending: () => pendingAt(adminUrl),
    async stop() {
      await runtime.disconnect();
      await live.close();
      await Promise.all(nodes.map((node) => node.kill()));
      await balancer.close();
      await engine.stop();
      removeFolderSync(folder);
      for (const one of programs) removeFolderSync(one);
    },
  };
};
