import {
  aliveIn,
  CONDITION,
  EQUALITY,
  LIST,
  NOBODYS,
  SHORTCUT,
  type Survivor,
} from './survivor.js';

/**
 * Mutants that no test catches, each with its reason (survivor.ts): in the exploration of the agent
 * machine.
 */
export const exploration: readonly Survivor[] = [
  ...aliveIn('packages/verify/src/exploration/explore.ts', [
    [NOBODYS, [LIST, '[]', '["Stryker was here"]']],
  ]),
  ...aliveIn('packages/verify/src/exploration/state-key.ts', [
    [
      SHORTCUT,
      [CONDITION, 'text.length * 4 > bytes', 'true'],
      [EQUALITY, 'text.length * 4 > bytes', 'text.length * 4 >= bytes'],
    ],
    [
      'No request has the empty id, and none has no id.',
      [CONDITION, "default: return '';", 'default:'],
    ],
  ]),
];
