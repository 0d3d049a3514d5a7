import path from 'node:path';
import type { Fault, Source } from './source.js';

/** Which way imports point: a part imports only parts on lower floors. A part is a folder, or a file, of src/. */
const FLOORS: Readonly<Record<string, number>> = {
  kernel: 1,
  agent: 2,
  recursive: 3,
  'needs-machine.ts': 3.9,
  'needs.ts': 4,
  'needs-hooks.ts': 4.2,
  'git-author.ts': 4.2,
  'suggest.ts': 4.2,
  'needs-recursive.ts': 4.2,
  sandbox: 4.5,
  net: 4.5,
  runtime: 5,
  journal: 5,
  models: 5,
  config: 5,
  prompt: 5,
  tools: 5,
  workspace: 5.2,
  environments: 5,
  'agent-api': 5.9,
  'agent-api.ts': 6,
  'explore-tool.ts': 6.5,
  'ask-api.ts': 6,
  testing: 7,
  acp: 7,
  mcp: 7,
  inspector: 7,
  restate: 7,
  'machine.ts': 8,
  'index.ts': 8,
  terminal: 8.5,
  cli: 9,
};
/** Parts that know nothing but themselves and what is below them. */
const SELF_CONTAINED = new Set(['kernel', 'agent']);

const partOf = (file: string): string => file.split('/')[1] ?? file;

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
