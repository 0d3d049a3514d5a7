import '../src/polyfill.js';
import { mkdtempSync, realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import {
  agentOnEngine,
  fileBlobs,
  lastingSessions,
  type NewSession,
  type Runtime,
} from 'pawl/engine';
import { createJobs } from '../../packages/agent/src/ports/tool.js';
import { createFileMemory } from '../../packages/agent/src/tools/file-change.js';
import type { MakeNodeRuntime } from '../../packages/serve/test/node-under-test.js';
import type { ContractWorld, MakeRuntime } from '../../test/contract/runtime-under-test.js';
import { atEnd, removeFolderSync, type TestScope } from '../../test/temporary-folder.js';
import { createRestateRuntime, localLive, register, startNode } from '../src/index.js';
import { registerShared } from '../src/registration.js';
import { type Engine, startEngine } from '../src/start-engine.js';

/** The real engine with one node in this process, for all tests of a file. */

export const NODE = 'n1';

export type EngineUnderTest = {
  readonly engine: Engine;
  /** A runtime over the engine. Each story has a world of its own: its sessions are found by their workspace. */
  readonly make: MakeRuntime;
  /** The same as the runtime of a node that serves it over HTTP. */
  readonly makeNode: MakeNodeRuntime;
  /** Puts its node in charge again, as the last node of a deploy does. */
  takeCharge(): Promise<void>;
  /** Sessions in this folder are not equipped before the returned function is called. */
  hold(workspace: string): () => void;
  /** Invocations that the engine has tried more than three times. */
  stuck(): Promise<readonly string[]>;
};

/** A test that is ended from outside must not leave the server behind. */
const endWithTest = (pid: () => number): void => {
  const end = (): void => {
    try {
      process.kill(pid(), 'SIGKILL');
    } catch {
      // it has ended already
    }
  };
  process.once('exit', end);
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => process.exit(1));
};

/** Sees only its own sessions: the engine keeps those of all stories. */
const onlyOwn = (
  runtime: ReturnType<typeof createRestateRuntime>,
  begin: (session: NewSession) => void,
): Runtime => {
  const own = new Set<string>();
  const add = (sessionId: string): string => {
    own.add(sessionId);
    return sessionId;
  };
  return {
    create: async (session) => {
      begin(session);
      return add(await runtime.create(session));
    },
    send: (sessionId, input) => runtime.send(sessionId, input),
    read: (sessionId, from) => runtime.read(sessionId, from),
    watch: (sessionId, watcher) => runtime.watch(sessionId, watcher),
    state: (sessionId) => runtime.state(sessionId),
    fork: async (sessionId, seq) => add(await runtime.fork(sessionId, seq)),
    async *list() {
      for await (const info of runtime.list()) if (own.has(info.sessionId)) yield info;
    },
    close: (sessionId) => runtime.close(sessionId),
  };
};

/** The engine's server, and a folder beside its files. Both are gone at the end. */
export const startTestEngine = async (
  scope: TestScope,
): Promise<{ readonly engine: Engine; readonly folder: string }> => {
  const folder = mkdtempSync(path.join(tmpdir(), 'pawl-engine-'));
  atEnd(scope, () => removeFolderSync(folder));
  const engine = await startEngine(path.join(folder, 'engine'));
  endWithTest(() => engine.pid);
  atEnd(scope, () => engine.stop());
  return { engine, folder };
};

export const engineUnderTest = async (scope: TestScope): Promise<EngineUnderTest> => {
  const { engine, folder } = await startTestEngine(scope);
  const worlds = new Map<string, ContractWorld>();
  const held = new Map<string, Promise<void>>();
  const live = localLive();
  const { ingressUrl, adminUrl } = engine;
  const node = await startNode({
    name: NODE,
    ingressUrl,
    live,
    blobs: fileBlobs(path.join(folder, 'blobs')),
    equip: async ({ settings }) => {
      const world = worlds.get(settings.workspace);
      if (world === undefined) throw new Error(`no story works in ${settings.workspace}`);
      await held.get(settings.workspace);
      return {
        model: () => world.model,
        tools: world.tools,
        hooks: world.hooks,
        userHooks: world.userHooks ?? null,
        stoppingPolicy: world.stoppingPolicy ?? null,
        files: createFileMemory(),
        jobs: createJobs(),
        compactionInstructions: () => 'Summarise.',
      };
    },
    report: (fault) => console.error(fault),
  });
  atEnd(scope, () => node.stop());
  for (const port of [node.sharedPort, node.ownPort])
    await register(adminUrl, `http://127.0.0.1:${port}`);
  return {
    engine,
    make: async (world) => {
      const runtime = createRestateRuntime({ ingressUrl, live, placeOn: () => NODE });
      const begin = ({ settings }: NewSession): void => void worlds.set(settings.workspace, world);
      return { runtime: onlyOwn(runtime, begin), stop: () => runtime.disconnect() };
    },
    makeNode: async ({ settingsFor, ...world }, folder) => {
      const runtime = createRestateRuntime({ ingressUrl, live, placeOn: () => NODE });
      worlds.set(realpathSync(path.join(folder, 'work')), world);
      const { prepare } = agentOnEngine({ model: world.model, tools: world.tools });
      const node = lastingSessions(runtime, ({ workspace }) =>
        prepare({ workspace, sandbox: 'off', settings: settingsFor(workspace) }),
      );
      return { runtime: node, stop: () => runtime.disconnect() };
    },
    hold(workspace) {
      let release = (): void => undefined;
      const released = new Promise<void>((resolve) => {
        release = resolve;
      });
      held.set(workspace, released);
      return release;
    },
    takeCharge: () => registerShared(adminUrl, `http://127.0.0.1:${node.sharedPort}`),
    async stuck() {
      const rows = await engine.query('select target from sys_invocation where retry_count > 3');
      return rows.map(({ target }) => String(target));
    },
  };
};
