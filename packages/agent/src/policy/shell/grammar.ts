/**
 * The published grammar of bash: tree-sitter-bash, as WebAssembly. It says where the commands of a
 * text begin.
 */

import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import type { Node, Parser } from 'web-tree-sitter';

/**
 * Folders of the grammar's files, relative to the bundle and to its chunks. In the sources the
 * files come from packages.
 */
const BUNDLE_FOLDERS = ['./shell/', '../shell/'];
const FILES = ['web-tree-sitter.cjs', 'web-tree-sitter.wasm', 'tree-sitter-bash.wasm'] as const;
const PACKAGE_FILES = [
  'web-tree-sitter',
  'web-tree-sitter/web-tree-sitter.wasm',
  'tree-sitter-bash/tree-sitter-bash.wasm',
];

const require = createRequire(import.meta.url);

/** The paths of the files: the library's code, its WebAssembly, the grammar. */
const locateFiles = (): readonly string[] => {
  const folder = BUNDLE_FOLDERS.map((name) => fileURLToPath(new URL(name, import.meta.url))).find(
    (place) => existsSync(path.join(place, FILES[0])),
  );
  return folder === undefined
    ? PACKAGE_FILES.map((name) => require.resolve(name))
    : FILES.map((name) => path.join(folder, name));
};

/**
 * Newer versions of V8 look at its flags again while a module runs. Older ones keep, for each
 * module, the flags with which it was compiled.
 */
const ASKS_FLAGS_LATER = Number.parseInt(process.versions.v8, 10) >= 13;

/**
 * Compiles WebAssembly without V8's optimizer, which needs 40 MB for the grammar's lexer, and 500
 * MB in Node 24. Without it a command is still read in 20 µs. In Node 24 the optimizer has to stay
 * off for the whole process.
 */
const withoutOptimizer = async <T>(work: () => Promise<T>): Promise<T> => {
  if (ASKS_FLAGS_LATER) {
    for (const flag of ['--no-wasm-tier-up', '--no-wasm-dynamic-tiering']) setFlagsFromString(flag);
  }
  setFlagsFromString('--liftoff-only');
  try {
    return await work();
  } finally {
    setFlagsFromString('--no-liftoff-only');
  }
};

const loadParser = async (): Promise<Parser> => {
  const [code = '', runtime = '', bash = ''] = locateFiles();
  // Our own dependency, pinned: its types are those of the version that is bundled.
  const { Language, Parser } = require(code) as typeof import('web-tree-sitter');
  const [runtimeBytes, bashBytes] = await Promise.all([readFile(runtime), readFile(bash)]);
  const language = await withoutOptimizer(async () => {
    await Parser.init({ wasmBinary: runtimeBytes });
    return Language.load(new Uint8Array(bashBytes));
  });
  const parser = new Parser();
  parser.setLanguage(language);
  return parser;
};

let parserLoad: Promise<Parser> | undefined;

/** Nodes beside `command_name` that run a builtin. `[` is a builtin, `[[` is syntax. */
const runsBuiltin = ({ type, firstChild }: Node): boolean =>
  type === 'declaration_command' ||
  type === 'unset_command' ||
  (type === 'test_command' && firstChild?.type === '[');

export type CommandStarts =
  | { readonly kind: 'starts'; readonly at: ReadonlySet<number> }
  | { readonly kind: 'error'; readonly why: string };

/** Limit for one text, in ms. */
const PARSE_MS = 250;

/**
 * Whether the limit has passed, on the clock and in CPU time. On a busy machine the clock alone
 * would make harmless texts unclear.
 */
const createLimit = (): (() => boolean) => {
  const startedAtMs = performance.now();
  const before = process.cpuUsage();
  return () => {
    if (performance.now() - startedAtMs < PARSE_MS) return false;
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000 >= PARSE_MS;
  };
};

const collectStarts = (root: Node): ReadonlySet<number> => {
  const starts = new Set<number>();
  const open = [root];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (node.type === 'command_name' || runsBuiltin(node)) starts.add(node.startIndex);
    for (const child of node.children) if (child !== null) open.push(child);
  }
  return starts;
};

/**
 * Offsets in the text at which commands begin. The first call loads the grammar. Rejects only if
 * that fails.
 */
export const commandStarts = async (text: string): Promise<CommandStarts> => {
  parserLoad ??= loadParser();
  const parser = await parserLoad.catch((error: unknown) => {
    parserLoad = undefined; // for example memory was short: the next text tries again
    throw error;
  });
  const tree = parser.parse(text, null, { progressCallback: createLimit() });
  if (tree === null) {
    parser.reset();
    return { kind: 'error', why: 'the shell grammar takes too long to read it' };
  }
  try {
    if (tree.rootNode.hasError)
      return { kind: 'error', why: 'the shell grammar does not understand it' };
    return { kind: 'starts', at: collectStarts(tree.rootNode) };
  } finally {
    tree.delete();
  }
};
