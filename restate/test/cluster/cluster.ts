import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { removeFolderSync } from '../../../test/temporary-folder.js';
import { createRestateRuntime, httpLive, type RestateRuntime, register } from '../../src/index.js';
import { type Engine, freePorts, startEngine } from '../../src/start-engine.js';
import { startBalancer } from './balancer.js';
import type { ClusterNodeOptions } from './cluster-node.js';

/** The engine, nodes that are processes of their own, one address for all of them, and a user of their sessions. */

export type Cluster = {
  readonly folder: string;
  readonly engine: Engine;
  readonly runtime: RestateRuntime;
  readonly nodes: readonly ClusterNode[];
  /** Invocations that the engine still has. */
  pending(): Promise<readonly string[]>;
  stop(): Promise<void>;
};

export type ClusterNode = {
  readonly name: string;
  kill(): Promise<void>;
  start(): Promise<void>;
  figures(): Promise<NodeFigures>;
};

export type NodeFigures = {
  readonly states: number;
  readonly workers: number;
  readonly rssBytes: number;
  readonly heapBytes: number;
};

const restateFolder = fileURLToPath(new URL('../..', import.meta.url));

/** One file for the node's program: a start takes a fraction of a second. */
const bundleNode = async (): Promise<string> => {
  const outfile = path.join(
    restateFolder,
    'node_modules',
    '.cache',
    `cluster-node-${process.pid}.mjs`,
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
    logLevel: 'error',
  });
  return outfile;
};

class NodeProcess implements ClusterNode {
  readonly #program: string;
  readonly #options: ClusterNodeOptions;
  #process: ChildProcess | null = null;

  constructor(program: string, options: ClusterNodeOptions) {
    this.#program = program;
    this.#options = options;
  }

  get name(): string {
    return this.#options.name;
  }

  async start(): Promise<void> {
    const started = fork(this.#program, [JSON.stringify(this.#options)], {
      execArgv: ['--expose-gc', '--no-warnings'],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    this.#process = started;
    const died = once(started, 'exit').then(([code]) => {
      if (this.#process === started && code !== null && code !== 0)
        throw new Error(`node ${this.name} ended: ${code}`);
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

  async figures(): Promise<NodeFigures> {
    const running = this.#process;
    if (running === null) throw new Error(`node ${this.name} does not run`);
    const answered = once(running, 'message');
    running.send('figures');
    const [figures] = await answered;
    return figures as NodeFigures; // written by cluster-node.ts
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
  const program = await bundleNode();
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
  const nodes = Array.from({ length: count }, (_, index): NodeProcess => {
    return new NodeProcess(program, {
      name: `n${index + 1}`,
      ingressUrl,
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
  const balancer = await startBalancer(ports.slice(0, count));
  for (const port of [balancer.port, ...ports.slice(count, 2 * count)])
    await register(adminUrl, `http://127.0.0.1:${port}`);
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
    pending: () => pendingAt(adminUrl),
    async stop() {
      await runtime.disconnect();
      await live.close();
      await Promise.all(nodes.map((node) => node.kill()));
      await balancer.close();
      await engine.stop();
      removeFolderSync(folder);
      removeFolderSync(program);
    },
  };
};
