import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { commandFilter, programFilter } from '../../src/command/sandbox/seccomp.js';
import { FILTERED_ARCHITECTURES } from '../../src/tools/bash-result.js';

/** The filter, run as the kernel runs it: what it decides about calls of both architectures. */

type Call = { readonly number: number; readonly arguments?: Readonly<Record<number, number>> };
type Verdict = 'allowed' | 'left out' | 'not permitted' | 'not implemented' | 'killed';

const VERDICTS: Readonly<Record<number, Verdict>> = {
  2147418112: 'allowed',
  327680: 'left out',
  327681: 'not permitted',
  327718: 'not implemented',
  2147483648: 'killed',
};

/** Runs classic BPF over one call. */
const decide = (filter: Buffer, audit: number, call: Call): Verdict => {
  const seen = Buffer.alloc(64);
  seen.writeUInt32LE(call.number, 0);
  seen.writeUInt32LE(audit, 4);
  for (const [index, value] of Object.entries(call.arguments ?? {})) {
    seen.writeUInt32LE(value, 16 + 8 * Number(index));
  }
  let accumulator = 0;
  for (let at = 0; at < filter.length / 8; at += 1) {
    const code = filter.readUInt16LE(at * 8);
    const [yes, no] = [filter.readUInt8(at * 8 + 2), filter.readUInt8(at * 8 + 3)];
    const operand = filter.readUInt32LE(at * 8 + 4);
    const jump = (holds: boolean): void => {
      at += holds ? yes : no;
    };
    if (code === 0x20) accumulator = seen.readUInt32LE(operand);
    else if (code === 0x54) accumulator = (accumulator & operand) >>> 0;
    else if (code === 0x15) jump(accumulator === operand);
    else if (code === 0x35) jump(accumulator >= operand);
    else if (code === 0x45) jump((accumulator & operand) !== 0);
    else if (code === 0x06)
      return VERDICTS[operand] ?? assert.fail(`verdict ${operand.toString(16)}`);
    else assert.fail(`instruction ${code}`);
  }
  return assert.fail('the filter came to its end without a verdict');
};

const THREAD = 0x3d0f00;
const NEW_PROCESS = 17;
const PRIVATE = 0x22;
const SHARED_NAMELESS = 0x21;
const SHARED_FILE = 0x01;

type Architecture = {
  readonly name: string;
  readonly audit: number;
  readonly numbers: Record<string, number>;
};
const architectures: readonly Architecture[] = [
  {
    name: 'x64',
    audit: 0xc000003e,
    numbers: {
      read: 0,
      clone: 56,
      mmap: 9,
      socket: 41,
      socketpair: 53,
      kill: 62,
      tgkill: 234,
      semget: 64,
      msgget: 68,
      memfd: 319,
    },
  },
  {
    name: 'arm64',
    audit: 0xc00000b7,
    numbers: {
      read: 63,
      clone: 220,
      mmap: 222,
      socket: 198,
      socketpair: 199,
      kill: 129,
      tgkill: 131,
      semget: 190,
      msgget: 186,
      memfd: 279,
    },
  },
];

const rows: readonly (readonly [string, string, Call['arguments'], Verdict])[] = [
  ['reads', 'read', {}, 'allowed'],
  ['starts a thread', 'clone', { 0: THREAD }, 'allowed'],
  ['starts a process', 'clone', { 0: NEW_PROCESS }, 'not permitted'],
  ['asks for memory of its own', 'mmap', { 3: PRIVATE }, 'allowed'],
  ['asks for memory that is shared and nameless', 'mmap', { 3: SHARED_NAMELESS }, 'not permitted'],
  ['asks for a file in memory', 'mmap', { 3: SHARED_FILE }, 'allowed'],
  ['makes a nameless file', 'memfd', {}, 'not permitted'],
  ['makes semaphores', 'semget', {}, 'not permitted'],
  ['makes a queue of messages', 'msgget', {}, 'not permitted'],
  ['opens a socket', 'socket', {}, 'not permitted'],
  ['makes a pair of sockets', 'socketpair', {}, 'allowed'],
  ['sends a signal', 'kill', {}, 'not permitted'],
  ['ends a thread of its own', 'tgkill', {}, 'allowed'],
];

/**
 * TIOCSTI and TIOCLINUX type into the user's terminal; TIOCGWINSZ asks for its size; FIONBIO makes
 * a descriptor non-blocking.
 */
const DEVICE_REQUESTS: readonly (readonly [string, number, number, Verdict])[] = [
  ['types into the terminal', 0, 0x5412, 'not permitted'],
  ['pastes into the console', 0, 0x541c, 'not permitted'],
  ['types into the terminal of its output', 1, 0x5412, 'not permitted'],
  ['asks for the size of the terminal', 0, 0x5413, 'allowed'],
  ['asks for the size of the terminal of its output', 1, 0x5413, 'allowed'],
  ['makes its input non-blocking', 0, 0x5421, 'allowed'],
  ['makes its output non-blocking', 1, 0x5421, 'left out'],
  ['makes its errors non-blocking', 2, 0x5421, 'left out'],
  ['makes a socket non-blocking', 3, 0x5421, 'allowed'],
];
const IOCTL: Readonly<Record<string, number>> = { x64: 16, arm64: 29 };

describe('the filter of commands', () => {
  for (const { name, audit } of architectures)
    for (const local of [true, false])
      for (const [title, descriptor, request, then] of DEVICE_REQUESTS)
        it(`on ${name}, ${local ? 'with' : 'without'} local sockets, a command that ${title}: ${then}`, () => {
          const filter = commandFilter(name, { local }) ?? assert.fail(`there is none for ${name}`);
          const number = IOCTL[name] ?? assert.fail(name);
          const call = { number, arguments: { 0: descriptor, 1: request } };
          assert.equal(decide(filter, audit, call), then);
        });

  for (const architecture of ['x64', 'arm64', 'riscv64', 'ppc64', 's390x'])
    it(`keeps output whole on ${architecture}, or results say that its end may be missing`, () => {
      const filter = commandFilter(architecture, { local: true });
      assert.equal(filter !== null, FILTERED_ARCHITECTURES.includes(architecture));
    });
});

describe('the filter of system calls', () => {
  for (const { name, audit, numbers } of architectures) {
    const filter = programFilter(name) ?? assert.fail(`there is none for ${name}`);
    for (const [title, call, given, then] of rows) {
      it(`on ${name}, a program that ${title}: ${then}`, () => {
        const number = numbers[call] ?? assert.fail(call);
        assert.equal(decide(filter, audit, { number, arguments: given ?? {} }), then);
      });
    }

    it(`on ${name}, the newer clone: not implemented, so that the C library tries the older`, () => {
      assert.equal(decide(filter, audit, { number: 435 }), 'not implemented');
    });

    it(`on ${name}, a call of another architecture: killed`, () => {
      assert.equal(decide(filter, 0x40000003, { number: numbers.read ?? 0 }), 'killed');
    });
  }

  it('on x64, a call by its other interface: not permitted', () => {
    const filter = programFilter('x64') ?? assert.fail('there is none');
    assert.equal(decide(filter, 0xc000003e, { number: 0x40000000 }), 'not permitted');
  });

  it('is left out where the numbers are not known', () => {
    assert.equal(programFilter('riscv64'), null);
  });
});
