/**
 * Programs that the files of a project want to run (executables), and the one question about each:
 * asked in a terminal or an editor. None of them runs before the user has allowed exactly this form
 * of it.
 *
 * From top to bottom: the question and its answers; the sources of such programs, MCP servers in
 * `.mcp.json` and hooks in `.pawl/config.toml`; and the files that they name, whose change makes
 * the question come again.
 */

import { createHash } from 'node:crypto';
import { realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import type { HookDeclaration } from '@pawl/agent/extensions/hooks/hook-config';
import type { CommandHook } from '@pawl/agent/extensions/hooks/session-hooks';
import {
  expandVariables,
  type McpServer,
  readServers,
  type StdioServer,
} from '@pawl/agent/extensions/mcp/server-config';
import {
  type Executable,
  openTrust,
  TRUSTED_CHARACTERS_MAX,
  type TrustKind,
  type TrustStore,
} from '@pawl/agent/extensions/trust';
import { keyVariables } from '@pawl/agent/models/provider-table';
import { type ProcessEnvironment, stateFolder } from '@pawl/agent/platform/environment';
import { isWithin, readRegular } from '@pawl/agent/platform/files';
import { plural } from '@pawl/agent/platform/text';
import { repositoryFolders } from '@pawl/agent/platform/trusted-folders';
import { isTable, parseBounded, whereInvalid } from '@pawl/agent/platform/untrusted-input';
import { COMMAND_LEVELS, type CommandLevel } from '@pawl/agent/policy/decide';
import { loadConfig, mcpJsonFiles, type ProjectHook } from '../settings/configuration.js';

/** Reads the project's files. It runs nothing, and rejects only for a fault of the program. */
export type ExecutableSource = (workspace: string) => Promise<readonly Executable[]>;

/** `before`: the content that the user had allowed. */
export type OpenQuestion = { readonly executable: Executable; readonly before: string | null };

export type JudgedExecutables = {
  /** `level`: the sandbox level that the user granted. */
  readonly allowed: readonly {
    readonly executable: Executable;
    readonly level: CommandLevel | null;
  }[];
  /** The user has not been asked, or not about this content. */
  readonly open: readonly OpenQuestion[];
};

/** Reads what the project wants to run, and compares it with the stored answers of the user. */
export const judgeExecutables = async (
  trust: TrustStore,
  workspace: string,
  sources: readonly ExecutableSource[],
): Promise<JudgedExecutables> => {
  const executables = (await Promise.all(sources.map((source) => source(workspace)))).flat();
  const allowed: JudgedExecutables['allowed'][number][] = [];
  const open: OpenQuestion[] = [];
  for (const executable of executables) {
    // Compares its content with the one that the user answered about. What was refused is left out.
    const judgement = await trust.judge(workspace, executable);
    if (judgement.kind === 'trusted') allowed.push({ executable, level: judgement.level ?? null });
    else if (judgement.kind === 'unknown') open.push({ executable, before: null });
    else if (judgement.kind === 'changed') open.push({ executable, before: judgement.before });
  }
  return { allowed, open };
};

/** `MCP server files` */
export const executableText = ({ kind, name }: Pick<Executable, 'kind' | 'name'>): string =>
  `${kindTexts[kind]} ${name}`;

export const kindTexts: Readonly<Record<TrustKind, string>> = {
  'mcp-server': 'MCP server',
  hook: 'hook',
  'skill-script': 'script of a skill',
  formatter: 'formatter',
};

/** One line for what is not run because nobody was asked; null if there is nothing. */
export const notRunText = (open: readonly OpenQuestion[]): string | null => {
  if (open.length === 0) return null;
  const list = (why: string, some: readonly OpenQuestion[]): readonly string[] => {
    const names = some.slice(0, 5).map(({ executable }) => executableText(executable));
    const more = some.length > names.length ? `, and ${some.length - names.length} more` : '';
    return some.length === 0 ? [] : [`not run, since ${why}: ${names.join(', ')}${more}`];
  };
  const parts = [
    ...list(
      'you have not allowed it',
      open.filter(({ before }) => before === null),
    ),
    ...list(
      'it has changed since you allowed it',
      open.filter(({ before }) => before !== null),
    ),
  ];
  return `${parts.join('. ')}. pawl trust shows and allows it.`;
};

/**
 * One way to say yes: its key in a terminal, its name in an editor, and where the executable then
 * runs.
 */
export type TrustYes = {
  readonly key: string;
  readonly means: string;
  readonly name: string;
  /** null: it knows no sandbox. */
  readonly level: CommandLevel | null;
};

/** `later`: not answered. */
export type TrustAnswer = TrustYes | 'no' | 'later';

/** A question about an executable. Users must have seen all of its content before they say yes. */
export type TrustQuestion = {
  /** One line. */
  readonly title: string;
  /** The whole text, or how it differs from the one that was allowed. */
  readonly content: string;
  readonly kind: 'text' | 'diff';
  /** Effect of a yes. */
  readonly meaning: string;
  /** More than one for what can run in the sandbox. */
  readonly yes: readonly TrustYes[];
};

const ALLOW: readonly TrustYes[] = [{ key: 'y', means: 'allow', name: 'Allow', level: null }];

const ALLOW_AT_LEVEL: readonly TrustYes[] = [
  { key: 'y', means: 'sandboxed', name: 'Allow in the sandbox', level: 'read-only' },
  {
    key: 'w',
    means: 'with network',
    name: 'Allow in the sandbox, with network',
    level: 'read-only+net',
  },
  { key: 'o', means: 'as you', name: 'Allow as you, outside the sandbox', level: 'off' },
];

export const trustQuestion = async ({
  executable,
  before,
}: OpenQuestion): Promise<TrustQuestion> => {
  const { name, content, isRemote = false, levels } = executable;
  const effect = isRemote ? 'Its address gets what the model sends it' : 'It runs on your machine';
  const title =
    before === null
      ? `This project wants to ${isRemote ? 'use' : 'run'}`
      : 'Changed since you allowed it';
  return {
    title: `${title}: ${executableText(executable)}`,
    ...(before === null
      ? ({ content: `name: ${name}\n${content}`, kind: 'text' } as const)
      : ({ content: await changeText(before, content), kind: 'diff' } as const)),
    meaning:
      `${effect}, now and in later sessions of this folder, until its text changes. pawl trust ` +
      'revoke takes it back.',
    yes: levels === undefined ? ALLOW : ALLOW_AT_LEVEL,
  };
};

/**
 * More changed lines are shown as all lines before and all lines now: to compare them takes time
 * that grows with their square.
 */
const CHANGED_LINES_MAX = 2_000;

const changeText = async (before: string, content: string): Promise<string> => {
  const { createTwoFilesPatch } = await import('diff');
  const patch = createTwoFilesPatch(
    'allowed',
    'now',
    `${before}\n`,
    `${content}\n`,
    undefined,
    undefined,
    {
      context: Number.MAX_SAFE_INTEGER,
      maxEditLength: CHANGED_LINES_MAX,
    },
  );
  const lines = (text: string, sign: string): readonly string[] =>
    text.split('\n').map((line) => `${sign}${line}`);
  return patch ?? [...lines(before, '-'), ...lines(content, '+')].join('\n');
};

/**
 * Stores an answer; resolves with what holds now, in a few words. Rejects if it could not be
 * stored.
 */
export const storeAnswer = async (
  trust: TrustStore,
  workspace: string,
  executable: Executable,
  answer: TrustAnswer,
): Promise<string> => {
  if (answer === 'later') return 'not run this time';
  if (answer === 'no') {
    await trust.refuse(workspace, executable);
    return 'never run';
  }
  await trust.allow(workspace, executable, answer.level);
  return answer.key === 'y' ? 'allowed' : `allowed, ${answer.means}`;
};

/** A question of the project, and where its answer goes. */
export type ProjectQuestion = TrustQuestion & {
  /**
   * Stores the answer; resolves with what holds now, in a few words. Rejects if it could not be
   * stored.
   */
  answer(answer: TrustAnswer): Promise<string>;
};

/** All questions that the project's files raise. */
export const projectQuestions = async (
  workspace: string,
  warn: (text: string) => void,
): Promise<readonly ProjectQuestion[]> => {
  const trust = openTrust(stateFolder(process.env), warn);
  const { open } = await judgeExecutables(trust, workspace, [serverSource, hookSource]);
  return Promise.all(
    open.map(async (one) => ({
      ...(await trustQuestion(one)),
      answer: (answer) => storeAnswer(trust, workspace, one.executable, answer),
    })),
  );
};

// The sources: MCP servers and hooks of a project

/** Something of the project, and what the user would allow. */
type WithExecutable<T> = { readonly item: T; readonly executable: Executable };

/**
 * Those that the user has allowed. `tellNotRun` gets one line for those that wait for an answer.
 */
const chooseAllowed = async <T>(
  described: readonly WithExecutable<T>[],
  trust: TrustStore,
  workspace: string,
  tellNotRun: (text: string) => void,
): Promise<readonly (WithExecutable<T> & { readonly level: CommandLevel | null })[]> => {
  const executables = described.map(({ executable }) => executable);
  const { allowed, open } = await judgeExecutables(trust, workspace, [async () => executables]);
  const text = notRunText(open);
  if (text !== null) tellNotRun(text);
  return described.flatMap((one) => {
    const answer = allowed.find(({ executable }) => executable === one.executable);
    return answer === undefined ? [] : [{ ...one, level: answer.level }];
  });
};

/**
 * Why something must not be started now; null if it may. The model itself could change its files
 * while the session runs, and would leave the sandbox with the next start.
 */
const explainChange = (allowed: Executable, now: Executable | null): string | null =>
  now?.content === allowed.content
    ? null
    : 'its files have changed since you allowed it. The next session asks again, or pawl trust ' +
      'allows it';

/** The executable; null if its content is so long that nobody would read it. */
const ifReadable = <T extends Executable>(executable: T): T | null =>
  executable.content.length > TRUSTED_CHARACTERS_MAX ? null : executable;

// MCP servers that a project names in `.mcp.json`. None runs before the user has allowed exactly
// this server.

const MCP_JSON_BYTES_MAX = 256 * 1024;
/** Faults of one file that are named; the others are counted. */
const FAULTS_MAX = 3;

export type ProjectServer = { readonly server: McpServer; readonly executable: Executable };
export type ProjectServers = {
  readonly servers: readonly ProjectServer[];
  readonly faults: readonly string[];
};

const SERVER_GRANT: Readonly<Record<McpServer['kind'], string>> = {
  stdio: [
    'granted: it runs in the sandbox, with a home of its own. It reads this folder, and ' +
      'nothing else of yours.',
    'granted if you choose so: the network; with pawl trust also to write in this folder; or to ' +
      'run as you, outside the sandbox.',
  ].join('\n'),
  http: 'granted: Pawl connects to this address and sends these headers.',
};
const SERVER_TOOLS = 'Calls of its tools are asked about like those of your own servers.';

export type AllowedServers = {
  readonly servers: readonly McpServer[];
  /** Why a server must not be started now; null if it may. */
  whyNot(server: McpServer): Promise<string | null>;
};

/**
 * The servers of the project that the user has allowed, without those whose names the user's own
 * servers have. `tellNotRun` gets one line for those that wait for an answer.
 */
export const allowedServers = async (
  workspace: string,
  userServers: readonly McpServer[],
  trust: TrustStore,
  warn: (text: string) => void,
  tellNotRun: (text: string) => void = warn,
): Promise<AllowedServers> => {
  const { servers, faults } = await readProjectServers(workspace);
  for (const fault of faults) warn(fault);
  const described = withoutReplaced(servers, userServers).map(({ server, executable }) => ({
    item: server,
    executable,
  }));
  const { top: folder } = findProject(workspace);
  const allowed = (await chooseAllowed(described, trust, workspace, tellNotRun)).map(
    ({ item, executable, level }) => {
      // the sandbox level at which the server is started, and the folder that it sees there
      const project = { folder, level: level ?? COMMAND_LEVELS[0] };
      return { item, executable, started: { ...item, project } };
    },
  );
  return {
    servers: allowed.map(({ started }) => started),
    async whyNot(server) {
      const allowedServer = allowed.find(({ started }) => started === server);
      if (allowedServer === undefined) return null;
      const now = await serverExecutable(allowedServer.item, findProject(workspace));
      return explainChange(allowedServer.executable, now);
    },
  };
};

/** Without servers of a name that one of the user's has: those are never started. */
const withoutReplaced = (
  servers: readonly ProjectServer[],
  userServers: readonly McpServer[],
): readonly ProjectServer[] =>
  servers.filter(({ server }) => !userServers.some((one) => nameKey(one) === nameKey(server)));

/** The MCP servers that the project's `.mcp.json` wants to run. */
export const serverSource = async (
  workspace: string,
  environment: ProcessEnvironment = process.env,
): Promise<readonly Executable[]> => {
  const { servers } = await readProjectServers(workspace);
  if (servers.length === 0) return [];
  const { mcpServers } = await loadConfig(workspace, environment);
  return withoutReplaced(servers, mcpServers).map(({ executable }) => executable);
};

/** Of equal names the nearest file wins, also where it turns the server off. Reads files only. */
export const readProjectServers = async (workspace: string): Promise<ProjectServers> => {
  const project = findProject(workspace);
  const byName = new Map<string, ProjectServer | null>();
  const faults: string[] = [];
  for (const file of mcpJsonFiles(workspace)) {
    const read = await readMcpJson(file, project.top);
    faults.push(...read.faults);
    for (const server of read.servers) {
      if (byName.has(nameKey(server))) continue;
      const isUsed = server.enabled && !namesKey(server);
      const executable = isUsed ? await serverExecutable(server, project) : null;
      byName.set(nameKey(server), executable === null ? null : { server, executable });
      if (isUsed && executable === null)
        faults.push(`${file}: ${server.name} has more settings than anybody would read.`);
    }
  }
  return { servers: [...byName.values()].filter((one) => one !== null), faults };
};

/** Names without case: a project's `Docs` must not stand beside the user's `docs`. */
const nameKey = ({ name }: McpServer): string => name.toLowerCase();

type ReadMcpJson = { readonly servers: readonly McpServer[]; readonly faults: readonly string[] };

const readMcpJson = async (file: string, top: string): Promise<ReadMcpJson> => {
  const unused = (why: string): ReadMcpJson => ({
    servers: [],
    faults: [`${file} is not used: ${why}`],
  });
  const real = await realpath(file).catch(() => null);
  if (real === null || !isWithin(real, top)) return unused('it leads out of the repository');
  const loaded = await readRegular(real, MCP_JSON_BYTES_MAX, { follow: 'none' });
  if (loaded.kind !== 'file')
    return unused(loaded.kind === 'unusable' ? loaded.why : 'it is not a file');
  const text = loaded.bytes.toString('utf8');
  const parsed = parseBounded(text, { depthMax: 10, charactersMax: MCP_JSON_BYTES_MAX });
  if (parsed.kind === 'invalid')
    return unused(
      parsed.why === 'syntax'
        ? `it is not valid JSON: ${whereInvalid(text)}`
        : 'it is too large, or nested too deeply',
    );
  if (!isTable(parsed.value)) return unused('it is not a JSON object');
  const table = parsed.value.mcpServers;
  if (!isTable(table)) return unused('it has no object mcpServers');
  const { servers, faults } = readServers(table, ['mcpServers']);
  const refused = servers
    .filter(namesKey)
    .map(({ name }) => `${name} wants the key of a model provider.`);
  const all = [...faults.map(({ text: why }) => why), ...refused];
  const more = all.length > FAULTS_MAX ? [`${plural(all.length - FAULTS_MAX, 'more fault')}.`] : [];
  return {
    servers,
    faults: [...all.slice(0, FAULTS_MAX), ...more].map((why) => `${file}: ${why}`),
  };
};

/**
 * A project may name variables of the user's environment, which the question shows, but none that
 * only holds the key of a provider that Pawl knows.
 */
const namesKey = (server: McpServer): boolean => {
  const text = JSON.stringify(server);
  return keyVariables.some((name) => text.includes(`\${${name}`));
};

/** The text that the user would allow; null if nobody would read it. */
const serverExecutable = async (
  server: McpServer,
  project: Project,
): Promise<Executable | null> => {
  const files = server.kind === 'http' ? [] : await namedFiles(expandServer(server), project);
  if (files === null) return null;
  const text = [JSON.stringify(server, null, 2), ...files, SERVER_GRANT[server.kind], SERVER_TOOLS];
  return ifReadable({
    kind: 'mcp-server',
    name: server.name,
    content: text.join('\n'),
    ...(server.kind === 'http' ? { isRemote: true } : { levels: COMMAND_LEVELS }),
  });
};

/**
 * The server as it is started; as it is written if a variable is missing, since it can't be started
 * then.
 */
const expandServer = (server: StdioServer): StdioServer => {
  const expanded = expandVariables(server, process.env);
  return expanded.kind === 'ok' && expanded.server.kind === 'stdio' ? expanded.server : server;
};

// Hooks that a project has in `.pawl/config.toml`. None runs before the user has allowed exactly
// this hook.

const HOOK_GRANT: Readonly<Record<NonNullable<HookDeclaration['sandbox']>, string>> = {
  'read-only':
    'granted: it runs in the sandbox, reads the workspace, writes nothing, and has no network.',
  workspace: 'granted: it runs in the sandbox, writes in the workspace, and has no network.',
  'workspace+net': 'granted: it runs in the sandbox, writes in the workspace, and has the network.',
  off: 'granted: it runs as you, outside the sandbox, with the network.',
};
const HOOK_POWERS =
  'It reads what the session does at its moments, it can hold that back, and its notes are ' +
  'for the model.';

/**
 * The hooks that the user has allowed. `tellNotRun` gets one line for those that wait for an
 * answer.
 */
export const allowedHooks = async (
  workspace: string,
  hooks: readonly ProjectHook[],
  trust: TrustStore,
  warn: (text: string) => void,
  environment: ProcessEnvironment = process.env,
  tellNotRun: (text: string) => void = warn,
): Promise<readonly CommandHook[]> => {
  const described = await describeHooks(hooks, workspace, environment, warn);
  const allowed = await chooseAllowed(described, trust, workspace, tellNotRun);
  return allowed.map(({ item: hook, executable }) => ({
    ...hook.declaration,
    sandbox: hook.declaration.sandbox ?? 'workspace',
    folder: hook.folder,
    whyNot: async () =>
      explainChange(executable, await hookExecutable(hook, workspace, environment)),
  }));
};

/** The hooks that the project's config.toml wants to run. */
export const hookSource = async (
  workspace: string,
  environment: ProcessEnvironment = process.env,
): Promise<readonly Executable[]> => {
  const { projectHooks } = await loadConfig(workspace, environment);
  // opening the session warns
  const described = await describeHooks(projectHooks, workspace, environment, () => undefined);
  return described.map(({ executable }) => executable);
};

const describeHooks = async (
  hooks: readonly ProjectHook[],
  workspace: string,
  environment: ProcessEnvironment,
  warn: (text: string) => void,
): Promise<readonly WithExecutable<ProjectHook>[]> => {
  const described: WithExecutable<ProjectHook>[] = [];
  for (const hook of hooks.filter(({ declaration }) => declaration.enabled)) {
    const executable = await hookExecutable(hook, workspace, environment);
    if (executable !== null) described.push({ item: hook, executable });
    else
      warn(
        `the hook ${hook.declaration.name} of this project has more words than anybody would read.`,
      );
  }
  return described;
};

/** The text that the user would allow; null if nobody would read it. */
const hookExecutable = async (
  { declaration, folder }: ProjectHook,
  workspace: string,
  environment: ProcessEnvironment,
): Promise<Executable | null> => {
  const { name, command } = declaration;
  const [program = '', ...args] =
    typeof command === 'string' ? ['/bin/sh', '-c', command] : command;
  const started = { command: program, args, env: {}, cwd: folder };
  const files = await namedFiles(started, findProject(workspace, environment));
  if (files === null) return null;
  const shown = { folder, ...declaration, sandbox: declaration.sandbox ?? 'workspace' };
  const text = [JSON.stringify(shown, null, 2), ...files, HOOK_GRANT[shown.sandbox], HOOK_POWERS];
  return ifReadable({ kind: 'hook', name, content: text.join('\n') });
};

// The files of a project that the settings of a server or a hook name

const WATCHED_FILE_BYTES_MAX = 4 * 1024 * 1024;
const WATCHED_BYTES_MAX = 16 * 1024 * 1024;
const WORDS_MAX = 300;
/** Folders that the words name, from which other words are read too. */
const FOLDERS_MAX = 4;

type Project = {
  readonly workspace: string;
  /** Real path of the project's folder. */
  readonly top: string;
  /** Has the home folder, which shells write as `~` and `$HOME`. */
  readonly environment: ProcessEnvironment;
};

const findProject = (
  workspace: string,
  environment: ProcessEnvironment = process.env,
): Project => ({
  workspace,
  top: repositoryFolders(workspace).folders.at(-1) ?? workspace,
  environment,
});

/** A server or a hook as it is started. Its words may be read from `cwd` and from the workspace. */
type StartedProgram = Pick<StdioServer, 'command' | 'args' | 'env' | 'cwd'>;

/**
 * One line with the hash of each file, so that the user is asked again if it changes; null if the
 * settings have more words than anybody reads.
 *
 * 1. A file counts in the usual forms: `server.mjs`, `--require=./first.js`, `sh -c "node
 *    ./server"`, `sh<./first.sh`, `./"first".sh`, `cd scripts && ./first.sh`, `python -m
 *    scripts.first`, a text in `env`.
 * 2. A link that leads out of the project is named with its target.
 * 3. The work is bounded, since the project is of strangers: a file is hashed once, and beyond the
 *    limits its line says that it is not watched.
 */
const namedFiles = async (
  program: StartedProgram,
  project: Project,
): Promise<readonly string[] | null> => {
  const { workspace, top, environment } = project;
  const words = programWords(program, environment);
  if (words === null) return null;
  const byFile = new Map<string, DescribedFile | null>();
  let bytesLeft = WATCHED_BYTES_MAX;
  /** Adds the file that the name means in the folder, if there is one. */
  const addFile = async (folder: string, name: string): Promise<void> => {
    const real = await findReal(folder, name);
    if (real === null) return;
    const written = path.resolve(folder, name);
    const isInProject = isWithin(real, top);
    // neither a file of the project nor a link in it
    const isElsewhere = !isInProject && !isWithin(written, top);
    const key = isInProject ? real : `${written} ${real}`;
    if (byFile.has(key) || isElsewhere) return;
    const file = isInProject
      ? await describeFile(
          real,
          path.relative(workspace, real),
          Math.min(WATCHED_FILE_BYTES_MAX, bytesLeft),
        )
      : await describeLink(real, path.relative(workspace, written));
    byFile.set(key, file);
    bytesLeft -= file?.bytes ?? 0;
  };
  const names = words.flatMap(candidateNames);
  const { folders, isCut } = await readFolders(words, program, project);
  for (const folder of folders) for (const name of names) await addFile(folder, name);
  const lines = [...byFile.values()].flatMap((file) => (file === null ? [] : [file.line]));
  return isCut ? [...lines, 'files in further folders that it names are not watched'] : lines;
};

/** A word in a shell's text or a list of options. */
const WORD = /(?:\\.|[^\s=,;:'"|&<>()`\\])+/gs;
const PWD_FORMS = /\$PWD\b|\$\{PWD\}|\$\(pwd\)|`pwd`/g;
const HOME_FORMS = /\$HOME\b|\$\{HOME\}|(?<![^\s=,;:'"|&<>()`])~(?=\/)/g;

/** The texts of the settings, whole and in pieces; null if there are too many. */
const programWords = (
  { command, args, env }: StartedProgram,
  { HOME: home = '' }: ProcessEnvironment,
): readonly string[] | null => {
  const texts = [command, ...args, ...Object.values(env)].map((text) =>
    text.replace(PWD_FORMS, '.').replace(HOME_FORMS, () => home || '~'),
  );
  const pieces = texts.flatMap((text) => [
    ...[text, ...text.split(/['"]/)],
    ...[text, text.replace(/['"]/g, '')]
      .flatMap((each) => each.match(WORD) ?? [])
      .map((word) => word.replace(/\\(.)/gs, '$1')),
  ]);
  const words = new Set(pieces);
  words.delete('');
  return words.size > WORDS_MAX ? null : [...words];
};

/** Files that Node finds by `./server` or `.`, and Python by `app/` or `-m scripts.first`. */
const candidateNames = (word: string): readonly string[] => {
  const names = [
    ...[word, `${word}.js`, `${word}/index.js`, `${word}/package.json`],
    `${word}/__main__.py`,
  ];
  if (!/^\w+(?:\.\w+){0,9}$/.test(word)) return names;
  const module = word.replaceAll('.', '/');
  const packages = [...word.matchAll(/\.|$/g)].map(({ index }) => module.slice(0, index));
  return [
    ...[...names, `${module}.py`, `${module}/__main__.py`],
    ...packages.map((folder) => `${folder}/__init__.py`),
  ];
};

/**
 * The real path as the kernel finds it: `link/../file` is beside the link's target. Null for no
 * file.
 */
const findReal = (folder: string, name: string): Promise<string | null> =>
  // most words name no file
  realpath(name.startsWith('/') ? name : `${folder}/${name}`).catch(() => null);

/**
 * The folders from which the words may be read: where it starts, and those of the project that the
 * words name, also from another one of them. `isCut`: there are more than FOLDERS_MAX.
 */
const readFolders = async (
  words: readonly string[],
  { cwd }: StartedProgram,
  { workspace, top }: Project,
): Promise<{ readonly folders: ReadonlySet<string>; readonly isCut: boolean }> => {
  const folders = new Set([path.resolve(workspace, cwd ?? '.'), workspace]);
  const most = folders.size + FOLDERS_MAX;
  // The loop comes to those that it adds.
  for (const folder of folders) {
    for (const word of words) {
      const real = await findReal(folder, word);
      if (real === null || !isWithin(real, top) || folders.has(real)) continue;
      if ((await stat(real).catch(() => null))?.isDirectory() !== true) continue;
      if (folders.size === most) return { folders, isCut: true };
      folders.add(real);
    }
  }
  return { folders, isCut: false };
};

type DescribedFile = { readonly line: string; readonly bytes: number };

/** No line break in a name can imitate another line. */
const oneLineName = (name: string): string => JSON.stringify(name).slice(1, -1);

/** The line for a file; null if there is none. */
const describeFile = async (
  real: string,
  shown: string,
  bytesMax: number,
): Promise<DescribedFile | null> => {
  const loaded = await readRegular(real, bytesMax, { follow: 'none' });
  if (loaded.kind === 'absent' || loaded.kind === 'folder') return null;
  const about = `file of the project: ${oneLineName(shown)}`;
  if (loaded.kind === 'unusable')
    return { line: `${about} (not watched: you are not asked again if it changes)`, bytes: 0 };
  const hash = createHash('sha256').update(loaded.bytes).digest('hex').slice(0, 32);
  return { line: `${about} (sha256 ${hash})`, bytes: loaded.bytes.length };
};

/** The line for a link out of the project; null for a folder. */
const describeLink = async (real: string, shown: string): Promise<DescribedFile | null> => {
  if ((await stat(real).catch(() => null))?.isFile() !== true) return null;
  const about = `file of the project: ${oneLineName(shown)}`;
  return { line: `${about} (leads to ${oneLineName(real)}, which is not watched)`, bytes: 0 };
};
