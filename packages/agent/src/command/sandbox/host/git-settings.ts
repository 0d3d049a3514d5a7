import path from 'node:path';
import type { ProcessEnvironment } from '../../../platform/base/process-environment-type.js';
import type { ProgramPath } from '../../../platform/programs/find-program.js';
import { askProgram } from '../../../platform/programs/start-program.js';

/**
 * The part of the user's git settings that fenced commands get: authors and preferences, but no credentials and no
 * setting that runs a program.
 */

/** `section.key` or `section.*.key`. */
const KEPT = [
  /^(?:user|author|committer)\.(?:name|email)$/,
  /^init\.defaultbranch$/,
  /^core\.(?:autocrlf|eol|safecrlf|quotepath|whitespace|abbrev|ignorecase|precomposeunicode|commentchar|symlinks)$/,
  /^(?:pull\.(?:rebase|ff|twohead)|push\.(?:default|autosetupremote|followtags)|fetch\.(?:prune|prunetags))$/,
  /^merge\.(?:ff|conflictstyle|renames|log)$/,
  /^(?:rebase\.(?:autostash|autosquash|updaterefs|stat)|rerere\.(?:enabled|autoupdate))$/,
  /^branch\.(?:autosetuprebase|autosetupmerge|sort)$/,
  /^(?:diff\.(?:algorithm|renames|mnemonicprefix|colormoved|context|noprefix)|log\.(?:date|follow|abbrevcommit))$/,
  /^(?:status\.\w+|tag\.sort|column\.\w+|advice\.\w+|commit\.(?:cleanup|verbose)|blame\.\w+|submodule\.recurse)$/,
  /^safe\.directory$/,
];
const TIMEOUT_MS = 2_000;

/** `value`, quoted for a configuration file. */
const quoted = (value: string): string =>
  `"${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n').replaceAll('\t', '\\t')}"`;

const lineOf = (entry: string): string | null => {
  const [name = '', ...value] = entry.split('\n');
  if (!KEPT.some((pattern) => pattern.test(name))) return null;
  const dot = name.indexOf('.');
  return `[${name.slice(0, dot)}]\n\t${name.slice(dot + 1)} = ${quoted(value.join('\n'))}`;
};

/** A command never prunes: neither objects nor entries of reflogs. Its packing is left to the user's own git. */
const NEVER_PRUNES =
  '[gc]\n\tauto = 0\n\tpruneExpire = never\n\treflogExpire = never\n\treflogExpireUnreachable = never\n';

/** The text of a configuration file, empty without git. Never rejects. */
export const keptGitSettings = async (
  git: ProgramPath | null,
  workspace: string,
  environment: ProcessEnvironment,
): Promise<string> => {
  if (git === null) return '';
  const variables = {
    HOME: environment.HOME,
    XDG_CONFIG_HOME: environment.XDG_CONFIG_HOME,
    PATH: environment.PATH,
    GIT_CONFIG_GLOBAL: environment.GIT_CONFIG_GLOBAL,
    GIT_CONFIG_NOSYSTEM: '1',
  };
  const defined = Object.fromEntries(Object.entries(variables).filter(([, value]) => value !== undefined));
  // Runs outside the workspace, so that git ignores the workspace's own configuration.
  const answer = await askProgram(git, ['config', '--global', '--includes', '--list', '-z'], {
    environment: defined,
    searchPath: ['/usr/bin', '/bin'],
    folder: path.parse(workspace).root,
    timeoutMs: TIMEOUT_MS,
  });
  if (answer === null || answer.code !== 0) return NEVER_PRUNES;
  const lines = answer.output.split('\0').map(lineOf);
  return [NEVER_PRUNES, ...lines.filter((line) => line !== null).map((line) => `${line}\n`)].join('');
};
