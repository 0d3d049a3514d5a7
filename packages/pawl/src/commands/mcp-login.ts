/** `pawl mcp login NAME [ADDRESS]` and `pawl mcp logout NAME`. */

import { createInterface } from 'node:readline';
import { beginLogin, finishLogin, type LoginResult, logIn } from '@pawl/agent/extensions/mcp/log-in';
import { expandVariables, type HttpServer, type McpServer } from '@pawl/agent/extensions/mcp/server-config';
import { removeLogin } from '@pawl/agent/extensions/mcp/server-secrets';
import { attempt } from '@pawl/agent/platform/attempt';
import { openBrowser } from '@pawl/agent/platform/start-program';
import { oneLine } from '@pawl/terminal/paint';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeOut } from '@pawl/terminal/write';
import { exitCodes, Stop } from '../process/exit-codes.js';
import { usageStop } from '../settings/flags.js';

type Place = {
  readonly stateFolder: string;
  readonly workspace: string;
  readonly servers: readonly McpServer[];
};

/** A user has this long to log in. */
const LOGIN_MS = 10 * 60 * 1_000;
/** A server has this long to begin or to finish a login when nobody is waited for. */
const ANSWER_MS = 60_000;
const WORDS_MAX = 300;

const httpServer = (name: string, { servers }: Place): HttpServer => {
  const server = servers.find((one) => one.name === name);
  if (server === undefined) {
    const known = servers.map((one) => one.name).join(', ');
    throw usageStop(
      `There is no MCP server ${name}. ${known === '' ? 'None is configured.' : `There are ${known}.`}`,
    );
  }
  if (server.kind === 'http') return server;
  throw usageStop(
    `The MCP server ${name} is a program: it has no login of this kind. Its env can hold a token.`,
  );
};

/** Lines that the user types, until the signal is aborted. */
const typedLine = (signal: AbortSignal): Promise<string> =>
  new Promise((resolve) => {
    const lines = createInterface({ input: process.stdin });
    lines.once('line', (line) => {
      lines.close();
      resolve(line);
    });
    signal.addEventListener('abort', () => lines.close(), { once: true });
  });

const showAddress = (address: string): void => writeOut(safe`${makeSafe(address)}\n`);

const run = async (
  server: HttpServer,
  address: string | undefined,
  { stateFolder, workspace }: Place,
): Promise<LoginResult> => {
  const environment = process.env;
  const options = { stateFolder, environment };
  const quick = { ...options, signal: AbortSignal.timeout(ANSWER_MS) };
  if (address !== undefined) return finishLogin(server, address, quick);
  if (!process.stdin.isTTY || !process.stderr.isTTY) return beginLogin(server, quick);
  return logIn(
    server,
    { ...options, signal: AbortSignal.timeout(LOGIN_MS) },
    {
      show(opened) {
        writeError(
          safe`Open this address in a browser. If the browser then finds no page, paste the address of that page here.\n`,
        );
        showAddress(opened);
        openBrowser(opened, environment, workspace);
      },
      typed: typedLine,
    },
  );
};

export const runLogin = async (
  name: string | undefined,
  address: string | undefined,
  place: Place,
): Promise<number> => {
  if (name === undefined) throw usageStop('It is written as: pawl mcp login NAME.');
  const expanded = expandVariables(httpServer(name, place), process.env);
  if (expanded.kind === 'missing')
    throw usageStop(`${expanded.names.join(', ')} is not set in the environment.`);
  const done = await attempt(() => run(expanded.server as HttpServer, address, place)); // expanding keeps the kind
  if (done.kind === 'fault')
    throw new Stop(
      exitCodes.unavailable,
      'unavailable',
      oneLine(`Not logged in at ${name}: ${done.fault.message}`, WORDS_MAX),
    );
  const result = done.value;
  if (result.kind === 'unneeded') writeError(safe`${makeSafe(name)} asks for no login.\n`);
  if (result.kind === 'done')
    writeError(safe`Logged in at ${makeSafe(name)}. Connect it now: pawl mcp test ${makeSafe(name)}\n`);
  if (result.kind !== 'begun') return exitCodes.done;
  showAddress(result.address);
  writeError(
    safe`Open this address in a browser. The browser is then sent to a page that it does not find: finish with the address of that page: pawl mcp login ${makeSafe(name)} 'ADDRESS'\n`,
  );
  return exitCodes.notPermitted;
};

export const runLogout = async (name: string | undefined, place: Place): Promise<number> => {
  if (name === undefined) throw usageStop('It is written as: pawl mcp logout NAME.');
  const had = await removeLogin(place.stateFolder, httpServer(name, place));
  writeError(
    had
      ? safe`Logged out at ${makeSafe(name)}: Pawl has forgotten its tokens.\n`
      : safe`There was no login at ${makeSafe(name)}.\n`,
  );
  return exitCodes.done;
};
