/**
 * Starts the engine's own server for tests and measurements: one process with its files in a
 * folder.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';

type Rows = readonly Readonly<Record<string, unknown>>[];

export type Engine = {
  readonly ingressUrl: string;
  readonly adminUrl: string;
  readonly pid: number;
  /** The rows that its own tables have for a query in SQL. */
  query(sql: string): Promise<Rows>;
  /** The end of what it said since the last question. */
  takeLog(): string;
  /** Starts it again on the same files and ports, after `kill`. */
  restart(): Promise<void>;
  /** Ends it with SIGKILL. */
  kill(): Promise<void>;
  stop(): Promise<void>;
};

const VERSION = '1.7.12';

/** The path of the server's program; throws with the command that installs it. */
export const serverProgram = (platform = `${process.platform}-${process.arch}`): string => {
  const name = `@restatedev/restate-server-${platform}`;
  try {
    return createRequire(import.meta.url).resolve(`${name}/bin/restate-server`);
  } catch {
    throw new Error(
      `the engine's server is not installed. Install it in restate/ with: npm install ` +
        `--no-save ${name}@${VERSION}`,
    );
  }
};

/** Ports that are free now. */
export const freePorts = async (count: number): Promise<readonly number[]> => {
  const servers = Array.from({ length: count }, () => createServer());
  await Promise.all(servers.map((server) => once(server.listen(0, '127.0.0.1'), 'listening')));
  const ports = servers.map((server) => {
    const address = server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  });
  await Promise.all(servers.map((server) => once(server.close(), 'close')));
  return ports;
};

const isUp = async (url: string): Promise<boolean> => {
  try {
    return (await fetch(url, { signal: AbortSignal.timeout(1_000) })).ok;
  } catch {
    return false; // not yet
  }
};

const UP_MS = 60_000;

const waitUntilUp = async (
  server: ChildProcess,
  urls: readonly string[],
  log: () => string,
): Promise<void> => {
  const until = Date.now() + UP_MS;
  for (;;) {
    if ((await Promise.all(urls.map(isUp))).every(Boolean)) return;
    if (server.exitCode !== null || Date.now() > until)
      throw new Error(`the engine did not start. It said:\n${log()}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
};

const end = async (server: ChildProcess, signal: NodeJS.Signals): Promise<void> => {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const exited = once(server, 'exit');
  server.kill(signal);
  await exited;
};

/** `settings`: more variables of its environment. */
export const startEngine = async (
  folder: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<Engine> => {
  const program = serverProgram();
  const [ingress = 0, admin = 0, node = 0] = await freePorts(3);
  const ingressUrl = `http://127.0.0.1:${ingress}`;
  const adminUrl = `http://127.0.0.1:${admin}`;
  const environment = {
    PATH: process.env.PATH ?? '',
    RESTATE_BIND_IP: '127.0.0.1',
    RESTATE_ADVERTISED_HOST: '127.0.0.1',
    RESTATE_DISABLE_TELEMETRY: 'true',
    RESTATE_INGRESS__BIND_PORT: String(ingress),
    RESTATE_ADMIN__BIND_PORT: String(admin),
    RESTATE_BIND_PORT: String(node),
    RESTATE_LOG_FILTER: 'warn',
    ...settings,
  };
  let text = '';
  const launch = async (): Promise<ChildProcess> => {
    const started = spawn(
      program,
      ['--base-dir', folder, '--node-name', 'n1', '--listen-mode', 'tcp'],
      {
        env: environment,
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
    const hear = (chunk: Buffer): void => {
      text = `${text}${chunk.toString()}`.slice(-20_000);
    };
    started.stdout?.on('data', hear);
    started.stderr?.on('data', hear);
    await waitUntilUp(started, [`${adminUrl}/health`, `${ingressUrl}/restate/health`], () => text);
    return started;
  };
  let server = await launch();
  return {
    ingressUrl,
    adminUrl,
    get pid() {
      return server.pid ?? 0;
    },
    async query(query) {
      const headers = { 'content-type': 'application/json', accept: 'application/json' };
      const body = JSON.stringify({ query });
      const response = await fetch(`${adminUrl}/query`, { method: 'POST', headers, body });
      const { rows } = (await response.json()) as { readonly rows: Rows }; // as it writes them
      return rows;
    },
    takeLog() {
      const said = text;
      text = '';
      return said;
    },
    async restart() {
      server = await launch();
    },
    kill: () => end(server, 'SIGKILL'),
    stop: () => end(server, 'SIGTERM'),
  };
};
