/**
 * `pawl doctor`: looks for known problems of the setup, and says how to repair each. A check is a
 * row: its name, a probe, what is wrong if the probe finds something, and the repair.
 *
 * From top to bottom: the types; the checks; `runDoctor`, which runs all of them and prints the
 * report; then the probes, of programs, folders, configuration, the model and its provider, and
 * sessions.
 */

import {
  accessSync,
  constants,
  existsSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmdirSync,
  statfsSync,
  statSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import path from 'node:path';
import type { SandboxProbe } from '@pawl/agent/command/sandbox/bubblewrap';
import { probeSandbox } from '@pawl/agent/command/session-sandbox';
import { isContainer, isSubsystem } from '@pawl/agent/command/surroundings';
import type { HookDeclaration } from '@pawl/agent/extensions/hooks/hook-config';
import { expandVariables, type McpServer } from '@pawl/agent/extensions/mcp/server-config';
import { checkHolder, describeSelf, readHolder } from '@pawl/agent/journal/lock';
import { sessionsFolder } from '@pawl/agent/journal/state-folder';
import { catalogueFacts } from '@pawl/agent/models/catalogue';
import { chooseModel } from '@pawl/agent/models/choose-model';
import { findLocalModel } from '@pawl/agent/models/local-servers';
import {
  findEndpoint,
  keyIn,
  keyNames,
  providerOfModel,
  providers,
} from '@pawl/agent/models/provider-table';
import { attempt, attemptNow } from '@pawl/agent/platform/attempt';
import { homeFolder, stateFolder } from '@pawl/agent/platform/environment';
import { realPath } from '@pawl/agent/platform/files';
import {
  findNamedProgram,
  type ProgramSearch,
  searchPrograms,
} from '@pawl/agent/platform/find-program';
import { createFetch, PROXY_VARIABLES } from '@pawl/agent/platform/http';
import { askProgram } from '@pawl/agent/platform/start-program';
import { nearestWord } from '@pawl/agent/platform/text';
import { repositoryFolders } from '@pawl/agent/platform/trusted-folders';
import { loadAgentsFiles } from '@pawl/agent/session/instructions';
import { PROGRAM as SHELL } from '@pawl/agent/tools/bash';
import { findGitFiles } from '@pawl/agent/workspace/git';
import { makeSafe } from '@pawl/terminal/safe-text';
import { writeJson, writeOut } from '@pawl/terminal/write';
import { exitCodes } from '../process/exit-codes.js';
import {
  consult,
  providerVariables,
  refusedByProject,
  userExtensions,
  userFile,
} from '../settings/configuration.js';
import { packageFolders } from '../settings/connect-model.js';
import { runKeyCommand } from '../settings/own-providers.js';
import { settings, showValue } from '../settings/setting-table.js';

export type DoctorFlags = {
  readonly online?: true;
  readonly json?: true;
  readonly workspace?: string;
  readonly model?: string;
};

/** The machine as the checks see it. A test passes its own. */
export type DoctorWorld = {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Format of `process.versions.node`: `20.19.0`. */
  readonly nodeVersion: string;
  readonly platform: string;
  /** Null where the system has no numeric user ids. */
  readonly userId: number | null;
  /** Path as the user gave it. It may not exist. */
  readonly workspace: string;
  /** The folder under which signs of a container or virtual machine are looked for; default: /. */
  readonly systemRoot?: string;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Whether checks may use the network (`--online`). */
  readonly online: boolean;
  /** The model to check; null for the configured one. */
  readonly model: string | null;
};

/** `what`: one line, what is wrong. `repair`: what to do about it. */
type Finding = { readonly what: string; readonly repair: string };

type Level = 'fault' | 'note';

export type Check = {
  readonly name: string;
  /** `fault`: something does not work. `note`: it works, but maybe not as the user expects. */
  readonly level: Level;
  /** The finding; null if all is well. */
  look(world: DoctorWorld): Promise<Finding | null>;
};

export type Diagnosis = Pick<Check, 'name' | 'level'> & Finding;

/** The result of a probe. Null, undefined and false: all is well. */
type Probed<T> = T | null | undefined | false;
type Probe<T> = (world: DoctorWorld) => Probed<T> | Promise<Probed<T>>;
/** A text of a finding, which may name what the probe has found. */
type Text<T> = string | ((found: T, world: DoctorWorld) => string);

const row =
  (level: Level) =>
  <T>(name: string, probe: Probe<T>, what: Text<T>, repair: Text<T>): Check => ({
    name,
    level,
    async look(world) {
      const found = await probe(world);
      if (found === null || found === undefined || found === false) return null;
      const write = (text: Text<T>): string =>
        typeof text === 'function' ? text(found, world) : text;
      return { what: write(what), repair: write(repair) };
    },
  });

const fault = row('fault');
const note = row('note');

// The oldest versions that work.
const NODE = '20.19.0';
const GIT = '2.20.0';

const programChecks: readonly Check[] = [
  fault(
    'nodeTooOld',
    ({ nodeVersion }) => !isAtLeast(nodeVersion, NODE) && nodeVersion,
    (version) => `Node ${version} is too old`,
    `Install Node ${NODE} or newer, for example with nvm: nvm install 22`,
  ),
  note(
    'searchPathSkipped',
    (world) => joinOrNull(searchPath(world).skipped.map(({ folder, why }) => `${folder}: ${why}`)),
    (lines) => `programs in these folders of PATH are not used: ${lines}`,
    'Folders of the project are never used. For any other folder: make it yours or root’s ' +
      'with mode go-w, or remove it from PATH',
  ),
  note(
    'searchPathShared',
    (world) => joinOrNull(searchPath(world).writableByAdmins, ', '),
    (folders) => `administrators of this computer can change programs in ${folders}`,
    'This is usual for Homebrew, Nix and /usr/local. To prevent it: chmod g-w the folder',
  ),
  fault(
    'gitMissing',
    (world) => isMissing(world, 'git'),
    'git is not found: the agent can neither see nor make commits',
    'Install it: apt-get install git, brew install git, or the package of your system',
  ),
  fault(
    'gitTooOld',
    (world) => oldVersion(world, 'git', GIT),
    (version) => `git ${version} is too old: new commits are not noticed`,
    `Install git ${GIT} or newer`,
  ),
  fault(
    'gitWouldWait',
    (world) => findGitPipe(world),
    (pipe) => `git is not asked: ${pipe} is not a regular file, so git would wait for it`,
    'Remove it: until then Pawl neither sees nor makes commits, and your own git commands hang',
  ),
  fault(
    'shellMissing',
    (world) => isMissing(world, SHELL),
    'bash is not found: the agent can run no commands',
    'Install it, or put its folder into PATH: export PATH="$PATH:/bin"',
  ),
  fault(
    'ripgrepMissing',
    () => ripgrepFault(),
    (why) => `ripgrep, which comes with Pawl, can't be started: ${why}`,
    'Install Pawl again without --no-optional and --ignore-scripts: npm install -g pawl',
  ),
];

/** Checks that run at once share one answer to `ask`. */
const shared = <T>(ask: (world: DoctorWorld) => Promise<T>) => {
  const running = new WeakMap<DoctorWorld, Promise<T>>();
  return (world: DoctorWorld): Promise<T> => {
    const asked = running.get(world) ?? ask(world).finally(() => running.delete(world));
    running.set(world, asked);
    return asked;
  };
};

/** Null where commands run without a sandbox by choice. */
const trySandbox = shared(async (world: DoctorWorld): Promise<SandboxProbe | null> => {
  if ((await isSandboxOff(world)) || (await choosesFull(world))) return null;
  // no cached answer: the user may just have repaired it
  return probeSandbox(world.environment, realWorkspace(world), 'fresh', probedMachine(world));
});

const sandboxChecks: readonly Check[] = [
  fault(
    'sandboxMissing',
    async (world) => {
      const probe = await trySandbox(world);
      return probe?.kind === 'missing' && probe;
    },
    ({ reason }) =>
      `commands can't be run in a sandbox here: ${reason} In a terminal Pawl asks before ` +
      'each command, without one it denies them',
    ({ repair }) => repair.replace(/\.$/, ''),
  ),
  note(
    'localSocketsRefused',
    async (world) => {
      const probe = await trySandbox(world);
      return probe?.kind === 'works' && !probe.features.locksMounts;
    },
    'commands get no unix sockets: bubblewrap can’t start itself inside a sandbox here, so a ' +
      'folder that one command hands to another would lose what protects it',
    'Install bubblewrap as a program of the system; where AppArmor confines it, its profile must ' +
      'let the programs that it starts make user namespaces',
  ),
  note(
    'sandboxOff',
    (world) => isSandboxOff(world),
    'commands run without a sandbox and can do all that you can do: the sandbox is off',
    'To turn it on again: pawl config --origin names the file that turns it off',
  ),
  note(
    'fullWithoutFence',
    async (world) => (await choosesFull(world)) && !isFencedMachine(world),
    'your configuration chooses the preset full, and this is no container that Pawl knows: the ' +
      'agent can do unasked all that you can do, everywhere on this computer',
    'Remove preset = "full" from your config.toml, and give --preset full only where a ' +
      'container or a virtual machine is the fence',
  ),
];

const FREE_BYTES_MIN = 200 * 1024 * 1024;

const folderChecks: readonly Check[] = [
  fault(
    'homeMissing',
    ({ environment: { HOME, XDG_STATE_HOME, XDG_CONFIG_HOME } }) =>
      !HOME && !(XDG_STATE_HOME && XDG_CONFIG_HOME),
    (_, { environment }) => `HOME is not set: ${homeFolder(environment)} is used instead`,
    'Set HOME, or XDG_STATE_HOME and XDG_CONFIG_HOME, to folders of yours',
  ),
  note(
    'xdgNotWhole',
    ({ environment }) =>
      ['XDG_STATE_HOME', 'XDG_CONFIG_HOME', 'XDG_DATA_HOME', 'XDG_CACHE_HOME'].find(
        (name) => environment[name] && !path.isAbsolute(environment[name] ?? ''),
      ),
    (name) => `${name} is not an absolute path, so it is ignored`,
    (name) => `Set ${name} to a path that begins with /`,
  ),
  fault(
    'stateUnwritable',
    ({ environment }) => unwritableReason(stateFolder(environment)),
    (why, { environment }) => `sessions can't be stored in ${stateFolder(environment)}: ${why}`,
    'Make it writable (chmod u+rwx, chown, or mount it so), or set XDG_STATE_HOME to a ' +
      'folder that is',
  ),
  fault(
    'stateReadByOthers',
    ({ environment }) => findPlaceWithMode([stateFolder(environment)], 0o077),
    ({ place, mode }) => `others can read your sessions: ${place} has the mode ${mode}`,
    ({ place }) => `chmod 700 ${place}`,
  ),
  fault(
    'diskFull',
    ({ environment }) => {
      const bytes = freeBytes(stateFolder(environment));
      return (
        bytes !== null && bytes < FREE_BYTES_MIN && { megabytes: Math.floor(bytes / 1024 / 1024) }
      );
    },
    ({ megabytes }, { environment }) =>
      `${megabytes} MB are free where sessions are stored (${stateFolder(environment)})`,
    'Free some space, or set XDG_STATE_HOME to a folder on another disk: a session stops ' +
      "when it can't be stored",
  ),
  note(
    'stateOnNetwork',
    ({ environment }) => networkType(existingFolder(stateFolder(environment))),
    (type) =>
      `sessions are stored on a network file system (${type}), where a lock of another ` +
      `computer can't be checked`,
    'Set XDG_STATE_HOME to a folder on a disk of this computer',
  ),
  fault(
    'temporaryUnwritable',
    (world) => {
      const folder = temporaryFolder(world);
      return existsSync(folder) ? unwritableReason(folder) : 'it does not exist';
    },
    (why, world) =>
      `the folder for temporary files, ${temporaryFolder(world)}, is not writable: ${why}`,
    'Create it, or set TMPDIR to a writable folder',
  ),
  fault(
    'configWrittenByOthers',
    ({ environment }) =>
      findPlaceWithMode([userFile(environment), path.dirname(userFile(environment))], 0o022),
    ({ place, mode }) => `others can change your settings: ${place} has the mode ${mode}`,
    ({ place }) => `chmod go-w ${place}`,
  ),
  note(
    'extensionsRun',
    async ({ environment }) => joinOrNull((await userExtensions(environment)).files, ', '),
    (files) => `extensions of yours run in every session: ${files}`,
    'They may do all that you can do: remove a file that you do not know',
  ),
  fault(
    'extensionUnused',
    async ({ environment }) => joinOrNull((await userExtensions(environment)).faults, ' '),
    (faults) => faults,
    'Repair what the line names, or remove the file',
  ),
  fault(
    'workspaceMissing',
    ({ workspace }) => !isFolder(workspace),
    (_, { workspace }) => `${workspace} is no folder`,
    'Go to the folder of your project, or name it: --workspace FOLDER',
  ),
  fault(
    'workspaceUnreadable',
    ({ workspace }) =>
      existsSync(workspace) && accessFault(workspace, constants.R_OK | constants.X_OK),
    (why) => `the workspace can't be read: ${why}`,
    (_, { workspace }) => `chmod u+rx ${workspace}`,
  ),
  note(
    'workspaceUnwritable',
    ({ workspace }) => isFolder(workspace) && unwritableReason(realpathSync(workspace)),
    (why) => `the workspace is not writable: ${why}`,
    'To only read it, start with --preset plan; otherwise make it writable',
  ),
  note(
    'workspaceTooWide',
    ({ workspace, environment }) => {
      const real = realPath(workspace);
      if (real !== null && real === realPath(environment.HOME || homedir())) return 'your home';
      return real === '/' && 'the whole machine';
    },
    (what) => `the workspace is ${what}: the agent can change everything in it`,
    'Start in the folder of one project',
  ),
  fault(
    'gitLocked',
    async (world) => {
      const asked = await runGit(world, ['rev-parse', '--git-path', 'index.lock']);
      const lock = asked?.code === 0 ? (asked.text.split('\n')[0] ?? '') : '';
      const ageMs = world.now - changedAt(path.resolve(realWorkspace(world), lock));
      return lock !== '' && ageMs > LOCK_MS && lock;
    },
    (lock) => `git waits for its lock, ${lock}, which is older than a minute`,
    (lock) => `If no git runs in this repository, it was killed or lost power: rm ${lock}`,
  ),
  note(
    'noRepository',
    async (world) => {
      const top = await runGit(world, ['rev-parse', '--show-toplevel']);
      return top !== null && top.code !== 0 && /not a git repository/i.test(top.text);
    },
    'the workspace is in no git repository: only pawl rewind takes changes of the agent back, ' +
      'within limits (docs/use/rewind.md)',
    'git init && git add -A && git commit -m "Before the agent"',
  ),
  fault(
    'repositoryOfAnother',
    async (world) => {
      const top = await runGit(world, ['rev-parse', '--show-toplevel']);
      return top !== null && /dubious ownership/i.test(top.text);
    },
    'git refuses the repository, since it belongs to another user',
    (_, { workspace }) =>
      `If you trust it: git config --global --add safe.directory ${realPath(workspace)}`,
  ),
  note(
    'noGitIdentity',
    async (world) => {
      // with a default, so that the code tells a missing address from a git that failed
      const email = await runGit(world, ['config', '--default', '', '--get', 'user.email']);
      const { GIT_AUTHOR_EMAIL, EMAIL } = world.environment;
      return email?.code === 0 && email.text === '' && !GIT_AUTHOR_EMAIL && !EMAIL;
    },
    'git does not know your name: commits would carry the name of Pawl',
    'git config --global user.name "…" && git config --global user.email …',
  ),
  note(
    'runsAsRoot',
    ({ userId }) => userId === 0,
    'you are root: a command that leaves the sandbox can change everything on this machine',
    'Start Pawl as another user, or in a container that you can throw away',
  ),
];

const settingChecks: readonly Check[] = [
  fault(
    'configFaulty',
    async (world) =>
      joinOrNull((await configuration(world)).faults.map(({ where, text }) => `${where}: ${text}`)),
    (lines) => lines,
    'Correct the named lines. pawl config lists every setting; docs/set-up/configuration.md explains them',
  ),
  note(
    'projectNotHeeded',
    async (world) =>
      joinOrNull(
        refusedByProject((await configuration(world)).resolved).map(
          ({ key, value, why }) => `${key} = ${showValue(value)}: ${why}`,
        ),
      ),
    (lines) => `the project sets values that it may not set: ${lines}`,
    'If you want a value, write it into your own config.toml; pawl config --origin names the file',
  ),
  note(
    'unknownVariable',
    ({ environment }) =>
      Object.keys(environment).find(
        (name) => /^PAWL_(?!KEY_)/.test(name) && !knownVariables.has(name),
      ),
    (name) => `the variable ${name} is unknown`,
    (name) => {
      const close = nearestWord(name, [...knownVariables]);
      return close === undefined
        ? 'Unset it; pawl config lists the settings'
        : `Perhaps you mean ${close}`;
    },
  ),
  fault(
    'keyInQuotes',
    ({ environment }) =>
      providers
        .flatMap(({ keyVariables }) => [...keyVariables])
        .find((name: string) =>
          /\s\S|["'\u201c\u201d]|^Bearer\b/.test(environment[name]?.trim() ?? ''),
        ),
    (name) => `${name} contains quotes, spaces or "Bearer" besides the key`,
    (name) => `Set it to the key alone: export ${name}=…`,
  ),
  fault(
    'proxyFaulty',
    ({ environment }) => PROXY_VARIABLES.find((name) => !isProxy(environment, name)),
    (name) => `${name} is no URL of an HTTP proxy`,
    (name) => `Write it as http://HOST:PORT, or unset it: unset ${name} ${name.toLowerCase()}`,
  ),
  fault(
    'certificatesMissing',
    ({ environment }) =>
      ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE'].find(
        (name) => environment[name] && !existsSync(environment[name] ?? ''),
      ),
    (name, { environment }) => `${name} names ${environment[name]}, which does not exist`,
    (name) => `Correct the path, or unset ${name}`,
  ),
  note(
    'certificatesUnread',
    ({ environment: { SSL_CERT_FILE: file, NODE_EXTRA_CA_CERTS } }) =>
      file && !NODE_EXTRA_CA_CERTS && existsSync(file) ? file : null,
    'SSL_CERT_FILE is set, which Node does not read',
    (file) => `export NODE_EXTRA_CA_CERTS=${file}`,
  ),
  fault(
    'certificatesNotChecked',
    ({ environment }) => environment.NODE_TLS_REJECT_UNAUTHORIZED === '0',
    'NODE_TLS_REJECT_UNAUTHORIZED=0: others on the network can read your key',
    'Unset it, and name your own certificate with NODE_EXTRA_CA_CERTS',
  ),
  note(
    'localeNotUtf8',
    ({ environment: { LC_ALL, LC_CTYPE, LANG }, platform }) => {
      const locale = LC_ALL || LC_CTYPE || LANG || 'none';
      return platform === 'linux' && !/utf-?8/i.test(locale) && locale;
    },
    (locale) =>
      `the language settings (${locale}) are not for UTF-8: commands may print characters wrongly`,
    'export LANG=C.UTF-8',
  ),
  fault(
    'mcpServerUnusable',
    async (world) => {
      const { mcpServers } = await configuration(world);
      const enabled = mcpServers.filter((server) => server.enabled);
      return joinOrNull(await faultsIn(enabled, (server) => serverFault(server, world)));
    },
    (faults) => `MCP servers can't be started: ${faults}`,
    'Correct them in your config.toml, or write enabled = false. Then: pawl mcp test',
  ),
  fault(
    'hookUnusable',
    async (world) => {
      const { userHooks } = await configuration(world);
      const enabled = userHooks.filter((hook) => hook.enabled);
      return joinOrNull(await faultsIn(enabled, (hook) => hookFault(hook, world)));
    },
    (faults) => `Hooks can't be run: ${faults}`,
    'Correct them in your config.toml, or write enabled = false. Then: pawl hooks list',
  ),
];

const CLOCK_SKEW_MS_MAX = 5 * 60_000;

/**
 * A fault of choosing the model: the first line of its message is the finding, the other lines are
 * the repair.
 */
const modelFault = (name: string, ...kinds: readonly string[]): Check =>
  fault(
    name,
    async (world) => {
      const problem = await modelProblem(world);
      return problem !== null && kinds.includes(problem.kind) && problem.message;
    },
    (message) => (message.split('\n')[0] ?? '').replace(/\.$/, ''),
    (message) =>
      message.split('\n').slice(1).join(' ') || 'pawl --help shows the form of a model name',
  );

const modelChecks: readonly Check[] = [
  modelFault('noKey', 'noKey'),
  modelFault('modelNotFound', 'unknownProvider', 'noName', 'badScript', 'noModel', 'noPackage'),
  modelFault('addressFaulty', 'badUrl', 'noUrl'),
  modelFault('localServerSilent', 'noServer'),
  note(
    'modelUnknown',
    async (world) => {
      const { model } = await modelSettings(world);
      return isCatalogued(model) && catalogueFacts(model).source === null && model;
    },
    (model) =>
      `${model} is not in the catalogue: its window and limits are assumed, its price is unknown`,
    'Check the name: docs/set-up/models.md lists the known models',
  ),
  fault(
    'priceUnknown',
    async (world) => {
      const { model, usd } = await modelSettings(world);
      return usd !== null && isCatalogued(model) && catalogueFacts(model).prices === null && model;
    },
    (model) => `max_usd can't hold: the price of ${model} is unknown`,
    'Set max_tokens or max_rounds instead, or allow_unknown_price = true',
  ),
  fault(
    'unreachable',
    async (world) => {
      const asked = await askProvider(world);
      return (
        asked !== null &&
        asked.answer.kind === 'fault' && { ...asked, why: asked.answer.fault.message }
      );
    },
    ({ host, why }) => `${host} can't be reached: ${why}`,
    'Check the network, HTTPS_PROXY and NO_PROXY; and NODE_EXTRA_CA_CERTS if your company ' +
      'uses its own certificate',
  ),
  fault(
    'clockApart',
    async (world) => {
      const asked = await askProvider(world);
      const date =
        asked?.answer.kind === 'done' ? Date.parse(asked.answer.value ?? '') : Number.NaN;
      // without a date it is NaN, which is not greater than the limit
      const apartMs = Math.abs(date - world.now);
      return (
        apartMs > CLOCK_SKEW_MS_MAX && { host: asked?.host, minutes: Math.round(apartMs / 60_000) }
      );
    },
    ({ host, minutes }) => `the clock is ${minutes} minutes apart from that of ${host}`,
    'Set it: sudo timedatectl set-ntp true',
  ),
];

const sessionChecks: readonly Check[] = [
  note(
    'sessionOpen',
    (world) => findOpenSession(world),
    ({ id, pid, host }) => `the session ${id} is open in another process (${pid} on ${host})`,
    ({ id, pid }) =>
      `End it there before you continue it here: kill ${pid}. If you can't reach it: pawl ` +
      `--resume ${id} --take-over`,
  ),
  note(
    'instructionsUnused',
    async ({ workspace }) =>
      existsSync(workspace) && joinOrNull((await loadAgentsFiles(workspace)).warnings),
    (warnings) => warnings,
    'Shorten AGENTS.md, or make it a readable file of the repository. A folder of another user ' +
      'can become yours: chown',
  ),
];

/** All checks, in the order of the report. Each has a unique name. */
export const checks: readonly Check[] = [
  ...programChecks,
  ...sandboxChecks,
  ...folderChecks,
  ...settingChecks,
  ...modelChecks,
  ...sessionChecks,
];

/** Exit code 1 if any check found a fault, 0 if there are only notes. */
export const runDoctor = async (flags: DoctorFlags): Promise<number> => {
  const found = await diagnose({
    environment: process.env,
    nodeVersion: process.versions.node,
    platform: process.platform,
    userId: process.getuid?.() ?? null,
    workspace: flags.workspace ?? process.cwd(),
    now: Date.now(),
    online: flags.online === true,
    model: flags.model ?? null,
  });
  const isWell = found.every(({ level }) => level === 'note');
  const { findSizes } = await import('./checkpoints.js');
  // the size of the stored checkpoints of files, which the report ends with
  const checkpoints = await attempt(() => findSizes(process.env));
  // a state folder that can't be read is a finding of its own
  const { sizes, line } =
    checkpoints.kind === 'done' ? checkpoints.value : { sizes: null, line: '' };
  const names = checks.map(({ name }) => name);
  if (flags.json) writeJson({ ok: isWell, checks: names, found, checkpoints: sizes });
  else writeOut(makeSafe(`${report(found)}${line}`));
  return isWell ? exitCodes.done : exitCodes.taskFailed;
};

/** Runs all checks at once. The findings come in the order of the checks. */
export const diagnose = async (world: DoctorWorld): Promise<readonly Diagnosis[]> => {
  const results = await Promise.all(
    checks.map(async (check) => {
      const result = await attempt(() => check.look(world));
      if (result.kind === 'done') return { check, finding: result.value };
      // It is reported as a finding, so that the other checks still run.
      const what = `the check itself failed: ${result.fault.message}`;
      return { check, finding: { what, repair: 'Please report it' } };
    }),
  );
  return results.flatMap(({ check: { name, level }, finding }) =>
    finding === null ? [] : [{ name, level, ...finding }],
  );
};

const report = (found: readonly Diagnosis[]): string => {
  const lines = found.map(
    ({ level, name, what, repair }) =>
      `${level === 'fault' ? '✗' : '•'} ${what} (${name})\n  ${repair}\n`,
  );
  const faults = found.filter(({ level }) => level === 'fault').length;
  const summary = `${checks.length} checks: ${faults === 0 ? 'no fault' : `${faults} to repair`}`;
  return `${lines.join('')}${summary}, ${found.length - faults} to know.\n`;
};

/** The texts as one; null if there are none. */
const joinOrNull = (texts: readonly string[], separator = '; '): string | null =>
  texts.length === 0 ? null : texts.join(separator);

// Probes of programs

type ProgramRun = { readonly code: number; readonly text: string };

/** How long a program, or the provider's server, may take to answer. */
const ANSWER_MS = 10_000;

/** The search path for programs, with the same rules as the agent's. */
const searchPath = ({ environment, workspace }: DoctorWorld): ProgramSearch =>
  searchPrograms({ environment, workspace });

/**
 * Runs a program that is found as the agent would find it; null if there is none. `text` is stdout,
 * then stderr.
 */
const runProgram = async (
  world: DoctorWorld,
  program: string,
  args: readonly string[],
  folder?: string,
): Promise<ProgramRun | null> => {
  const programs = searchPath(world);
  const found = programs.find(program);
  if (found === null) return null;
  const answer = await askProgram(found, args, {
    environment: world.environment,
    searchPath: programs.folders,
    timeoutMs: ANSWER_MS,
    ...(folder === undefined ? {} : { folder }),
  });
  if (answer === null) return null;
  const text = `${answer.output}${answer.errors}`.trim();
  return { code: answer.code, text: text || (answer.fault ?? '') };
};

const isMissing = (world: DoctorWorld, program: string): boolean =>
  searchPath(world).find(program) === null;

/** The version of a program that is older than `least`; null if it is not, or not there. */
const oldVersion = async (
  world: DoctorWorld,
  program: string,
  least: string,
): Promise<string | null> => {
  const ran = await runProgram(world, program, ['--version']);
  const version = /\d+\.\d+(\.\d+)?/.exec(ran?.text ?? '')?.[0] ?? null;
  return version === null || isAtLeast(version, least) ? null : version;
};

/** Whether version `a.b.c` is `least` or newer. */
const isAtLeast = (version: string, least: string): boolean => {
  const [have, need] = [version, least].map((text) => text.split('.').map(Number));
  for (let index = 0; index < 3; index++) {
    const difference = (have?.[index] ?? 0) - (need?.[index] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return true;
};

/**
 * A pipe or device at which git would wait in the repository around the workspace; null if there is
 * none.
 */
const findGitPipe = async ({ workspace, environment }: DoctorWorld): Promise<string | null> => {
  const signal = AbortSignal.timeout(ANSWER_MS);
  const found = await attempt(async () => {
    const { top } = repositoryFolders(realpathSync(workspace));
    return top === null ? null : await findGitFiles({ workspace, environment, signal }, top);
  });
  // A workspace that is missing is another check's.
  return found.kind === 'done' ? (found.value?.blocking ?? null) : null;
};

const runGit = async (world: DoctorWorld, args: readonly string[]): Promise<ProgramRun | null> => {
  const folder = realPath(world.workspace);
  return folder === null || (await findGitPipe(world)) !== null
    ? null
    : runProgram(world, 'git', args, folder);
};

const ripgrepFault = async (): Promise<string | null> => {
  const program = await attempt(async () => (await import('@vscode/ripgrep')).rgPath);
  return program.kind === 'fault'
    ? program.fault.message
    : accessFault(program.value, constants.X_OK);
};

const probedMachine = ({ environment, platform, systemRoot: root = '/' }: DoctorWorld) => ({
  ...{ environment, platform, root },
});

/** The Linux of Windows is no fence: the user's disks are mounted there. */
const isFencedMachine = (world: DoctorWorld): boolean =>
  isContainer(probedMachine(world)) && !isSubsystem(probedMachine(world));

// Probes of folders

/** The folder, or its nearest parent that exists. */
const existingFolder = (folder: string): string => {
  let above = folder;
  while (!existsSync(above) && above !== path.dirname(above)) above = path.dirname(above);
  return above;
};

/**
 * Why nothing can be written to a folder; null if it can. If the folder is missing, its nearest
 * existing parent is tried, with a folder of a random name: no link can stand in its place.
 */
const unwritableReason = (folder: string): string | null => {
  const created = attemptNow(() => mkdtempSync(path.join(existingFolder(folder), '.pawl-doctor-')));
  if (created.kind === 'fault') return created.fault.message;
  rmdirSync(created.value);
  return null;
};

/**
 * Free bytes on the disk of a folder, which may not exist yet; null if the file system does not
 * report it.
 */
const freeBytes = (folder: string): number | null => {
  const status = attemptNow(() => statfsSync(existingFolder(folder)));
  return status.kind === 'done' ? status.value.bavail * status.value.bsize : null;
};

const NETWORK_TYPES = new Map([
  [0x6969, 'NFS'],
  [0xff534d42, 'SMB'],
  [0xfe534d42, 'SMB'],
]);

/** The kind of network file system that a folder is on. Unknown is not a network. */
const networkType = (folder: string): string | undefined => {
  const status = attemptNow(() => statfsSync(folder));
  return status.kind === 'done' ? NETWORK_TYPES.get(status.value.type) : undefined;
};

/**
 * The first place whose mode has one of these bits, with its mode. A missing place is another
 * check's.
 */
const findPlaceWithMode = (places: readonly string[], bits: number) => {
  for (const place of places) {
    const status = attemptNow(() => statSync(place));
    const mode = status.kind === 'done' ? status.value.mode & 0o777 : 0;
    if ((mode & bits) !== 0) return { place, mode: mode.toString(8).padStart(4, '0') };
  }
  return null;
};

const accessFault = (place: string, mode: number): string | null => {
  const read = attemptNow(() => accessSync(place, mode));
  return read.kind === 'fault' ? read.fault.message : null;
};

const isFolder = (place: string): boolean => {
  const status = attemptNow(() => statSync(place));
  return status.kind === 'done' && status.value.isDirectory();
};

const temporaryFolder = ({ environment }: DoctorWorld): string => environment.TMPDIR || tmpdir();

/** A lock of git that is older than its commands take. */
const LOCK_MS = 60_000;

/** When a file was changed, in ms since 1970; infinite if there is none. */
const changedAt = (file: string): number => {
  const status = attemptNow(() => statSync(file).mtimeMs);
  return status.kind === 'done' ? status.value : Number.POSITIVE_INFINITY;
};

// Probes of the configuration

/** The real path of the workspace, or its path if it is missing. */
const realWorkspace = ({ workspace }: DoctorWorld): string => realPath(workspace) ?? workspace;

/** Only looks: a faulty file is named among `faults`, and nothing is thrown. */
const configuration = (world: DoctorWorld) => consult(realWorkspace(world), world.environment, {});

/** The value of a setting; null if it has none. */
const settingValue = async (world: DoctorWorld, key: string) => {
  const { resolved } = await configuration(world);
  return resolved.find(({ setting }) => setting.key === key)?.value ?? null;
};

const isSandboxOff = async (world: DoctorWorld): Promise<boolean> =>
  (await settingValue(world, 'sandbox')) === 'off';

/** The preset `full` runs everything unasked and without a sandbox. */
const choosesFull = async (world: DoctorWorld): Promise<boolean> =>
  (await settingValue(world, 'preset')) === 'full';

/**
 * All known `PAWL_` variables but `PAWL_KEY_NAME`, the keys of the user's providers: those of
 * settings, of a plain terminal and of `pawl serve`, and those that Pawl gives to its calls and
 * hooks.
 */
const knownVariables = new Set([
  ...settings.map(({ variable }) => variable),
  ...['PAWL_PLAIN', 'PAWL_SERVE_TOKEN', 'PAWL_NODE_TOKEN', 'PAWL_CALL', 'PAWL_HOOK'],
]);

const isProxy = (environment: DoctorWorld['environment'], name: string): boolean => {
  const text = environment[name] || environment[name.toLowerCase()] || '';
  const whole = text.includes('://') ? text : `http://${text}`;
  return text === '' || (/^https?:/i.test(whole) && URL.canParse(whole));
};

/** The faults of servers or hooks, each with its name. */
const faultsIn = async <T extends { readonly name: string }>(
  all: readonly T[],
  findFault: (one: T) => Promise<string | null>,
): Promise<readonly string[]> => {
  const faults: string[] = [];
  for (const one of all) {
    const why = await findFault(one);
    if (why !== null) faults.push(`${one.name}: ${why}`);
  }
  return faults;
};

/** Why an MCP server can't be started, without starting it. */
const serverFault = async (server: McpServer, world: DoctorWorld): Promise<string | null> => {
  const { environment } = world;
  const expanded = expandVariables(server, environment);
  if (expanded.kind === 'missing') return `${expanded.names.join(', ')} is not set`;
  const { server: expandedServer } = expanded;
  // a remote server has no program
  if (expandedServer.kind === 'http') return null;
  const place = { environment, workspace: realWorkspace(world) };
  const program = attemptNow(() => findNamedProgram(expandedServer.command, place));
  return program.kind === 'fault' ? program.fault.message : null;
};

/** Why a hook of the user can't be run, without running it. */
const hookFault = async (
  { command }: HookDeclaration,
  world: DoctorWorld,
): Promise<string | null> => {
  const { programFault } = await import('@pawl/agent/extensions/hooks/session-hooks');
  const place = { workspace: realWorkspace(world), environment: world.environment };
  return programFault({ command, folder: null }, place);
};

// Probes of the model and its provider

/** The model where none is named: of a key, or of a server on this machine. */
const usualModelId = async (world: DoctorWorld): Promise<string> => {
  const { usual } = await configuration(world);
  const local = usual.variable === null ? await findLocalModel(world.environment) : null;
  return local?.id ?? usual.id;
};

/** The model to check, and the limit in dollars; null for none. */
const modelSettings = async (world: DoctorWorld) => ({
  usd: await settingValue(world, 'max_usd'),
  model: world.model ?? String((await settingValue(world, 'model')) ?? (await usualModelId(world))),
});

/** Whether windows and prices of the model are in Pawl's catalogue, and not told by a server. */
const isCatalogued = (model: string): boolean => providerOfModel(model)?.factsFrom === 'catalogue';

/**
 * The environment with the variables that settings name, such as keys. Throws if one can't be read.
 */
const fullEnvironment = async (world: DoctorWorld) => {
  const consulted = await configuration(world);
  return { ...world.environment, ...providerVariables(consulted, world.environment) };
};

/** Why the model can't be used, with the kind of the reason (of `chooseModel`). */
const modelProblem = shared(async (world: DoctorWorld) => {
  const { model } = await modelSettings(world);
  const { ownProviders } = await configuration(world);
  const custom = ownProviders.find(({ name }) => model.startsWith(`${name}/`));
  const environment = await attempt(async () => ({
    ...(await fullEnvironment(world)),
    ...(custom !== undefined && world.online ? await runKeyCommand(custom, world.environment) : {}),
  }));
  if (environment.kind === 'fault') return { kind: 'noKey', message: environment.fault.message };
  const provider = custom ?? providerOfModel(model);
  const lacksKey =
    provider?.key === 'required' && keyIn(environment.value, keyNames(provider)) === null;
  // most servers are asked about their models, and some keys come from a command
  const needsOnline = lacksKey
    ? custom?.keySource.kind === 'command'
    : provider !== undefined && !isCatalogued(model);
  if (needsOnline && !world.online) return null;
  const options = { folder: world.workspace, ownProviders, packageFolders };
  const chosen = await chooseModel(model, environment.value, options);
  return chosen.kind === 'ok' ? null : chosen;
});

/**
 * Asks the provider's server for its date; null without `--online`, and for a model that has no
 * such server.
 */
const askProvider = shared(async (world: DoctorWorld) => {
  if (!world.online) return null;
  const { model } = await modelSettings(world);
  const provider = providerOfModel(model);
  // `ownServer`: the users start the server themselves
  if (provider === undefined || provider.ownServer !== null) return null;
  const environment = await attempt(() => fullEnvironment(world));
  if (environment.kind === 'fault') return null; // `noKey` says it
  const endpoint = findEndpoint(provider, environment.value, undefined);
  if (endpoint.kind !== 'ok' || endpoint.url === null) return null;
  const url = new URL(endpoint.url);
  const answer = await attempt(async () => {
    const signal = AbortSignal.timeout(ANSWER_MS);
    const response = await createFetch(world.environment)(url, { signal });
    response.body.discard();
    return response.headers.get('date');
  });
  return { host: url.host, answer };
});

// Probes of sessions

/**
 * A session whose lock another computer or namespace holds, so that nobody knows whether its
 * process lives.
 */
const findOpenSession = async (world: DoctorWorld) => {
  const folder = sessionsFolder(stateFolder(world.environment));
  if (!existsSync(folder)) return null;
  const self = await describeSelf(world.platform);
  for (const name of readdirSync(folder).filter((one) => one.endsWith('.lock'))) {
    const file = path.join(folder, name);
    const holder = await readHolder(file);
    if (holder === undefined || holder.pid === process.pid) continue;
    if ((await checkHolder(file, holder, self)) !== 'unknown') continue;
    return { id: path.basename(file, '.lock'), pid: holder.pid, host: holder.host };
  }
  return null;
};
