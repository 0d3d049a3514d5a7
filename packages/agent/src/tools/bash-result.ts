/**
 * A command as the model sees it. From top to bottom: waiting for its end; the result, with its
 * output and one line about its end; a command as a job; and hints where the sandbox was probably
 * in the way.
 *
 * `level` is what the sandbox lets a command do: `reads`, `read-only`, `workspace`, the last two
 * also with `+net`, or `off`. A call with `needs` may be widened to more than the session's level.
 */

import path from 'node:path';
import type { Command, CommandEnd } from '../command/command.js';
import { type CommandOutput, createCommandOutput, type OutputReceiver } from '../command/output.js';
import { INNER_HOME } from '../command/sandbox/session-folders.js';
import { realPath } from '../platform/files.js';
import type { CommandLevel } from '../policy/decide.js';
import { listWords } from '../policy/paths.js';
import { listRemoteCommands } from '../policy/programs/git.js';
import { programs } from '../policy/programs/program-table.js';
import type { Job, ToolContext, ToolOutcome } from '../ports/tool.js';
import { failed } from './file-change.js';

/** What has run, and where. */
export type RunPlace = {
  /** Its words, as the model wrote them. */
  readonly command: string;
  readonly level: CommandLevel;
  /** Real path. */
  readonly workspace: string;
  /** The user's home folder; empty if it has none. */
  readonly home: string;
  /** It reaches more than the session's level. Default: false. */
  readonly isWidened?: boolean;
  /** No user can be asked for more than the session's level. Default: false. */
  readonly unattended?: boolean;
};

/** Identifies a call in its session. A resumed process finds the call's command by it. */
export const callKey = ({ batchId, callId }: Pick<ToolContext, 'batchId' | 'callId'>): string =>
  `${batchId} ${callId}`;

/** Waits for the end; a cancelled call asks the command to end, then kills it. */
export const waitForEnd = async (
  command: Command,
  { signal, force }: Pick<ToolContext, 'signal' | 'force'>,
): Promise<CommandEnd> => {
  const stop = (): void => command.stop();
  const kill = (): void => command.kill();
  signal.addEventListener('abort', stop, { once: true });
  force.addEventListener('abort', kill, { once: true });
  if (signal.aborted) stop();
  if (force.aborted) kill();
  const end = await command.ended;
  signal.removeEventListener('abort', stop);
  force.removeEventListener('abort', kill);
  return end;
};

/** Result of a command: its output and one line about its end. */
export const commandOutcome = (
  { output }: Pick<Command, 'output'>,
  end: CommandEnd,
  place: RunPlace,
  signal: AbortSignal,
): ToolOutcome => {
  const { how, leftovers, notes, durationMs } = end;
  const { unattended = false } = place;
  const shown = showOutput(output);
  const stopped = whyStopped(end, signal);
  // where it was stopped, the status says more than "(no output)"
  const above = stopped !== null && shown === NO_OUTPUT ? [] : [shown];
  const show = (line: string, more: readonly string[]): string =>
    [...above, `[${line}]`, ...(unattended ? more.map(withoutAsking) : more)].join('\n');
  const droppedBytes = output.droppedBytes();
  const common = { isLog: true, ...(droppedBytes === 0 ? {} : { droppedBytes }) } as const;
  if (stopped !== null) {
    // why, and that its effects remain, the status says, too
    const haveEnded = leftovers === 'none' || leftovers === 'ended';
    const all = haveEnded ? ', with all processes that it started' : '';
    const hint = stopped === 'timedOut' ? networkHint(place) : null;
    const left = haveEnded ? [] : LEFTOVER_LINES[leftovers];
    const below = [...hintLines(hint), ...left, ...notes];
    return {
      status: stopped,
      text: show(`stopped after ${seconds(durationMs)}${all}`, below),
      ...common,
    };
  }
  if (how.kind === 'killed' && how.why === 'lost') {
    const line = 'nobody saw how it ended: check before you run it again';
    return { status: 'lost', text: show(line, notes), ...common };
  }
  const text = show(describeEnd(end), endLines(output, end, place));
  if (how.kind !== 'exited' || how.code !== 0) return { ...failed(text), ...common };
  // no summary without output, since the text says so
  const summary = shown === NO_OUTPUT ? { summary: '' } : {};
  return { status: 'ok', text, ...common, endedWell: true, ...summary };
};

const seconds = (durationMs: number): string => `${(durationMs / 1000).toFixed(1)} s`;

export const describeEnd = ({
  how,
  durationMs,
}: Pick<CommandEnd, 'how' | 'durationMs'>): string => {
  switch (how.kind) {
    case 'exited':
      return `exit code ${how.code}, ${seconds(durationMs)}`;
    case 'killed': {
      const end = how.why === 'lost' ? 'ended, nobody saw how' : `ended by ${how.signal}`;
      return `${end}, ${seconds(durationMs)}`;
    }
    case 'notStarted':
      return `not started: ${how.why}`;
    default:
      return how satisfies never;
  }
};

/**
 * Why it was stopped: by this call, or as an earlier process of the session recorded (`how.why`).
 * Null: it ended by itself.
 */
const whyStopped = ({ how }: CommandEnd, signal: AbortSignal): 'timedOut' | 'cancelled' | null => {
  if (signal.aborted) return signal.reason === 'timedOut' ? 'timedOut' : 'cancelled';
  if (how.kind !== 'killed' || how.why === undefined || how.why === 'lost') return null;
  return how.why === 'deadline' ? 'timedOut' : 'cancelled';
};

/**
 * Pawl puts `exec 2>&1; ` before each command, to join stderr to stdout. bash repeats it in
 * messages about syntax errors, where it would puzzle the model.
 */
const JOINED_IN_MESSAGE = /`exec 2>&1; /g;
const NO_OUTPUT = '(no output)';

const showOutput = (output: CommandOutput): string =>
  output.text().replace(JOINED_IN_MESSAGE, '`').trimEnd() || NO_OUTPUT;

const LEFTOVER_LINES: Readonly<Record<CommandEnd['leftovers'], readonly string[]>> = {
  none: [],
  ended: [
    '[processes that it left in the background were ended; to keep one, use background: true]',
  ],
  detached: ['[a process that it detached still runs]'],
  unseen: ['[the system does not tell whether processes that it started still run]'],
};

/** A pipe with less in it was never full. */
const PIPE_BYTES = 32_768;

const MAY_LACK_ITS_END =
  '[the end of this output may be missing: Node loses what waits in a pipe when it calls ' +
  'process.exit; in a file (> FILE) it is whole]';

/**
 * On Linux with these processors the sandbox filters system calls, and Node's writes to a pipe are
 * complete even if it exits at once (sandbox/seccomp.ts).
 */
export const FILTERED_ARCHITECTURES: readonly string[] = ['x64', 'arm64'];

/** Whether the output may lack its end, as MAY_LACK_ITS_END says: never if the filter is on. */
const mayLackItsEnd = (output: CommandOutput, level: CommandLevel): boolean =>
  (level === 'off' ||
    process.platform !== 'linux' ||
    !FILTERED_ARCHITECTURES.includes(process.arch)) &&
  output.totalBytes() > PIPE_BYTES;

const hintLines = (hint: string | null): readonly string[] => (hint === null ? [] : [`[${hint}]`]);

/**
 * Advice to ask the user for more, and what is said instead where nobody can be asked. The first is
 * in the hints below and in `noRepository` (workspace-mounts.ts), the second is `ADVICE` of
 * protected-files.ts.
 */
const ASKING: readonly (readonly [advice: RegExp, instead: string])[] = [
  [
    /if that is what it needs, ask again with (needs: "\w+")/,
    'nobody can be asked here, so $1 is denied unless a rule of the user allows it: do without, ' +
      'or end with what the user is to run',
  ],
  [
    /if that was on purpose, change it with the tool write or edit, or ask again with needs: "\w+"/,
    'if that was on purpose, end with what the user is to change: nobody can be asked here',
  ],
];

/** One of our own lines below an output, for a model whose user can't be asked. */
const withoutAsking = (line: string): string =>
  ASKING.reduce((changed, [advice, instead]) => changed.replace(advice, instead), line);

/**
 * Lines below the output of a command that this call has not stopped: a sandbox hint, leftover
 * processes, notes.
 */
const endLines = (
  output: CommandOutput,
  { how, leftovers, notes }: CommandEnd,
  place: RunPlace,
): readonly string[] => {
  const findHint = how.kind !== 'exited' ? null : how.code === 0 ? partialHint : sandboxHint;
  const hint = findHint === null ? null : findHint({ ...place, output: output.text() });
  return [
    ...hintLines(hint),
    ...(how.kind === 'exited' && mayLackItsEnd(output, place.level) ? [MAY_LACK_ITS_END] : []),
    ...LEFTOVER_LINES[leftovers],
    ...notes,
  ];
};

// ---- Jobs ----

export const jobStarted = (jobId: string): ToolOutcome => ({
  status: 'ok',
  text: `Started ${jobId} in the background. See or kill it with jobAction and jobId.`,
});

/** A background command as a job of the session. */
export const createJob = (jobId: string, command: Command, place: RunPlace): Job => {
  let end: CommandEnd | undefined;
  void command.ended.then((ended) => {
    end = ended;
  });
  const { output } = command;
  const linesBelow = (ended: CommandEnd): readonly string[] => {
    const lines = endLines(output, ended, place);
    return place.unattended === true ? lines.map(withoutAsking) : lines;
  };
  return {
    jobId,
    command: place.command,
    status: () => (end === undefined ? 'running' : describeEnd(end)),
    droppedBytes: () => output.droppedBytes(),
    output: () => [showOutput(output), ...(end === undefined ? [] : linesBelow(end))].join('\n'),
    kill: async () => {
      command.kill();
      await command.ended;
    },
  };
};

/**
 * A job that no process runs any more, whose output is read from its files on request.
 */
export const createEndedJob = (
  { jobId, command }: Pick<Job, 'jobId' | 'command'>,
  end: string,
  read: (to: OutputReceiver) => void,
): Job => {
  let loaded: CommandOutput | null = null;
  const load = (): CommandOutput => {
    if (loaded !== null) return loaded;
    const output = createCommandOutput(() => undefined); // its changes are not shown
    read({ bytes: (bytes) => output.add(bytes), skipped: (count) => output.skip(count) });
    output.finish();
    loaded = output;
    return output;
  };
  return {
    jobId,
    command,
    status: () => end,
    droppedBytes: () => load().droppedBytes(),
    output: () => showOutput(load()),
    kill: async () => undefined,
  };
};

// ---- Hints ----

// They explain failures that the sandbox probably caused, from a command's output, and say how to
// avoid them. Programs word these errors differently, and print some of them for other reasons too.
// So only a failed command in the sandbox gets a hint, and it states what holds inside the sandbox,
// not that this was the cause.

export type FailedCommand = RunPlace & { readonly output: string };

type Hint = {
  readonly sign: RegExp;
  /** An additional check if the pattern alone is ambiguous. */
  readonly when?: (failed: FailedCommand, match: RegExpExecArray) => boolean;
  readonly text: string;
};

const OUTSIDE = 'if that is what it needs, ask again with needs: "outside"';
const REPOSITORY = 'if that is what it needs, ask again with needs: "repository"';
const GIT_IS_READ_ONLY =
  '.git is read-only for this command, since its words run no git command that changes it: ' +
  `${REPOSITORY}`;
const NO_NETWORK =
  'the sandbox has no network: if that is what it needs, ask again with needs: "network"';
const NO_SERVERS =
  'only servers that run as a job of this session (background: true) answer on localhost in the ' +
  "sandbox; others, for example a database of this machine, can't be reached: if that is what it " +
  'needs, ask again with needs: "network"';
const NO_DAEMONS = `daemons of the machine can't be reached from the sandbox: ${OUTSIDE}`;
const NO_PACKAGES = `packages of the system can't be installed in the sandbox: ${OUTSIDE}`;

const hasNoNetwork = ({ level }: Pick<RunPlace, 'level'>): boolean =>
  level !== 'off' && !level.endsWith('+net');

/**
 * A program where a word begins, so also after `sudo` or variables. The same word as an argument
 * counts too, which gives at most a hint too many.
 */
const startsProgram = (words: string): RegExp =>
  new RegExp(`(?:^|[\\s;&|(\`"'/])(?:${words})(?![\\w./-])`, 'm');

/** Programs that may reach the network. */
const MAY_USE_NETWORK = startsProgram(
  'npm|npx|pnpm|pnpx|yarn|bunx?|pip3?|pipx|uvx?|poetry|conda|cargo|go|gems?|bundler?|composer|' +
    'mvn|gradle|gradlew|dotnet|rsync',
);
/** A few options before the word, with a value or without. */
const OPTIONS = '(?: -\\S+(?: [^-\\s]\\S*)?){0,5}?';
const withWords = (words: Iterable<string>): string => `${OPTIONS} (?:${[...words].join('|')})`;
/** Programs, each with its words of this kind. */
const programsWithWords = (kind: 'network' | 'system'): string =>
  [...programs]
    .flatMap(([name, { [kind]: words }]) =>
      typeof words === 'string' ? [`${name}${withWords(listWords(words))}`] : [],
    )
    .join('|');
/** Whether a command does nothing without the network. */
const usesNetwork = (command: string): boolean =>
  startsProgram(
    [
      programsWithWords('network'),
      'python3? -m pip (?:install|download)',
      `go${withWords(['get', 'install', 'mod'])}`,
      `git${withWords([...listRemoteCommands(), 'clone', 'submodule update'])}`,
      'yarn\\s*(?=$|[;&|])',
      'curl|wget|ssh|scp|gh|uvx',
    ].join('|'),
  ).test(command);
const LOCAL_ADDRESS = /\b(?:localhost|127(?:\.\d+){3})\b|\[::1\]/;
/** Signs of a failure in which the network would not help. */
const OTHER_CAUSE =
  /command not found|not a git repository|no upstream branch|No configured push destination|does not appear to be a git repository|No such remote|Everything up-to-date|unknown (?:option|command|switch)|No such file or directory/i;
const installsPackages = (command: string): boolean =>
  startsProgram(`${programsWithWords('system')}|pacman -\\S+`).test(command);

const NETWORK_SIGN =
  /Could not resolve (?:host|proxy)|Temporary failure in name resolution|Name or service not known|nodename nor servname|\bENOTFOUND\b|\bEAI_AGAIN\b|\bENETUNREACH\b|network is unreachable|NameResolutionError|Failed to resolve|failed to lookup address|unable to resolve host address|dial tcp: lookup|No address associated with hostname|cannot resolve hostname|bad address '|Failed to connect to (?!127\.|localhost|::1)\S+ port|Cannot assign requested address/i;

/** Half a sentence about a command that reached its time limit, or null. */
const networkHint = (place: RunPlace): string | null =>
  hasNoNetwork(place) && (MAY_USE_NETWORK.test(place.command) || usesNetwork(place.command))
    ? NO_NETWORK
    : null;

const isIn = (place: string, folder: string): boolean =>
  folder !== '' &&
  (place === folder || place.startsWith(folder.endsWith('/') ? folder : `${folder}/`));

/** How programs word that a path is write-protected by a mount. */
const BUSY = '(?:Device or resource busy|Read-only file system|EBUSY|EROFS)';

const isElsewhere = (place: string, workspace: string): boolean =>
  place.startsWith('~') ||
  (/^(?:file:\/\/|\.{0,2}\/)/.test(place) &&
    !isIn(path.resolve(workspace, place.replace(/^file:\/\//, '')), workspace));

/** The socket that `curl` is to use in place of the network. */
const SOCKET = /\bcurl\b[^\n;|&]*? --(?:abstract-)?unix-socket[ =]['"]?([^\s'"]+)/;

/** How programs name a path that is there for us, and was not for the command. */
const MISSED =
  /(?<![^\s\u2018'"`(])([^\s\u2018\u2019'"`:]+)[\u2019'"`]?:? (?:No such file or directory|File exists|file exists)(?!: ')|(?:ENOENT|EEXIST)[^\n]*? '([^'\n]+)'|(?:No such file or directory|File exists): '([^'\n]+)'|failed to create directory `([^`\n]+)`/g;

/** Advice about a path of the workspace that leads out of it; null if no such path is named. */
const linkHint = (output: string, workspace: string): string | null => {
  for (const [, ...names] of output.matchAll(MISSED)) {
    const name = names.find((each) => each !== undefined) ?? '';
    const place = path.resolve(workspace, name);
    const parts = isIn(place, workspace) ? path.relative(workspace, place).split('/') : [];
    for (const [index] of parts.entries()) {
      const link = parts.slice(0, index + 1).join('/');
      const real = realPath(path.join(workspace, link));
      if (real !== null && !isIn(real, workspace))
        return `${link} is a link to ${real}, which is not visible in the sandbox: ${OUTSIDE}`;
    }
  }
  return null;
};

/** What becomes of a write that no words of the command have announced. */
const READS_ONLY =
  'by its words this command only reads, so it ran where nothing but /tmp can be written: if it ' +
  'is to write, put env before its program (env PROGRAM ...), and it runs as one that writes';

/** The first match counts, so specific hints come first. */
const hints: readonly Hint[] = [
  {
    sign: /Read-only file system|\bEROFS\b|read-only file system|readonly database|Device or resource busy/,
    when: ({ level }) => level === 'reads',
    text: READS_ONLY,
  },
  {
    sign: /'([^'\n]+)' does not appear to be a git repository|repository '([^'\n]+)' does not exist/,
    when: ({ workspace }, match) => isElsewhere(match[1] ?? match[2] ?? '', workspace),
    text: `repositories outside of the workspace can't be reached from the sandbox: ${OUTSIDE}`,
  },
  {
    sign: /unable to create temporary object directory|remote unpack failed/,
    when: ({ command }) => /\bpush\b/.test(command),
    text: `repositories outside of the workspace can't be changed in the sandbox: ${OUTSIDE}`,
  },
  {
    sign: /could not set 'core\.(?:repositoryformatversion|filemode|bare|logallrefupdates)'/,
    text:
      `a git repository is here already, so git init is not needed; git's configuration and ` +
      `hooks can't be changed in the sandbox: ${OUTSIDE}`,
  },
  {
    sign: new RegExp(
      `(?:config(?:\\.worktree|\\.lock)?|\\.git/hooks\\S*|info/attributes)['"]?: ${BUSY}`,
    ),
    text: `git's configuration and hooks can't be changed in the sandbox: ${OUTSIDE}`,
  },
  {
    sign: new RegExp(
      `(?:move|remove|rename|unlink|overwrite|replace)\\b[^\\n]*: ${BUSY}|Device or resource busy`,
    ),
    text:
      `.git and files that are run later without a question can't be replaced in the sandbox: ` +
      `${OUTSIDE}`,
  },
  {
    sign: /(?:\.git\/|index\.lock|\.lock'|objects\/|refs\/)[^\n]*(?:Read-only file system|EROFS|read-only file system)/,
    when: ({ level }) => !level.startsWith('read-only'),
    text: GIT_IS_READ_ONLY,
  },
  {
    sign: /Read-only file system|\bEROFS\b|readonly database|read-only file system/,
    when: ({ level }) => level.startsWith('read-only'),
    text: `the sandbox is read-only now: nothing but /tmp and the home folder can be written`,
  },
  {
    sign: /Read-only file system|\bEROFS\b|read-only file system/,
    text:
      'in the sandbox only the workspace, /tmp and a private home folder can be written, and ' +
      `there not what is run later without a question (hooks, CI, editor tasks): ${OUTSIDE}`,
  },
  {
    sign: /Cannot connect to the (?:Docker|Podman)|is the docker daemon running|docker\.sock|podman\.sock|containerd\.sock|connect to the docker API/i,
    text: NO_DAEMONS,
  },
  {
    sign: /no new privileges|sudo: (?:effective uid|\/etc\/sudo|unable to|setrlimit|a terminal|a password|error initializing)|su: (?:Authentication failure|cannot set|must be run)|must be suid|setuid/i,
    text: `no rights can be gained in the sandbox: ${OUTSIDE}`,
  },
  {
    sign: /(?:unshare|clone|setns|mount|umount|fusermount3?|pivot_root|bwrap)\b[^\n]*(?:Operation not permitted|permission denied|EPERM|Function not implemented|No permissions)|uid_map|No usable sandbox|user namespaces? (?:is|are) (?:not|disabled)/i,
    text: `namespaces and mounts can't be made in the sandbox: ${OUTSIDE}`,
  },
  {
    sign: /Permission denied \(publickey|Host key verification failed|connection to your authentication agent|gpg(?:-agent)?: [^\n]*(?:No secret key|can't connect)|gpg failed to sign/i,
    text: `keys and their agents are not visible in the sandbox: ${OUTSIDE}`,
  },
  {
    sign: NETWORK_SIGN,
    when: hasNoNetwork,
    text: NO_NETWORK,
  },
  {
    sign: /ECONNREFUSED|connection refused|Failed to connect to (?:127\.|localhost|::1)/i,
    when: hasNoNetwork,
    text: NO_SERVERS,
  },
  {
    sign: /(?:refused|Failed to connect to)[^\n]*(?:127\.|localhost|::1)|(?:127\.|localhost|::1)[^\n]* refused/i,
    when: ({ isWidened = false }) => isWidened,
    text:
      'a server that was started in the sandbox without the network listens on a localhost that ' +
      'a command with the network does not see: ask it without needs',
  },
  {
    sign: /(\/etc\/(?:shadow|gshadow|sudoers|ssh|ssl\/private)\S*|\/var\/lib\/docker\S*|\/proc\/\d+\/\S*)['"':]*:? ?(?:Permission denied|EACCES)/,
    text: `secrets of the machine and other processes are not visible in the sandbox: ${OUTSIDE}`,
  },
  {
    sign: /(~?\/[^\s:'"'(),]+)['"']*:? (?:No such file or directory|Permission denied|not found)|(?:ENOENT|EACCES)[^\n]*? '(\/[^']+)'|No such file or directory: '(\/[^']+)'/,
    when: ({ home, workspace }, match) => {
      const place = match[1] ?? match[2] ?? match[3] ?? '';
      // INNER_HOME: the path of the private home folder inside of the sandbox
      const isHome = place.startsWith('~') || isIn(place, INNER_HOME) || isIn(place, home);
      return isHome && !isIn(place, workspace);
    },
    text:
      'the home folder in the sandbox is a private one with toolchains alone, no settings and ' +
      `no secrets: ${OUTSIDE}`,
  },
  {
    sign: /(?:changing ownership|chown|lchown)\b[^\n]*(?:Operation not permitted|Invalid argument|EPERM|EINVAL)/,
    text: `there is one user only in the sandbox, files can't be given to another: ${OUTSIDE}`,
  },
  {
    sign: /ptrace\b[^\n]*(?:Operation not permitted|EPERM)|perf_event_open|bpf\b[^\n]*Operation not permitted/,
    text: `tracing of other processes and the kernel is off in the sandbox: ${OUTSIDE}`,
  },
  {
    // the one answer of Seatbelt, whatever it refuses
    sign: /Operation not permitted|\bEPERM\b/,
    when: () => process.platform === 'darwin',
    text:
      'the sandbox may be why: what it does not show can not be read, only the workspace, TMPDIR ' +
      'and a private home folder can be written, and there not what is run later without a ' +
      `question (git's configuration and hooks, CI, editor tasks): ${OUTSIDE}`,
  },
];

/** Git could not write its settings, and went on. */
const CONFIG_KEPT = new RegExp(`could not (?:write|lock) config file \\S*config: ${BUSY}`);
/** Programs say at the end of their output why they failed. */
const CHECKED_CHARACTERS = 8_192;

const GIT_FAILED = /\.git\/[^\n]*: Read-only file system/;

/**
 * Half a sentence about a command that ended well although git could not do all of it; null if
 * there is none.
 */
const partialHint = (failed: FailedCommand): string | null => {
  const { level, output, command } = failed;
  if (level === 'off') return null;
  const end = output.slice(-CHECKED_CHARACTERS);
  // `npm install | tail` ends as `tail` does
  if (hasNoNetwork(failed) && NETWORK_SIGN.test(end) && usesNetwork(command)) return NO_NETWORK;
  if (CONFIG_KEPT.test(end))
    return (
      "git's settings in .git/config are read-only in the sandbox, so git left them as they " +
      'are; what else it reports was done'
    );
  if (level === 'reads') return /: Read-only file system/.test(end) ? READS_ONLY : null;
  return GIT_FAILED.test(end) && !level.startsWith('read-only') ? GIT_IS_READ_ONLY : null;
};

/** Half a sentence about a command that failed; null if nothing points to the sandbox. */
export const sandboxHint = (failed: FailedCommand): string | null => {
  const { level, command } = failed;
  if (level === 'off') return null;
  if (installsPackages(command)) return NO_PACKAGES;
  const output = failed.output.slice(-CHECKED_CHARACTERS);
  const socket = SOCKET.exec(command)?.[1];
  if (socket !== undefined) return isElsewhere(socket, failed.workspace) ? NO_DAEMONS : null;
  const link = linkHint(output, failed.workspace);
  if (link !== null) return link;
  for (const { sign, when, text } of hints) {
    const match = sign.exec(output);
    if (match !== null && (when === undefined || when(failed, match))) return text;
  }
  const needsNetwork =
    usesNetwork(command) && !LOCAL_ADDRESS.test(command) && !OTHER_CAUSE.test(output);
  return needsNetwork && hasNoNetwork(failed) ? NO_NETWORK : null;
};
