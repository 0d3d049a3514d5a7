/** What the files of a project want to run, which of it the user has allowed, and the questions about the rest. */

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
  TRUSTED_CHARACTERS_MAX,
  type TrustKind,
  type TrustStore,
} from '@pawl/agent/extensions/trust';
import { keyVariables } from '@pawl/agent/models/provider-table';
import type { Clock } from '@pawl/agent/platform/clock';
import type { ProcessEnvironment } from '@pawl/agent/platform/environment';
import { isWithin, readRegular } from '@pawl/agent/platform/files';
import { repositoryFolders } from '@pawl/agent/platform/repository-folders';
import { plural } from '@pawl/agent/platform/text';
import { isTable, parseBounded, whereInvalid } from '@pawl/agent/platform/untrusted-input';
import { COMMAND_LEVELS, type CommandLevel } from '@pawl/agent/policy/decide';
import type { Pressed } from '@pawl/terminal/keys';
import type { LiveArea } from '@pawl/terminal/live-area';
import { type Look, oneLine, paint } from '@pawl/terminal/paint';
import {
  ALLOW,
  type ContentAnswer,
  ContentQuestion,
  type ContentToRead,
  type WindowSize,
  type YesKey,
} from '@pawl/terminal/questions';
import { joinSafe, makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { loadConfig, type ProjectHook } from '../settings/configuration.js';
import { mcpJsonFiles } from './mcp-json-files.js';

/** Reads the project's files. It runs nothing, and rejects only for a fault of the program. */
export type ExecutableSource = (workspace: string) => Promise<readonly Executable[]>;

/** `before`: the content that the user had allowed. */
export type OpenQuestion = { readonly executable: Executable; readonly before: string | null };

/** `level`: the sandbox level that the user granted. */
type AllowedExecutable = { readonly executable: Executable; readonly level: CommandLevel | null };

type SettledExecutables = {
  readonly allowed: readonly AllowedExecutable[];
  /** The user has not been asked, or not about this content. */
  readonly open: readonly OpenQuestion[];
};

export const kindText: Readonly<Record<TrustKind, string>> = {
  'mcp-server': 'MCP server',
  hook: 'hook',
  'skill-script': 'script of a skill',
  formatter: 'formatter',
};

export const settleExecutables = async (
  trust: TrustStore,
  workspace: string,
  sources: readonly ExecutableSource[],
): Promise<SettledExecutables> => {
  const found = (await Promise.all(sources.map((source) => source(workspace)))).flat();
  const allowed: AllowedExecutable[] = [];
  const open: OpenQuestion[] = [];
  for (const executable of found) {
    const judged = await trust.judge(workspace, executable);
    if (judged.kind === 'trusted') allowed.push({ executable, level: judged.level ?? null });
    else if (judged.kind === 'unknown') open.push({ executable, before: null });
    else if (judged.kind === 'changed') open.push({ executable, before: judged.before });
  }
  return { allowed, open };
};

/** The MCP servers that a project names in `.mcp.json`. None runs before the user has allowed exactly this server. */

const MCP_JSON_BYTES_MAX = 256 * 1024;
/** Faults of one file that are said; the others are counted. */
const FAULTS_MAX = 3;

export type ProjectServer = { readonly server: McpServer; readonly executable: Executable };
export type ProjectServers = {
  readonly servers: readonly ProjectServer[];
  readonly faults: readonly string[];
};

type NamedServers = { readonly servers: readonly McpServer[]; readonly faults: readonly string[] };

const readMcpJson = async (file: string, top: string): Promise<NamedServers> => {
  const unused = (why: string): NamedServers => ({ servers: [], faults: [`${file} is not used: ${why}`] });
  const real = await realpath(file).catch(() => null);
  if (real === null || !isWithin(real, top)) return unused('it leads out of the repository');
  const loaded = await readRegular(real, MCP_JSON_BYTES_MAX, { follow: false });
  if (loaded.kind !== 'file') return unused(loaded.kind === 'unusable' ? loaded.why : 'it is not a file');
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
  const refused = servers.filter(namesKey).map(({ name }) => `${name} wants the key of a model provider.`);
  const all = [...faults.map(({ text: why }) => why), ...refused];
  const more = all.length > FAULTS_MAX ? [`${plural(all.length - FAULTS_MAX, 'more fault')}.`] : [];
  return {
    servers: servers.filter((server) => !namesKey(server)),
    faults: [...all.slice(0, FAULTS_MAX), ...more].map((why) => `${file}: ${why}`),
  };
};

const SERVER_GRANTED: Readonly<Record<McpServer['kind'], string>> = {
  stdio: [
    'granted: it runs in the sandbox, with a home of its own. It reads this folder, and nothing else of yours.',
    'granted if you choose so: the network; or to run as you, outside the sandbox.',
  ].join('\n'),
  http: 'granted: Pawl connects to this address and sends these headers.',
};
const TOOLS = 'Calls of its tools are asked about like those of your own servers.';

/** A project may name variables of the user's environment, which the question shows, but never keys of models. */
const namesKey = (server: McpServer): boolean => {
  const text = JSON.stringify(server);
  return keyVariables.some((name) => text.includes(`\${${name}`));
};

/** The server as it is started; as it is written if a variable is missing, since it can't be started then. */
const startedAs = (server: StdioServer): StdioServer => {
  const expanded = expandVariables(server, process.env);
  return expanded.kind === 'ok' && expanded.server.kind === 'stdio' ? expanded.server : server;
};

/** What the user would allow; null if nobody would read it. */
const serverExecutable = async (server: McpServer, place: ProjectPlace): Promise<Executable | null> => {
  const files = server.kind === 'http' ? [] : await namedFiles(startedAs(server), place);
  if (files === null) return null;
  const content = [JSON.stringify(server, null, 2), ...files, SERVER_GRANTED[server.kind], TOOLS].join('\n');
  if (content.length > TRUSTED_CHARACTERS_MAX) return null;
  const executable = { kind: 'mcp-server', name: server.name, content } as const;
  return server.kind === 'http'
    ? { ...executable, isRemote: true }
    : { ...executable, levels: COMMAND_LEVELS };
};

const projectPlace = (workspace: string): ProjectPlace => ({
  workspace,
  top: repositoryFolders(workspace).folders.at(-1) ?? workspace,
  environment: process.env,
});

/** `Docs` must not stand beside the user's `docs`. */
const nameKey = ({ name }: McpServer): string => name.toLowerCase();

/** Of equal names the nearest file wins. Reads files only. */
export const readProjectServers = async (workspace: string): Promise<ProjectServers> => {
  const place = projectPlace(workspace);
  const byName = new Map<string, ProjectServer | null>();
  const faults: string[] = [];
  for (const file of mcpJsonFiles(workspace)) {
    const named = await readMcpJson(file, place.top);
    faults.push(...named.faults);
    for (const server of named.servers.filter(({ enabled }) => enabled)) {
      if (byName.has(nameKey(server))) continue;
      const executable = await serverExecutable(server, place);
      byName.set(nameKey(server), executable === null ? null : { server, executable });
      if (executable === null)
        faults.push(`${file}: ${server.name} has more settings than anybody would read.`);
    }
  }
  return { servers: [...byName.values()].filter((one) => one !== null), faults };
};

export const serverSource = async (workspace: string): Promise<readonly Executable[]> =>
  (await readProjectServers(workspace)).servers.map(({ executable }) => executable);

export type AllowedServers = {
  readonly servers: readonly McpServer[];
  /**
   * Why a server must not be started now; null if it may. Its files can change while a session runs. The model itself could
   * change them, and would leave the sandbox with the next start.
   */
  whyNot(server: McpServer): Promise<string | null>;
};

/**
 * The servers of the project that the user has allowed, without those whose names the user's own servers have.
 * `tellNotRun` gets one line for those that wait for an answer.
 */
export const allowedServers = async (
  workspace: string,
  own: readonly McpServer[],
  trust: TrustStore,
  warn: (text: string) => void,
  tellNotRun: (text: string) => void = warn,
): Promise<AllowedServers> => {
  const { servers, faults } = await readProjectServers(workspace);
  for (const fault of faults) warn(fault);
  const others = servers.filter(({ server }) => !own.some((one) => nameKey(one) === nameKey(server)));
  const { allowed, open } = await settleExecutables(trust, workspace, [
    async () => others.map(({ executable }) => executable),
  ]);
  const text = notRunText(open);
  if (text !== null) tellNotRun(text);
  const { top: folder } = projectPlace(workspace);
  const kept = others.flatMap(({ server, executable }) => {
    const found = allowed.find((one) => one.executable === executable);
    if (found === undefined) return [];
    const project = { folder, level: found.level ?? COMMAND_LEVELS[0] };
    return [{ server, executable, started: { ...server, project } }];
  });
  return {
    servers: kept.map(({ started }) => started),
    async whyNot(server) {
      const found = kept.find(({ started }) => started === server);
      if (found === undefined) return null;
      const now = await serverExecutable(found.server, projectPlace(workspace));
      return now?.content === found.executable.content
        ? null
        : 'its files have changed since you allowed it. The next session asks again, or pawl trust allows it';
    },
  };
};

/** The hooks that a project has in `.pawl/config.toml`. None runs before the user has allowed exactly this hook. */

type HookLevel = NonNullable<HookDeclaration['sandbox']>;

const HOOK_GRANTED: Readonly<Record<HookLevel, string>> = {
  'read-only': 'granted: it runs in the sandbox, reads the workspace, writes nothing, and has no network.',
  workspace: 'granted: it runs in the sandbox, writes in the workspace, and has no network.',
  'workspace+net': 'granted: it runs in the sandbox, writes in the workspace, and has the network.',
  off: 'granted: it runs as you, outside the sandbox, with the network.',
};

/** What it may do beside that. */
const READS =
  'It reads what the session does at its moments, it can hold that back, and its notes are for the model.';

/** What the user would allow; null if nobody would read it. */
const hookExecutable = async (
  { declaration, folder }: ProjectHook,
  workspace: string,
  environment: ProcessEnvironment,
): Promise<Executable | null> => {
  const { name, command } = declaration;
  const [program = '', ...args] = typeof command === 'string' ? ['/bin/sh', '-c', command] : command;
  const top = repositoryFolders(workspace).folders.at(-1) ?? workspace;
  const files = await namedFiles(
    { command: program, args, env: {}, cwd: folder },
    { workspace, top, environment },
  );
  if (files === null) return null;
  const shown = { folder, ...declaration, sandbox: declaration.sandbox ?? 'workspace' };
  const content = [JSON.stringify(shown, null, 2), ...files, HOOK_GRANTED[shown.sandbox], READS].join('\n');
  return content.length > TRUSTED_CHARACTERS_MAX ? null : { kind: 'hook', name, content };
};

type DescribedHook = { readonly hook: ProjectHook; readonly executable: Executable };

const describeHooks = async (
  hooks: readonly ProjectHook[],
  workspace: string,
  environment: ProcessEnvironment,
  warn: (text: string) => void,
): Promise<readonly DescribedHook[]> => {
  const described: DescribedHook[] = [];
  for (const hook of hooks.filter(({ declaration }) => declaration.enabled)) {
    const executable = await hookExecutable(hook, workspace, environment);
    if (executable !== null) described.push({ hook, executable });
    else warn(`the hook ${hook.declaration.name} of this project has more words than anybody would read.`);
  }
  return described;
};

export const hookSource = async (
  workspace: string,
  environment: ProcessEnvironment = process.env,
): Promise<readonly Executable[]> => {
  const { projectHooks } = await loadConfig(workspace, environment);
  const described = await describeHooks(projectHooks, workspace, environment, () => undefined); // opening the session warns
  return described.map(({ executable }) => executable);
};

/** The hooks that the user has allowed. `tellNotRun` gets one line for those that wait for an answer. */
export const allowedHooks = async (
  workspace: string,
  hooks: readonly ProjectHook[],
  trust: TrustStore,
  warn: (text: string) => void,
  environment: ProcessEnvironment = process.env,
  tellNotRun: (text: string) => void = warn,
): Promise<readonly CommandHook[]> => {
  const described = await describeHooks(hooks, workspace, environment, warn);
  const { allowed, open } = await settleExecutables(trust, workspace, [
    async () => described.map(({ executable }) => executable),
  ]);
  const text = notRunText(open);
  if (text !== null) tellNotRun(text);
  return described
    .filter(({ executable }) => allowed.some((one) => one.executable === executable))
    .map(({ hook, executable }) => ({
      ...hook.declaration,
      sandbox: hook.declaration.sandbox ?? 'workspace',
      folder: hook.folder,
      // The model could change its files while the session runs.
      whyNot: async () =>
        (await hookExecutable(hook, workspace, environment))?.content === executable.content
          ? null
          : 'its files have changed since you allowed it. The next session asks again, or pawl trust allows it',
    }));
};

/**
 * The files of a project that the settings of a server or a hook name, with the hash of each: if one changes, the user is asked
 * again.
 *
 * 1. A file counts in every form that programs understand: `server.mjs`, `--require=./first.js`, `sh -c "node ./server"`,
 *    `sh<./first.sh`, `cd scripts && ./first.sh`, `python -m scripts.first`, a text in `env`.
 * 2. A link that leads out of the project is named with its target.
 * 3. The work is bounded, since the project is of strangers: a file is hashed once, and beyond the limits its line
 *    says that it is not watched.
 */

const FILE_BYTES_MAX = 4 * 1024 * 1024;
const ALL_BYTES_MAX = 16 * 1024 * 1024;
const WORDS_MAX = 300;
/** Folders that the words name, from which other words are read too. */
const FOLDERS_MAX = 4;

/** What Node finds by `./server` or `.`, and Python by `-m scripts.first`. */
const candidateNames = (word: string): readonly string[] => {
  const names = [word, `${word}.js`, `${word}/index.js`];
  if (!/^[\w.]+$/.test(word)) return names;
  const module = word.replaceAll('.', '/');
  return [...names, `${module}.py`, `${module}/__main__.py`];
};

type ProjectPlace = {
  readonly workspace: string;
  /** Real path of the project's folder. */
  readonly top: string;
  /** Has the home folder, which shells write as `~` and `$HOME`. */
  readonly environment: ProcessEnvironment;
};

/** What is started: a server, or a hook. Its words may be read from `cwd` and from the workspace. */
type StartedProgram = Pick<StdioServer, 'command' | 'args' | 'env' | 'cwd'>;

const programTexts = ({ command, args, env }: StartedProgram): readonly string[] => [
  command,
  ...args,
  ...Object.values(env),
];

/** Between two words in a shell's text or a list of options. */
const WORD = /(?:\\.|[^\s=,;:'"|&<>()`\\])+/gs;
const HERE = /\$PWD\b|\$\{PWD\}|\$\(pwd\)|`pwd`/g;
const HOME = /\$HOME\b|\$\{HOME\}|(?<![^\s=,;:'"|&<>()`])~(?=\/)/g;

/** The texts of the settings, whole and in pieces; null if there are too many. */
const programWords = (
  started: StartedProgram,
  { HOME: home = '' }: ProcessEnvironment,
): readonly string[] | null => {
  const texts = programTexts(started).map((text) => text.replace(HERE, '.').replace(HOME, () => home || '~'));
  const pieces = texts.flatMap((text) => [
    ...[text, ...text.split(/['"]/)],
    ...(text.match(WORD) ?? []).map((word) => word.replace(/\\(.)/gs, '$1')),
  ]);
  const words = new Set(pieces);
  words.delete('');
  return words.size > WORDS_MAX ? null : [...words];
};

type DescribedFile = { readonly line: string; readonly bytes: number };

/** What the user reads about a file; null if there is none. */
const describeFile = async (real: string, shown: string, bytesMax: number): Promise<DescribedFile | null> => {
  const loaded = await readRegular(real, bytesMax, { follow: false });
  if (loaded.kind === 'absent' || loaded.kind === 'folder') return null;
  // No line break in a name can imitate another line.
  const name = JSON.stringify(shown).slice(1, -1);
  const about = `file of the project: ${name}`;
  if (loaded.kind === 'unusable')
    return { line: `${about} (not watched: you are not asked again if it changes)`, bytes: 0 };
  const hash = createHash('sha256').update(loaded.bytes).digest('hex').slice(0, 32);
  return { line: `${about} (sha256 ${hash})`, bytes: loaded.bytes.length };
};

/** The real path as the kernel finds it: `link/../file` is beside the link's target. Null for no file. */
const findReal = (folder: string, name: string): Promise<string | null> =>
  realpath(name.startsWith('/') ? name : `${folder}/${name}`).catch(() => null); // most words name no file

/** The folders from which the words may be read: where it starts, and those of the project that the words name. */
const foldersOf = async (
  words: readonly string[],
  { cwd }: StartedProgram,
  { workspace, top }: ProjectPlace,
): Promise<ReadonlySet<string>> => {
  const folders = new Set([path.resolve(workspace, cwd ?? '.'), workspace]);
  const most = folders.size + FOLDERS_MAX;
  for (const folder of [...folders]) {
    for (const word of words) {
      const real = await findReal(folder, word);
      if (real === null || !isWithin(real, top) || folders.size === most) continue;
      if ((await stat(real).catch(() => null))?.isDirectory() === true) folders.add(real);
    }
  }
  return folders;
};

/** What the user reads about a name that leads out of the project; null for a folder. */
const describeLink = async (real: string, shown: string): Promise<DescribedFile | null> => {
  if ((await stat(real).catch(() => null))?.isFile() !== true) return null;
  const [name, target] = [shown, real].map((one) => JSON.stringify(one).slice(1, -1));
  return { line: `file of the project: ${name} (leads to ${target}, which is not watched)`, bytes: 0 };
};

/** One line for each file; null if the settings have more words than anybody reads. */
const namedFiles = async (
  started: StartedProgram,
  place: ProjectPlace,
): Promise<readonly string[] | null> => {
  const { workspace, top, environment } = place;
  const words = programWords(started, environment);
  if (words === null) return null;
  const byFile = new Map<string, DescribedFile | null>();
  let bytesLeft = ALL_BYTES_MAX;
  const take = async (folder: string, name: string): Promise<void> => {
    const real = await findReal(folder, name);
    if (real === null) return;
    const written = path.resolve(folder, name);
    const key = isWithin(real, top) ? real : `${written} ${real}`;
    if (byFile.has(key) || (key !== real && !isWithin(written, top))) return;
    const described =
      key === real
        ? await describeFile(real, path.relative(workspace, real), Math.min(FILE_BYTES_MAX, bytesLeft))
        : await describeLink(real, path.relative(workspace, written));
    byFile.set(key, described);
    bytesLeft -= described?.bytes ?? 0;
  };
  const names = words.flatMap(candidateNames);
  for (const folder of await foldersOf(words, started, place))
    for (const name of names) await take(folder, name);
  return [...byFile.values()].flatMap((described) => (described === null ? [] : [described.line]));
};

/** Asks about what a project wants to run, one question each, and stores the answers. */

type TrustTerminal = {
  readonly area: LiveArea;
  readonly clock: Clock;
  look(): Look;
  size(): WindowSize;
  /** Passes on what is pressed until the returned function is called. In a plain terminal a line is a paste. */
  listen(take: (pressed: Pressed) => void): () => void;
};

const EVERY_COLUMN = Number.MAX_SAFE_INTEGER;

const UNTIL =
  'now and in later sessions of this folder, until its text changes. pawl trust revoke takes it back.';

/** What a yes means. */
export const meaningOf = ({ isRemote }: Executable): string =>
  isRemote === true
    ? `Its address gets what the model sends it, ${UNTIL}`
    : `It runs on your machine, ${UNTIL}`;

const LEVELS_MEANING =
  'y runs it in the sandbox: it reads this folder and has no network. w also gives it the network. o runs it as you, outside the sandbox, with all that you can reach.';

/** The answers that say yes to something that can run in a sandbox. */
export const LEVEL_ANSWERS: readonly (YesKey & { readonly level: CommandLevel })[] = [
  { key: 'y', means: 'sandboxed', level: 'read-only' },
  { key: 'w', means: 'with network', level: 'read-only+net' },
  { key: 'o', means: 'as you', level: 'off' },
];

/** More changed lines are shown as all lines before and all lines now: to compare them takes time that grows with their square. */
const CHANGED_LINES_MAX = 2_000;

const wholeChange = (before: string, content: string): string =>
  [...before.split('\n').map((line) => `-${line}`), ...content.split('\n').map((line) => `+${line}`)].join(
    '\n',
  );

/** The diff to the allowed content, or the whole content. */
const contentOf = async ({
  executable,
  before,
}: OpenQuestion): Promise<Pick<ContentToRead, 'content' | 'kind'>> => {
  const { content, name } = executable;
  if (before === null) return { content: `name: ${name}\n${content}`, kind: 'text' };
  const { createTwoFilesPatch } = await import('diff');
  const patch = createTwoFilesPatch('allowed', 'now', `${before}\n`, `${content}\n`, undefined, undefined, {
    context: Number.MAX_SAFE_INTEGER,
    maxEditLength: CHANGED_LINES_MAX,
  });
  return { content: patch ?? wholeChange(before, content), kind: 'diff' };
};

export const questionOf = async (open: OpenQuestion): Promise<ContentToRead> => {
  const { kind, name, isRemote } = open.executable;
  const meaning = meaningOf(open.executable);
  const subject = `${kindText[kind]} ${name}`;
  return {
    title:
      open.before === null
        ? `This project wants to ${isRemote === true ? 'use' : 'run'}: ${subject}`
        : `Changed since you allowed it: ${subject}`,
    ...(await contentOf(open)),
    ...(open.executable.levels === undefined
      ? { meaning }
      : { meaning: `${LEVELS_MEANING} ${meaning}`, yes: LEVEL_ANSWERS }),
  };
};

const askInWindow = (asked: ContentToRead, terminal: TrustTerminal): Promise<ContentAnswer> =>
  new Promise((resolve) => {
    const { area, clock } = terminal;
    const draw = (): void => area.draw(() => question.frame(terminal.look(), terminal.size()));
    const end = (answer: ContentAnswer): void => {
      stop();
      question.close();
      resolve(answer);
    };
    const question = new ContentQuestion(asked, clock, { answered: end, changed: draw });
    const stop = terminal.listen((pressed) => {
      const leaves = pressed.kind === 'key' && pressed.key.control && ['c', 'd'].includes(pressed.key.name);
      if (leaves) end('later');
      else question.take(pressed, terminal.size());
    });
    question.open();
    draw();
  });

const OTHER_ANSWERS: Readonly<Record<string, ContentAnswer>> = { n: 'no', no: 'no', '': 'later' };

/** The answer in a typed line; undefined if it is none. */
const answerIn = (typed: string, { yes = ALLOW }: ContentToRead): ContentAnswer | undefined => {
  if (Object.hasOwn(OTHER_ANSWERS, typed)) return OTHER_ANSWERS[typed];
  return yes.find(({ key }) => typed === key || (key === 'y' && typed === 'yes'));
};

/** In a plain terminal: the whole text is printed, and a line answers. */
const askInLines = (asked: ContentToRead, terminal: TrustTerminal): Promise<ContentAnswer> =>
  new Promise((resolve) => {
    const { area, clock } = terminal;
    const look = terminal.look();
    const rows = new ContentQuestion(asked, clock, { answered: () => undefined, changed: () => undefined });
    const head = safe`? ${oneLine(asked.title, EVERY_COLUMN)}`;
    area.print(joinSafe([head, ...rows.rows(look, EVERY_COLUMN)], safe`\n`));
    const keys = (asked.yes ?? ALLOW).map(({ key }) => key).join(', ');
    const advise = (): void =>
      area.print(makeSafe(`Answer with ${keys}, n, or an empty line to be asked next time, then Enter.`));
    advise();
    const stop = terminal.listen((pressed) => {
      const isEnd = pressed.kind === 'key' && pressed.key.control && pressed.key.name === 'd';
      if (pressed.kind !== 'paste' && !isEnd) return;
      const typed = pressed.kind === 'paste' ? pressed.text.trim().toLowerCase() : '';
      const answer = answerIn(typed, asked);
      if (answer === undefined) return advise();
      stop();
      resolve(answer);
    });
  });

const saidOf = (answer: ContentAnswer): string => {
  if (answer === 'no') return 'never run';
  return answer === 'later' ? 'not run this time' : `allowed${answer.key === 'y' ? '' : `, ${answer.means}`}`;
};

/** Stores an answer; resolves with what holds now, in a few words. Rejects if it could not be stored. */
export const storeAnswer = async (
  trust: TrustStore,
  workspace: string,
  executable: Executable,
  answer: ContentAnswer,
): Promise<string> => {
  if (answer === 'no') await trust.refuse(workspace, executable);
  else if (answer !== 'later') {
    const granted = LEVEL_ANSWERS.find((known) => known === answer);
    await trust.allow(workspace, executable, granted?.level);
  }
  return saidOf(answer);
};

/** Asks each question in turn. A yes is stored before the next question; a failure to store it is thrown. */
export const askTrust = async (
  trust: TrustStore,
  workspace: string,
  open: readonly OpenQuestion[],
  terminal: TrustTerminal,
): Promise<void> => {
  for (const one of open) {
    const asked = await questionOf(one);
    const isPlain = terminal.look().plain === 'yes';
    const answer = await (isPlain ? askInLines : askInWindow)(asked, terminal);
    const stored = await storeAnswer(trust, workspace, one.executable, answer);
    const { kind, name } = one.executable;
    const said: Safe = safe`· ${makeSafe(kindText[kind])} ${oneLine(name, 60)}: ${makeSafe(stored)}`;
    terminal.area.print(paint(terminal.look(), 'dim', said));
  }
};

/** One line for what is not run because nobody was asked; null if there is nothing. */
export const notRunText = (open: readonly OpenQuestion[]): string | null => {
  if (open.length === 0) return null;
  const listed = (some: readonly OpenQuestion[]): string => {
    const names = some.map(({ executable: { kind, name } }) => `${kindText[kind]} ${name}`).slice(0, 5);
    return `${names.join(', ')}${some.length > names.length ? `, and ${some.length - names.length} more` : ''}`;
  };
  const isChanged = ({ before }: OpenQuestion): boolean => before !== null;
  const [changed, waiting] = [open.filter(isChanged), open.filter((one) => !isChanged(one))];
  const parts = [
    ...(waiting.length === 0 ? [] : [`not run, since you have not allowed it: ${listed(waiting)}`]),
    ...(changed.length === 0
      ? []
      : [`not run, since it has changed since you allowed it: ${listed(changed)}`]),
  ];
  return `${parts.join('. ')}. pawl trust shows and allows it.`;
};
