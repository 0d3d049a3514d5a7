/**
 * Filters of system calls (seccomp), which the kernel runs for each call of a process and its
 * children.
 *
 * `commandFilter` is for fenced commands, those in the sandbox. They may start processes and debug
 * them, but:
 * - No new namespace, no mount, no administrative kernel interface. Most known escapes began there.
 * - Only sockets of the internet and local families and those of `ip` and `ss`.
 * - No injection of input into a terminal, and no setuid files.
 * - Writes to stdout and stderr wait until there is room: whoever makes them non-blocking, as Node
 *   does, loses what still waits when it exits (docs/decisions/0033).
 *
 * `programFilter` is for the interpreter of programs that a model writes in `pawl ask`:
 * - It can start threads but no processes. So its memory limit covers everything, and there is no
 *   fork bomb.
 * - It can't open sockets, but pairs of its own; it can't make namespaces or read another program's
 *   memory. `kill` fails with an error: signals of the first process of a namespace to itself would
 *   be ignored.
 * - All of its memory is private and counted: no shared memory, memory files or System V queues.
 *
 * From top to bottom: the numbers of system calls; the calls that are denied as a whole; the
 * language of the filters; checks of the arguments of a call; and the two filters.
 */

/** Calls that are younger than the common numbering of all architectures. */
const NEWER = {
  io_uring_setup: 425,
  io_uring_enter: 426,
  io_uring_register: 427,
  open_tree: 428,
  move_mount: 429,
  fsopen: 430,
  fsconfig: 431,
  fsmount: 432,
  fspick: 433,
  clone3: 435,
  openat2: 437,
  mount_setattr: 442,
  quotactl_fd: 443,
  memfd_secret: 447,
  fchmodat2: 452,
  open_tree_attr: 467,
};

const X64 = {
  ...NEWER,
  open: 2,
  mmap: 9,
  ioctl: 16,
  shmget: 29,
  socket: 41,
  clone: 56,
  fork: 57,
  vfork: 58,
  kill: 62,
  semget: 64,
  msgget: 68,
  creat: 85,
  chmod: 90,
  fchmod: 91,
  ptrace: 101,
  syslog: 103,
  mknod: 133,
  uselib: 134,
  sysfs: 139,
  vhangup: 153,
  pivot_root: 155,
  _sysctl: 156,
  adjtimex: 159,
  chroot: 161,
  acct: 163,
  settimeofday: 164,
  mount: 165,
  umount2: 166,
  swapon: 167,
  swapoff: 168,
  reboot: 169,
  iopl: 172,
  ioperm: 173,
  init_module: 175,
  delete_module: 176,
  quotactl: 179,
  lookup_dcookie: 212,
  clock_settime: 227,
  mq_open: 240,
  kexec_load: 246,
  add_key: 248,
  request_key: 249,
  keyctl: 250,
  openat: 257,
  mknodat: 259,
  fchmodat: 268,
  unshare: 272,
  perf_event_open: 298,
  fanotify_init: 300,
  open_by_handle_at: 304,
  clock_adjtime: 305,
  setns: 308,
  process_vm_readv: 310,
  process_vm_writev: 311,
  finit_module: 313,
  memfd_create: 319,
  kexec_file_load: 320,
  bpf: 321,
  userfaultfd: 323,
};

type CallName = keyof typeof X64;
type CallNumbers = Readonly<Partial<Record<CallName, number>>>;

const ARM64: CallNumbers = {
  ...NEWER,
  lookup_dcookie: 18,
  ioctl: 29,
  mknodat: 33,
  umount2: 39,
  mount: 40,
  pivot_root: 41,
  chroot: 51,
  fchmod: 52,
  fchmodat: 53,
  openat: 56,
  vhangup: 58,
  quotactl: 60,
  acct: 89,
  unshare: 97,
  kexec_load: 104,
  init_module: 105,
  delete_module: 106,
  clock_settime: 112,
  syslog: 116,
  ptrace: 117,
  kill: 129,
  reboot: 142,
  settimeofday: 170,
  adjtimex: 171,
  mq_open: 180,
  msgget: 186,
  semget: 190,
  shmget: 194,
  socket: 198,
  add_key: 217,
  request_key: 218,
  keyctl: 219,
  clone: 220,
  mmap: 222,
  swapon: 224,
  swapoff: 225,
  perf_event_open: 241,
  fanotify_init: 262,
  open_by_handle_at: 265,
  clock_adjtime: 266,
  setns: 268,
  process_vm_readv: 270,
  process_vm_writev: 271,
  finit_module: 273,
  memfd_create: 279,
  bpf: 280,
  userfaultfd: 282,
  kexec_file_load: 294,
};

type Architecture = {
  /** The kernel's audit number. */
  readonly audit: number;
  /** A call that is missing here does not exist on the architecture. */
  readonly calls: CallNumbers;
  /** From this number on, calls belong to another ABI of the same architecture (x32). */
  readonly foreignFrom: number | null;
};

const ARCHITECTURES: Readonly<Record<string, Architecture>> = {
  x64: { audit: 0xc000003e, calls: X64, foreignFrom: 0x40000000 },
  arm64: { audit: 0xc00000b7, calls: ARM64, foreignFrom: null },
};

/** Calls by subject. */
type Denied = Readonly<Record<string, readonly CallName[]>>;

const DENIED_TO_COMMANDS: Denied = {
  namespaces: ['unshare', 'setns'],
  mounts: ['mount', 'umount2', 'pivot_root', 'chroot'],
  machine: ['swapon', 'swapoff', 'reboot', 'kexec_load', 'kexec_file_load'],
  kernelModules: ['init_module', 'finit_module', 'delete_module'],
  kernelPrograms: ['bpf', 'perf_event_open', 'userfaultfd'],
  keys: ['keyctl', 'add_key', 'request_key'],
  files: ['open_by_handle_at', 'quotactl', 'acct'],
  clock: ['settimeofday', 'clock_settime', 'adjtimex', 'clock_adjtime'],
  system: ['syslog', 'fanotify_init', 'vhangup', 'lookup_dcookie'],
  old: ['iopl', 'ioperm', 'uselib', 'sysfs', '_sysctl'],
  newerMounts: [
    'open_tree',
    'move_mount',
    'fsopen',
    'fsconfig',
    'fsmount',
    'fspick',
    'mount_setattr',
  ],
  newerFiles: ['quotactl_fd', 'open_tree_attr'],
  queues: ['io_uring_setup', 'io_uring_enter', 'io_uring_register'],
};

const DENIED_TO_PROGRAMS: Denied = {
  processes: ['fork', 'vfork'],
  namespaces: ['unshare', 'setns'],
  uncountedMemory: ['memfd_create', 'memfd_secret', 'shmget', 'semget', 'msgget', 'mq_open'],
  connections: ['socket', 'io_uring_setup'],
  otherProcesses: ['kill', 'ptrace', 'process_vm_readv', 'process_vm_writev'],
  kernelPrograms: ['bpf', 'perf_event_open', 'userfaultfd'],
  keys: ['keyctl', 'add_key', 'request_key'],
};

// ---- Classic BPF, the language of the filters ----

const LOAD = 0x20;
const RETURN = 0x06;
const AND = 0x54;
const IF_EQUAL = 0x15;
const IF_AT_LEAST = 0x35;
const IF_ANY_BIT = 0x45;

/** Offsets in seccomp_data: the call's number, its architecture, the low half of an argument. */
const NUMBER_AT = 0;
const ARCHITECTURE_AT = 4;
const argumentAt = (index: number): number => 16 + 8 * index;

const ALLOW = 0x7fff0000;
const KILL = 0x80000000;
/** With an error number added, the call fails with it. */
const FAIL = 0x00050000;
const NOT_PERMITTED = FAIL + 1;
/** The call is left out and seems to succeed. */
const IGNORED = FAIL;
/** The C library then tries the older call, whose flags the filter can check. */
const NOT_IMPLEMENTED = FAIL + 38;
const NO_SUCH_FAMILY = FAIL + 97;
const NO_SUCH_PROTOCOL = FAIL + 93;

type Instruction = {
  readonly code: number;
  readonly operand: number;
  /** How many instructions to skip if a comparison holds (`yes`) or fails (`no`). */
  readonly yes?: number;
  readonly no?: number;
};

const load = (offset: number): Instruction => ({ code: LOAD, operand: offset });
const end = (verdict: number): Instruction => ({ code: RETURN, operand: verdict });
/** Runs the next instruction only if the comparison holds. */
const when = (code: number, operand: number): Instruction => ({ code, operand, no: 1 });
/** Runs the next instruction only if the comparison fails. */
const unless = (code: number, operand: number): Instruction => ({ code, operand, yes: 1 });

/**
 * Runs `then` for this call only. Instructions that load an argument overwrite the call's number,
 * so they must end the program.
 */
const onCall = (
  { calls }: Architecture,
  name: CallName,
  then: readonly Instruction[],
): readonly Instruction[] => {
  const number = calls[name];
  return number === undefined
    ? []
    : [{ code: IF_EQUAL, operand: number, no: then.length }, ...then];
};

const deny = (machine: Architecture, denied: Denied): readonly Instruction[] =>
  Object.values(denied)
    .flat()
    .flatMap((name) => onCall(machine, name, [end(NOT_PERMITTED)]));

/**
 * Kills calls of other architectures, and loads the call's number. `foreign`: the verdict on
 * another ABI.
 */
const begin = ({ audit, foreignFrom }: Architecture, foreign: number): readonly Instruction[] => [
  load(ARCHITECTURE_AT),
  unless(IF_EQUAL, audit),
  end(KILL),
  load(NUMBER_AT),
  ...(foreignFrom === null ? [] : [when(IF_AT_LEAST, foreignFrom), end(foreign)]),
];

const assemble = (instructions: readonly Instruction[]): Buffer => {
  const bytes = Buffer.alloc(instructions.length * 8);
  for (const [index, { code, operand, yes, no }] of instructions.entries()) {
    bytes.writeUInt16LE(code, index * 8);
    bytes.writeUInt8(yes ?? 0, index * 8 + 2);
    bytes.writeUInt8(no ?? 0, index * 8 + 3);
    bytes.writeUInt32LE(operand, index * 8 + 4);
  }
  return bytes;
};

// ---- Checks of the arguments of a call, which end the program ----

/** Flags of clone: NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. */
const NEW_NAMESPACE = 0x7e020000;
const CLONE_THREAD = 0x10000;
/** The setuid and setgid bits of a mode. */
const SET_ID = 0o6000;
/** O_CREAT, O_TMPFILE. Without them the mode argument is undefined. */
const MAKES_FILE = 0x400040;
/** TIOCSTI, TIOCLINUX: they put input into a terminal. */
const TYPING = [0x5412, 0x541c];
/** FIONBIO, with which Node and Python make a descriptor non-blocking. */
const SET_NON_BLOCKING = 0x5421;
const STDOUT_AND_STDERR = [1, 2];
/** Families of sockets. */
const UNIX = 1;
const INTERNET = [2, 10];
const NETLINK = 16;
/** ROUTE, which getifaddrs asks, and SOCK_DIAG, which `ss` asks. */
const NETLINK_PROTOCOLS = [0, 4];
/** Flags of mmap: MAP_SHARED, MAP_ANONYMOUS. */
const SHARED_AND_NAMELESS = 0x01 | 0x20;

/** Denies a mode with setuid or setgid bits. */
const checkMode = (argument: number): readonly Instruction[] => [
  load(argumentAt(argument)),
  when(IF_ANY_BIT, SET_ID),
  end(NOT_PERMITTED),
  end(ALLOW),
];

/** Checks the mode of a call that may make a file. `argument`: its flags; the mode follows them. */
const checkFlags = (argument: number): readonly Instruction[] => [
  load(argumentAt(argument)),
  unless(IF_ANY_BIT, MAKES_FILE),
  end(ALLOW),
  ...checkMode(argument + 1),
];

/** Allows the families of the internet, local sockets if `local`, and what `ip` and `ss` ask. */
const checkSocket = (local: boolean): readonly Instruction[] => [
  load(argumentAt(0)),
  ...[...INTERNET, ...(local ? [UNIX] : [])].flatMap((family) => [
    when(IF_EQUAL, family),
    end(ALLOW),
  ]),
  ...(local ? [] : [when(IF_EQUAL, UNIX), end(NOT_PERMITTED)]),
  unless(IF_EQUAL, NETLINK),
  end(NO_SUCH_FAMILY),
  load(argumentAt(2)),
  ...NETLINK_PROTOCOLS.flatMap((protocol) => [when(IF_EQUAL, protocol), end(ALLOW)]),
  end(NO_SUCH_PROTOCOL),
];

// ---- The two filters ----

/**
 * The filter for commands as bytes for the kernel; null for an unknown architecture. `local`:
 * whether local sockets are allowed. They are not where sockets of the host could be reached.
 */
export const commandFilter = (
  architecture: string,
  { local }: { readonly local: boolean },
): Buffer | null => {
  const machine = ARCHITECTURES[architecture];
  if (machine === undefined) return null;
  const on = (name: CallName, then: readonly Instruction[]) => onCall(machine, name, then);
  return assemble([
    ...begin(machine, NOT_IMPLEMENTED),
    ...deny(machine, DENIED_TO_COMMANDS),
    ...on('clone3', [end(NOT_IMPLEMENTED)]),
    ...on('openat2', [end(NOT_IMPLEMENTED)]),
    ...on('clone', [
      load(argumentAt(0)),
      when(IF_ANY_BIT, NEW_NAMESPACE),
      end(NOT_PERMITTED),
      end(ALLOW),
    ]),
    ...on('ioctl', [
      load(argumentAt(1)),
      ...TYPING.flatMap((request) => [when(IF_EQUAL, request), end(NOT_PERMITTED)]),
      unless(IF_EQUAL, SET_NON_BLOCKING),
      end(ALLOW),
      load(argumentAt(0)),
      ...STDOUT_AND_STDERR.flatMap((output) => [when(IF_EQUAL, output), end(IGNORED)]),
      end(ALLOW),
    ]),
    ...on('socket', checkSocket(local)),
    ...on('fchmod', checkMode(1)),
    ...on('fchmodat', checkMode(2)),
    ...on('fchmodat2', checkMode(2)),
    ...on('mknodat', checkMode(2)),
    ...on('chmod', checkMode(1)),
    ...on('creat', checkMode(1)),
    ...on('mknod', checkMode(1)),
    ...on('open', checkFlags(1)),
    ...on('openat', checkFlags(2)),
    end(ALLOW),
  ]);
};

/** The filter for programs of models as bytes for the kernel; null for an unknown architecture. */
export const programFilter = (architecture: string): Buffer | null => {
  const machine = ARCHITECTURES[architecture];
  if (machine === undefined) return null;
  const on = (name: CallName, then: readonly Instruction[]) => onCall(machine, name, then);
  return assemble([
    ...begin(machine, NOT_PERMITTED),
    ...deny(machine, DENIED_TO_PROGRAMS),
    ...on('clone3', [end(NOT_IMPLEMENTED)]),
    ...on('clone', [
      load(argumentAt(0)),
      when(IF_ANY_BIT, CLONE_THREAD),
      end(ALLOW),
      end(NOT_PERMITTED),
    ]),
    ...on('mmap', [
      load(argumentAt(3)),
      { code: AND, operand: SHARED_AND_NAMELESS },
      when(IF_EQUAL, SHARED_AND_NAMELESS),
      end(NOT_PERMITTED),
      end(ALLOW),
    ]),
    end(ALLOW),
  ]);
};
