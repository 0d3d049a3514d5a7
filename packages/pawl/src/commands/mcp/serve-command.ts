import { randomBytes } from 'node:crypto';
import { Writable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import type { Session } from '@pawl/agent/api/create-agent';
import { attempt } from '@pawl/agent/session/attempt';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { reserveStdout, writeError } from '@pawl/terminal/write';
import { openLoopbackServer } from '../../editor/mcp-server/loopback-server.js';
import { createSessionsServer, type SessionsHost } from '../../editor/mcp-server/sessions-server.js';
import { exitCodes, Stop } from '../../exit-codes.js';
import { type RunFlags, usageStop } from '../../flags.js';
import { packageVersion } from '../../package-folder.js';
import { openFromFlags } from '../../sessions/open-session.js';
import { findSession, foldStored, userSessions } from '../../sessions/stored-sessions.js';
import { listenToSignals } from '../../signals.js';

/** `pawl mcp serve`: Pawl as a tool of other agents, over stdin and stdout, or over HTTP on loopback. */

/** Sessions have this long to end after the other agent has gone. */
const HARD_END_MS = 2_000;

/** `running`: the sessions that are open. */
const hostOf = (given: RunFlags, running: Set<Session>): SessionsHost => {
  const { resume: _, continue: last, workspace: folder, preset: own, ...flags } = given;
  return {
    version: packageVersion(),
    list: userSessions,
    stateOf: async (sessionId) => (await foldStored(await findSession(sessionId), undefined)).state,
    async open({ workspace, resume, preset, watcher }) {
      if (workspace !== null && !workspace.startsWith('/'))
        throw usageStop(`The workspace ${workspace} is not an absolute path.`);
      const wanted: RunFlags = {
        ...flags,
        onAsk: 'deny',
        ...(workspace === null ? {} : { workspace }),
        ...(preset === null ? {} : { preset }),
      };
      const warn = (text: string): void => writeError(safe`${makeSafe(text)}\n`);
      const more = { watcher, warn, ...(resume === null ? {} : { resume: await findSession(resume) }) };
      const { session } = await openFromFlags(wanted, 'headless', more);
      running.add(session);
      const forget = (): void => void running.delete(session);
      session.ended.then(forget, forget);
      return session;
    },
  };
};

const closeAll = async (running: ReadonlySet<Session>): Promise<void> => {
  const closing = [...running].map((session) => session.close());
  await Promise.race([Promise.allSettled(closing), pause(HARD_END_MS)]);
};

export const serveMcp = async (flags: RunFlags): Promise<number> => {
  if (process.stdin.isTTY)
    writeError(
      safe`pawl mcp serve is started by another agent and speaks with it over stdin and stdout: docs/mcp.md. Ctrl-D ends it.\n`,
    );
  const writer = (await reserveStdout()).getWriter();
  const output = new Writable({
    write: (bytes: Buffer, _encoding, done) => void writer.write(bytes).then(() => done(), done),
  });
  const running = new Set<Session>();
  const host = hostOf(flags, running);
  const ended = new Promise<void>((resolve) => {
    process.stdin.once('end', resolve);
    process.stdin.once('close', resolve);
    output.once('error', () => resolve()); // the reader is gone
  });
  const handle = serveStdio(() => createSessionsServer(host), {
    transport: new StdioServerTransport(process.stdin, output),
  });
  await ended;
  await handle.close();
  await closeAll(running);
  return exitCodes.done;
};

const PORT_MAX = 65_535;
/** A shorter token could be guessed. */
const TOKEN_LENGTH_MIN = 16;

const portOf = (given: string | true): number => {
  if (given === true) return 0;
  const port = /^\d{1,5}$/.test(given) ? Number(given) : 0;
  if (port >= 1 && port <= PORT_MAX) return port;
  throw usageStop(`--http needs a port from 1 to ${PORT_MAX}, or none for any free one.`);
};

/** The token of PAWL_MCP_TOKEN, or a new one. */
const tokenOf = ({ PAWL_MCP_TOKEN: given = '' }: NodeJS.ProcessEnv): string => {
  if (given === '') return randomBytes(24).toString('base64url');
  if (given.length >= TOKEN_LENGTH_MIN && /^[\x21-\x7e]+$/.test(given)) return given;
  throw usageStop(`PAWL_MCP_TOKEN needs at least ${TOKEN_LENGTH_MIN} characters, without spaces.`);
};

/** `pawl mcp serve --http [PORT]`: until a signal. */
export const serveMcpOverHttp = async (flags: RunFlags, given: string | true): Promise<number> => {
  const [port, token] = [portOf(given), tokenOf(process.env)];
  const running = new Set<Session>();
  const host = hostOf(flags, running);
  const opened = await attempt(() =>
    openLoopbackServer({ port, token, create: () => createSessionsServer(host) }),
  );
  if (opened.kind === 'fault')
    throw new Stop(
      exitCodes.unavailable,
      'unavailable',
      `Pawl can't listen on port ${port}: ${opened.fault.message}`,
    );
  const { value: server } = opened;
  writeError(safe`Pawl is an MCP server at ${makeSafe(server.url)}. Every request needs the header\n`);
  writeError(safe`Authorization: Bearer ${makeSafe(token)}\n`);
  const exit = await new Promise<number>((resolve) => {
    listenToSignals({
      interrupt: () => resolve(exitCodes.done),
      interruptAgain: () => process.exit(exitCodes.interrupted),
      terminate: () => resolve(exitCodes.terminated),
    });
  });
  await Promise.all([server.close(), closeAll(running)]);
  return exit;
};
