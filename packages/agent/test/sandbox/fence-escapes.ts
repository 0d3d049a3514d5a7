import {
  type Case,
  PLANTED,
  type Place,
  PORT,
  SEEDED,
} from '../../../../test/kit/sandbox/fence.js';
import type { CommandLevel } from '../../src/policy/decide.js';

/** Programs that try to get out. Each prints ESCAPED where it succeeds, as it does without the sandbox. */

const REPOSITORY = 'git init -q . && echo a > a && git add a && git commit -qm first';

const attack = (
  name: string,
  command: (place: Place) => string,
  more: Partial<Case> = {},
): Case => ({
  name,
  steps: (place, level: CommandLevel) => [{ level, command: command(place) }],
  ...more,
});

/** What it plants is looked for afterwards, from outside. */
const plant = (name: string, command: string, planted: string, setup = REPOSITORY): Case => ({
  name,
  setup,
  steps: (_, level) => [{ level, command }, { host: `${planted} && echo ESCAPED; true` }],
});

const exists = (file: string): string => `test -e ${file} -o -L ${file}`;

export const ESCAPES: readonly Case[] = [
  attack('writes beside the workspace', () => 'echo x > ../beside && echo ESCAPED'),
  attack('writes into a folder beside', ({ outside }) => `echo x > ${outside}/new && echo ESCAPED`),
  attack(
    'reads a file beside',
    ({ outside }) => `grep -q ${SEEDED} ${outside}/secret && echo ESCAPED`,
  ),
  attack(
    'reads through a link out of the workspace',
    ({ outside }) => `ln -s ${outside} l; cat l/secret && echo ESCAPED`,
  ),
  attack('writes to the home', ({ home }) => `echo x >> ${home}/.bashrc && echo ESCAPED`),
  attack(
    'finds a secret anywhere in the home',
    ({ home }) => `grep -rqs ${SEEDED} ${home}/ && echo ESCAPED`,
  ),
  attack(
    'finds a secret in its environment',
    () => `env | grep -v WHATEVER | grep -q ${SEEDED} && echo ESCAPED`,
    {
      // Without a sandbox known secrets are left out as well: the one that no list knows is the control.
      environment: { OPENAI_API_KEY: 'other', OLLAMA_API_KEY: 'other', PLAIN_THING: SEEDED },
    },
  ),
  attack(
    'finds a secret in the environment of another process',
    () =>
      `cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -q SEEDED_IN_PARENT && echo ESCAPED`,
  ),
  {
    name: 'signals a process of the machine',
    setup: '(sleep 30 >/dev/null 2>&1 & echo $! > pid)',
    steps: (_, level) => [
      { level, command: 'kill -0 $(cat pid) && echo ESCAPED' },
      { host: 'kill $(cat pid)' },
    ],
  },
  attack(
    'writes to the terminal of its parent',
    () => 'ls -d /proc/[0-9]*/fd | wc -l | { read n; [ "$n" -gt 8 ]; } && echo ESCAPED',
  ),
  attack(
    'connects to a server on loopback',
    () => `exec 9<>/dev/tcp/127.0.0.1/${PORT} && grep -q REACHED <&9 && echo ESCAPED`,
  ),
  attack('makes a user namespace', () => 'unshare --user --map-root-user true && echo ESCAPED'),
  attack(
    'mounts',
    () => 'unshare --user --map-root-user --mount mount -t tmpfs x /mnt && echo ESCAPED',
  ),
  attack(
    'gives a file the rights of its owner',
    () => 'cp /bin/true t; chmod u+s t && echo ESCAPED',
  ),
  attack(
    'makes a file with the rights of its owner',
    () =>
      `perl -e 'umask 0; use Fcntl; sysopen(F, "t", O_CREAT|O_WRONLY, 04755) or exit 1; exit !((stat "t")[2] & 04000)' && echo ESCAPED`,
  ),
  attack(
    'reads the passwords of the system',
    () => 'test -s /etc/shadow && cat /etc/shadow >/dev/null && echo ESCAPED',
    { who: 'root' },
  ),
  {
    name: 'reads a private file of a program that was installed by hand',
    who: 'root',
    setup: `mkdir -p ${PLANTED}/etc; (umask 077; echo x > ${PLANTED}/etc/token)`,
    steps: (_, level) => [
      { level, command: `grep -q x ${PLANTED}/etc/token && echo ESCAPED` },
      { host: `rm -r ${PLANTED}/*` },
    ],
  },
  attack(
    'changes settings of the kernel, as which program it starts after a crash',
    () =>
      'for s in kernel/core_pattern kernel/modprobe vm/overcommit_memory; do f=/proc/sys/$s; v=$(cat $f) && echo "$v" > $f && echo ESCAPED; done',
    { who: 'root' },
  ),
  attack(
    'changes the system',
    () => 'touch /usr/bin/planted-by-a-test && rm /usr/bin/planted-by-a-test && echo ESCAPED',
    { who: 'root' },
  ),
  attack(
    'reads a disk',
    () => 'ls /dev | grep -qE "^(sd|vd|nvme|mem|kmsg|loop|ptmx-host)" && echo ESCAPED',
    {
      who: 'root',
    },
  ),
  attack(
    'has capabilities',
    () => 'grep -qv "CapEff:.0000000000000000" <(grep CapEff /proc/self/status) && echo ESCAPED',
    { who: 'root' },
  ),
  attack(
    'sees the processes of the machine',
    () => '[ "$(ls -d /proc/[0-9]* | wc -l)" -gt 8 ] && echo ESCAPED',
  ),
  attack(
    'uses the kernel keyring',
    () => `perl -e 'exit(syscall(250, 0, -3, 0) < 0)' && echo ESCAPED`,
  ),
  attack(
    'sets up io_uring',
    () => `perl -e '$! = 0; syscall(425, 1, 0); exit($! != 14)' && echo ESCAPED`,
  ),
  attack(
    'opens a packet socket family',
    () =>
      `perl -e 'use Socket; socket(S, 40, SOCK_STREAM, 0) or exit($! == 97 || $! == 1); exit 0' && echo ESCAPED`,
  ),
  plant('plants a hook', 'echo "touch x" > .git/hooks/pre-commit', exists('.git/hooks/pre-commit')),
  plant(
    'changes git configuration',
    'git config core.fsmonitor ./evil',
    'git config core.fsmonitor',
  ),
  plant(
    'exchanges .git',
    'mv .git old; mkdir .git; echo evil > .git/config',
    'grep -q evil .git/config',
  ),
  plant(
    'writes the configuration of the worktree',
    'echo evil > .git/config.worktree',
    exists('.git/config.worktree'),
  ),
  plant('names another common folder', 'echo /tmp > .git/commondir', exists('.git/commondir')),
  plant(
    'writes attributes of the repository',
    'mkdir -p .git/info; echo "* filter=x" > .git/info/attributes',
    exists('.git/info/attributes'),
  ),
  plant(
    'exchanges the folder of attributes',
    'mv .git/info .git/i; mkdir .git/info; echo "* filter=x" > .git/info/attributes',
    exists('.git/info/attributes'),
  ),
  plant(
    'makes hooks where there were none',
    'mkdir .git/hooks; echo x > .git/hooks/post-commit',
    exists('.git/hooks'),
    `${REPOSITORY}; rm -r .git/hooks`,
  ),
  plant(
    'makes a repository with a hook',
    'git init -q sub; echo x > sub/.git/hooks/post-checkout',
    exists('sub/.git/hooks/post-checkout'),
  ),
  plant(
    'makes a repository with a monitor',
    'git init -q sub; git -C sub config core.fsmonitor ./x',
    'git -C sub config core.fsmonitor',
  ),
  plant(
    'makes a bare repository with a monitor',
    'git init -q --bare sub; git -C sub config core.bare false; git -C sub config core.worktree .; git -C sub config core.fsmonitor ./x',
    'grep -qs fsmonitor sub/config',
  ),
  plant(
    'makes the workspace a repository without .git',
    'mkdir objects refs; echo "ref: refs/heads/main" > HEAD; git config -f config core.fsmonitor ./x',
    'grep -qs fsmonitor config',
    'true',
  ),
  plant(
    'plants a hook in a bare repository',
    'echo "touch x" > sub/hooks/post-receive; mv sub/hooks sub/h; mkdir sub/hooks; echo x > sub/hooks/post-update',
    exists('sub/hooks/post-update'),
    'git init -q --bare sub',
  ),
  plant(
    'plants an address that runs a program',
    'git init -q sub; git -C sub remote add o "ext::sh -c x"',
    'git -C sub config remote.o.url',
  ),
  plant(
    'names a git folder outside',
    'mkdir sub; echo "gitdir: /tmp/x" > sub/.git',
    exists('sub/.git'),
  ),
  plant(
    'changes editor tasks',
    'echo evil > .vscode/tasks.json',
    'grep -q evil .vscode/tasks.json',
    'mkdir .vscode; echo {} > .vscode/tasks.json',
  ),
  plant('makes editor tasks', 'mkdir .vscode; echo evil > .vscode/tasks.json', exists('.vscode')),
  plant(
    'renames a folder to one of an editor',
    'mkdir -p x; echo evil > x/tasks.json; mv x .vscode',
    exists('.vscode'),
  ),
  plant('links a folder of an editor', 'mkdir x; ln -s x .vscode', exists('.vscode')),
  plant(
    'removes and makes editor tasks',
    'rm -rf .vscode; mv .vscode v; mkdir .vscode; echo evil > .vscode/tasks.json',
    'grep -q evil .vscode/tasks.json',
    'mkdir .vscode; echo {} > .vscode/tasks.json',
  ),
  plant(
    'makes editor tasks in a package',
    'mkdir -p pkg/a/.vscode; echo evil > pkg/a/.vscode/tasks.json',
    exists('pkg/a/.vscode'),
    'mkdir -p pkg/a',
  ),
  plant(
    'exchanges a package with editor tasks',
    'mv pkg old; mkdir -p pkg/.vscode; echo evil > pkg/.vscode/tasks.json',
    'grep -q evil pkg/.vscode/tasks.json',
    'mkdir -p pkg/.vscode; echo {} > pkg/.vscode/tasks.json',
  ),
  plant(
    'changes a workflow',
    'echo evil > .github/workflows/ci.yml',
    'grep -q evil .github/workflows/ci.yml',
    'mkdir -p .github/workflows; echo ok > .github/workflows/ci.yml',
  ),
  plant(
    'exchanges the folder above workflows',
    'mv .github g; mkdir -p .github/workflows; echo evil > .github/workflows/ci.yml',
    'grep -q evil .github/workflows/ci.yml',
    'mkdir -p .github/workflows; echo ok > .github/workflows/ci.yml',
  ),
  plant(
    'makes a workflow',
    'mkdir -p .github/workflows; echo evil > .github/workflows/ci.yml',
    exists('.github/workflows'),
  ),
  plant('writes what runs when the folder is entered', 'echo evil > .envrc', exists('.envrc')),
  plant(
    'writes it in other letters',
    'echo evil > .ENVRC; mkdir .VSCode',
    `${exists('.ENVRC')} || ${exists('.VSCode')}`,
  ),
  plant(
    'writes instructions for agents',
    'echo evil > AGENTS.md; mkdir .claude; echo evil > .claude/settings.json',
    `${exists('AGENTS.md')} || ${exists('.claude')}`,
  ),
  plant(
    'writes through a link that is protected',
    'echo evil > shared/envrc',
    'grep -q evil .envrc',
    'mkdir shared; echo ok > shared/envrc; ln -s shared/envrc .envrc',
  ),
  plant(
    'exchanges a link that is protected',
    'rm .envrc; echo evil > .envrc',
    'grep -q evil .envrc',
    'mkdir shared; echo ok > shared/envrc; ln -s shared/envrc .envrc',
  ),
  plant(
    'writes another name of a protected file',
    'echo evil > notes',
    'grep -q evil .envrc',
    'echo ok > notes; ln notes .envrc',
  ),
  plant('links a protected name to a file', 'echo evil > notes; ln notes .npmrc', exists('.npmrc')),
  {
    name: 'plants while another command runs',
    steps: (_, level) => [
      { level, command: 'exec sleep 30', holds: true },
      { level, command: 'echo evil > .envrc' },
      { host: `${exists('.envrc')} && echo ESCAPED; true` },
    ],
  },
];
