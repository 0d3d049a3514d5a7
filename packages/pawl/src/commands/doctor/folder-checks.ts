import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  realpathSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import path from 'node:path';
import { stateFolder } from '@pawl/agent/platform/base/user-folders';
import { hasEnded } from '@pawl/agent/platform/programs/process-identity';
import { attemptNow } from '@pawl/agent/session/attempt';
import { type CommitClaim, listClaims } from '@pawl/agent/workspace/git/commit-claim';
import { userFile } from '../../settings/load.js';
import { type Check, type DoctorWorld, type Found, runProgram } from './check-context.js';
import { findGitPipe } from './programs.js';

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

const gitSays = async (world: DoctorWorld, words: readonly string[]) => {
  const folder = realOf(world.workspace);
  return folder === null || findGitPipe(world) !== null ? null : runProgram(world, 'git', words, folder);
};

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

export const placeChecks: readonly Check[] = [...stateChecks, ...workspaceChecks];
