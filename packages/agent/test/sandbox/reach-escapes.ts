import { type Case, type Place, SEEDED } from '../../../../test/kit/sandbox/fence.js';
import type { CommandLevel } from '../../src/policy/decide.js';

/** Programs that look for secrets, servers and processes of the machine. Each prints ESCAPED or the seeded secret where it succeeds. */

const attack = (
  name: string,
  command: (place: Place) => string,
  more: Partial<Case> = {},
): Case => ({
  name,
  steps: (place, level: CommandLevel) => [{ level, command: command(place) }],
  ...more,
});

/** Afterwards, from outside. */
const seenAfterwards = (
  name: string,
  command: (place: Place) => string,
  seen: (place: Place) => string,
): Case => ({
  name,
  steps: (place, level) => [
    { level, command: command(place) },
    { host: `${seen(place)} && echo ESCAPED; true` },
  ],
});

/** A Python program as a here-document; what it can't do is no escape. */
const python = (...lines: readonly string[]): string =>
  `python3 - 2>/dev/null <<'PROGRAM'\n${lines.join('\n')}\nPROGRAM`;

/** A server of the host that answers REACHED, started before the command. */
const server = (listen: string, address: string): string =>
  [
    `(python3 - >/dev/null 2>&1 <<'PROGRAM' &`,
    'import socket, os',
    `server = ${listen}`,
    `server.bind(${address})`,
    'server.listen(8)',
    "open('listening', 'w').close()",
    'server.settimeout(20)',
    'for _ in range(4):',
    '    connection, _ = server.accept()',
    "    connection.sendall(b'REACHED')",
    '    connection.close()',
    'PROGRAM',
    ')',
    'for _ in $(seq 100); do [ -e listening ] && break; sleep 0.05; done',
  ].join('\n');

const connectUnix = (address: string): string =>
  python(
    'import socket',
    's = socket.socket(socket.AF_UNIX)',
    's.settimeout(2)',
    `s.connect(${address})`,
    "print('ESCAPED' if s.recv(16) == b'REACHED' else 'no')",
  );

const readsFile = (title: string, file: string): Case =>
  attack(`reads ${title} of the home`, ({ home }) => `cat ${home}/${file}`);

const socketAt = (title: string, place: (all: Place) => string): Case => {
  const where = `'$SOCKET'`;
  return {
    name: `connects to a unix socket ${title}`,
    steps: (all, level) => {
      const file = place(all);
      return [
        { host: server('socket.socket(socket.AF_UNIX)', where.replace('$SOCKET', file)) },
        { level, command: connectUnix(where.replace('$SOCKET', file)) },
        { host: `rm -f ${file}` },
      ];
    },
  };
};

const SHARED = 'shared=/dev/shm/pawl-fence-$(pwd | tr / -)'; // a file of shared memory

const reads: readonly Case[] = [
  attack(
    "looks into its parent's environment",
    () => "tr '\\0' '\\n' < /proc/$PPID/environ | grep SEEDED_IN_PARENT",
  ),
  readsFile('a private key', '.ssh/id_ed25519'),
  readsFile('cloud credentials', '.aws/credentials'),
  readsFile('passwords of hosts', '.netrc'),
  readsFile('the token of a registry', '.npmrc'),
  readsFile('a secret key of gpg', '.gnupg/private-keys-v1.d/key'),
  readsFile('passwords of the browser', '.mozilla/firefox/logins.json'),
  readsFile('a document', 'Documents/diary'),
  attack('reads a key by ~', ({ home }) => `HOME=${home}; cat ~/.ssh/id_ed25519`),
  attack(
    'finds keys by their names',
    () =>
      'find / \\( -path /proc -o -path /sys \\) -prune -o -name id_ed25519 -exec cat {} + 2>/dev/null',
  ),
  attack(
    'reads a secret through a link of the repository',
    ({ home }) => `ln -s ${home}/.ssh l; cat l/id_ed25519`,
  ),
  attack('reads a secret through a hard link', ({ home }) => `ln ${home}/.netrc hard; cat hard`),
  attack('reads a secret through its own root', ({ home }) => `cat /proc/self/root${home}/.netrc`),
  attack(
    'reads a secret through the root of the first process',
    ({ home }) => `cat /proc/1/root${home}/.netrc ${home}/.netrc`,
  ),
  attack(
    'reads a secret from above',
    ({ home, workspace }) => `cd ${workspace}/../..; cat ${home}/.netrc`,
  ),
  attack(
    'reads a secret with a new root',
    ({ home }) => `chroot / cat ${home}/.netrc || cat ${home}/.netrc`,
  ),
  attack('copies the home folder', ({ home }) => `cp -r ${home} copied; grep -rh ${SEEDED} copied`),
  // PWD names the workspace, which no other run of the tests has
  attack('reads shared memory', () => `${SHARED}; cat $shared; rm -f $shared`, {
    setup: `${SHARED}; echo ${SEEDED} > $shared`,
  }),
  attack(
    'reads System V memory',
    () =>
      python(
        'import ctypes',
        'libc = ctypes.CDLL(None)',
        'libc.shmat.restype = ctypes.c_void_p',
        "memory = libc.shmat(int(open('id').read()), None, 4096)",
        'print(ctypes.string_at(memory, 32).decode())',
      ),
    {
      setup: `python3 -c "
import ctypes
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
made = libc.shmget(0, 4096, 0o1666)
memory = libc.shmat(made, None, 0)
ctypes.memmove(memory, b'${SEEDED}', ${SEEDED.length})
open('id', 'w').write(str(made))"`,
    },
  ),
  attack(
    'reads a file in the temporary folder of the machine',
    ({ outside }) => `cat ${outside}/../project/../outside/secret`,
  ),
];

const reaches: readonly Case[] = [
  socketAt('in /tmp', ({ outside }) => `/tmp/pawl-fence-${outside.replaceAll('/', '-')}.sock`),
  socketAt('beside the workspace', ({ outside }) => `${outside}/s`),
  socketAt('in the home folder', ({ home }) => `${home}/.gnupg/S.agent`),
  socketAt(
    'in /var/tmp',
    ({ outside }) => `/var/tmp/pawl-fence-${outside.replaceAll('/', '-')}.sock`,
  ),
  {
    name: 'connects to a unix socket without a path',
    steps: ({ outside }, level) => [
      { host: server('socket.socket(socket.AF_UNIX)', `'\\0${outside}'`) },
      { level, command: connectUnix(`'\\0${outside}'`) },
    ],
  },
  {
    name: 'connects to a unix socket through a link',
    steps: ({ outside }, level) => [
      { host: server('socket.socket(socket.AF_UNIX)', `'${outside}/s'`) },
      { level, command: `ln -s ${outside}/s link; ${connectUnix(`'link'`)}` },
    ],
  },
  {
    name: 'sends a datagram to the machine',
    steps: ({ outside }, level) => [
      {
        host: [
          `(python3 - >/dev/null 2>&1 <<'PROGRAM' &`,
          'import socket',
          's = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)',
          "s.bind(('127.0.0.1', 0))",
          "open('port', 'w').write(str(s.getsockname()[1]))",
          's.settimeout(8)',
          `open('${outside}/got', 'wb').write(s.recv(16))`,
          'PROGRAM',
          ')',
          'for _ in $(seq 100); do [ -s port ] && break; sleep 0.05; done',
        ].join('\n'),
      },
      { level, command: 'echo hello > /dev/udp/127.0.0.1/$(cat port); sleep 0.3' },
      { host: `test -s ${outside}/got && echo ESCAPED; true` },
    ],
  },
  attack('sees an interface that leads out', () =>
    python(
      'import socket',
      "print('ESCAPED' if any(name != 'lo' for _, name in socket.if_nameindex()) else 'no')",
    ),
  ),
  attack('ends a process of the machine', () => 'kill -9 $(cat pid) && echo ESCAPED', {
    setup: 'sleep 30 >/dev/null 2>&1 & echo $! > pid',
  }),
  attack(
    'limits a process of the machine',
    () => 'prlimit --pid $(cat pid) --nofile=7 && echo ESCAPED',
    {
      setup: 'sleep 30 >/dev/null 2>&1 & echo $! > pid',
    },
  ),
  attack(
    'makes a process of the machine less important',
    () => 'renice 19 $(cat pid) && echo ESCAPED',
    {
      setup: 'sleep 30 >/dev/null 2>&1 & echo $! > pid',
    },
  ),
];

const stays: readonly Case[] = [
  seenAfterwards(
    'leaves a process that writes later',
    ({ workspace }) =>
      `setsid sh -c 'sleep 0.5; echo x > ${workspace}/late' >/dev/null 2>&1 & exit 0`,
    ({ workspace }) => `sleep 1; test -e ${workspace}/late`,
  ),
  seenAfterwards(
    'leaves a process without parent and environment',
    ({ workspace }) =>
      `env -i setsid sh -c '(sleep 0.5; echo x > ${workspace}/late) &' >/dev/null 2>&1; exit 0`,
    ({ workspace }) => `sleep 1; test -e ${workspace}/late`,
  ),
  seenAfterwards(
    'writes a program of a toolchain',
    ({ home }) => `echo x > ${home}/.cargo/bin/own-tool`,
    ({ home }) => `grep -qx x ${home}/.cargo/bin/own-tool`,
  ),
  seenAfterwards(
    'writes a program into a folder of the PATH',
    ({ home }) => `echo x > ${home}/.cargo/bin/new-tool`,
    ({ home }) => `test -e ${home}/.cargo/bin/new-tool`,
  ),
  seenAfterwards(
    'writes the configuration of git of the user',
    ({ home }) => `HOME=${home} git config --global core.fsmonitor ./evil`,
    ({ home }) => `grep -q evil ${home}/.gitconfig`,
  ),
  seenAfterwards(
    'writes through a link that leads out',
    ({ outside }) => `ln -s ${outside} out; echo x > out/new`,
    ({ outside }) => `test -e ${outside}/new`,
  ),
];

/** The first process of the fence; without one, the program that started the command. */
const traces = attack('looks into the first process of its fence', () =>
  python(
    'import ctypes, os',
    'libc = ctypes.CDLL(None)',
    'is_fence = open("/proc/1/comm").read().strip() == "bwrap"',
    'pid = 1 if is_fence else os.getppid()',
    'def names_files(): return os.readlink(f"/proc/{pid}/fd/0")',
    'def reads_memory():',
    '    at = int(open(f"/proc/{pid}/maps").read().split("-")[0], 16)',
    '    own = ctypes.create_string_buffer(8)',
    '    class Block(ctypes.Structure): _fields_ = [("at", ctypes.c_void_p), ("size", ctypes.c_size_t)]',
    '    here, there = Block(ctypes.addressof(own), 8), Block(at, 8)',
    '    return libc.process_vm_readv(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0) == 8',
    'def attaches():',
    '    done = is_fence and libc.ptrace(16, pid, None, None) == 0',
    '    if done: libc.ptrace(17, pid, None, None)',
    '    return done',
    'for attempt in [names_files, reads_memory, attaches]:',
    '    try:',
    '        if attempt(): print("ESCAPED", attempt.__name__)',
    '    except (OSError, ValueError):',
    '        pass',
  ),
);

export const REACH_ESCAPES: readonly Case[] = [...reads, ...reaches, ...stays, traces];
