/**
 * `pawl trust list | allow KIND NAME | revoke KIND NAME`: what a project may run on this machine. A
 * kind is what wants to run, such as a hook or an MCP server. The user's answers are in a
 * `TrustStore`.
 */

import path from 'node:path';
import {
  type Executable,
  openTrust,
  TRUST_KINDS,
  type TrustStore,
} from '@pawl/agent/extensions/trust';
import { stateFolder } from '@pawl/agent/platform/environment';
import { COMMAND_LEVELS, type CommandLevel } from '@pawl/agent/policy/decide';
import { detectLook, formatWhen, oneLine } from '@pawl/terminal/paint';
import { contentRows } from '@pawl/terminal/question-rows';
import { joinSafe, makeSafe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeOut } from '@pawl/terminal/write';
import { exitCodes, Stop } from '../process/exit-codes.js';
import {
  type ExecutableSource,
  executableText,
  judgeExecutables,
  readProjectServers,
  trustQuestion,
} from '../sessions/project-trust.js';
import { loadConfig, userFile } from '../settings/configuration.js';
import { realWorkspace } from '../settings/connect-model.js';
import { chooseWord, usageStop } from '../settings/flags.js';

export type TrustFlags = {
  readonly workspace?: string;
  readonly all?: true;
  /** A sandbox level. */
  readonly sandbox?: string;
};

const levelText = (level: CommandLevel | null): string =>
  level === null ? '' : `, --sandbox ${level}`;

const EVERY_COLUMN = Number.MAX_SAFE_INTEGER;

type TrustContext = {
  readonly trust: TrustStore;
  readonly workspace: string;
  readonly sources: readonly ExecutableSource[];
};

const print = (text: string): void => writeOut(safe`${oneLine(text, EVERY_COLUMN)}\n`);

/** Why something that the project wants to run may be missing in the list. */
const readFaults = async (workspace: string): Promise<readonly string[]> => {
  const [{ faults: serverFaults }, { faults, files }] = await Promise.all([
    readProjectServers(workspace),
    loadConfig(workspace, process.env),
  ]);
  const userConfig = userFile(process.env);
  const fileFaults = faults.filter(({ where }) =>
    files.some((file) => file !== userConfig && where.startsWith(file)),
  );
  return [...serverFaults, ...fileFaults.map(({ where, text }) => `${where}: ${text}`)];
};

const list = async (
  { trust, workspace, sources }: TrustContext,
  { all }: TrustFlags,
): Promise<number> => {
  const entries = (await trust.list()).filter(
    ({ project }) => all === true || project === workspace,
  );
  // `open`: the user has not answered about them, or not about their present form
  const { open } = await judgeExecutables(trust, workspace, sources);
  // An executable that has changed since is no longer allowed: it has a separate line.
  const isOpen = ({ kind, name, project }: (typeof entries)[number]): boolean =>
    project === workspace &&
    open.some(({ executable }) => executable.kind === kind && executable.name === name);
  for (const { kind, name, answer, at, project, level = null } of entries.filter(
    (one) => !isOpen(one),
  ))
    print(
      `${answer} ${kind} ${name} ` +
        `${formatWhen(at)}${levelText(level)}${all === true ? ` ${project}` : ''}`,
    );
  for (const { executable, before } of open)
    print(
      `${before === null ? 'waiting' : 'changed'} ${executable.kind} ${executable.name} not ` +
        `run: pawl trust allow ${executable.kind} ${executable.name}`,
    );
  const faults = await readFaults(workspace);
  for (const fault of faults) writeError(safe`${oneLine(fault, EVERY_COLUMN)}\n`);
  if (faults.length > 0)
    writeError(
      safe`What is wrong in these files does not run, and may be missing here. Correct it first.\n`,
    );
  else if (entries.length === 0 && open.length === 0)
    writeError(safe`This project wants to run nothing that needs to be allowed.\n`);
  return exitCodes.done;
};

type ExecutableName = Pick<Executable, 'kind' | 'name'>;

/** Prints all of what is allowed: whoever types the command has the chance to read it. */
const allow = async (
  { trust, workspace, sources }: TrustContext,
  { kind, name }: ExecutableName,
  level: CommandLevel | null,
): Promise<number> => {
  const subject = executableText({ kind, name });
  const isNamed = (executable: Executable): boolean =>
    executable.kind === kind && executable.name === name;
  // Read once: what is printed is what is allowed.
  const executables = (await Promise.all(sources.map((source) => source(workspace)))).flat();
  const { allowed, open } = await judgeExecutables(trust, workspace, [async () => executables]);
  const before = allowed.find(({ executable }) => isNamed(executable));
  if (before !== undefined && (level === null || level === before.level)) {
    print(`${subject} is allowed already${levelText(before.level)}.`);
    return exitCodes.done;
  }
  const executable = executables.find(isNamed);
  if (executable === undefined)
    throw new Stop(
      exitCodes.badInput,
      'notFound',
      `This project has no ${subject}. pawl trust lists what it wants to run.`,
    );
  // the strictest level comes first; a hook has none, since its declaration says where it runs
  const [usual = null] = executable.levels ?? [];
  const chosen = level ?? usual;
  if (chosen !== null && executable.levels?.includes(chosen) !== true)
    throw usageStop(`--sandbox is for MCP servers that run here: leave it out for the ${subject}.`);
  const question = open.find((one) => one.executable === executable) ?? {
    executable,
    before: null,
  };
  // the text that the question about it would show
  const { content, kind: format } = await trustQuestion(question);
  const rows = contentRows(content, format, detectLook(process.stdout, process.env), EVERY_COLUMN);
  writeOut(safe`${joinSafe(rows, safe`\n`)}\n`);
  await trust.allow(workspace, executable, chosen);
  print(
    `Allowed in ${workspace}: ${subject}${levelText(chosen)}. pawl trust revoke ${kind} ` +
      `${name} takes it back.`,
  );
  return exitCodes.done;
};

const revoke = async (
  { trust, workspace }: TrustContext,
  name: ExecutableName,
): Promise<number> => {
  const subject = executableText(name);
  if (!(await trust.revoke(workspace, name)))
    throw new Stop(
      exitCodes.badInput,
      'notFound',
      `There is no answer about the ${subject} in ${workspace}.`,
    );
  const running = name.kind === 'mcp-server' ? '; running servers keep running' : '';
  print(`Revoked ${subject}. You will be asked again in the next session${running}.`);
  return exitCodes.done;
};

/** `sources` read what the project's files want to run; a test passes its own. */
export const runTrust = async (
  words: readonly string[],
  flags: TrustFlags,
  sources: readonly ExecutableSource[],
): Promise<number> => {
  const [what = 'list', kind, name, ...more] = words;
  if (!['list', 'allow', 'revoke'].includes(what))
    throw usageStop(`pawl trust has list, allow and revoke, not '${what}'.`);
  const warn = (text: string): void => writeError(safe`${makeSafe(text)}\n`);
  const trust = openTrust(stateFolder(process.env), warn);
  const folder = flags.workspace ?? process.cwd();
  // The answers about a folder that is gone can be revoked too.
  const workspace = what === 'revoke' ? path.resolve(folder) : realWorkspace(folder);
  const context = { trust, workspace, sources };
  if (what === 'list') return list(context, flags);
  if (kind === undefined || name === undefined || more.length > 0)
    throw usageStop(
      `pawl trust ${what} needs a kind and a name: pawl trust ${what} mcp-server NAME`,
    );
  const executable = { kind: chooseWord('pawl trust', kind, TRUST_KINDS), name };
  if (what === 'revoke') return revoke(context, executable);
  const level =
    flags.sandbox === undefined ? null : chooseWord('--sandbox', flags.sandbox, COMMAND_LEVELS);
  return allow(context, executable, level);
};
