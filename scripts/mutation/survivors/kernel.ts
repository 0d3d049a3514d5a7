import { aliveIn, CONDITION, EQUALITY, LIST, type Survivor } from './survivor.js';

/**
 * Mutants that no test catches, each with its reason (survivor.ts): in the kernel: tables, steps,
 * searches, lists.
 */
export const kernel: readonly Survivor[] = [
  ...aliveIn('packages/machine/src/explorer/explore.ts', [
    [
      'What is written beyond the end of an array of numbers is dropped.',
      [EQUALITY, 'node < nodes', 'node <= nodes'],
    ],
  ]),
  ...aliveIn('packages/machine/src/builder/drive.ts', [
    [
      'Whoever was dropped or has left is told nothing any more, so nobody asks how it lives.',
      [CONDITION, "status === 'busy'", 'true'],
    ],
  ]),
  ...aliveIn('packages/machine/src/explorer/explore.ts', [
    ['The node to begin with takes the first place.', [LIST, '[]', '["Stryker was here"]']],
    [
      'Only a matter of memory: an arc from a node to itself brings nothing into reach.',
      [CONDITION, 'target !== index', 'true'],
    ],
  ]),
  ...aliveIn('packages/machine/src/explorer/explore.ts', [
    [
      'Another number for the same text: a fingerprint only tells texts apart.',
      [EQUALITY, 'index < text.length', 'index <= text.length'],
      ['ArithmeticOperator', 'high + low', 'high - low'],
    ],
    [
      'An even number and an odd one: they are never the same.',
      [EQUALITY, 'this.#size * 2 > mask', 'this.#size * 2 >= mask'],
    ],
    [
      'Beyond the end stands nothing, which counts as an empty slot.',
      [EQUALITY, 'old < numbers.length', 'old <= numbers.length'],
    ],
    [
      'Only a matter of speed: an empty slot is written over an empty one, which stays so.',
      [CONDITION, 'number === 0', 'false'],
    ],
  ]),
  ...aliveIn('packages/machine/src/kernel/append-list.ts', [
    [
      'Only a matter of speed: the array is made as long as it will be.',
      [LIST, 'new Array<T>(Math.max(0, this.length - start))', 'new Array()'],
    ],
  ]),
  ...aliveIn('packages/machine/src/builder/builder.ts', [
    [
      'A machine that is put together call by call shows nobody its actions.',
      [LIST, '[]', '["Stryker was here"]'],
    ],
  ]),
];
