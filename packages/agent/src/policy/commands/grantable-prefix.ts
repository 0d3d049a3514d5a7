import type { CallFacts, ParsedCommand } from '../../machine/call.js';

/**
 * The prefix that a grant for a command would cover, or null if none is offered.
 *
 * A prefix lets any further words run without a question. So it is offered only for one plain command, and never if the
 * further words decide what runs, what is deleted or where something is sent.
 */

/** Programs that run their arguments or have irreversible effects. */
const NEVER = new Set(
  `bash sh dash zsh ksh fish csh tcsh ash busybox env sudo doas su pkexec runuser setsid nohup nice ionice time timeout stdbuf
  xargs parallel watch find fd exec eval command builtin source . trap script expect unshare chroot nsenter bwrap flock strace gdb ltrace
  python python2 python3 pypy pypy3 node nodejs deno bun tsx ts-node ruby perl php lua luajit awk gawk mawk nawk sed ed ex vi vim nvim emacs
  R Rscript julia osascript java groovy scala kotlin ghc runghc swift tclsh wish
  npx pnpx bunx uvx pipx dlx corepack ssh scp sftp rsync nc ncat netcat socat telnet ftp curl wget http https aria2c openssl
  rm rmdir shred dd truncate mkfs mount umount chmod chown chgrp kill killall pkill mv cp ln tee install tar unzip
  docker podman nerdctl kubectl helm systemctl crontab at batch screen tmux make ninja cmake gradle`
    .split(/\s+/)
    .filter((name) => name !== ''),
);

/** Programs with subcommands: a prefix must include the subcommand. */
const WITH_COMMANDS = new Set(
  `git npm pnpm yarn cargo go pip pip3 uv poetry gh glab dotnet mvn bundle gem composer mix rustup brew apt apt-get dnf yum apk conda terraform`
    .split(/\s+/)
    .filter((name) => name !== ''),
);
/** Subcommands whose next word names what runs: `npm run lint`. */
const NAMING = new Set(['run', 'run-script', 'exec', 'x', 'tool']);
/** Words after which anything may run. */
const RUNS_ANYTHING = new Set([
  'exec',
  'x',
  'dlx',
  'create',
  'init',
  'filter-branch',
  'bisect',
  'difftool',
  'mergetool',
]);

const SUBCOMMAND = /^[A-Za-z][\w:-]*$/;

const nameOf = (word: string): string => word.slice(word.lastIndexOf('/') + 1);

const wordsOf = ({ words }: ParsedCommand): readonly string[] | null => {
  const [program, first, second] = words;
  if (typeof program !== 'string' || program === '') return null;
  const name = nameOf(program);
  if (NEVER.has(name) || /^(python|pypy|ruby|perl|php|node|lua|java)[\d.]*$/.test(name)) return null;
  if (!WITH_COMMANDS.has(name)) {
    return typeof first === 'string' && SUBCOMMAND.test(first) ? [program, first] : [program];
  }
  if (typeof first !== 'string' || !SUBCOMMAND.test(first) || RUNS_ANYTHING.has(first)) return null;
  if (!NAMING.has(first)) return [program, first];
  return typeof second === 'string' && /^[\w:./-]+$/.test(second) && !second.startsWith('-')
    ? [program, first, second]
    : null;
};

/** Whether the words alone determine what the command does. */
const isPlainCommand = ({ assignments, writes }: ParsedCommand): boolean =>
  assignments.length === 0 && writes.every((file) => file === '/dev/null');

export const grantablePrefix = ({ shell, protected: guarded = [] }: CallFacts): readonly string[] | null => {
  if (shell === undefined || shell.unclear !== null || shell.indirect !== undefined) return null;
  const [command, ...others] = shell.commands;
  if (command === undefined || others.length > 0 || guarded.length > 0 || !isPlainCommand(command))
    return null;
  return wordsOf(command);
};
