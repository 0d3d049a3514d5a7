import { aliveIn, LIST, NOBODYS, type Survivor } from './survivor.js';

/** In the exploration of the agent machine. */
export const exploration: readonly Survivor[] = [
  ...aliveIn('src/agent/exploration/check.ts', [[NOBODYS, [LIST, '[]', '["Stryker was here"]']]]),
  ...aliveIn('src/agent/exploration/replies.ts', [
    [
      'The letters that calls are written in stand in the configurations: there is none that is not known.',
      [LIST, '[]', '["Stryker was here"]'],
    ],
  ]),
];
