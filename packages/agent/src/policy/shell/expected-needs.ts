/**
 * Well-known commands that can't work without the network (`npm install`, `git fetch`), or inside
 * the sandbox (`apt-get install`, `git worktree remove`), although their call does not say so.
 *
 * The words decide; what only a look can tell (an installed program, a remote in a folder) is
 * looked up. In doubt nothing is expected, and the command runs as it did.
 */

import { existsSync } from 'node:fs';
import path from 'node:path';
import { readTextOrEmptySync } from '../../platform/files.js';
import type { CallFacts, ParsedCommand, ShellFacts } from '../judged-call.js';
import { gitCommand } from '../losses.js';
import { programName, wordSet } from '../paths.js';

/** What a command is known to need, and the words that show it. */
type Expected = NonNullable<CallFacts['expects']>;
type Words = readonly (string | null)[];

const PACKAGES = wordSet(
  'i install ci add update upgrade up outdated audit publish create dlx view info search login whoami',
);
const PYTHON_PACKAGES = wordSet('install download wheel index');

/** Programs, and their words that do nothing without the network. */
export const networkWords: Readonly<Record<string, ReadonlySet<string>>> = {
  npm: PACKAGES,
  pnpm: PACKAGES,
  yarn: PACKAGES,
  bun: PACKAGES,
  pip: PYTHON_PACKAGES,
  pip3: PYTHON_PACKAGES,
  uv: wordSet('sync add lock'),
  poetry: wordSet('install add update lock'),
  pipx: wordSet('install run upgrade'),
  cargo: wordSet('fetch add install update publish search'),
  gem: wordSet('install update push fetch'),
  bundle: wordSet('install update add'),
  bundler: wordSet('install update add'),
  composer: wordSet('install update require'),
};

const SYSTEM_PACKAGES = wordSet(
  'install add remove update upgrade purge dist-upgrade full-upgrade',
);

/** Programs, and their words that change the packages of the system. */
export const systemWords: Readonly<Record<string, ReadonlySet<string>>> = Object.fromEntries(
  [...wordSet('apt apt-get aptitude apk dnf yum zypper brew snap')].map((program) => [
    program,
    SYSTEM_PACKAGES,
  ]),
);

/** Options with which nothing is loaded. */
const OFFLINE = /^(?:--offline|--no-index|--dry-run|--help|--version|-h)$/;
/** Whether a text names any of these programs: most do not, and need no closer look. */
const MAY_MATTER = new RegExp(
  `\\b(?:${[...Object.keys(networkWords), ...Object.keys(systemWords)].join('|')}|` +
    'npx|pnpx|bunx|uvx|go|git|curl|wget|python[\\d.]*)\\b',
);

/** Commands that depend on the folder in which they run: after a `cd` nothing is known of it. */
const BY_FOLDER = /^(?:npx|pnpx|bunx|git worktree) /;

/** What the commands of a text are known to need; null if nothing is known. */
export const expectedNeeds = (
  text: string,
  { commands, unclear }: ShellFacts,
  workspace: string,
): Expected | null => {
  if (unclear !== null || !MAY_MATTER.test(text)) return null;
  const moves = commands.some(({ words }) => /^(?:cd|pushd)$/.test(words[0] ?? ''));
  const expected = commands
    .filter(({ words }) => !moves || !BY_FOLDER.test(words.join(' ')))
    .map((command) => expectedBy(command, workspace));
  return (
    expected.find((one) => one?.needs === 'outside') ?? expected.find((one) => one !== null) ?? null
  );
};

/** What one command is known to need. */
const expectedBy = ({ words }: ParsedCommand, workspace: string): Expected | null => {
  const [program, command] = words;
  if (program == null) return null;
  const name = programName(program);
  if (Object.hasOwn(systemWords, name) && command != null && systemWords[name]?.has(command))
    return { needs: 'outside', words: `${name} ${command}` };
  const ended = name === 'git' ? whatEndsWorktree(words, workspace) : null;
  if (ended !== null) return { needs: 'outside', words: ended };
  const found = whatLoads(words, workspace);
  return found === null ? null : { needs: 'network', words: found };
};

/** The words that are no options. */
const operands = (words: Words): readonly string[] =>
  words.filter((word): word is string => word !== null && !word.startsWith('-'));

/** An address on this machine. */
const LOCAL =
  /^(?:[a-z]+:\/\/)?(?:[^/@\s]*@)?(?:localhost|127\.[\d.]+|0\.0\.0\.0|\[::1?\])(?::\d+)?(?:[/?#]|$)/i;
/** Endings of hosts that are no endings of files. */
const HOST = /^[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|io|dev|app|ai|edu|gov|eu|de|uk)(?:[:/]|$)/i;
const isRemoteUrl = (word: string): boolean =>
  !LOCAL.test(word) && (/^(?:https?|ftp):\/\/./i.test(word) || HOST.test(word));

/** Whether git reaches this remote by the network: an address, and no path. */
const isRemoteAddress = (address: string): boolean =>
  /^(?:https?|ssh|git|ftps?):\/\//i.test(address)
    ? !LOCAL.test(address)
    : /^[^/\s]+:(?!\/\/)/.test(address);

const CONFIG_BYTES_MAX = 64 * 1024;

/** The addresses of the remotes of the workspace, as its own configuration writes them. */
const remoteAddresses = (workspace: string): readonly string[] =>
  [
    ...readTextOrEmptySync(path.join(workspace, '.git', 'config'), CONFIG_BYTES_MAX).matchAll(
      /^\s*(?:push)?url\s*=\s*"?([^"\s]+)/gim,
    ),
  ].map(([, address = '']) => address);

/** Commands of git that reach a remote. */
export const gitRemoteWords = wordSet('fetch pull push ls-remote');

/** What git does by the network, in words; null if nothing. */
const gitByNetwork = (words: Words, workspace: string): string | null => {
  const [command, ...rest] = gitCommand(words);
  if (command == null || rest.includes('--help') || rest.includes('-h')) return null;
  if (command === 'clone') return operands(rest).some(isRemoteAddress) ? 'git clone' : null;
  if (command === 'submodule')
    return rest.includes('update') && remoteAddresses(workspace).some(isRemoteAddress)
      ? 'git submodule update'
      : null;
  // options before the subcommand may name another repository
  if (!gitRemoteWords.has(command) || words[1] !== command) return null;
  const [remote] = operands(rest);
  const isAddress = remote !== undefined && /[/:]/.test(remote);
  const addresses = isAddress ? [remote] : remoteAddresses(workspace);
  return addresses.some(isRemoteAddress) ? `git ${command}` : null;
};

/**
 * What removes or moves a worktree that is there, in words. The sandbox makes those of its files
 * read-only that git obeys, so git would stop halfway. One that the same command makes is not there
 * yet.
 */
const whatEndsWorktree = (words: Words, workspace: string): string | null => {
  const [, command, verb, ...rest] = words;
  if (command !== 'worktree' || (verb !== 'remove' && verb !== 'move')) return null;
  const [target] = operands(rest);
  if (target === undefined) return null;
  return existsSync(path.resolve(workspace, target, '.git')) ? `git worktree ${verb}` : null;
};

/** `npx tsc` runs what is installed here or in a folder above; anything else is loaded first. */
const isInstalled = (name: string, folder: string): boolean =>
  existsSync(path.join(folder, 'node_modules', '.bin', name)) ||
  existsSync(path.join(folder, 'node_modules', name)) ||
  (folder !== path.dirname(folder) && isInstalled(name, path.dirname(folder)));

/** A program that `npx` and its like would load, in words. */
const runnerByNetwork = (name: string, words: Words, workspace: string): string | null => {
  if (words.includes('--no') || words.includes('--no-install')) return null;
  const [program] = operands(words.slice(1));
  // an option before the program may say where it comes from
  if (program === undefined || words[1] !== program) return null;
  return /^[@\w][\w@./-]*$/.test(program) && !isInstalled(program, workspace)
    ? `${name} ${program}`
    : null;
};

/** What go does by the network, in words. */
const goByNetwork = (words: Words): string | null => {
  const [command, second] = operands(words.slice(1));
  if (command === 'get') return 'go get';
  if (command === 'mod' && (second === 'download' || second === 'tidy')) return `go mod ${second}`;
  return command === 'install' && second?.includes('@') === true ? 'go install' : null;
};

/** What loads something by the network, in words; null for everything else. */
const whatLoads = (words: Words, workspace: string): string | null => {
  const name = programName(words[0] ?? '');
  if (words.some((word) => word !== null && OFFLINE.test(word))) return null;
  const [command, second, third] = words.slice(1);
  if (name === 'yarn' && words.length === 1) return 'yarn';
  if (Object.hasOwn(networkWords, name) && command != null)
    return networkWords[name]?.has(command) ? `${name} ${command}` : null;
  if (/^python[\d.]*$/.test(name) && command === '-m' && second === 'pip' && third != null)
    return PYTHON_PACKAGES.has(third) ? `pip ${third}` : null;
  if (/^(?:npx|pnpx|bunx|uvx)$/.test(name)) return runnerByNetwork(name, words, workspace);
  if (name === 'go') return goByNetwork(words);
  if (name === 'git') return gitByNetwork(words, workspace);
  if (name === 'curl' || name === 'wget')
    return operands(words.slice(1)).some(isRemoteUrl) ? name : null;
  return null;
};
