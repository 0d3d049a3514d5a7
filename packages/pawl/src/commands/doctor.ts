/** `pawl doctor`: looks for known problems of the setup, and says how to repair each. */

import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { readFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import path from 'node:path';
import { probeSandbox } from '@pawl/agent/command/session-sandbox';
import type { McpServer } from '@pawl/agent/extensions/mcp/server-config';
import { checkHolder, describeSelf, readHolder } from '@pawl/agent/journal/lock';
import { sessionsFolder } from '@pawl/agent/journal/state-folder';
import { factsOf } from '@pawl/agent/models/catalogue';
import { chooseModel } from '@pawl/agent/models/choose-model';
import { DEFAULT_MODEL, endpointOf, providerOfModel, providers } from '@pawl/agent/models/provider-table';
import { attempt, attemptNow } from '@pawl/agent/platform/attempt';
import { stateFolder } from '@pawl/agent/platform/environment';
import { type ProgramSearch, searchPrograms } from '@pawl/agent/platform/find-program';
import { createFetch } from '@pawl/agent/platform/http';
import { hasEnded } from '@pawl/agent/platform/process-identity';
import { foreignFolder, repositoryFolders } from '@pawl/agent/platform/repository-folders';
import { askProgram } from '@pawl/agent/platform/start-program';
import { nearestWord } from '@pawl/agent/platform/text';
import { loadAgentsFiles } from '@pawl/agent/session/instructions';
import { PROGRAM as SHELL } from '@pawl/agent/tools/bash';
import { type CommitClaim, listClaims } from '@pawl/agent/workspace/commit-claim';
import { findWaitingFile } from '@pawl/agent/workspace/repository-location';
import { makeSafe } from '@pawl/terminal/safe-text';
import { writeJson, writeOut } from '@pawl/terminal/write';
import { exitCodes } from '../process/exit-codes.js';
import { consult, refusedOf, userFile, variablesOf } from '../settings/configuration.js';
import { settings, showValue } from '../settings/setting-table.js';

export type DoctorFlags = {
  readonly online?: true;
  readonly json?: true;
  readonly workspace?: string;
  readonly model?: string;
};

const programChecks: readonly Check[] = [
  {
    name: 'nodeTooOld',
    level: 'fault',
    look: ({ nodeVersion }) =>
      isAtLeast(nodeVersion, NODE)
        ? null
        : {
            what: `Node ${nodeVersion} is too old`,
            repair: `Install Node ${NODE} or newer, for example with nvm: nvm install 22`,
          },
  },
  {
    name: 'searchPathSkipped',
    level: 'note',
    look: (world) => {
      const lines = programsOf(world).skipped.map(({ folder, why }) => `${folder}: ${why}`);
      return lines.length === 0
        ? null
        : {
            what: `programs in these folders of PATH are not used: ${lines.join('; ')}`,
            repair:
              'Folders of the project are never used. For any other folder: make it yours or root’s with mode go-w, or remove it from PATH',
          };
    },
  },
  {
    name: 'searchPathShared',
    level: 'note',
    look: (world) => {
      const { shared } = programsOf(world);
      return shared.length === 0
        ? null
        : {
            what: `administrators of this computer can change programs in ${shared.join(', ')}`,
            repair: 'This is usual for Homebrew, Nix and /usr/local. To prevent it: chmod g-w the folder',
          };
    },
  },
  {
    name: 'gitMissing',
    level: 'fault',
    look: async (world) =>
      (await isMissing(world, 'git'))
        ? {
            what: 'git is not found: the agent can neither see nor make commits',
            repair: 'Install it: apt-get install git, brew install git, or the package of your system',
          }
        : null,
  },
  {
    name: 'gitTooOld',
    level: 'fault',
    look: async (world) => {
      const version = await tooOld(world, 'git', GIT);
      return version === null
        ? null
        : {
            what: `git ${version} is too old: new commits are not noticed`,
            repair: `Install git ${GIT} or newer`,
          };
    },
  },
  {
    name: 'gitWouldWait',
    level: 'fault',
    look: (world) => {
      const pipe = findGitPipe(world);
      return pipe === null
        ? null
        : {
            what: `git is not asked: ${pipe} is not a regular file, so git would wait for it`,
            repair:
              'Remove it: until then Pawl neither sees nor makes commits, and your own git commands hang',
          };
    },
  },
  {
    name: 'shellMissing',
    level: 'fault',
    look: async (world) =>
      (await isMissing(world, SHELL))
        ? {
            what: 'bash is not found: the agent can run no commands',
            repair: 'Install it, or put its folder into PATH: export PATH="$PATH:/bin"',
          }
        : null,
  },
  {
    name: 'ripgrepMissing',
    level: 'fault',
    look: async () => {
      const why = await ripgrepFault();
      return why === null
        ? null
        : {
            what: `ripgrep, which comes with Pawl, can't be started: ${why}`,
            repair: 'Install Pawl again without --no-optional and --ignore-scripts: npm install -g pawl',
          };
    },
  },
  {
    name: 'bubblewrapMissing',
    level: 'note',
    partOf: 'sandboxMissing',
    look: async (world) =>
      world.platform === 'linux' && (await isMissing(world, 'bwrap'))
        ? {
            what: 'bubblewrap is not found: pawl ask runs programs in QuickJS, which is slower',
            repair: 'Install it: apt-get install bubblewrap',
          }
        : null,
  },
  {
    name: 'bubblewrapTooOld',
    level: 'note',
    partOf: 'sandboxMissing',
    look: async (world) => {
      const version = await tooOld(world, 'bwrap', BUBBLEWRAP);
      return version === null
        ? null
        : {
            what: `bubblewrap ${version} is too old: pawl ask runs programs in QuickJS, which is slower`,
            repair: `Install bubblewrap ${BUBBLEWRAP} or newer`,
          };
    },
  },
  {
    name: 'namespacesRefused',
    level: 'note',
    partOf: 'sandboxMissing',
    look: async (world) => {
      const ran = await tryBubblewrap(world);
      if (ran === null || ran.code === 0) return null;
      const repair = (await isRestricted())
        ? 'Give bwrap an AppArmor profile with "userns,", or allow user namespaces for all programs until the next boot: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0'
        : 'Allow user namespaces: sudo sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000; in a container, start it with --security-opt seccomp=unconfined';
      return { what: `bubblewrap may not create namespaces: ${ran.text.split('\n')[0]}`, repair };
    },
  },
  {
    name: 'pythonMissing',
    level: 'note',
    look: async (world) =>
      (await isMissing(world, 'python3'))
        ? {
            what: 'python3 is not found: pawl ask --environment python does not work',
            repair: 'If you want it: apt-get install python3',
          }
        : null,
  },
  {
    name: 'pythonTooOld',
    level: 'note',
    look: async (world) => {
      const version = await tooOld(world, 'python3', PYTHON);
      return version === null
        ? null
        : {
            what: `Python ${version} is too old for pawl ask --environment python`,
            repair: `Install Python ${PYTHON} or newer`,
          };
    },
  },
];

const sandboxChecks: readonly Check[] = [
  {
    name: 'sandboxMissing',
    level: 'fault',
    look: async (world) => {
      if (await isOff(world)) return null;
      const probe = await probeSandbox(world.environment, workspaceOf(world), 'fresh');
      return probe.kind === 'works'
        ? null
        : {
            what: `commands can't be run in a sandbox here: ${probe.reason} In a terminal Pawl asks before each command, without one it denies them; pawl ask runs programs in QuickJS, which is slower`,
            repair: `${probe.repair} Or turn the sandbox off, for example inside a container: sandbox = "off" in your own config.toml`,
          };
    },
  },
  {
    name: 'sandboxOff',
    level: 'note',
    look: async (world) =>
      (await isOff(world))
        ? {
            what: 'commands run without a sandbox and can do all that you can do: the sandbox is off',
            repair: 'To turn it on again: pawl config --origin names the file that turns it off',
          }
        : null,
  },
];

const stateChecks: readonly Check[] = [
  {
    name: 'homeMissing',
    level: 'fault',
    look: ({ environment }) =>
      environment.HOME || (environment.XDG_STATE_HOME && environment.XDG_CONFIG_HOME)
        ? null
        : {
            what: `HOME is not set: ${homedir()} is used instead`,
            repair: 'Set HOME, or XDG_STATE_HOME and XDG_CONFIG_HOME, to folders of yours',
          },
  },
  {
    name: 'xdgNotWhole',
    level: 'note',
    look: ({ environment }) => {
      const wrong = ['XDG_STATE_HOME', 'XDG_CONFIG_HOME', 'XDG_DATA_HOME', 'XDG_CACHE_HOME'].find(
        (name) => environment[name] && !path.isAbsolute(environment[name] ?? ''),
      );
      return wrong === undefined
        ? null
        : {
            what: `${wrong} is not an absolute path, so it is ignored`,
            repair: `Set ${wrong} to a path that begins with /`,
          };
    },
  },
  {
    name: 'stateUnwritable',
    level: 'fault',
    look: ({ environment }) => {
      const folder = stateFolder(environment);
      const why = whyUnwritable(folder);
      return why === null
        ? null
        : {
            what: `sessions can't be stored in ${folder}: ${why}`,
            repair: `Make it writable (chmod u+rwx, chown, or mount it so), or set XDG_STATE_HOME to a folder that is`,
          };
    },
  },
  {
    name: 'stateReadByOthers',
    level: 'fault',
    look: ({ environment }): Found | null => {
      const folder = stateFolder(environment);
      return isOpenTo(folder, 0o077)
        ? {
            what: `others can read your sessions: ${folder} has the mode ${octal(folder)}`,
            repair: `chmod 700 ${folder}`,
          }
        : null;
    },
  },
  {
    name: 'diskFull',
    level: 'fault',
    look: ({ environment }) => {
      const folder = stateFolder(environment);
      const bytes = roomIn(folder);
      return bytes === null || bytes >= ROOM_BYTES
        ? null
        : {
            what: `${Math.floor(bytes / 1024 / 1024)} MB are free where sessions are stored (${folder})`,
            repair:
              "Free some space, or set XDG_STATE_HOME to a folder on another disk: a session stops when it can't be stored",
          };
    },
  },
  {
    name: 'stateOnNetwork',
    level: 'note',
    look: ({ environment }) => {
      const read = attemptNow(() => statfsSync(path.dirname(stateFolder(environment))));
      const type = read.kind === 'done' ? NETWORK_TYPES.get(read.value.type) : undefined; // unknown is not a network
      return type === undefined
        ? null
        : {
            what: `sessions are stored on a network file system (${type}), where a lock of another computer can't be checked`,
            repair: 'Set XDG_STATE_HOME to a folder on a disk of this computer',
          };
    },
  },
  {
    name: 'temporaryUnwritable',
    level: 'fault',
    look: ({ environment }) => {
      const folder = environment.TMPDIR || tmpdir();
      const why = existsSync(folder) ? whyUnwritable(folder) : 'it does not exist';
      return why === null
        ? null
        : {
            what: `the folder for temporary files, ${folder}, is not writable: ${why}`,
            repair: 'Create it, or set TMPDIR to a writable folder',
          };
    },
  },
  {
    name: 'configWrittenByOthers',
    level: 'fault',
    look: ({ environment }) => {
      const file = userFile(environment);
      const place = [file, path.dirname(file)].find((one) => isOpenTo(one, 0o022));
      return place === undefined
        ? null
        : {
            what: `others can change your settings: ${place} has the mode ${octal(place)}`,
            repair: `chmod go-w ${place}`,
          };
    },
  },
];

const workspaceChecks: readonly Check[] = [
  {
    name: 'workspaceMissing',
    level: 'fault',
    look: ({ workspace }) =>
      attemptNow(() => statSync(workspace).isDirectory()).kind === 'done' && statSync(workspace).isDirectory()
        ? null
        : {
            what: `${workspace} is no folder`,
            repair: 'Go to the folder of your project, or name it: --workspace FOLDER',
          },
  },
  {
    name: 'workspaceUnreadable',
    level: 'fault',
    look: ({ workspace }) => {
      if (!existsSync(workspace)) return null;
      const read = attemptNow(() => accessSync(workspace, constants.R_OK | constants.X_OK));
      return read.kind === 'done'
        ? null
        : { what: `the workspace can't be read: ${read.fault.message}`, repair: `chmod u+rx ${workspace}` };
    },
  },
  {
    name: 'workspaceUnwritable',
    level: 'note',
    look: ({ workspace }) => {
      const folder = realOf(workspace);
      const why = folder === null || !statSync(folder).isDirectory() ? null : whyUnwritable(folder);
      return why === null
        ? null
        : {
            what: `the workspace is not writable: ${why}`,
            repair: 'To only read it, start with --preset plan; otherwise make it writable',
          };
    },
  },
  {
    name: 'workspaceTooWide',
    level: 'note',
    look: ({ workspace, environment }) => {
      const real = realOf(workspace);
      const isHome = real !== null && real === realOf(environment.HOME || homedir());
      return isHome || real === '/'
        ? {
            what: `the workspace is ${isHome ? 'your home' : 'the whole machine'}: the agent can change everything in it`,
            repair: 'Start in the folder of one project',
          }
        : null;
    },
  },
  {
    name: 'commitInterrupted',
    level: 'fault',
    look: ({ workspace }) => {
      const git = path.join(workspace, '.git');
      const claims = attemptNow(() => listClaims(git)); // no folder: a work tree of another one, or no repository
      const isDead = (claim: CommitClaim): boolean => {
        const record = claim.read();
        return record === null || hasEnded(record.owner);
      };
      return claims.kind === 'done' && claims.value.some(isDead)
        ? {
            what: `Pawl was killed while it made a commit${existsSync(path.join(git, 'index.lock')) ? ', and git waits for its lock, .git/index.lock' : ''}`,
            repair:
              'pawl --continue in this folder: it finishes the commit or gives it up, and removes the lock',
          }
        : null;
    },
  },
  {
    name: 'noRepository',
    level: 'note',
    look: async (world) => {
      const ran = await gitSays(world, ['rev-parse', '--show-toplevel']);
      return ran !== null && ran.code !== 0 && /not a git repository/i.test(ran.text)
        ? {
            what: "the workspace is in no git repository: changes of the agent can't be undone",
            repair: 'git init && git add -A && git commit -m "Before the agent"',
          }
        : null;
    },
  },
  {
    name: 'repositoryOfAnother',
    level: 'fault',
    look: async (world) => {
      const ran = await gitSays(world, ['rev-parse', '--show-toplevel']);
      return ran !== null && /dubious ownership/i.test(ran.text)
        ? {
            what: 'git refuses the repository, since it belongs to another user',
            repair: `If you trust it: git config --global --add safe.directory ${realOf(world.workspace)}`,
          }
        : null;
    },
  },
  {
    name: 'noGitIdentity',
    level: 'note',
    look: async (world) => {
      const ran = await gitSays(world, ['config', 'user.email']);
      return ran !== null && ran.code !== 0 && !world.environment.GIT_AUTHOR_EMAIL
        ? {
            what: 'git does not know your name: commits would carry the name of Pawl',
            repair: 'git config --global user.name "…" && git config --global user.email …',
          }
        : null;
    },
  },
  {
    name: 'runsAsRoot',
    level: 'note',
    look: ({ userId }) =>
      userId === 0
        ? {
            what: 'you are root: a command that leaves the sandbox can change everything on this machine',
            repair: 'Start Pawl as another user, or in a container that you can throw away',
          }
        : null,
  },
];

const placeChecks: readonly Check[] = [...stateChecks, ...workspaceChecks];

const settingChecks: readonly Check[] = [
  {
    name: 'configFaulty',
    level: 'fault',
    look: async (world) => {
      const { faults } = await consultHere(world);
      const lines = faults.map(({ where, text }) => `${where}: ${text}`);
      return lines.length === 0
        ? null
        : {
            what: lines.join('; '),
            repair:
              'Correct the named lines. pawl config lists every setting; docs/configuration.md explains them',
          };
    },
  },
  {
    name: 'folderAboveForeign',
    level: 'note',
    look: ({ workspace }) => {
      const foreign = existsSync(workspace) ? repositoryFolders(realpathSync(workspace)).foreign : null;
      return foreign === null
        ? null
        : {
            what: foreignFolder(foreign),
            repair: `If you want to use the repository in ${foreign}, have its owner give it to you: chown`,
          };
    },
  },
  {
    name: 'projectNotHeeded',
    level: 'note',
    look: async (world) => {
      const refused = refusedOf((await consultHere(world)).resolved);
      const lines = refused.map(({ key, value, why }) => `${key} = ${showValue(value)}: ${why}`);
      return lines.length === 0
        ? null
        : {
            what: `the project sets values that it may not set: ${lines.join('; ')}`,
            repair:
              'If you want a value, write it into your own config.toml; pawl config --origin names the file',
          };
    },
  },
  {
    name: 'unknownVariable',
    level: 'note',
    look: ({ environment }) => {
      const unknown = Object.keys(environment).find(
        (name) => /^PAWL_/.test(name) && !knownVariables.has(name),
      );
      if (unknown === undefined) return null;
      const close = nearestWord(unknown, [...knownVariables]);
      return {
        what: `the variable ${unknown} is unknown`,
        repair:
          close === undefined ? 'Unset it; pawl config lists the settings' : `Perhaps you mean ${close}`,
      };
    },
  },
  {
    name: 'keyInQuotes',
    level: 'fault',
    look: ({ environment }) => {
      const wrong = providers
        .flatMap(({ keyVariables }) => [...keyVariables])
        .find((name: string) => /\s\S|["'\u201c\u201d]|^Bearer\b/.test(environment[name]?.trim() ?? ''));
      return wrong === undefined
        ? null
        : {
            what: `${wrong} contains quotes, spaces or "Bearer" besides the key`,
            repair: `Set it to the key alone: export ${wrong}=…`,
          };
    },
  },
  {
    name: 'proxyFaulty',
    level: 'fault',
    look: ({ environment }) => {
      const wrong = ['HTTPS_PROXY', 'HTTP_PROXY'].find((name) => checkUrl(environment, name) !== null);
      return wrong === undefined
        ? null
        : {
            what: `${wrong} is no URL`,
            repair: `Write it as http://HOST:PORT, or unset it: unset ${wrong} ${wrong.toLowerCase()}`,
          };
    },
  },
  {
    name: 'certificatesMissing',
    level: 'fault',
    look: ({ environment }) => {
      const wrong = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE'].find(
        (name) => environment[name] && !existsSync(environment[name] ?? ''),
      );
      return wrong === undefined
        ? null
        : {
            what: `${wrong} names ${environment[wrong]}, which does not exist`,
            repair: `Correct the path, or unset ${wrong}`,
          };
    },
  },
  {
    name: 'certificatesUnread',
    level: 'note',
    look: ({ environment }) =>
      environment.SSL_CERT_FILE && !environment.NODE_EXTRA_CA_CERTS && existsSync(environment.SSL_CERT_FILE)
        ? {
            what: 'SSL_CERT_FILE is set, which Node does not read',
            repair: `export NODE_EXTRA_CA_CERTS=${environment.SSL_CERT_FILE}`,
          }
        : null,
  },
  {
    name: 'certificatesNotChecked',
    level: 'fault',
    look: ({ environment }) =>
      environment.NODE_TLS_REJECT_UNAUTHORIZED === '0'
        ? {
            what: 'NODE_TLS_REJECT_UNAUTHORIZED=0: others on the network can read your key',
            repair: 'Unset it, and name your own certificate with NODE_EXTRA_CA_CERTS',
          }
        : null,
  },
  {
    name: 'localeNotUtf8',
    level: 'note',
    look: (world) =>
      /utf-?8/i.test(localeOf(world)) || world.platform !== 'linux'
        ? null
        : {
            what: `the language settings (${localeOf(world) || 'none'}) are not for UTF-8: commands may print characters wrongly`,
            repair: 'export LANG=C.UTF-8',
          },
  },
  {
    name: 'terminalUnknown',
    level: 'note',
    look: ({ environment, isTerminal }) =>
      isTerminal && (!environment.TERM || environment.TERM === 'dumb')
        ? {
            what: `TERM is ${environment.TERM ? 'dumb' : 'not set'}: the terminal shows plain lines`,
            repair: 'If it is a usual terminal: export TERM=xterm-256color',
          }
        : null,
  },
  {
    name: 'coloursDisagree',
    level: 'note',
    look: ({ environment }) =>
      environment.NO_COLOR && environment.FORCE_COLOR
        ? { what: 'NO_COLOR and FORCE_COLOR are both set: there is no colour', repair: 'Unset one of them' }
        : null,
  },
];

const mcpChecks: readonly Check[] = [
  {
    name: 'mcpServerUnusable',
    level: 'fault',
    look: async (world) => {
      const workspace = existsSync(world.workspace) ? realpathSync(world.workspace) : world.workspace;
      const { mcpServers } = await consult(workspace, world.environment, {});
      const faults: string[] = [];
      for (const server of mcpServers.filter(({ enabled }) => enabled)) {
        const fault = await faultOf(server, { ...world, workspace });
        if (fault !== null) faults.push(`${server.name}: ${fault}`);
      }
      if (faults.length === 0) return null;
      return {
        what: `MCP servers can't be started: ${faults.join('; ')}`,
        repair: 'Correct them in your config.toml, or write enabled = false. Then: pawl mcp test',
      };
    },
  },
];

/** A check of the user's own hooks, without running them. */

const hookChecks: readonly Check[] = [
  {
    name: 'hookUnusable',
    level: 'fault',
    look: async (world) => {
      const workspace = existsSync(world.workspace) ? realpathSync(world.workspace) : world.workspace;
      const { userHooks } = await consult(workspace, world.environment, {});
      if (userHooks.length === 0) return null;
      const { programFault } = await import('@pawl/agent/extensions/hooks/session-hooks');
      const place = { workspace, environment: world.environment };
      const faults = userHooks.flatMap(({ name, command, enabled }) => {
        const fault = enabled ? programFault({ command, folder: null }, place) : null;
        return fault === null ? [] : [`${name}: ${fault}`];
      });
      if (faults.length === 0) return null;
      return {
        what: `Hooks can't be run: ${faults.join('; ')}`,
        repair: 'Correct them in your config.toml, or write enabled = false. Then: pawl hooks list',
      };
    },
  },
];

const modelChecks: readonly Check[] = [
  { name: 'noKey', level: 'fault', look: async (world) => asFound(await problemOf(world, ['noKey'])) },
  {
    name: 'modelNotFound',
    level: 'fault',
    look: async (world) =>
      asFound(await problemOf(world, ['unknownProvider', 'noName', 'badScript', 'noModel'])),
  },
  {
    name: 'addressFaulty',
    level: 'fault',
    look: async (world) => asFound(await problemOf(world, ['badUrl', 'noUrl'])),
  },
  {
    name: 'localServerSilent',
    level: 'fault',
    look: async (world) => asFound(await problemOf(world, ['noServer'])),
  },
  {
    name: 'modelUnknown',
    level: 'note',
    look: async (world) => {
      const { model } = await variables(world);
      return isCatalogued(model) && factsOf(model).source === null
        ? {
            what: `${model} is not in the catalogue: its window and limits are assumed, its price is unknown`,
            repair: 'Check the name: docs/models.md lists the known models',
          }
        : null;
    },
  },
  {
    name: 'priceUnknown',
    level: 'fault',
    look: async (world) => {
      const { model, usd } = await variables(world);
      return usd !== null && isCatalogued(model) && factsOf(model).prices === null
        ? {
            what: `max_usd has no effect: the price of ${model} is unknown`,
            repair: 'Set max_tokens or max_rounds instead, or allow_unknown_price = true',
          }
        : null;
    },
  },
  {
    name: 'clockWrong',
    level: 'fault',
    look: ({ now }) =>
      now < OLDEST
        ? {
            what: `the clock says ${new Date(now).toISOString().slice(0, 10)}, which is before this program was built`,
            repair: 'Set it: sudo timedatectl set-ntp true',
          }
        : null,
  },
  {
    name: 'unreachable',
    level: 'fault',
    look: async (world) => {
      const asked = await ask(world);
      if (asked === null || asked.fetched.kind === 'done') return null;
      return {
        what: `${asked.url.host} can't be reached: ${asked.fetched.fault.message}`,
        repair:
          'Check the network, HTTPS_PROXY and NO_PROXY; and NODE_EXTRA_CA_CERTS if your company uses its own certificate',
      };
    },
  },
  {
    name: 'clockApart',
    level: 'fault',
    look: async (world) => {
      const asked = await ask(world);
      const said = asked?.fetched.kind === 'done' ? Date.parse(asked.fetched.value ?? '') : Number.NaN;
      const apartMs = Math.abs(said - world.now);
      return apartMs > SKEW_MS
        ? {
            what: `the clock is ${Math.round(apartMs / 60_000)} minutes apart from that of ${asked?.url.host}`,
            repair: 'Set it: sudo timedatectl set-ntp true',
          }
        : null;
    },
  },
];

const sessionChecks: readonly Check[] = [
  {
    name: 'sessionOpen',
    level: 'note',
    look: async (world) => {
      const self = await describeSelf(world.platform);
      for (const file of filesOf(world, /\.lock$/)) {
        const holder = await readHolder(file);
        if (holder === undefined || holder.pid === process.pid) continue;
        if ((await checkHolder(file, holder, self)) !== 'unknown') continue;
        const id = path.basename(file, '.lock');
        return {
          what: `the session ${id} is open in another process (${holder.pid} on ${holder.host})`,
          repair: `End it there before you continue it here: kill ${holder.pid}. If you can't reach it: pawl --resume ${id} --take-over`,
        };
      }
      return null;
    },
  },
  {
    name: 'tornTails',
    level: 'note',
    look: (world) => {
      const torn = filesOf(world, /\.torn-\d+$/);
      return torn.length === 0
        ? null
        : {
            what: `${torn.length} journal ends were cut off in the middle of writing and kept aside`,
            repair: `They contain nothing that was acknowledged. You can delete them: ${torn[0]}`,
          };
    },
  },
  {
    name: 'instructionsUnused',
    level: 'note',
    look: async ({ workspace }) => {
      if (!existsSync(workspace)) return null;
      const { warnings } = await loadAgentsFiles(workspace);
      return warnings.length === 0
        ? null
        : {
            what: warnings.join('; '),
            repair: 'Shorten AGENTS.md, or make it a readable file of the repository',
          };
    },
  },
];

/** All checks, in the order of the report. Each has a unique name. */
export const checks: readonly Check[] = [
  ...programChecks,
  ...sandboxChecks,
  ...placeChecks,
  ...settingChecks,
  ...mcpChecks,
  ...hookChecks,
  ...modelChecks,
  ...sessionChecks,
];

export type Diagnosis = Pick<Check, 'name' | 'level'> & Found;

/** Runs all checks at once. The findings come in the order of the checks, without those that another one covers. */
export const diagnose = async (world: DoctorWorld): Promise<readonly Diagnosis[]> => {
  const looked = await Promise.all(
    checks.map(async (check) => {
      const found = await lookSafely(check, world);
      return found === null ? [] : [{ check, found }];
    }),
  );
  const all = looked.flat();
  return all
    .filter(
      ({ check: { partOf } }) => partOf === undefined || all.every(({ check }) => check.name !== partOf),
    )
    .map(({ check: { name, level }, found }) => ({ name, level, ...found }));
};

const worldOf = (flags: DoctorFlags): DoctorWorld => ({
  environment: process.env,
  nodeVersion: process.versions.node,
  platform: process.platform,
  userId: process.getuid?.() ?? null,
  workspace: flags.workspace ?? process.cwd(),
  now: Date.now(),
  isTerminal: process.stdout.isTTY === true,
  online: flags.online === true,
  model: flags.model ?? null,
});

const textOf = ({ level, name, what, repair }: Diagnosis): string =>
  `${level === 'fault' ? '✗' : '•'} ${what} (${name})\n  ${repair}\n`;

const summary = (found: readonly Diagnosis[]): string => {
  const faults = found.filter(({ level }) => level === 'fault').length;
  const notes = found.length - faults;
  const all = `${checks.length} checks`;
  return faults === 0
    ? `${all}: no fault, ${notes} to know.\n`
    : `${all}: ${faults} to repair, ${notes} to know.\n`;
};

/** Exit code 1 if any check found a fault, 0 if there are only notes. */
export const runDoctor = async (flags: DoctorFlags): Promise<number> => {
  const found = await diagnose(worldOf(flags));
  const isWell = found.every(({ level }) => level === 'note');
  if (flags.json) writeJson({ ok: isWell, checks: checks.map(({ name }) => name), found });
  else writeOut(makeSafe(found.map(textOf).join('') + summary(found)));
  return isWell ? exitCodes.done : exitCodes.taskFailed;
};

/** The machine as the checks see it. A test passes its own. */

type ProbeRun = { readonly code: number; readonly text: string };

export type DoctorWorld = {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Format of `process.versions.node`: `20.19.0`. */
  readonly nodeVersion: string;
  readonly platform: string;
  /** Null where the system has no numeric user ids. */
  readonly userId: number | null;
  /** Path as the user gave it. It may not exist. */
  readonly workspace: string;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Whether stdout is a terminal. */
  readonly isTerminal: boolean;
  /** Whether checks may use the network (`--online`). */
  readonly online: boolean;
  /** The model to check; null for the configured one. */
  readonly model: string | null;
};

type Found = {
  /** One line: what is wrong. */
  readonly what: string;
  /** What to do about it. */
  readonly repair: string;
};

type Check = {
  readonly name: string;
  /** `fault`: something does not work. `note`: it works, but maybe not as the user expects. */
  readonly level: 'fault' | 'note';
  /** Name of a check that covers this one: if that one finds something, this finding is left out. */
  readonly partOf?: string;
  /** The finding; null if all is well. */
  look(world: DoctorWorld): Promise<Found | null> | Found | null;
};

const LIMIT_MS = 10_000;

/** The search path for programs, with the same rules as the agent's. */
const programsOf = ({ environment, workspace }: DoctorWorld): ProgramSearch =>
  searchPrograms({ environment, workspace });

/** Runs a program that is found as the agent would find it; null if there is none. `text` is stdout, then stderr. */
const runProgram = async (
  world: DoctorWorld,
  program: string,
  words: readonly string[],
  folder?: string,
): Promise<ProbeRun | null> => {
  const programs = programsOf(world);
  const found = programs.find(program);
  if (found === null) return null;
  const answer = await askProgram(found, words, {
    environment: world.environment,
    searchPath: programs.folders,
    timeoutMs: LIMIT_MS,
    ...(folder === undefined ? {} : { folder }),
  });
  if (answer === null) return null;
  const text = `${answer.output}${answer.errors}`.trim();
  return { code: answer.code, text: text || (answer.fault ?? '') };
};

/** Whether version `a.b.c` is `wanted` or newer. */
const isAtLeast = (version: string, wanted: string): boolean => {
  const [have, need] = [version, wanted].map((text) => text.split('.').map(Number));
  for (let index = 0; index < 3; index++) {
    const difference = (have?.[index] ?? 0) - (need?.[index] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return true;
};

/** The first version number in a text; null if there is none. */
const versionIn = (text: string): string | null => /\d+\.\d+(\.\d+)?/.exec(text)?.[0] ?? null;

/** Checks of the programs that the agent starts. */

const NODE = '20.19.0';
const GIT = '2.20.0';
const BUBBLEWRAP = '0.8.0';
const PYTHON = '3.9.0';

/** A pipe or device at which git would wait in the repository around the workspace; null if there is none. */
const findGitPipe = ({ workspace, environment }: DoctorWorld): string | null => {
  const top = attemptNow(() => repositoryFolders(realpathSync(workspace)).top);
  // A workspace that is missing is another check's.
  if (top.kind !== 'done' || top.value === null) return null;
  return findWaitingFile(top.value, environment.HOME ?? '');
};

const tooOld = async (world: DoctorWorld, program: string, wanted: string): Promise<string | null> => {
  const ran = await runProgram(world, program, ['--version']);
  const version = ran === null ? null : versionIn(ran.text);
  return version === null || isAtLeast(version, wanted) ? null : version;
};

const isMissing = async (world: DoctorWorld, program: string): Promise<boolean> =>
  (await runProgram(world, program, ['--version'])) === null;

/** Starts bubblewrap with the whole file system read-only and a command that does nothing. */
const tryBubblewrap = (world: DoctorWorld) =>
  runProgram(world, 'bwrap', ['--unshare-all', '--ro-bind', '/', '/', '--', '/bin/sh', '-c', ':']);

/** Whether AppArmor forbids namespaces to programs without a profile, as it does since Ubuntu 24.04. */
const isRestricted = async (): Promise<boolean> => {
  const read = await attempt(() =>
    readFile('/proc/sys/kernel/apparmor_restrict_unprivileged_userns', 'utf8'),
  );
  return read.kind === 'done' && read.value.trim() === '1'; // a kernel without the file restricts nothing
};

const ripgrepFault = async (): Promise<string | null> => {
  const found = await attempt(async () => (await import('@vscode/ripgrep')).rgPath);
  if (found.kind === 'fault') return found.fault.message;
  const ran = await attempt(async () => {
    const { accessSync, constants } = await import('node:fs');
    accessSync(found.value, constants.X_OK);
  });
  return ran.kind === 'fault' ? ran.fault.message : null;
};

/** Checks of the sandbox for the agent's commands. */

const workspaceOf = ({ workspace }: DoctorWorld): string =>
  existsSync(workspace) ? realpathSync(workspace) : workspace;

const isOff = async (world: DoctorWorld): Promise<boolean> => {
  const { resolved } = await consult(workspaceOf(world), world.environment, {});
  return resolved.find(({ setting }) => setting.key === 'sandbox')?.value === 'off';
};

/** Checks of the folders that Pawl writes to, and of the workspace. */

const ROOM_BYTES = 200 * 1024 * 1024;
const DRAFT = `.pawl-doctor-${process.pid}`;

/**
 * Why nothing can be written to a folder; null if it can. If the folder is missing, its nearest existing parent is tried.
 * The probe file is removed.
 */
const whyUnwritable = (folder: string): string | null => {
  let above = folder;
  while (!existsSync(above) && above !== path.dirname(above)) above = path.dirname(above);
  const probe = path.join(above, DRAFT);
  const made = attemptNow(() => {
    if (above === folder) writeFileSync(probe, '');
    else mkdirSync(probe);
  });
  if (made.kind === 'fault') return made.fault.message;
  rmSync(probe, { recursive: true });
  return null;
};

/** Free bytes on the disk of a folder, which may not exist yet; null if unknown. */
const roomIn = (folder: string): number | null => {
  let above = folder;
  while (!existsSync(above) && above !== path.dirname(above)) above = path.dirname(above);
  const read = attemptNow(() => statfsSync(above));
  return read.kind === 'done' ? read.value.bavail * read.value.bsize : null; // the file system does not report it
};

const modeOf = (place: string): number | null => {
  const status = attemptNow(() => statSync(place));
  return status.kind === 'done' ? status.value.mode & 0o777 : null; // missing: another check reports it
};

const isOpenTo = (place: string, bits: number): boolean => ((modeOf(place) ?? 0) & bits) !== 0;

const octal = (place: string): string => (modeOf(place) ?? 0).toString(8).padStart(4, '0');

const realOf = (folder: string): string | null => {
  const real = attemptNow(() => realpathSync(folder));
  return real.kind === 'done' ? real.value : null; // missing: another check reports it
};

const NETWORK_TYPES = new Map([
  [0x6969, 'NFS'],
  [0xff534d42, 'SMB'],
  [0xfe534d42, 'SMB'],
]);

const gitSays = async (world: DoctorWorld, words: readonly string[]) => {
  const folder = realOf(world.workspace);
  return folder === null || findGitPipe(world) !== null ? null : runProgram(world, 'git', words, folder);
};

/** Checks of configuration files and environment variables. */

const consultHere = async (world: DoctorWorld) => {
  const folder = existsSync(world.workspace) ? realpathSync(world.workspace) : world.workspace;
  return consult(folder, world.environment, {});
};

/** All known `PAWL_` variables: those of settings, and `PAWL_CALL`, which marks the processes of a tool call. */
const knownVariables = new Set([...settings.map(({ variable }) => variable), 'PAWL_CALL']);

const localeOf = ({ environment }: DoctorWorld): string =>
  environment.LC_ALL || environment.LC_CTYPE || environment.LANG || '';

const checkUrl = (environment: DoctorWorld['environment'], name: string): string | null => {
  const text = environment[name] || environment[name.toLowerCase()] || '';
  if (text === '') return null;
  return URL.canParse(text.includes('://') ? text : `http://${text}`) ? null : text;
};

/** Runs one check. A check that throws is reported as a finding, so that the others still run. */
const lookSafely = async (check: Check, world: DoctorWorld) => {
  const looked = await attempt(() => check.look(world));
  if (looked.kind === 'done') return looked.value;
  return { what: `the check itself failed: ${looked.fault.message}`, repair: 'Please report it' };
};

/** A check of the MCP servers, without starting them. */

const faultOf = async (
  server: McpServer,
  { environment, workspace }: DoctorWorld,
): Promise<string | null> => {
  const [{ expandVariables }, { findServerProgram }] = await Promise.all([
    import('@pawl/agent/extensions/mcp/server-config'),
    import('@pawl/agent/extensions/mcp/stdio-server'),
  ]);
  const expanded = expandVariables(server, environment);
  if (expanded.kind === 'missing') return `${expanded.names.join(', ')} is not set`;
  if (expanded.server.kind === 'http') return null;
  try {
    findServerProgram(expanded.server.command, { environment, workspace });
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
};

/** Checks of the configured model and of the connection to its provider. */

/** This program did not exist before: a clock with an earlier date is wrong. */
const OLDEST = Date.UTC(2026, 10, 1);
const SKEW_MS = 5 * 60_000;

const variables = async (world: DoctorWorld) => {
  const folder = existsSync(world.workspace) ? realpathSync(world.workspace) : world.workspace;
  const { resolved } = await consult(folder, world.environment, {});
  const chosen = resolved.find(({ setting }) => setting.key === 'model')?.value;
  const usd = resolved.find(({ setting }) => setting.key === 'max_usd')?.value ?? null;
  return {
    resolved,
    usd,
    model: world.model ?? (chosen === undefined || chosen === null ? DEFAULT_MODEL : String(chosen)),
  };
};

const isCatalogued = (model: string): boolean => providerOfModel(model)?.factsFrom === 'catalogue';

const asksServer = (model: string): boolean => providerOfModel(model) !== undefined && !isCatalogued(model);

const problemOf = async (world: DoctorWorld, kinds: readonly string[]) => {
  const { resolved, model } = await variables(world);
  const read = await attempt(() => variablesOf(resolved, world.environment));
  if (read.kind === 'fault') return kinds.includes('noKey') ? read.fault.message : null;
  // Looking up a local model asks its server, which only --online allows.
  if (asksServer(model) && !world.online) return null;
  const chosen = await chooseModel(
    model,
    { ...world.environment, ...read.value },
    { folder: world.workspace },
  );
  return chosen.kind !== 'ok' && kinds.includes(chosen.kind) ? chosen.message : null;
};

/** Splits a message: its first line is the finding, the other lines are the repair. */
const asFound = (message: string | null) => {
  if (message === null) return null;
  const [what = '', ...rest] = message.split('\n');
  return {
    what: what.replace(/\.$/, ''),
    repair: rest.join(' ') || 'pawl --help shows the form of a model name',
  };
};

const addressFor = async (world: DoctorWorld): Promise<URL | null> => {
  const { resolved, model } = await variables(world);
  const provider = providerOfModel(model);
  const environment = { ...world.environment, ...variablesOf(resolved, world.environment) };
  if (provider === undefined || provider.ownServer !== null) return null;
  const endpoint = endpointOf(provider, environment, undefined);
  return endpoint.kind === 'ok' && endpoint.url !== null ? new URL(endpoint.url) : null;
};

const ask = async (world: DoctorWorld) => {
  const url = await addressFor(world);
  if (!world.online || url === null) return null;
  const fetched = await attempt(async () => {
    const response = await createFetch(world.environment)(url);
    return response.headers.get('date');
  });
  return { url, fetched };
};

/** Checks of sessions: open elsewhere, torn journal tails, instruction files that can't be used. */

const filesOf = ({ environment }: DoctorWorld, suffix: RegExp): readonly string[] => {
  const folder = sessionsFolder(stateFolder(environment));
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => suffix.test(name))
    .map((name) => path.join(folder, name));
};
