import {
  ALLOW,
  argumentAt,
  assemble,
  end,
  failWith,
  forArchitecture,
  IF_ANY_BIT,
  IF_AT_LEAST,
  IF_EQUAL,
  type Instruction,
  load,
  NOT_IMPLEMENTED,
  NOT_PERMITTED,
  onCall,
  unless,
  when,
} from './assemble-filter.js';

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
