/**
 * What is tried in the sandbox before it is believed on a machine: acts that a command must not be
 * able to do, and acts that it must. They are done in fences of the command sandbox, around a
 * workspace, a home and a folder beside them that exist only meanwhile.
 *
 * A fence is one start of a program: one writes to the workspace and has no network, the other has
 * the network and only reads. Both do all acts, and report those that succeeded.
 *
 * No act leaves a mark outside these folders, also where the fence does not hold.
 */

import {
  mkdirSync,
  mkdtempSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { ProgramPath } from '../platform/find-program.js';
import { runProgram } from '../platform/run-program.js';
import type { CommandLevel } from '../policy/decide.js';
import { readUserPlaces } from '../secrets/user-places.js';
import { type CommandSandbox, createCommandSandbox } from './command-sandbox.js';
import { viewHost } from './sandbox/host.js';
import { commandFilter } from './sandbox/seccomp.js';
import { shellWord, shellWords } from './sandbox/shell-text.js';
import type { TrialResult, WithActs } from './workspace-probe.js';

/** The two fences. */
const LEVELS = ['workspace', 'read-only+net'] as const satisfies readonly CommandLevel[];
type Level = (typeof LEVELS)[number];

/** Where the acts are done. */
type ActPlace = {
  readonly workspace: string;
  /** The user's home, which is not the home of commands. */
  readonly home: string;
  /** A folder beside the workspace, of which commands see nothing. */
  readonly beside: string;
  /** Some files and folders of the system that commands must not read. */
  readonly masked: readonly string[];
  /** Of a server of this process on 127.0.0.1. */
  readonly port: number;
};

export type FenceAct = {
  /** What a command does, as the user reads it. */
  readonly name: string;
  /** Text for bash, in the workspace; exit code 0 if the act succeeded. Gets quoted folders. */
  shell(place: ActPlace): string;
  /** The fences in which a command may do it. */
  readonly allowed: readonly Level[];
  /** Not tried where it would prove nothing. Default: everywhere. */
  isTried?(): boolean;
};

const forbidden = (name: string, shell: FenceAct['shell'], isTried?: () => boolean): FenceAct => ({
  name,
  shell,
  allowed: [],
  ...(isTried === undefined ? {} : { isTried }),
});

const onLinux = (): boolean => process.platform === 'linux';

/** The namespaces of this process, such as `pid:[4026531836]`. */
const NAMESPACES = ['user', 'pid', 'ipc', 'uts'] as const;

const namespace = (name: string): string => readlinkSync(`/proc/self/ns/${name}`);

/** Files by which root changes the kernel. */
const KERNEL_FILES =
  'sys/kernel/core_pattern sysrq-trigger mtrr scsi/scsi dynamic_debug/control acpi/wakeup';

/** The signal that each process may get without harm: it is ignored, and no shell sends it. */
const SIGNAL = 'SIGURG';
const SIGNALS = 'send a signal to a program outside it';

/** All acts. A test plants a fault for each. */
export const fenceActs: readonly FenceAct[] = [
  forbidden('write a file beside the workspace', ({ beside }) => `: > ../new || : > ${beside}/new`),
  forbidden('read a file beside the workspace', ({ beside }) => `read -r _ < ${beside}/file`),
  forbidden('write through a link out of the workspace', () => ': > link/new'),
  forbidden('read keys in your home folder', ({ home }) => `read -r _ < ${home}/.ssh/id_rsa`),
  forbidden('change your home folder', ({ home }) => `: >> ${home}/.profile`),
  forbidden('read a file that Pawl hides', () => 'read -r _ < .netrc'),
  forbidden('change settings that an editor obeys', () => ': >> .vscode/settings.json'),
  forbidden('plant a hook of git', () => ': > .git/hooks/post-commit'),
  forbidden('change the history of git', () => ': > .git/refs/heads/main'),
  forbidden('change the system', () => '[ -w /usr ] || [ -w /etc ] || [ -w /var/log ]'),
  forbidden('write to the top of the file system', () => '[ -w / ]'),
  forbidden(
    'read what only root may read',
    ({ masked }) => `for file in ${shellWords(masked)}; do [ -r "$file" ] && break; done`,
  ),
  forbidden(
    'change settings of the kernel',
    () => `for file in ${KERNEL_FILES}; do [ -w /proc/$file ] && break; done`,
    onLinux,
  ),
  forbidden('see devices of the machine', () => '[ -e /dev/kmsg ] || [ -e /dev/mem ]', onLinux),
  forbidden(
    'use rights of root',
    () => `read -rd '' status < /proc/self/status; [[ $status != *CapEff:?0000000000000000* ]]`,
    onLinux,
  ),
  forbidden(
    'give a file the rights of its owner',
    () => ': > "$TMPDIR/own" && chmod u+s "$TMPDIR/own" && [ -u "$TMPDIR/own" ]',
    () => onLinux() && commandFilter(process.arch, { local: true }) !== null,
  ),
  forbidden(
    'reach the terminal of Pawl',
    () => `read -r stat < /proc/self/stat; set -- \${stat##*) }; [ "$4" = 0 ]`,
    onLinux,
  ),
  ...NAMESPACES.map((name) =>
    forbidden(
      `share the ${name} namespace of the machine`,
      () => `[[ $namespaces == *'${namespace(name)}'* ]]`,
      onLinux,
    ),
  ),
  // Whether it arrived is seen outside: the number may be that of another process inside.
  forbidden(SIGNALS, () => `kill -s ${SIGNAL.slice(3)} ${process.pid}; false`),
  {
    name: 'reach the network',
    shell: ({ port }) => `: <> /dev/tcp/127.0.0.1/${port}`,
    allowed: ['read-only+net'],
  },
  { name: 'write to the workspace', shell: () => ': > new', allowed: ['workspace'] },
  { name: 'read the workspace', shell: () => 'read -r _ < file', allowed: LEVELS },
  { name: 'write temporary files', shell: () => ': > "$TMPDIR/new"', allowed: LEVELS },
  { name: 'write to its home folder', shell: () => ': > "$HOME/new"', allowed: LEVELS },
  // Other acts need these programs.
  {
    name: 'start a program',
    shell: () => 'readlink link > /dev/null && chmod 600 "$TMPDIR/new"',
    allowed: LEVELS,
  },
];

/** The last line of a report. */
const END = 'end of the acts';

const script = (place: ActPlace, acts: readonly FenceAct[]): string => {
  const quoted = { ...place, home: shellWord(place.home), beside: shellWord(place.beside) };
  const lines = acts.map((act, at) => `{ ${act.shell(quoted)}; } 2> /dev/null && echo ${at}`);
  const namespaces = 'namespaces=$(readlink /proc/self/ns/* 2> /dev/null)';
  return [namespaces, ...lines, `echo ${shellWords([END])}`].join('\n');
};

/** Files for the acts. */
const makePlace = (top: string): Pick<ActPlace, 'workspace' | 'home' | 'beside'> => {
  const [workspace, home, beside] = ['workspace', 'home', 'beside'].map((name) =>
    path.join(top, name),
  ) as [string, string, string]; // as many as names
  const files = {
    [workspace]: ['file', '.netrc', '.vscode/settings.json', '.git/HEAD', '.git/config'],
    [home]: ['.ssh/id_rsa', '.profile'],
    [beside]: ['file'],
  };
  for (const [folder, names] of Object.entries(files))
    for (const name of names) {
      mkdirSync(path.join(folder, path.dirname(name)), { recursive: true });
      writeFileSync(path.join(folder, name), 'a line\n');
    }
  for (const name of ['objects', 'refs/heads', 'hooks'])
    mkdirSync(path.join(workspace, '.git', name), { recursive: true });
  writeFileSync(path.join(workspace, '.git/HEAD'), 'ref: refs/heads/main\n');
  writeFileSync(path.join(workspace, '.git/config'), '[core]\n\tbare = false\n');
  symlinkSync(beside, path.join(workspace, 'link'));
  return { workspace, home, beside };
};

const listen = (server: Server): Promise<number> =>
  new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : 0);
    });
  });

const DEADLINE_MS = 10_000;
const OUTPUT_MAX = 16 * 1024;
const MASKED_MAX = 100;

type Trial = {
  readonly sandbox: CommandSandbox;
  readonly bash: ProgramPath;
  readonly searchPath: string;
  readonly place: ActPlace;
  readonly acts: readonly FenceAct[];
  /** Whether the signal arrived at this process. */
  gotSignal(): boolean;
};

/** Does the acts in one fence. The text of an error if they were not all tried. */
const runActs = async ({ sandbox, bash, searchPath, place, acts }: Trial, level: Level) => {
  const prepared = await sandbox.prepare({
    level,
    program: bash,
    words: ['-c', script(place, acts)],
    environment: { PATH: searchPath },
    repository: 'read',
  });
  const running = runProgram({
    ...prepared,
    title: 'bwrap',
    input: null,
    bytesMax: OUTPUT_MAX,
    atMax: 'cut',
    deadlineMs: DEADLINE_MS,
    signal: new AbortController().signal,
  });
  prepared.started();
  try {
    const { output, errors, code } = await running;
    const lines = output.toString('utf8').split('\n');
    if (!lines.includes(END)) return { errors: errors || `it ended with code ${code}` };
    return { done: acts.filter((_, at) => lines.includes(String(at))) };
  } finally {
    await prepared.finish();
  }
};

const tryFence = async (trial: Trial): Promise<TrialResult> => {
  const could = new Set<string>();
  const couldNot = new Set<string>();
  // side by side: the user waits for them before the first request
  const reports = await Promise.all(LEVELS.map((level) => runActs(trial, level)));
  for (const [at, { done, errors }] of reports.entries()) {
    if (done === undefined) return { kind: 'unable', errors };
    for (const act of trial.acts) {
      const isAllowed = act.allowed.includes(LEVELS[at] as Level); // a report for each
      const isDone = done.includes(act) || (act.name === SIGNALS && trial.gotSignal());
      if (isDone && !isAllowed) could.add(act.name);
      if (!isDone && isAllowed) couldNot.add(act.name);
    }
  }
  if (could.size + couldNot.size === 0) return { kind: 'holds' };
  return { kind: 'fails', could: [...could], couldNot: [...couldNot] };
};

/** Makes what the acts need, and removes it when `use` has ended. */
export const withActs: WithActs = async ({ program, bash, searchPath }, use) => {
  const top = realpathSync(mkdtempSync(path.join(tmpdir(), 'pawl-probe-')));
  const server = createServer((socket) => socket.destroy());
  let signals = 0;
  const count = (): void => {
    signals += 1;
  };
  process.on(SIGNAL, count);
  try {
    const host = viewHost(['/etc']); // enough to try: the user waits for it
    const masked = host.masked.slice(0, MASKED_MAX);
    const place = { ...makePlace(top), masked, port: await listen(server) };
    // A folder with bubblewrap alone: with git the session would read the settings of the user.
    mkdirSync(path.join(top, 'bin'));
    symlinkSync(program, path.join(top, 'bin', path.basename(program)));
    const environment = {
      PATH: path.join(top, 'bin'),
      HOME: place.home,
      NETRC: path.join(place.workspace, '.netrc'),
    };
    const acts = fenceActs.filter(({ isTried }) => isTried?.() ?? true);
    let number = 0;
    return await use(async (features) => {
      number += 1;
      signals = 0;
      const sandbox = createCommandSandbox({
        workspace: place.workspace,
        environment,
        sessionFolder: path.join(top, 'sandbox', `${process.pid}-${number}`),
        userPlaces: readUserPlaces(environment),
        viewHost: () => host,
        probe: async () => ({ kind: 'works', features }),
      });
      try {
        const gotSignal = (): boolean => signals > 0;
        return await tryFence({ sandbox, bash, searchPath, place, acts, gotSignal });
      } finally {
        await sandbox.close();
      }
    });
  } finally {
    process.off(SIGNAL, count);
    server.close();
    rmSync(top, { recursive: true, force: true });
  }
};
