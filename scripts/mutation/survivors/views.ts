import {
  ASKED,
  aliveIn,
  CHAIN,
  CONDITION,
  KIND,
  LIST,
  LOGIC,
  NOBODYS,
  SHORTCUT,
  type Survivor,
} from './survivor.js';

/**
 * Mutants that no test catches, each with its reason (survivor.ts): in the tables of the seeds and
 * in the check that our steps are steps of theirs.
 */
export const views: readonly Survivor[] = [
  ...aliveIn('packages/verify/src/projections/projection.ts', [
    [NOBODYS, [LIST, '[]', '["Stryker was here"]']],
  ]),
  ...aliveIn('packages/verify/src/projections/refinement-check.ts', [
    [
      SHORTCUT,
      [
        'BlockStatement',
        '{ let { state } = cursor; for (const step of steps) { if (step.from !== state || !isArrow(projection, step)) return false; state = step.to; } return true; }',
        '{}',
      ],
      [CONDITION, 'step.from !== state || !isArrow(projection, step)', 'true'],
      ['BooleanLiteral', 'true', 'false'],
    ],
  ]),
  ...aliveIn('packages/verify/src/projections/project-seed.ts', [
    [
      ASKED,
      [CONDITION, "event.type === 'LlmCompleted'", 'true', 2],
      [CHAIN, 'event.message?.parts', 'event.message.parts'],
      [CONDITION, 'before.name === CALLING', 'true'],
      [CONDITION, 'state === HOOK', 'true'],
      [CONDITION, 'from === WAITING', 'true'],
      [LIST, '[]', '["Stryker was here"]', 3],
    ],
    [
      KIND,
      [CONDITION, "action.type === 'DisplayWarning'", 'true'],
      [CONDITION, "state.name === 'Compacting' && state.mode.kind === 'idle'", 'true'],
      [CONDITION, "state.name === 'Compacting'", 'true'],
      [
        LOGIC,
        "state.name === 'Compacting' && state.mode.kind === 'idle'",
        "state.name === 'Compacting' || state.mode.kind === 'idle'",
      ],
      [CONDITION, "state.mode.kind === 'idle'", 'true'],
      [CONDITION, 'before.name !== CALLING', 'false'],
      [CONDITION, 'action === null', 'false'],
    ],
    [
      'What was not shown does not count as shown: the action needs its witness.',
      [CONDITION, "event.type === 'TextDelta'", 'true'],
    ],
    [SHORTCUT, [CONDITION, 'step.path.length === 0', 'false']],
  ]),
  ...aliveIn('packages/verify/src/projections/seed-tools-mode.ts', [
    [
      'Asked of steps through BudgetExceeded alone: they come to rest in WaitingForUserInput for a budget.',
      [
        CONDITION,
        "step.state.name === 'WaitingForUserInput' && step.state.reason.kind === 'budget'",
        'true',
      ],
      [
        LOGIC,
        "step.state.name === 'WaitingForUserInput' && step.state.reason.kind === 'budget'",
        "step.state.name === 'WaitingForUserInput' || step.state.reason.kind === 'budget'",
      ],
      [CONDITION, "step.state.name === 'WaitingForUserInput'", 'true'],
      [CONDITION, "step.state.reason.kind === 'budget'", 'true'],
    ],
    [ASKED, [CONDITION, "ours.before.name === 'CallingLlm'", 'true']],
    [
      'A matter of speed: where the seed stays its place is the same object, or one that is equal.',
      [CONDITION, 'run.at === cursor.state', 'false'],
    ],
  ]),
];
