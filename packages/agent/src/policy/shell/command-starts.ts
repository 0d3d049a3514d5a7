/**
 * Where the commands of a text begin, by a second reading that shares no code with ours: a scan of
 * plain texts, a published grammar for all others.
 */

import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import type { Node, Parser } from 'web-tree-sitter';

/**
 * Finds the starts of commands in a plain text: one line of words, closed quotes and operators
 * between commands. It contains no compound command, no command made from a value, and nothing that
 * shells and grammars read differently. Most commands of a model are plain; for others the grammar
 * is loaded, which takes 17 MB.
 *
 * 1. A text with any other character, word or operator is not plain. Nothing is guessed.
 * 2. It shares no code with read-statements.ts, so that the two check each other.
 */

const QUOTED = /'[ -&(-~]*'|"[ !#%-[\]-_a-~]*"/.source;
/** The complete name of a program or builtin. */
const NAME = /[A-Za-z_./][\w./:-]*(?![^ ;|&])/y;
const WORD = new RegExp(`(?:[\\w./:@%+,*?-]|${QUOTED})(?:[\\w./:@%+,*?=-]|${QUOTED})*`, 'y');
const REDIRECTION = /(?:2>&1|[12]?> ?\/dev\/null)(?![^ ;|&])/y;
const BLANKS = / */y;
const OPERATOR = /&&|\|\||[;|]/y;

/** Reserved words, and builtins whose arguments are declarations, tests or shell texts. */
const SPECIAL = new Set(
  (
    'if then elif else fi for while until do done case esac in select function time coproc ' +
    'declare typeset local export readonly unset let test eval'
  ).split(' '),
);

/** Offsets at which the commands of a plain text begin; null if the text is not plain. */
export const plainStarts = (text: string): ReadonlySet<number> | null => {
  const starts = new Set<number>();
  let at = 0;
  const take = (pattern: RegExp): string | null => {
    pattern.lastIndex = at;
    const match = pattern.exec(text)?.[0] ?? null;
    at += match?.length ?? 0;
    return match;
  };
  for (;;) {
    take(BLANKS);
    const start = at;
    const name = take(NAME);
    if (name === null || SPECIAL.has(name)) return null;
    starts.add(start);
    while (take(BLANKS) !== '') if (take(REDIRECTION) === null && take(WORD) === null) break;
    if (at === text.length) return starts;
    if (take(OPERATOR) === null) return null;
  }
};

/**
 * Finds the starts of commands with a published grammar of bash (tree-sitter-bash, as WebAssembly).
 * Our own reading of a text counts only if the two agree.
 */

/**
 * Folders of the grammar's files, relative to the bundle and to its chunks. In the sources the
 * files come from packages.
 */
const FOLDERS = ['./shell/', '../shell/'];
const FILES = ['web-tree-sitter.cjs', 'web-tree-sitter.wasm', 'tree-sitter-bash.wasm'] as const;
const SOURCES = [
  'web-tree-sitter',
  'web-tree-sitter/web-tree-sitter.wasm',
  'tree-sitter-bash/tree-sitter-bash.wasm',
];

const require = createRequire(import.meta.url);

const locate = (): readonly string[] => {
  const folder = FOLDERS.map((name) => fileURLToPath(new URL(name, import.meta.url))).find(
    (place) => existsSync(path.join(place, FILES[0])),
  );
  return folder === undefined
    ? SOURCES.map((name) => require.resolve(name))
    : FILES.map((name) => path.join(folder, name));
};

/** Older ones keep, for each module, the flags with which it was compiled. */
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

const load = async (): Promise<Parser> => {
  const [code = '', runtime = '', bash = ''] = locate();
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

let loaded: Promise<Parser> | undefined;

/** Nodes beside `command_name` that run a builtin. `[` is a command, `[[` is not. */
const isCommand = ({ type, firstChild }: Node): boolean =>
  type === 'declaration_command' ||
  type === 'unset_command' ||
  (type === 'test_command' && firstChild?.type === '[');

export type CommandStarts =
  | { readonly kind: 'starts'; readonly at: ReadonlySet<number> }
  | { readonly kind: 'error'; readonly why: string };

/** Limit for one text, in ms. */
const PARSE_MS = 250;

/**
 * Whether the limit has passed, on the clock and in CPU time: a busy machine lets this process wait
 * for longer than any text takes, and the user would be asked about a harmless command.
 */
const startLimit = (): (() => boolean) => {
  const startedAtMs = performance.now();
  const before = process.cpuUsage();
  return () => {
    if (performance.now() - startedAtMs < PARSE_MS) return false;
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000 >= PARSE_MS;
  };
};

const collect = (root: Node): ReadonlySet<number> => {
  const starts = new Set<number>();
  const open = [root];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (node.type === 'command_name' || isCommand(node)) starts.add(node.startIndex);
    for (const child of node.children) if (child !== null) open.push(child);
  }
  return starts;
};

/** Offsets in the text at which commands begin. The first call loads the grammar. */
export const commandStarts = async (text: string): Promise<CommandStarts> => {
  loaded ??= load();
  const parser = await loaded;
  const tree = parser.parse(text, null, { progressCallback: startLimit() });
  if (tree === null) {
    parser.reset();
    return { kind: 'error', why: 'the shell grammar takes too long to read it' };
  }
  try {
    if (tree.rootNode.hasError)
      return { kind: 'error', why: 'the shell grammar does not understand it' };
    return { kind: 'starts', at: collect(tree.rootNode) };
  } finally {
    tree.delete();
  }
};
