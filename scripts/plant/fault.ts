/** Faults that are planted in copies of the sources, in memory, and what has to find each. */

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type Plugin } from 'esbuild';
import { workspacePackages } from '../workspace-packages.js';
import type * as checks from './checks.js';

type Catcher =
  /** Random walks, by a promise of a state or a rule of a step (invariants.ts). */
  | { readonly kind: 'walks' }
  /** The explorer, in one of its configurations. */
  | { readonly kind: 'explorer'; readonly configuration: string; readonly statesMax: number }
  /** `npm run simulate`: sessions with crashes and faults of disks. */
  | { readonly kind: 'simulator' };

/** Each `from` stands in the file once, whatever its line breaks are. */
export type Edit = readonly [from: string, to: string];

export type Fault = {
  readonly file: string;
  readonly edits: readonly Edit[];
  readonly catcher: Catcher;
  /** The wrong behaviour, as a sentence. */
  readonly harm: string;
};

const root = fileURLToPath(new URL('../..', import.meta.url));

/** A catcher in words: each has its own. */
export const describeCatcher = (catcher: Catcher): string =>
  catcher.kind === 'explorer' ? `the explorer, '${catcher.configuration}'` : catcher.kind;

/**
 * Finds a text of TypeScript in a file however the formatter has broken its lines: white space may
 * differ, and a list may end with a comma. Matches all places.
 */
const sourcePattern = (source: string): RegExp => {
  const tokens = source.match(/\w+|[^\w\s]/gu) ?? [];
  const escaped = tokens.map((token) => {
    const literal = /\w/.test(token) ? token : `\\u{${token.codePointAt(0)?.toString(16)}}`;
    return /[)\]}]/.test(token) ? `(?:,\\s*)?${literal}` : literal;
  });
  return new RegExp(escaped.join('\\s*'), 'gu');
};

/** Replaces texts of TypeScript, which must stand in `source` once. Throws if one does not. */
export const replaceSource = (source: string, edits: readonly Edit[], file: string): string =>
  edits.reduce((text, [from, to]) => {
    const pattern = sourcePattern(from);
    const places = [...text.matchAll(pattern)].length;
    if (places !== 1) throw new Error(`a fault does not fit ${file}: ${places} times ${from}`);
    return text.replace(pattern, () => to);
  }, source);

/** Plants the fault while esbuild loads its file. */
export const plantFault = (fault: Fault | null): Plugin => ({
  name: 'planted-fault',
  setup: ({ onLoad }) => {
    onLoad({ filter: /[\\/]packages[\\/].*\.ts$/ }, ({ path: file }) =>
      fault !== null && path.join(root, fault.file) === file
        ? { contents: replaceSource(readFileSync(file, 'utf8'), fault.edits, file), loader: 'ts' }
        : undefined,
    );
  },
});

/** The machine with a fault, or as it is, with what checks it. Throws if the fault does not fit. */
const buildMachine = async (fault: Fault | null): Promise<typeof checks> => {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: ['scripts/plant/checks.ts'],
    bundle: true,
    write: false,
    platform: 'node',
    target: 'node20',
    format: 'cjs',
    packages: 'external',
    keepNames: true,
    plugins: [workspacePackages(root), plantFault(fault)],
    logLevel: 'silent',
  });
  const module = { exports: {} };
  const run = new Function('module', 'exports', 'require', outputFiles[0]?.text ?? '');
  run(module, module.exports, createRequire(import.meta.url));
  return module.exports as typeof checks; // the entry exports exactly this
};

let sound: Promise<typeof checks> | null = null;

/** The machine as it is is built once. */
const getMachine = (fault: Fault | null): Promise<typeof checks> => {
  if (fault !== null) return buildMachine(fault);
  sound ??= buildMachine(null);
  return sound;
};

/** Sessions until the simulator gives up: nearly all faults are found sooner. */
const SESSIONS_MAX = 8_000;
const SEED = 1;

const simulateFault = async (fault: Fault | null, sessions: number): Promise<string | null> => {
  const { runWorkers } = await import('../simulation/run-workers.js');
  const options = { seed: SEED, sessions, threads: 1, isShrunk: false };
  const { failure } = await runWorkers({ ...options, fault });
  return failure && `${failure.checker}, after ${failure.seed - SEED + 1} sessions`;
};

/** The finding of a catcher on a copy with this fault, or on the sources as they are; null: none. */
export const findFault = async (
  catcher: Catcher,
  fault: Fault | null,
  sessionsMax = SESSIONS_MAX,
): Promise<string | null> => {
  switch (catcher.kind) {
    case 'walks':
      return (await getMachine(fault)).walk();
    case 'explorer':
      return (await getMachine(fault)).explore(catcher.configuration, catcher.statesMax);
    case 'simulator':
      return simulateFault(fault, sessionsMax);
    default:
      return catcher satisfies never;
  }
};
