/**
 * What a sandboxed program may not ask of the system, as a filter that the kernel checks (seccomp, classic BPF).
 *
 * 1. It starts no process: threads are all that `clone` gives. So a limit on its memory is a limit on all of it, and
 *    there is no fork bomb.
 * 2. It opens no socket and no way around the fence: no namespace, no other program's memory. It sends no signal, as the
 *    first process of a namespace is deaf to its own.
 * 3. All memory that it gets is its own and counted: none is shared, none lives in a nameless file.
 */

type Numbers = {
  /** As the kernel's audit names the architecture. */
  readonly audit: number;
  readonly clone: number;
  readonly clone3: number;
  readonly mmap: number;
  readonly denied: readonly number[];
  /** From this number on calls belong to another interface of the same architecture. */
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
  // It has no fork and no vfork.
  arm64: {
    audit: 0xc00000b7,
    clone: 220,
    clone3: 435,
    mmap: 222,
    denied: [97, 268, 279, 447, 194, 180, 198, 425, 129, 117, 270, 271, 280, 241, 282, 219, 217, 218],
  },
};

const LOAD = 0x20;
const AND = 0x54;
const IF_EQUAL = 0x15;
const IF_AT_LEAST = 0x35;
const IF_ANY_BIT = 0x45;
const RETURN = 0x06;

/** Offsets in what the filter sees of a call: its number, its architecture, the low half of an argument. */
const NUMBER_AT = 0;
const ARCHITECTURE_AT = 4;
const argumentAt = (index: number): number => 16 + 8 * index;

const ALLOW = 0x7fff0000;
const KILL = 0x80000000;
const NOT_PERMITTED = 0x00050000 + 1;
/** The C library then tries the older call, whose flags can be looked at. */
const NOT_IMPLEMENTED = 0x00050000 + 38;

const CLONE_THREAD = 0x10000;
const SHARED_AND_NAMELESS = 0x01 | 0x20;

type Instruction = {
  readonly code: number;
  readonly operand: number;
  readonly yes?: number;
  readonly no?: number;
};

const load = (offset: number): Instruction => ({ code: LOAD, operand: offset });
const end = (verdict: number): Instruction => ({ code: RETURN, operand: verdict });
/** The next instruction is done if it holds; else it is left out. */
const when = (code: number, operand: number): Instruction => ({ code, operand, no: 1 });
/** The next instructions are left out unless it is this call; the number is lost where they look at arguments. */
const onCall = (number: number, then: readonly Instruction[]): readonly Instruction[] => [
  { code: IF_EQUAL, operand: number, no: then.length },
  ...then,
];

const instructionsFor = (numbers: Numbers): readonly Instruction[] => [
  load(ARCHITECTURE_AT),
  { code: IF_EQUAL, operand: numbers.audit, yes: 1 },
  end(KILL),
  load(NUMBER_AT),
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

/** The filter as bytes for the kernel; null where this architecture's numbers are not known here. */
export const systemCallFilter = (architecture: string): Buffer | null => {
  const numbers = NUMBERS[architecture];
  if (numbers === undefined) return null;
  const instructions = instructionsFor(numbers);
  const bytes = Buffer.alloc(instructions.length * 8);
  for (const [index, { code, operand, yes, no }] of instructions.entries()) {
    bytes.writeUInt16LE(code, index * 8);
    bytes.writeUInt8(yes ?? 0, index * 8 + 2);
    bytes.writeUInt8(no ?? 0, index * 8 + 3);
    bytes.writeUInt32LE(operand, index * 8 + 4);
  }
  return bytes;
};
