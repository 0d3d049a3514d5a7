import { realpathSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { repositoryFolders } from '@pawl/agent/platform/files/repository-folders';
import { attempt, attemptNow } from '@pawl/agent/session/attempt';
import { PROGRAM as SHELL } from '@pawl/agent/tools/bash';
import { findWaitingFile } from '@pawl/agent/workspace/git/find-blocking-files';
import {
  type Check,
  type DoctorWorld,
  isAtLeast,
  programsOf,
  runProgram,
  versionIn,
} from './check-context.js';

/** Checks of the programs that the agent starts. */

const NODE = '20.19.0';
const GIT = '2.20.0';
const BUBBLEWRAP = '0.8.0';
const PYTHON = '3.9.0';

/** A pipe or device at which git would wait in the repository around the workspace; null if there is none. */
export const findGitPipe = ({ workspace, environment }: DoctorWorld): string | null => {
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

export const programChecks: readonly Check[] = [
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
