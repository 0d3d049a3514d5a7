import { Writable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import type { Session } from '../../api/create-agent.js';
import { createSessionsServer, type SessionsHost } from '../../mcp-server/sessions-server.js';
import { makeSafe, safe } from '../../terminal/safe-text.js';
import { reserveStdout, writeError } from '../../terminal/write.js';
import { exitCodes } from '../exit-codes.js';
import { type RunFlags, usageStop } from '../flags.js';
import { packageVersion } from '../package-folder.js';
import { openFromFlags } from '../sessions/open-session.js';
import { findSession, foldStored, userSessions } from '../sessions/stored-sessions.js';

/** `pawl mcp serve`: Pawl as a tool of other agents, over stdin and stdout. */

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
  const closing = [...running].map((session) => session.close());
  await Promise.race([Promise.allSettled(closing), pause(HARD_END_MS)]);
  return exitCodes.done;
};
