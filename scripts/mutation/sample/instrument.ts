/**
 * All mutants of some folders (changes in single places of the sources), and the sources with
 * switches for those that are tried: one build holds many mutants, and a file says which of them
 * is on.
 */

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { type File, Instrumenter } from '@stryker-mutator/instrumenter';
import { strykerPlugins } from '../ignorer.js';
import { type Mutation, mutationOf } from '../score.js';

/** A mutant by the number that its switch has. */
export type SwitchedMutant = Mutation & { readonly id: string };

export type Instrumented = {
  readonly mutants: readonly SwitchedMutant[];
  /**
   * Sources whose mutants a process chooses by `switchModule`; other mutants are gone. Paths
   * relative to the root.
   */
  readonly sourcesWith: (ids: ReadonlySet<string>) => readonly File[];
};

/** The module in the copy of the tree that knows which mutant is on. */
export const SWITCH_MODULE = 'mutant-switch.ts';
/** Files beside each other: the mutant that is on, and those whose places were reached. */
export const ACTIVE = 'active';
export const REACHED = 'reached';

/** Each process asks files: a variable would not reach programs whose environment is cleaned. */
export const switchModule = (stateFolder: string): string =>
  [
    // Without an import: some files also run in a browser.
    "const fs = globalThis.process?.getBuiltinModule?.('node:fs');",
    `const folder = ${JSON.stringify(stateFolder)};`,
    'const [append, read] = [fs?.appendFileSync, fs?.readFileSync];', // tests exchange functions of node:fs
    'const attempt = <T>(work: () => T, other: T): T => { try { return work(); } catch { return other; } };',
    `const active = attempt(() => read(folder + '/${ACTIVE}', 'utf8'), '');`,
    'const reached = new Set<string>();',
    'export const isOn = (id: string): boolean => id === active;',
    'export const reach = (id: string): void => {',
    "  if (active !== '' || reached.has(id)) return;",
    '  reached.add(id);',
    `  attempt(() => append(folder + '/${REACHED}', id + '\\n'), undefined);`,
    '};',
    '',
  ].join('\n');

const silent = {
  isTraceEnabled: () => false,
  isDebugEnabled: () => false,
  isInfoEnabled: () => false,
  isWarnEnabled: () => false,
  isErrorEnabled: () => false,
  isFatalEnabled: () => false,
  trace: () => undefined,
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  fatal: () => undefined,
};

const sourcesIn = (root: string, folder: string): readonly string[] =>
  readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
    .map((file) => path.join(folder, file).replaceAll(path.sep, '/'))
    .filter((file) => file.endsWith('.ts'))
    .sort();

/** Keeps the switches of these mutants. */
const withSwitches = ({ name, content, mutate }: File, ids: ReadonlySet<string>): File => {
  const toModule = path.posix.relative(
    path.posix.dirname(name),
    SWITCH_MODULE.replace('.ts', '.js'),
  );
  const text = content
    .replace(/\bstryCov_9fa48\(([^()]*)\)/g, (_, list: string) => {
      const own = [...list.matchAll(/\d+/g)].map(([id]) => id).filter((id) => ids.has(id));
      return own.length === 0 ? '0' : `(${own.map((id) => `reachMutant('${id}')`).join(', ')})`;
    })
    .replace(/\bstryMutAct_9fa48\("(\d+)"\)/g, (_, id: string) =>
      ids.has(id) ? `isMutantOn('${id}')` : 'false',
    );
  const header = `import { isOn as isMutantOn, reach as reachMutant } from '${toModule}';`;
  return { name, mutate, content: text.includes('Mutant') ? `${header}\n${text}` : text };
};

export const instrument = async (
  root: string,
  folders: readonly string[],
): Promise<Instrumented> => {
  const files = folders.flatMap((folder) =>
    sourcesIn(root, folder).map((name) => ({
      name,
      mutate: true,
      content: readFileSync(path.join(root, name), 'utf8'),
    })),
  );
  const { files: instrumented, mutants } = await new Instrumenter(silent).instrument(files, {
    plugins: null,
    excludedMutations: ['StringLiteral'],
    ignorers: strykerPlugins.map(({ value }) => value),
    noHeader: true,
  });
  const texts = new Map(files.map(({ name, content }) => [name, content]));
  return {
    mutants: mutants
      .filter(({ status }) => status !== 'Ignored')
      .map((mutant) => {
        const { start, end } = mutant.location;
        // The instrumenter counts from 0, results of Stryker from 1.
        const location = {
          start: { line: start.line + 1, column: start.column + 1 },
          end: { line: end.line + 1, column: end.column + 1 },
        };
        const text = texts.get(mutant.fileName) ?? '';
        return {
          ...mutationOf(mutant.fileName, text, { ...mutant, location, status: 'Pending' }),
          id: mutant.id,
        };
      }),
    sourcesWith: (ids) => instrumented.map((file) => withSwitches(file, ids)),
  };
};
