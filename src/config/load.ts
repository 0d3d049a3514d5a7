import { constants } from 'node:fs';
import { open, realpath, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import { type Fault, type Parsed, parseConfig } from './parse.js';
import type { Given, Layers, Origin } from './resolve.js';
import { settings } from './table.js';
import { checkVariable } from './value.js';

/** Finds and reads the files and variables that settings come from. The parser is loaded where there is a file. */

export type Environment = Readonly<Record<string, string | undefined>>;

/** `where`: a file and its line, or a variable. */
export type PlacedFault = { readonly where: string; readonly text: string };

export type Loaded = {
  readonly layers: Omit<Layers, 'flags'>;
  /** Files that are there, the user's first. */
  readonly files: readonly string[];
  readonly faults: readonly PlacedFault[];
};

const BYTES_MAX = 16 * 1024;

/** `$XDG_CONFIG_HOME/pawl/config.toml`, else below `~/.config`. A relative XDG path is ignored, as its specification asks. */
export const userFile = (environment: Environment): string => {
  const configured = environment.XDG_CONFIG_HOME ?? '';
  if (path.isAbsolute(configured)) return path.join(configured, 'pawl', 'config.toml');
  return path.join(environment.HOME || homedir(), '.config', 'pawl', 'config.toml');
};

const exists = (place: string): Promise<boolean> =>
  stat(place).then(
    () => true,
    () => false,
  );

/** From the repository's root down to the workspace; the workspace alone outside a repository. */
const projectFiles = async (workspace: string): Promise<readonly string[]> => {
  const folders: string[] = [];
  for (let folder = workspace; ; folder = path.dirname(folder)) {
    folders.unshift(folder);
    if (await exists(path.join(folder, '.git'))) break;
    if (path.dirname(folder) === folder) {
      folders.splice(0, folders.length, workspace);
      break;
    }
  }
  return folders.map((folder) => path.join(folder, '.pawl', 'config.toml'));
};

type Content =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'absent' }
  | { readonly kind: 'unusable'; readonly why: string };

const isAbsence = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR');

/** A file that can't be read is a fault and not an absence: it may have wanted to be stricter. */
const readContent = async (file: string): Promise<Content> => {
  try {
    const handle = await open(await realpath(file), constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const status = await handle.stat();
      if (!status.isFile()) return { kind: 'unusable', why: 'it is not a regular file' };
      if (status.size > BYTES_MAX) return { kind: 'unusable', why: `it is larger than ${BYTES_MAX} bytes` };
      const text = new TextDecoder('utf-8', { fatal: true }).decode(await handle.readFile());
      return { kind: 'text', text };
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (isAbsence(error)) return { kind: 'absent' };
    return { kind: 'unusable', why: error instanceof Error ? error.message : String(error) };
  }
};

type Read = {
  readonly given: readonly Given[];
  readonly faults: readonly PlacedFault[];
  readonly there: boolean;
};

const readFile = async (file: string, layer: 'user' | 'project'): Promise<Read> => {
  const content = await readContent(file);
  if (content.kind === 'absent') return { given: [], faults: [], there: false };
  if (content.kind === 'unusable')
    return { given: [], faults: [{ where: file, text: `it can't be used: ${content.why}.` }], there: true };
  const { parse } = await import('smol-toml');
  const { values, faults }: Parsed = parseConfig(content.text, (text) => parse(text));
  const given = values.map(({ setting, value, line }) => ({
    setting,
    value,
    origin: { layer, file, line } satisfies Origin,
  }));
  const place = ({ line, text }: Fault): PlacedFault => ({ where: `${file}:${line}`, text });
  return { given, faults: faults.map(place), there: true };
};

/** The variables that are Pawl's own; those of providers are read where a provider is. */
const readVariables = (environment: Environment): Omit<Read, 'there'> => {
  const given: Given[] = [];
  const faults: PlacedFault[] = [];
  for (const setting of settings.filter(({ variable }) => variable.startsWith('PAWL_'))) {
    const { variable, kind } = setting;
    const text = environment[variable] ?? '';
    if (text === '') continue;
    const checked = checkVariable(kind, text);
    if (checked.kind === 'ok')
      given.push({ setting, value: checked.value, origin: { layer: 'environment', variable } });
    else faults.push({ where: variable, text: `it ${checked.why}.` });
  }
  return { given, faults };
};

/** Never rejects because of what stands in a file or variable: that is a fault. `workspace` is a real path. */
export const loadConfig = async (workspace: string, environment: Environment): Promise<Loaded> => {
  const mine = userFile(environment);
  const projects = (await projectFiles(workspace)).filter((file) => file !== mine);
  const [user, ...project] = await Promise.all([
    readFile(mine, 'user'),
    ...projects.map((file) => readFile(file, 'project')),
  ]);
  const variables = readVariables(environment);
  const present = [mine, ...projects].filter((_, index) => [user, ...project][index]?.there);
  return {
    layers: {
      user: user.given,
      project: project.flatMap(({ given }) => given),
      environment: variables.given,
    },
    files: present,
    faults: [...user.faults, ...project.flatMap(({ faults }) => faults), ...variables.faults],
  };
};
