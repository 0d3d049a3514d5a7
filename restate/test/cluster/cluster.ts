import { type ChildProcess, execFileSync, fork, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import type { Settings } from 'pawl/engine';
import { presetRules } from '../../../packages/agent/src/policy/presets.js';
import { type Edit, plant } from '../../../packages/agent/test/journal/planted-machine.js';
import { storySettings } from '../../../test/contract/play-story.js';
import { removeFolderSync } from '../../../test/temporary-folder.js';
import { createRestateRuntime, httpLive, type RestateRuntime } from '../../src/index.js';
import { type Engine, freePorts, startEngine } from '../../src/start-engine.js';
import { startBalancer } from './balancer.js';
import type { Answer, ClusterNodeOptions, Question } from './cluster-node.js';

/** The engine, nodes that are processes of their own, one address for all of them, and a user of their sessions. */

export type Cluster = {
  /** The workspace of all sessions. */
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
  /**
   * Leaves no space on a disk: that of the engine, of the blobs, or of a node, by its name. Returns how to give it back.
   * The cluster must have small disks.
   */
  fill(disk: string): () => void;
  /** Invocations that the engine still has. */
  pending(): Promise<readonly string[]>;
  stop(): Promise<void>;
};

export type ClusterNode = {
  readonly name: string;
  readonly isRunning: boolean;
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
    define: { 'import.meta.url': 'sourceUrl', 'import.meta.dirname': 'sourceFolder' },
    plugins: [plant(edits)],
    logLevel: 'error',
  });
  return outfile;
};

class NodeProcess implements ClusterNode {
  #program: string;
  readonly #options: ClusterNodeOptions;
  #process: ChildProcess | null = null;
  readonly #home: string;
  #asked = 0;

  constructor(program: string, home: string, options: ClusterNodeOptions) {
    this.#program = program;
    this.#home = home;
    this.#options = options;
  }

  get name(): string {
    return this.#options.name;
  }

  get isRunning(): boolean {
    return this.#process !== null;
  }

  async start(program = this.#program): Promise<void> {
    this.#program = program;
    const started = fork(this.#program, [JSON.stringify(this.#options)], {
      env: { PATH: process.env.PATH, HOME: this.#home },
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

/** Disks of so many MB. `small`: each is a file system of its own, which only root can make. */
const makeDisks = (top: string, sizes: Readonly<Record<string, number>>, small: boolean) => {
  for (const [name, size] of Object.entries(sizes)) {
    const disk = path.join(top, name);
    mkdirSync(disk);
    if (small) execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}m`, 'tmpfs', disk]);
  }
  return {
    fill(name: string) {
      const ballast = path.join(top, name, 'ballast');
      spawnSync('dd', ['if=/dev/zero', `of=${ballast}`, 'bs=4k']); // until nothing is left
      return () => rmSync(ballast);
    },
    remove() {
      if (small)
        for (const name of Object.keys(sizes)) spawnSync('umount', ['-l', path.join(top, name)]);
      removeFolderSync(top);
    },
  };
};

/** Of the sessions of a cluster: its nodes die more often than those of users. */
export const clusterSettings = (folder: string): Settings =>
  storySettings(folder, {
    model: 'scripted/cluster',
    rules: presetRules.full,
    maxRetries: 50,
    retrySchedule: { kind: 'list', delaysMs: [100] },
  });

/** The engine notices a node that answers nothing after as many seconds as a test waits. */
const NOTICING = {
  RESTATE_WORKER__INVOKER__HTTP2_KEEP_ALIVE_INTERVAL: '10s',
  RESTATE_WORKER__INVOKER__HTTP2_KEEP_ALIVE_TIMEOUT: '10s',
};
/** It reserves little of its disk ahead, so that a full one is noticed at once. */
const SMALL = { RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE: '64MiB' };

export const startCluster = async (
  count: number,
  delayMs: number,
  idleMs: number,
  isSmall = false,
): Promise<Cluster> => {
  const top = mkdtempSync(path.join(tmpdir(), 'pawl-cluster-'));
  const place = (name: string): string => path.join(top, name);
  const names = Array.from({ length: count }, (_, index) => `n${index + 1}`);
  const sizes = Object.fromEntries(names.map((name) => [name, 64]));
  const disks = makeDisks(top, { ...sizes, engine: 768, blobs: 256 }, isSmall);
  mkdirSync(place('work'));
  const programs = [await bundleNode([])];
  const [program = ''] = programs;
  const engine = await startEngine(place('engine'), isSmall ? { ...NOTICING, ...SMALL } : NOTICING);
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
  const nodes = names.map((name, index): NodeProcess => {
    return new NodeProcess(program, place(name), {
      name,
      ingressUrl,
      adminUrl,
      nodesUrl: `http://127.0.0.1:${balancer.port}`,
      folder: place('work'),
      blobs: place('blobs'),
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
    placeOn: () => names[placed++ % count] ?? '',
  });
  return {
    folder: place('work'),
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
    fill: (disk) => disks.fill(disk),
    async pending() {
      const facts = 'target, status, retry_count, last_failure';
      const rows = await engine.query(
        `select ${facts} from sys_invocation where status <> 'completed'`,
      );
      return rows.map((row) => JSON.stringify(row));
    },
    async stop() {
      await runtime.disconnect();
      await live.close();
      await Promise.all(nodes.map((node) => node.kill()));
      await balancer.close();
      await engine.stop();
      disks.remove();
      for (const one of programs) removeFolderSync(one);
    },
  };
};
