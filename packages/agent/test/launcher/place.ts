import { readdirSync, readFileSync, realpathSync } from 'node:fs';
import path from 'node:path';
import type { TestContext } from 'node:test';
import { processesWith } from '../../../../test/kit/tools/processes.js';
import { atEnd, temporaryFolder } from '../../../../test/temporary-folder.js';
import { until } from '../../../../test/until.js';
import type { LaunchedEnd } from '../../src/command/launched-command.js';
import {
  type CommandFence,
  createLauncher,
  type Enclosure,
  type Launcher,
  type LauncherOptions,
} from '../../src/command/launcher.js';
import type { OutputReceiver } from '../../src/command/output.js';
import type { CommandLine } from '../../src/command/sandbox/shell-text.js';
import { ownPrograms, type ProgramPath } from '../../src/platform/find-program.js';
import { closingOthers, systemBash } from '../../src/platform/start-program.js';

/** A launcher with a simple fence around the whole machine, in a folder that is gone when the test ends. */

export const programOf = (name: string): ProgramPath => {
  const found = ownPrograms().find(name);
  if (found === null) throw new Error(`there is no ${name}`);
  return found;
};

export type Ran = LaunchedEnd & { readonly output: string };
export type Place = {
  readonly launcher: Launcher;
  readonly folder: string;
  readonly fence: CommandFence;
  run(script: string, more?: Partial<CommandLine>, enclosure?: Enclosure): Promise<Ran>;
  /** Numbers of the launcher's own processes. */
  shells(): readonly number[];
};

const fenceOf = (): CommandFence => ({
  program: programOf('bwrap'),
  words: [
    ...['--unshare-user', '--unshare-pid', '--die-with-parent', '--new-session'],
    ...['--tmpfs', '/', '--proc', '/proc', '--dev', '/dev'],
    ...['/usr', '/bin', '/lib', '/lib64', '/etc'].flatMap((name) => ['--ro-bind-try', name, name]),
  ],
  seals: ['--remount-ro', '/', '--chdir', '/'],
  filter: null,
  entry: [],
  isReading: false,
});

export const shell = (script: string, more: Partial<CommandLine> = {}): CommandLine => ({
  program: programOf('bash'),
  words: ['-c', script],
  unwritten: [],
  environment: { PATH: '/usr/bin:/bin' },
  ...more,
});

export const to = (tell: (text: string) => void): OutputReceiver => ({
  bytes: (bytes) => tell(bytes.toString('utf8')),
  skipped: () => undefined,
});

/** By the folder they stand in. */
const shellsIn = (folder: string): readonly number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return (
          readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('pawl-launcher') &&
          isIn(pid, folder)
        );
      } catch {
        return false; // it has ended
      }
    });

const isIn = (pid: number, folder: string): boolean => realpathSync(`/proc/${pid}/cwd`) === folder;

export const makePlace = (t: TestContext, options: Partial<LauncherOptions> = {}): Place => {
  const top = temporaryFolder(t, 'launcher');
  const folder = path.join(top, 'commands');
  const fence = fenceOf();
  const launcher = createLauncher({
    folder,
    copier: programOf('dd'),
    closingOthers: (program, words, last) => closingOthers({ program, words }, last, systemBash()),
    ...options,
  });
  atEnd(t, async () => {
    await launcher.close();
    await until('nothing of it runs', () => processesWith(folder).length === 0);
  });
  return {
    launcher,
    folder,
    fence,
    async run(script, more, enclosure = fence) {
      const taken = await launcher.take(enclosure);
      if (taken === null) throw new Error('no command can be had');
      const pieces: Buffer[] = [];
      const receiver = {
        bytes: (bytes: Buffer) => void pieces.push(bytes),
        skipped: () => undefined,
      };
      taken.start(shell(script, more), '/', { due: null, record: null }, receiver);
      return { ...(await taken.ended), output: Buffer.concat(pieces).toString('utf8') };
    },
    shells: () => shellsIn(folder),
  };
};
