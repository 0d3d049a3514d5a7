import { existsSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import type { McpServer } from '@pawl/agent/extensions/mcp-servers';
import type { HookDeclaration } from '@pawl/agent/extensions/user-hooks';
import type { ProcessEnvironment } from '@pawl/agent/platform/base/process-environment-type';
import { configFolder } from '@pawl/agent/platform/base/user-folders';
import { isWithin } from '@pawl/agent/platform/files/is-within';
import { readRegular } from '@pawl/agent/platform/files/regular-file';
import { isOfOtherUser, repositoryFolders } from '@pawl/agent/platform/files/repository-folders';
import type { WrittenRule } from '@pawl/agent/policy/preset-rules';
import { checkVariable } from './check-setting-value.js';
import { type Fault, type ParsedConfig, parseConfig } from './parse.js';
import type { Given, Layers, Origin } from './resolve.js';
import { settings } from './setting-table.js';

/** Finds and reads the files and variables with settings. Loads the TOML parser only if there is a file. */

/** `where`: a file and its line, or a variable. */
export type PlacedFault = { readonly where: string; readonly text: string };

/** A hook in a project's file. `folder`: the folder that has `.pawl`. */
export type ProjectHook = { readonly declaration: HookDeclaration; readonly folder: string };

export type Loaded = {
  readonly layers: Omit<Layers, 'flags'>;
  /** Existing files, the user's first. */
  readonly files: readonly string[];
  readonly faults: readonly PlacedFault[];
  readonly rules: readonly WrittenRule[];
  /** Rules of a project that allow something. A project may not do that. */
  readonly refused: readonly WrittenRule[];
  /** MCP servers of the user's file. */
  readonly mcpServers: readonly McpServer[];
  /** Project files that name MCP servers, which only `.mcp.json` may do. */
  readonly mcpRefused: readonly string[];
  /** Hooks of the user's file. */
  readonly userHooks: readonly HookDeclaration[];
  /** Hooks of the project's files. Of equal names the nearest file has the one that counts. */
  readonly projectHooks: readonly ProjectHook[];
};

export const CONFIG_BYTES_MAX = 16 * 1024;

export const userFile = (environment: ProcessEnvironment): string =>
  path.join(configFolder(environment), 'config.toml');

/** Configuration files from the repository's root down to the workspace, without files of other users. */
const projectFiles = (workspace: string): readonly string[] =>
  repositoryFolders(workspace)
    .folders.map((folder) => path.join(folder, '.pawl'))
    .filter((folder) => !isOfOtherUser(folder, workspace))
    .map((folder) => path.join(folder, 'config.toml'))
    .filter((file) => path.dirname(path.dirname(file)) === workspace || !isOfOtherUser(file, workspace))
    .reverse();

/** Whether the project has a file of its own, which may hold hooks. */
export const hasProjectFile = (workspace: string): boolean =>
  projectFiles(workspace).some((file) => existsSync(file));

type Content =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'absent' }
  | { readonly kind: 'unusable'; readonly why: string };

/** The text of a file. An unreadable file is a fault, because it may contain stricter settings. */
const readContent = async (file: string): Promise<Content> => {
  const loaded = await readRegular(file, CONFIG_BYTES_MAX);
  if (loaded.kind === 'folder') return { kind: 'unusable', why: 'it is a folder' };
  if (loaded.kind !== 'file') return loaded;
  try {
    return { kind: 'text', text: new TextDecoder('utf-8', { fatal: true }).decode(loaded.bytes) };
  } catch {
    return { kind: 'unusable', why: 'it is not text in UTF-8' };
  }
};

type Read = {
  readonly given: readonly Given[];
  readonly rules: readonly WrittenRule[];
  readonly mcpServers: readonly McpServer[];
  readonly hooks: readonly HookDeclaration[];
  readonly faults: readonly PlacedFault[];
  readonly there: boolean;
};

const NOTHING = { given: [], rules: [], mcpServers: [], hooks: [], faults: [], there: false } satisfies Read;

/** A project's file must be in the project, as `.mcp.json` must: what a link leads to elsewhere is not the project's. */
const leadsOut = async (file: string, workspace: string): Promise<boolean> => {
  const real = await realpath(file).catch(() => null); // it is not there, or can't be read: that is said elsewhere
  return real !== null && !isWithin(real, repositoryFolders(workspace).folders.at(-1) ?? workspace);
};

/** `project`: the workspace of a project's file; null for the user's own file. */
const readFile = async (file: string, project: string | null): Promise<Read> => {
  const read = await readContent(file);
  const isOutside = read.kind === 'text' && project !== null && (await leadsOut(file, project));
  const content: Content = isOutside ? { kind: 'unusable', why: 'it leads out of the project' } : read;
  const layer = project === null ? 'user' : 'project';
  if (content.kind === 'absent') return NOTHING;
  if (content.kind === 'unusable')
    return {
      ...NOTHING,
      faults: [{ where: file, text: `it can't be used: ${content.why}.` }],
      there: true,
    };
  const { parse } = await import('smol-toml');
  const { values, rules, mcpServers, hooks, faults }: ParsedConfig = parseConfig(content.text, (text) =>
    parse(text),
  );
  const given = values.map(({ setting, value, line }) => ({
    setting,
    value,
    origin: { layer, file, line } satisfies Origin,
  }));
  const place = ({ line, text }: Fault): PlacedFault => ({ where: `${file}:${line}`, text });
  const placed = rules.map(({ line, ...rule }): WrittenRule => ({ ...rule, origin: `${file}:${line}` }));
  return { given, rules: placed, mcpServers, hooks, faults: faults.map(place), there: true };
};

/** Reads Pawl's own variables. Those of providers are read together with the keys. */
const readVariables = (environment: ProcessEnvironment): Pick<Read, 'given' | 'faults'> => {
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

/** The user's rules, and the project's rules that ask or deny. */
export const stricterRules = (
  user: readonly WrittenRule[],
  project: readonly WrittenRule[],
): readonly WrittenRule[] => [...user, ...project.filter(({ decision }) => decision !== 'allow')];

/** Replaces `~/` with the user's home folder. */
const inHome = (rule: WrittenRule, environment: ProcessEnvironment): WrittenRule => {
  if (rule.kind !== 'path' || !rule.pattern.startsWith('~/')) return rule;
  return { ...rule, pattern: path.join(environment.HOME || homedir(), rule.pattern.slice(2)) };
};

const folderOf = (file: string): string => path.dirname(path.dirname(file));

const nearestHooks = (hooks: readonly ProjectHook[]): readonly ProjectHook[] => [
  ...new Map(hooks.map((hook) => [hook.declaration.name, hook])).values(),
];

/** Loads all layers except flags. Faulty content becomes a fault, never a rejection. `workspace`: a real path. */
export const loadConfig = async (workspace: string, environment: ProcessEnvironment): Promise<Loaded> => {
  const mine = userFile(environment);
  const projects = projectFiles(workspace).filter((file) => file !== mine);
  const [user, ...project] = await Promise.all([
    readFile(mine, null),
    ...projects.map((file) => readFile(file, workspace)),
  ]);
  const variables = readVariables(environment);
  const ofProjects = project.flatMap(({ rules }) => rules);
  const present = [mine, ...projects].filter((_, index) => [user, ...project][index]?.there);
  return {
    layers: {
      user: user.given,
      project: project.flatMap(({ given }) => given),
      environment: variables.given,
    },
    files: present,
    rules: stricterRules(user.rules, ofProjects).map((rule) => inHome(rule, environment)),
    mcpServers: user.mcpServers,
    mcpRefused: projects.filter((_, index) => (project[index]?.mcpServers.length ?? 0) > 0),
    userHooks: user.hooks,
    projectHooks: nearestHooks(
      projects.flatMap((file, index) =>
        (project[index]?.hooks ?? []).map((declaration) => ({ declaration, folder: folderOf(file) })),
      ),
    ),
    refused: ofProjects.filter(({ decision }) => decision === 'allow'),
    faults: [...user.faults, ...project.flatMap(({ faults }) => faults), ...variables.faults],
  };
};
