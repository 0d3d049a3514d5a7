import path from 'node:path';
import type { PreparedCommand } from '../../command/sandbox/command-sandbox-types.js';
import { createSessionSandbox } from '../../command/sandbox/session/session-sandbox.js';
import { guarded } from '../../command/sandbox/unsandboxed-command.js';
import type { ProcessEnvironment } from '../../platform/base/process-environment-type.js';
import type { ProgramPath } from '../../platform/programs/find-program.js';
import { SYSTEM_SHELL, systemBash } from '../../platform/programs/start-program.js';
import type { StdioServer } from '../mcp-servers.js';
import { findServerProgram } from './find-server-program.js';

/**
 * How a server that we start becomes a process.
 *
 * 1. A server of the user runs as the user has set it up, outside the sandbox. A guard ends it if Pawl is killed; where
 *    there is no bash, it has none, and ends when it notices that its stdin is closed.
 * 2. A server of a project runs in a sandbox of its own with the level that the user granted. If the sandbox does not
 *    work, it is not started.
 */

export type PreparedServer = Omit<PreparedCommand, 'program' | 'finish'> & {
  readonly program: ProgramPath;
  /** Call it once the server has ended. `tell` gets lines about files that were set aside. Never rejects. */
  finish(tell: (line: string) => void): Promise<void>;
};

type Place = { readonly environment: ProcessEnvironment; readonly workspace: string };

/** What a server gets of our environment, as in the official package. Never a key. */
const INHERITED = ['HOME', 'LOGNAME', 'PATH', 'SHELL', 'TERM', 'USER', 'LANG', 'TMPDIR'];

const environmentOf = ({ env }: StdioServer, environment: ProcessEnvironment): Record<string, string> => {
  const inherited = INHERITED.flatMap((name) => {
    const value = environment[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return { ...Object.fromEntries(inherited), ...env };
};

const folderOf = ({ cwd }: StdioServer, workspace: string): string => path.resolve(workspace, cwd ?? '.');

const prepareOpen = (server: StdioServer, { environment, workspace }: Place): PreparedServer => {
  const program = findServerProgram(server.command, { environment, workspace });
  const bash = systemBash();
  const start =
    bash === null ? { program, words: server.args } : guarded({ program, words: server.args }, bash);
  return {
    ...start,
    folder: folderOf(server, workspace),
    environment: environmentOf(server, environment),
    descriptors: [],
    isGuarded: bash !== null,
    started: () => undefined,
    finish: async () => undefined,
  };
};

/**
 * The start inside the sandbox, which begins in the workspace. The variables that the project chose are set here and not
 * before: `LD_PRELOAD` would be heeded by bubblewrap itself, outside the sandbox. They are no words of a command either,
 * which other users could see.
 */
const startInside = (
  { env }: StdioServer,
  folder: string,
): { readonly environment: Readonly<Record<string, string>>; readonly words: readonly string[] } => {
  const given = Object.entries(env).map(([name, value], index) => [
    `PAWL_SERVER_${index}`,
    `${name}=${value}`,
  ]);
  const sets = given.map(([at]) => `export "$${at}" && unset ${at} && `).join('');
  return {
    environment: Object.fromEntries(given),
    words: ['-c', `cd "$0" && ${sets}exec "$@"`, folder],
  };
};

const prepareFenced = async (
  server: StdioServer,
  level: Exclude<PreparedLevel, 'off'>,
  { environment, workspace }: Place,
): Promise<PreparedServer> => {
  const program = findServerProgram(server.command, { environment, workspace });
  const { environment: given, words } = startInside(server, folderOf(server, workspace));
  const sandboxes = createSessionSandbox({ environment });
  const sandbox = await sandboxes.of(workspace);
  try {
    const prepared = await sandbox.prepare({
      level,
      environment: given,
      program: SYSTEM_SHELL,
      words: [...words, program, ...server.args],
    });
    return {
      ...prepared,
      // bubblewrap, or the shell that closes open files: both were found by find-program.ts
      program: prepared.program as ProgramPath,
      async finish(tell) {
        for (const line of await prepared.finish()) tell(line);
        await sandboxes.close();
      },
    };
  } catch (error) {
    await sandboxes.close();
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(
      `it can't run in the sandbox: ${why}. To run it as you: pawl trust allow mcp-server ${server.name} --sandbox off`,
      { cause: error },
    );
  }
};

type PreparedLevel = NonNullable<StdioServer['project']>['level'];

export const prepareServer = (server: StdioServer, place: Place): Promise<PreparedServer> => {
  const { level = 'off' } = server.project ?? {};
  return level === 'off' ? Promise.resolve(prepareOpen(server, place)) : prepareFenced(server, level, place);
};
