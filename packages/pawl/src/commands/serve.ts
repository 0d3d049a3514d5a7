/**
 * The flags of `pawl serve`, which starts a node: a process that runs sessions for others. Some are
 * for the node itself, some only for a node on a durable engine (a server outside of Pawl that
 * keeps the sessions, docs/build/many-machines.md), and some are settings of its sessions.
 * serve-node.ts reads them.
 */

import type { RunFlags } from '../settings/flags.js';

export type ServeFlags = RunFlags & {
  readonly port?: string;
  readonly host?: string;
  readonly name?: readonly string[];
  readonly keys?: string;
  readonly folder?: readonly string[];
  readonly repository?: readonly string[];
  readonly drainSeconds?: string;
  readonly engine?: string;
  readonly engineAdmin?: string;
  readonly engineKey?: readonly string[];
  readonly node?: string;
  readonly nodeAddress?: string;
  readonly nodePorts?: string;
  readonly nodes?: string;
  readonly peer?: readonly string[];
  readonly blobs?: string;
};

/** Flags that say nothing without `--engine`. */
export const engineFlags = [
  'engineAdmin',
  'engineKey',
  'node',
  'nodeAddress',
  'nodePorts',
  'nodes',
  'peer',
  'blobs',
] as const satisfies readonly (keyof ServeFlags)[];

export const DEFAULT_PORT = 8422;
export const DEFAULT_DRAIN_SECONDS = 30;
/** The first of the three ports that a node on an engine listens on. */
export const DEFAULT_NODE_PORT = 9410;

/** Flags that occur at most once. */
export const singleFlags: readonly (readonly [string, string])[] = [
  ['--port <number>', `the port (default: ${DEFAULT_PORT})\n0 takes a free one.`],
  [
    '--host <address>',
    'the address to listen on (default: 127.0.0.1)\nAnother one needs --keys or PAWL_SERVE_TOKEN.',
  ],
  [
    '--keys <file>',
    'a file with the keys of the clients, their places and limits\n' +
      'Only you may read it, and it may change meanwhile (docs/build/serve.md).',
  ],
  [
    '--drain-seconds <number>',
    `how long turns may take after SIGTERM (default: ${DEFAULT_DRAIN_SECONDS})`,
  ],
  [
    '--engine <url>',
    'run the sessions on a durable engine\nrestate://HOST:PORT (docs/build/many-machines.md).',
  ],
  ['--engine-admin <url>', "the engine's admin address\nBy default port 9070 of the same host."],
  [
    '--node <name>',
    'with --engine: the name of this node, which never changes\nBy default that of the computer.',
  ],
  [
    '--node-address <host>',
    'with --engine: the address of this computer for the engine and other nodes\n' +
      'By default 127.0.0.1.',
  ],
  [
    '--node-ports <first>',
    `with --engine: the first of three ports of the node (default: ${DEFAULT_NODE_PORT})`,
  ],
  ['--nodes <url>', 'with --engine: an address that reaches the first port of all nodes'],
  [
    '--blobs <place>',
    'with --engine: where all nodes keep long texts\n' +
      'A folder or s3://BUCKET/PREFIX (docs/build/many-machines.md).',
  ],
];

/** Flags that may be repeated. */
export const repeatedFlags: readonly (readonly [string, string])[] = [
  ['--folder <path>', 'a folder in which sessions may work, and below it\nIt may be repeated.'],
  ['--repository <name=path>', 'a repository of which sessions get worktrees\nIt may be repeated.'],
  ['--engine-key <key>', 'with --engine: a public key of the engine\nThe node obeys nobody else.'],
  [
    '--peer <url>',
    'with --engine: the third port of another node\n' +
      'It needs PAWL_NODE_TOKEN, and may be repeated.',
  ],
  [
    '--name <host>',
    'a further value of the header Host, such as a public name\nIt may be repeated.',
  ],
];
