import { type Case, PLANTED } from '../../../../test/kit/sandbox/fence.js';
import type { Step } from '../../../../test/kit/sandbox/fence-runner.js';

/**
 * A program opens folders, hands them to another program through a local socket, and ends. Its
 * fence ends with it. The other program then reaches through these folders for what a fence
 * protects or hides.
 */

const python = (lines: readonly string[]): string =>
  `python3 - <<'PROGRAM'\n${lines.join('\n')}\nPROGRAM`;

const waitFor = (file: string): string =>
  `for _ in $(seq 600); do [ -e ${file} ] && break; sleep 0.05; done`;

/** Takes the folders, waits until the fence that they come from has ended, and tries for half a second. */
const receiver = (address: string): string =>
  python([
    'import array, os, socket, time',
    'def write(name, folder):',
    '    with open(os.open(name, os.O_WRONLY | os.O_APPEND, dir_fd=folder), "w") as file:',
    '        file.write("# ESCAPED\\n")',
    'def read(name, folder):',
    '    with open(os.open(name, os.O_RDONLY, dir_fd=folder)) as file:',
    '        return "ESCAPED " + name if file.read(1) else ""',
    'def set(name, folder):',
    '    os.close(os.open(name, os.O_WRONLY, dir_fd=folder))',
    '    return "ESCAPED " + name',
    'def ask(name, folder):',
    '    with socket.socket(socket.AF_UNIX) as other:',
    '        other.connect(f"/proc/self/fd/{folder}/{name}")',
    '        return "ESCAPED " + name if other.recv(16) == b"REACHED" else ""',
    'def attempt(action, name, folder):',
    '    try:',
    '        return action(name, folder) or ""',
    '    except OSError:',
    '        return ""',
    'try:',
    '    s = socket.socket(socket.AF_UNIX)',
    `    s.bind(${address})`,
    '    s.listen(1)',
    '    s.settimeout(60)',
    '    open("listening", "w").close()',
    '    c = s.accept()[0]',
    '    rights = c.recvmsg(1, socket.CMSG_SPACE(12))[1][0][2]',
    '    here, planted, proc = array.array("i", rights)',
    '    while not os.path.exists("ended"):',
    '        time.sleep(0.01)',
    '    for _ in range(50):',
    '        for name in [".git/config", ".git/hooks/pre-commit", ".envrc"]:',
    '            attempt(write, name, here)',
    '        found = attempt(ask, "hidden.sock", here)',
    '        if os.geteuid() == 0:',
    '            found += attempt(read, f"pawl-{os.stat(\'.\').st_ino}", planted)',
    '            found += attempt(set, "sys/kernel/core_pattern", proc)',
    '        with open("stolen", "a") as file:',
    '            file.write(found)',
    '        time.sleep(0.01)',
    'finally:',
    '    open("listening", "w").close()',
    '    open("tried", "w").close()',
  ]);

const pass = (address: string): readonly string[] => [
  's = socket.socket(socket.AF_UNIX)',
  `s.connect(${address})`,
  's.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, folders)])',
];

const sender = (address: string): string =>
  python([
    'import array, os, socket, time',
    `planted = "${PLANTED}" if os.geteuid() == 0 else "/etc"`,
    'folders = array.array("i", [os.open(name, os.O_RDONLY) for name in [".", planted, "/proc"]])',
    'while not os.path.exists("listening"):',
    '    time.sleep(0.01)',
    ...pass(address),
    'open("sent", "w").close()',
  ]);

/** Takes the folders, hands them on, and ends. */
const relay = (from: string, to: string): string =>
  python([
    'import array, os, socket',
    's = socket.socket(socket.AF_UNIX)',
    `s.bind(${from})`,
    's.listen(1)',
    'open("relaying", "w").close()',
    'rights = s.accept()[0].recvmsg(1, socket.CMSG_SPACE(12))[1][0][2]',
    'folders = array.array("i", rights)',
    ...pass(to),
    'open("relayed", "w").close()',
  ]);

/** A file that only root may read. */
const SECRET = `${PLANTED}/pawl-$(stat -c %i .)`;

const SETUP = [
  'git init -q . && git config core.fsmonitor false',
  'touch .git/hooks/pre-commit .envrc',
  `if [ $(id -u) = 0 ]; then (umask 077; echo secret > ${SECRET}); fi`,
  "(python3 - >/dev/null 2>&1 <<'PROGRAM' &",
  'import os, socket',
  's = socket.socket(socket.AF_UNIX)',
  's.bind("hidden.sock")',
  's.listen(64)',
  's.settimeout(60)',
  'while not os.path.exists("tried"):',
  '    s.settimeout(1)',
  '    try:',
  '        c = s.accept()[0]',
  '        c.sendall(b"REACHED")',
  '        c.close()',
  '    except OSError:',
  '        pass',
  'PROGRAM',
  ')',
  waitFor('hidden.sock'),
].join('\n');

/** Python expressions of addresses that no other scenario has. */
const WITHOUT_PATH = 'chr(0) + "handed-" + str(os.stat(".").st_ino)';
const IN_TMP = '"/tmp/handed-" + str(os.stat(".").st_ino)';
const IN_WORKSPACE = '"handed.sock"';

type Run = Extract<Step, { command: string }>;
type Way = {
  readonly name: string;
  readonly address: string;
  readonly sender?: Partial<Run>;
  readonly receiver?: Partial<Run>;
  readonly relayed?: true;
  /** The sender is there before the socket: later fences hide sockets of others. */
  readonly senderFirst?: true;
};

const handOver = (way: Way): Case => ({
  name: `reaches through a folder that was handed over ${way.name}`,
  setup: SETUP,
  steps: (_, level) => {
    const { address, relayed = false, senderFirst = false } = way;
    const last = relayed ? `${address} + "-last"` : address;
    const receiving: Step = { level, command: receiver(last), holds: true, ...way.receiver };
    const sending: Step = { level, command: sender(address), ...way.sender };
    const relaying: readonly Step[] = [
      { level, command: relay(address, last), holds: true },
      { host: waitFor('relaying') },
    ];
    return [
      ...(senderFirst ? [{ ...sending, holds: true as const }] : []),
      receiving,
      { host: waitFor('listening') },
      ...(relayed ? relaying : []),
      ...(senderFirst ? [] : [sending]),
      { host: waitFor(relayed ? 'relayed' : 'sent') },
      { host: `touch ended; ${waitFor('tried')}` },
      { host: `rm -f ${SECRET}; cat stolen .git/config .git/hooks/pre-commit .envrc` },
    ];
  },
});

const APART = { apart: true } as const;

export const HANDED_OVER: readonly Case[] = [
  { name: 'through a socket without a path', address: WITHOUT_PATH },
  { name: 'through a socket in /tmp', address: IN_TMP },
  { name: 'through a socket in the workspace', address: IN_WORKSPACE },
  { name: 'through a job in between', address: WITHOUT_PATH, relayed: true as const },
  {
    name: 'to a server of MCP',
    address: IN_WORKSPACE,
    receiver: APART,
    senderFirst: true as const,
  },
  { name: 'by a server of MCP', address: IN_WORKSPACE, sender: APART, senderFirst: true as const },
].map(handOver);
