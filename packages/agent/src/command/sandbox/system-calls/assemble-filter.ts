/** Assembles programs in classic BPF, with which the kernel filters system calls (seccomp). */

const LOAD = 0x20;
const RETURN = 0x06;

export const AND = 0x54;
export const IF_EQUAL = 0x15;
export const IF_AT_LEAST = 0x35;
export const IF_ANY_BIT = 0x45;

/** Offsets in seccomp_data: the call's number, its architecture, the low half of an argument. */
const NUMBER_AT = 0;
const ARCHITECTURE_AT = 4;
export const argumentAt = (index: number): number => 16 + 8 * index;

export const ALLOW = 0x7fff0000;
const KILL = 0x80000000;
/** The call fails with this error number. */
export const failWith = (errorNumber: number): number => 0x00050000 + errorNumber;
export const NOT_PERMITTED = failWith(1);
/** The C library then tries the older call, whose flags the filter can check. */
export const NOT_IMPLEMENTED = failWith(38);

export type Instruction = {
  readonly code: number;
  readonly operand: number;
  /** How many instructions to skip if a comparison holds (`yes`) or fails (`no`). */
  readonly yes?: number;
  readonly no?: number;
};

export const load = (offset: number): Instruction => ({ code: LOAD, operand: offset });
export const end = (verdict: number): Instruction => ({ code: RETURN, operand: verdict });
/** Runs the next instruction only if the comparison holds. */
export const when = (code: number, operand: number): Instruction => ({ code, operand, no: 1 });
/** Runs the next instruction only if the comparison fails. */
export const unless = (code: number, operand: number): Instruction => ({ code, operand, yes: 1 });
/**
 * Runs `then` for this call only. Instructions that load an argument overwrite the call's number, so they must end the
 * program.
 */
export const onCall = (number: number, then: readonly Instruction[]): readonly Instruction[] => [
  { code: IF_EQUAL, operand: number, no: then.length },
  ...then,
];

/** Kills calls of other architectures, and loads the call's number. */
export const forArchitecture = (audit: number): readonly Instruction[] => [
  load(ARCHITECTURE_AT),
  unless(IF_EQUAL, audit),
  end(KILL),
  load(NUMBER_AT),
];

export const assemble = (instructions: readonly Instruction[]): Buffer => {
  const bytes = Buffer.alloc(instructions.length * 8);
  for (const [index, { code, operand, yes, no }] of instructions.entries()) {
    bytes.writeUInt16LE(code, index * 8);
    bytes.writeUInt8(yes ?? 0, index * 8 + 2);
    bytes.writeUInt8(no ?? 0, index * 8 + 3);
    bytes.writeUInt32LE(operand, index * 8 + 4);
  }
  return bytes;
};
