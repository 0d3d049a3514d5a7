import {
  ALLOW,
  AND,
  argumentAt,
  assemble,
  end,
  forArchitecture,
  IF_ANY_BIT,
  IF_AT_LEAST,
  IF_EQUAL,
  type Instruction,
  load,
  NOT_IMPLEMENTED,
  NOT_PERMITTED,
  onCall,
  when,
} from './assemble-filter.js';

/**
 * The system calls that a sandboxed program of `pawl ask` may not make, as a seccomp filter.
 *
 * 1. It can start threads but no processes. So its memory limit covers everything, and there is no fork bomb.
 * 2. It can't open sockets, make namespaces or read another program's memory. It can't send signals, since the first
 *    process of a namespace ignores its own.
 * 3. All of its memory is private and counted: no shared memory, no memory files.
 */

type Numbers = {
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
const NUMBERS: Readonly<Record<string, Numbers>> = {
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

const instructionsFor = (numbers: Numbers): readonly Instruction[] => [
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
  const numbers = NUMBERS[architecture];
  if (numbers === undefined) return null;
  return assemble(instructionsFor(numbers));
};
