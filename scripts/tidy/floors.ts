import path from 'node:path';
import type { Fault, Source } from './source.js';

/**
 * Which way imports point: a part imports only parts on lower floors. A part is a folder, or a file, of src/; where a
 * folder stands on several floors, its folders are parts of their own.
 */
const FLOORS: Readonly<Record<string, number>> = {
  'machine-kit': 1,
  base: 1,
  agent: 2,
  'ask/run': 3,
  'ask/tree': 3.1,
  'eager-ask-values.ts': 3.2,
  ports: 4,
  'ask/environment-and-journal-types.ts': 4.1,
  providers: 4.2,
  figures: 4.2,
  files: 4.3,
  secrets: 4.3,
  programs: 4.4,
  launcher: 4.45,
  sandbox: 4.5,
  shell: 4.5,
  net: 4.5,
  trust: 4.6,
  skills: 4.6,
  runtime: 5,
  journal: 5,
  models: 5,
  config: 5,
  prompt: 5,
  tools: 5,
  workspace: 5.2,
  telemetry: 5.2,
  'ask/environments': 5.3,
  'ask/journal': 5.3,
  'ask/prompt': 5.3,
  'ask/runtime': 5.4,
  api: 6,
  'ask/api': 6.5,
  'lazy-ask.ts': 6.8,
  testing: 7,
  'telemetry.ts': 7,
  mcp: 5.2,
  'user-hooks': 5.3,
  'mcp-server': 8.7,
  inspector: 7,
  serve: 7,
  'machine.ts': 8,
  'index.ts': 8,
  'engine.ts': 8,
  terminal: 8.5,
  acp: 8.7,
  cli: 9,
};
/** Parts that know nothing but themselves and what is below them. */
const SELF_CONTAINED = new Set(['machine-kit', 'agent']);

/** Parts that may import ask: ask itself and the faces. The agent knows nothing of it. */
const KNOWS_ASK = new Set(['lazy-ask.ts', 'eager-ask-values.ts', 'index.ts', 'machine.ts', 'cli']);

const isAsk = (part: string): boolean => part.startsWith('ask/');

/** The part of a file: of `src/ask/run/table.ts` it is `ask/run`. */
const partOf = (file: string): string => {
  const [, first = file, second = ''] = file.split('/');
  return `${first}/${second}` in FLOORS ? `${first}/${second}` : first;
};

const targetOf = (file: string, specifier: string): string =>
  path.posix.join(path.posix.dirname(file), specifier).replace(/\.js$/, '.ts');

const importFault = (file: string, specifier: string): string | null => {
  const here = partOf(file);
  const floor = FLOORS[here];
  if (floor === undefined) return `${here} stands on no floor: give it one in scripts/tidy/floors.ts`;
  if (!specifier.startsWith('.')) {
    return SELF_CONTAINED.has(here) ? `${here} imports nothing from outside ('${specifier}')` : null;
  }
  const target = targetOf(file, specifier);
  if (!target.startsWith('src/')) return `src/ imports only from src/ and from packages ('${specifier}')`;
  const there = partOf(target);
  const lower = FLOORS[there];
  if (isAsk(there) && !isAsk(here) && !KNOWS_ASK.has(here))
    return `${here} may not import ask ('${specifier}')`;
  if (here === there || (lower !== undefined && lower < floor)) return null;
  return `${here} (floor ${floor}) may not import ${there} (floor ${lower ?? 'none'})`;
};

const circleFaults = (sources: readonly Source[]): readonly Fault[] => {
  const faults: Fault[] = [];
  const files = new Map(sources.map((source) => [source.file, source]));
  const done = new Set<string>();
  const visit = (source: Source, trail: readonly string[]): void => {
    for (const { specifier, start } of source.imports) {
      const target = files.get(specifier.startsWith('.') ? targetOf(source.file, specifier) : '');
      if (!target) continue;
      const at = trail.indexOf(target.file);
      const text = `circle of imports: ${[...trail.slice(at), target.file].join(' -> ')}`;
      if (at >= 0) faults.push({ file: source.file, line: source.lineOf(start), text });
      else if (!done.has(target.file)) visit(target, [...trail, target.file]);
    }
    done.add(source.file);
  };
  for (const source of sources) if (!done.has(source.file)) visit(source, [source.file]);
  return faults;
};

/** Imports point down, never sideways, never in a circle; type imports count. For the files of src/. */
export const floorFaults = (sources: readonly Source[]): readonly Fault[] => {
  const upward = sources.flatMap((source) =>
    source.imports.flatMap(({ specifier, start }) => {
      const text = importFault(source.file, specifier);
      return text === null ? [] : [{ file: source.file, line: source.lineOf(start), text }];
    }),
  );
  return [...upward, ...circleFaults(sources)];
};
