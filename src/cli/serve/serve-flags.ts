import { type RunFlags, runFlags } from '../flags.js';

/** The flags of `pawl serve`: those of the node, and the settings of its sessions. */

/** The client decides about folder, prompt and session, and there is no screen. */
const OTHERS = /^(-p, --print|--json|--workspace|--continue|--resume|--take-over|--plain|--verbose)\b/;

/** The flags that count for the sessions of a node. Others, which stand before `serve`, are left out. */
export const nodeSessionFlags = (given: RunFlags): RunFlags => {
  const { print, json, workspace, continue: last, resume, takeOver, plain, verbose, ...flags } = given;
  return flags;
};

export type ServeFlags = RunFlags & {
  readonly port?: string;
  readonly host?: string;
  readonly name?: readonly string[];
  readonly keys?: string;
  readonly folder?: readonly string[];
  readonly repository?: readonly string[];
  readonly drainSeconds?: string;
  readonly engine?: string;
};

export const DEFAULT_PORT = 8422;
export const DEFAULT_DRAIN_SECONDS = 30;

/** Flags that are given at most once. */
export const singleFlags: readonly (readonly [string, string])[] = [
  ['--port <number>', `the port (default: ${DEFAULT_PORT}); 0 takes a free one`],
  [
    '--host <address>',
    'the address to listen on (default: 127.0.0.1); another one needs --keys or PAWL_SERVE_TOKEN',
  ],
  [
    '--keys <file>',
    'a file, readable by you alone, with the keys of the clients and their limits (docs/serve.md)',
  ],
  [
    '--drain-seconds <number>',
    `how long running turns may take after SIGTERM (default: ${DEFAULT_DRAIN_SECONDS})`,
  ],
  [
    '--engine <url>',
    'run the sessions on a durable engine, restate://HOST:PORT (not finished: docs/serve.md)',
  ],
];
/** Flags that may be repeated. */
export const repeatedFlags: readonly (readonly [string, string])[] = [
  ['--folder <path>', 'a folder in which, and below which, sessions may work; may be repeated'],
  ['--repository <name=path>', 'a repository of which sessions get worktrees; may be repeated'],
  ['--name <host>', 'a further value of the header Host, such as a public name; may be repeated'],
];

/** The settings of the sessions. */
export const sessionFlags = runFlags.filter(([flag]) => !OTHERS.test(flag));
