/** Filters of system calls (seccomp): for commands, and for programs of models. */

/**
 * The system calls that fenced commands may not make.
 *
 * 1. No new namespace, no mount, no administrative kernel interface. Most known escapes began there.
 * 2. Only sockets of the internet and local families and those of `ip` and `ss`.
 * 3. No injection of input into a terminal, and no setuid files.
 *
 * Commands may start processes and debug their own.
 */

type Call =
  | 'ioctl'
  | 'socket'
  | 'clone'
  | 'clone3'
  | 'openat2'
  | 'fchmod'
  | 'fchmodat'
  | 'fchmodat2'
  | 'openat'
  | 'mknodat';

type Numbers = {
  /** The kernel's audit number of the architecture. */
  readonly audit: number;
  readonly calls: Readonly<Record<Call, number>>;
  /** Older calls with a file mode, and the index of that argument. */
  readonly modes: readonly { readonly call: number; readonly at: number }[];
  /** The old `open`; null if the architecture lacks it. */
  readonly open: number | null;
  readonly denied: readonly number[];
  /** From this number on, calls belong to another ABI of the same architecture. */
  readonly foreignFrom: number | null;
};

/**
 * Denied on all architectures: open_tree … fspick, mount_setattr, quotactl_fd, open_tree_attr; io_uring_setup, _enter,
 * _register.
 */
const NEWER = [428, 429, 430, 431, 432, 433, 442, 443, 467, 425, 426, 427];
const SHARED_CALLS = { clone3: 435, openat2: 437, fchmodat2: 452 };

/**
 * Denied beside those, in this order: unshare, setns, mount, umount2, pivot_root, chroot; swapon, swapoff, reboot,
 * kexec_load, kexec_file_load, init_module, finit_module, delete_module; bpf, perf_event_open, userfaultfd; keyctl,
 * add_key, request_key; open_by_handle_at, quotactl, acct, settimeofday, clock_settime, adjtimex, clock_adjtime;
 * syslog, fanotify_init, vhangup, lookup_dcookie; of x64 only: iopl, ioperm, uselib, sysfs, _sysctl.
 */
const NUMBERS: Readonly<Record<string, Numbers>> = {
  x64: {
    audit: 0xc000003e,
    calls: {
      ioctl: 16,
      socket: 41,
      clone: 56,
      fchmod: 91,
      fchmodat: 268,
      openat: 257,
      mknodat: 259,
      ...SHARED_CALLS,
    },
    // chmod, creat, mknod
    modes: [
      { call: 90, at: 1 },
      { call: 85, at: 1 },
      { call: 133, at: 1 },
    ],
    open: 2,
    denied: [
      ...[272, 308, 165, 166, 155, 161, 167, 168, 169, 246, 320, 175, 313, 176, 321, 298, 323, 250, 248, 249],
      ...[304, 179, 163, 164, 227, 159, 305, 103, 300, 153, 212, 172, 173, 134, 139, 156, ...NEWER],
    ],
    foreignFrom: 0x40000000,
  },
  arm64: {
    audit: 0xc00000b7,
    calls: {
      ioctl: 29,
      socket: 198,
      clone: 220,
      fchmod: 52,
      fchmodat: 53,
      openat: 56,
      mknodat: 33,
      ...SHARED_CALLS,
    },
    modes: [],
    open: null,
    denied: [
      ...[97, 268, 40, 39, 41, 51, 224, 225, 142, 104, 294, 105, 273, 106, 280, 241, 282, 219, 217, 218],
      ...[265, 60, 89, 170, 112, 171, 266, 116, 262, 58, 18, ...NEWER],
    ],
    foreignFrom: null,
  },
};

/** NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. */
const NEW_NAMESPACE = 0x7e020000;
const SET_ID = 0o6000;
/** O_CREAT, O_TMPFILE. Without them the mode argument is undefined. */
const MAKES_FILE = 0x400040;
/** TIOCSTI, TIOCLINUX. */
const TYPING = [0x5412, 0x541c];
const UNIX = 1;
const INTERNET = [2, 10];
const NETLINK = 16;
/** ROUTE, which getifaddrs asks, and SOCK_DIAG, which `ss` asks. */
const NETLINK_PROTOCOLS = [0, 4];

/** The call fails with this error number. */
const failWith = (errorNumber: number): number => 0x00050000 + errorNumber;

const NO_SUCH_FAMILY = failWith(97);
const NO_SUCH_PROTOCOL = failWith(93);

const modeAt = (index: number): readonly Instruction[] => [
  load(argumentAt(index)),
  when(IF_ANY_BIT, SET_ID),
  end(NOT_PERMITTED),
  end(ALLOW),
];

const flagsAt = (index: number): readonly Instruction[] => [
  load(argumentAt(index)),
  unless(IF_ANY_BIT, MAKES_FILE),
  end(ALLOW),
  ...modeAt(index + 1),
];

const socketRules = (local: boolean): readonly Instruction[] => [
  load(argumentAt(0)),
  ...[...INTERNET, ...(local ? [UNIX] : [])].flatMap((family) => [when(IF_EQUAL, family), end(ALLOW)]),
  ...(local ? [] : [when(IF_EQUAL, UNIX), end(NOT_PERMITTED)]),
  unless(IF_EQUAL, NETLINK),
  end(NO_SUCH_FAMILY),
  load(argumentAt(2)),
  ...NETLINK_PROTOCOLS.flatMap((protocol) => [when(IF_EQUAL, protocol), end(ALLOW)]),
  end(NO_SUCH_PROTOCOL),
];

const instructionsFor = (numbers: Numbers, local: boolean): readonly Instruction[] => {
  const { audit, calls, modes, open, denied, foreignFrom } = numbers;
  return [
    ...forArchitecture(audit),
    ...(foreignFrom === null ? [] : [when(IF_AT_LEAST, foreignFrom), end(NOT_IMPLEMENTED)]),
    ...denied.flatMap((number) => onCall(number, [end(NOT_PERMITTED)])),
    ...[calls.clone3, calls.openat2].flatMap((number) => onCall(number, [end(NOT_IMPLEMENTED)])),
    ...onCall(calls.clone, [
      load(argumentAt(0)),
      when(IF_ANY_BIT, NEW_NAMESPACE),
      end(NOT_PERMITTED),
      end(ALLOW),
    ]),
    ...onCall(calls.ioctl, [
      load(argumentAt(1)),
      ...TYPING.flatMap((request) => [when(IF_EQUAL, request), end(NOT_PERMITTED)]),
      end(ALLOW),
    ]),
    ...onCall(calls.socket, socketRules(local)),
    ...[
      { call: calls.fchmod, at: 1 },
      { call: calls.fchmodat, at: 2 },
      { call: calls.fchmodat2, at: 2 },
    ]
      .concat([{ call: calls.mknodat, at: 2 }], modes)
      .flatMap(({ call, at }) => onCall(call, modeAt(at))),
    ...(open === null ? [] : onCall(open, flagsAt(1))),
    ...onCall(calls.openat, flagsAt(2)),
    end(ALLOW),
  ];
};

/**
 * The filter as bytes for the kernel; null for an unknown architecture. `local`: whether local sockets are allowed.
 * They are not where sockets of the host could be reached.
 */
export const commandFilter = (
  architecture: string,
  { local }: { readonly local: boolean },
): Buffer | null => {
  const numbers = NUMBERS[architecture];
  return numbers === undefined ? null : assemble(instructionsFor(numbers, local));
};

/**
 * The system calls that a sandboxed program of `pawl ask` may not make, as a seccomp filter.
 *
 * 1. It can start threads but no processes. So its memory limit covers everything, and there is no fork bomb.
 * 2. It can't open sockets, make namespaces or read another program's memory. It can't send signals, since the first
 *    process of a namespace ignores its own.
 * 3. All of its memory is private and counted: no shared memory, no memory files.
 */

type ProgramNumbers = {
  /** The kernel's audit number of the architecture. */
  readonly audit: number;
  readonly clone: number;
  readonly clone3: number;
  readonly mmap: number;
  readonly denied: readonly number[];
  /** From this number on, calls belong to another ABI of the same architecture. */
  readonly foreignFrom?: number;
};

/**
 * Denied, in this order: fork, vfork; unshare, setns; memfd_create, memfd_secret, shmget, mq_open; socket,
 * io_uring_setup; kill; ptrace, process_vm_readv, process_vm_writev, bpf, perf_event_open, userfaultfd; keyctl, add_key,
 * request_key.
 */
const PROGRAM_NUMBERS: Readonly<Record<string, ProgramNumbers>> = {
  x64: {
    audit: 0xc000003e,
    clone: 56,
    clone3: 435,
    mmap: 9,
    denied: [57, 58, 272, 308, 319, 447, 29, 240, 41, 425, 62, 101, 310, 311, 321, 298, 323, 250, 248, 249],
    foreignFrom: 0x40000000,
  },
  // arm64 has neither fork nor vfork.
  arm64: {
    audit: 0xc00000b7,
    clone: 220,
    clone3: 435,
    mmap: 222,
    denied: [97, 268, 279, 447, 194, 180, 198, 425, 129, 117, 270, 271, 280, 241, 282, 219, 217, 218],
  },
};

const CLONE_THREAD = 0x10000;
const SHARED_AND_NAMELESS = 0x01 | 0x20;

const programInstructions = (numbers: ProgramNumbers): readonly Instruction[] => [
  ...forArchitecture(numbers.audit),
  ...(numbers.foreignFrom === undefined ? [] : [when(IF_AT_LEAST, numbers.foreignFrom), end(NOT_PERMITTED)]),
  ...numbers.denied.flatMap((number) => onCall(number, [end(NOT_PERMITTED)])),
  ...onCall(numbers.clone3, [end(NOT_IMPLEMENTED)]),
  ...onCall(numbers.clone, [
    load(argumentAt(0)),
    when(IF_ANY_BIT, CLONE_THREAD),
    end(ALLOW),
    end(NOT_PERMITTED),
  ]),
  ...onCall(numbers.mmap, [
    load(argumentAt(3)),
    { code: AND, operand: SHARED_AND_NAMELESS },
    when(IF_EQUAL, SHARED_AND_NAMELESS),
    end(NOT_PERMITTED),
  ]),
  end(ALLOW),
];

/** The filter as bytes for the kernel; null for an unknown architecture. */
export const systemCallFilter = (architecture: string): Buffer | null => {
  const numbers = PROGRAM_NUMBERS[architecture];
  if (numbers === undefined) return null;
  return assemble(programInstructions(numbers));
};

/** Assembles programs in classic BPF, with which the kernel filters system calls (seccomp). */

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

const NOT_PERMITTED = failWith(1);
/** The C library then tries the older call, whose flags the filter can check. */
const NOT_IMPLEMENTED = failWith(38);

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
 * Runs `then` for this call only. Instructions that load an argument overwrite the call's number, so they must end the
 * program.
 */
const onCall = (number: number, then: readonly Instruction[]): readonly Instruction[] => [
  { code: IF_EQUAL, operand: number, no: then.length },
  ...then,
];

/** Kills calls of other architectures, and loads the call's number. */
const forArchitecture = (audit: number): readonly Instruction[] => [
  load(ARCHITECTURE_AT),
  unless(IF_EQUAL, audit),
  end(KILL),
  load(NUMBER_AT),
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
