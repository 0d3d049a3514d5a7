import {
  ASKED,
  aliveIn,
  CHAIN,
  CONDITION,
  EQUALITY,
  KIND,
  LIST,
  LOGIC,
  METHOD,
  NOBODYS,
  SHORTCUT,
  type Survivor,
} from './survivor.js';

/**
 * Mutants that no test catches, each with its reason (survivor.ts): in the moves of the agent
 * machine.
 */
export const moves: readonly Survivor[] = [
  ...aliveIn('packages/agent/src/machine/moves/batch-events.ts', [
    [
      ASKED,
      [CONDITION, 'call === undefined', 'false', 4],
      [CONDITION, 'call === undefined || !isRunning(call)', 'false', 2],
      [
        LOGIC,
        'call === undefined || !isRunning(call)',
        'call === undefined && !isRunning(call)',
        2,
      ],
      [CONDITION, "call?.status !== 'starting'", 'false'],
      [CONDITION, "call?.status !== 'previewing'", 'false'],
      [CONDITION, "call?.status !== 'awaitingApproval'", 'false', 2],
      [CHAIN, 'call?.status', 'call.status', 4],
      [CHAIN, 'findCall(state, event)?.judged', 'findCall(state, event).judged'],
      [METHOD, 'calls.filter(isEnded)', 'calls'],
      [CONDITION, 'grant !== null', 'true'],
    ],
    [
      'Asked before, or else there is no timer whose id could fit.',
      [CONDITION, "state.phase.mode === 'cancelling'", 'true', 2],
    ],
    [
      SHORTCUT,
      [CONDITION, 'images !== undefined', 'true', 2],
      [CONDITION, 'ran === undefined', 'false'],
      [CONDITION, 'grant === null', 'false'],
    ],
    [NOBODYS, [LIST, '[]', '["Stryker was here"]', 3]],
    [
      'The calls behind it have not started, and its own preview has been made.',
      [METHOD, 'state.calls.slice(0, state.calls.indexOf(call))', 'state.calls'],
    ],
  ]),
  ...aliveIn('packages/agent/src/machine/moves/tool-batch.ts', [
    [NOBODYS, [LIST, '[]', '["Stryker was here"]']],
    [
      'A call that needs to be alone is alone: some that run are so, or all.',
      [
        METHOD,
        'running.some(({ judged }) => isExclusive(judged))',
        'running.every(({ judged }) => isExclusive(judged))',
      ],
    ],
    [
      SHORTCUT,
      [CONDITION, 'batch.calls.findLast(isWaiting) === undefined', 'false'],
      [CONDITION, 'calls.length <= SEARCHED_MAX', 'false'],
      [EQUALITY, 'calls.length <= SEARCHED_MAX', 'calls.length < SEARCHED_MAX'],
      [CONDITION, 'known !== undefined', 'true'],
      [CONDITION, 'unrecoverable !== undefined', 'true'],
      [CONDITION, 'discarded !== undefined', 'true'],
      [CONDITION, 'judged.facts.expects === undefined', 'false'],
    ],
    [
      'A call starts once; where it starts again after a crash, its id has been closed.',
      [METHOD, 'spending.filter((id) => !unaccounted.includes(id))', 'spending'],
    ],
    [
      'Before and behind the calls of a batch there is none.',
      [CONDITION, 'position < 0', 'false'],
      [CONDITION, 'position >= 0', 'true'],
      [EQUALITY, 'index < calls.length', 'index <= calls.length'],
      [CONDITION, 'waiting === undefined', 'false'],
    ],
    [
      'Such a call waits for one that runs alone: while that one runs, no other is looked at.',
      [CONDITION, "call.allowed === 'notYet'", 'false'],
    ],
  ]),
  ...aliveIn('packages/agent/src/machine/moves/compaction.ts', [
    [ASKED, [CONDITION, "state.mode.kind === 'idle'", 'true', 2]],
  ]),
  ...aliveIn('packages/agent/src/machine/moves/tool-batch.ts', [
    [
      ASKED,
      [CONDITION, "judged.verdict.kind === 'invalid'", 'true'],
      [CONDITION, "judged.verdict.kind === 'noSuchTool'", 'true'],
    ],
  ]),
  ...aliveIn('packages/agent/src/machine/moves/turn.ts', [
    [ASKED, [CHAIN, 'old?.inputId', 'old.inputId']],
  ]),
  ...aliveIn('packages/agent/src/machine/moves/reply.ts', [
    [
      ASKED,
      [CONDITION, 'reply.message !== null', 'true'],
      [CONDITION, 'reply.message === null', 'false', 2],
    ],
  ]),
  ...aliveIn('packages/agent/src/machine/moves/stop.ts', [
    [KIND, [CONDITION, "event.type === 'TimerFired'", 'true']],
  ]),
  ...aliveIn('packages/agent/src/machine/moves/tool-batch.ts', [
    [
      'Another number for the same text: a fingerprint only tells texts apart.',
      [EQUALITY, 'index < text.length', 'index <= text.length'],
    ],
  ]),
  ...aliveIn('packages/agent/src/machine/moves/turn.ts', [
    [
      'The state is passed on within the step: nobody sees why it waits.',
      ['ObjectLiteral', "{ kind: 'start' }", '{}'],
    ],
  ]),
  ...aliveIn('packages/agent/src/machine/moves/budget.ts', [
    [KIND, [CONDITION, "limit === 'unlimited'", 'false']],
    [NOBODYS, [LIST, '[]', '["Stryker was here"]']],
    [
      'A turn has a timer exactly where there is a limit.',
      [CONDITION, 'turn.timeLimit === null', 'false'],
      [CONDITION, "timeMs === 'unlimited'", 'false'],
      [
        LOGIC,
        "turn.timeLimit === null || timeMs === 'unlimited'",
        "turn.timeLimit === null && timeMs === 'unlimited'",
      ],
    ],
    [
      'Only dollars and tokens have slices.',
      [CONDITION, "dimension === 'usd' || dimension === 'tokens'", 'true'],
    ],
  ]),
  ...aliveIn('packages/agent/src/machine/moves/rewind.ts', [
    [NOBODYS, [LIST, '[]', '["Stryker was here"]']],
    [
      'The two places are never one: they are those of parts of different kinds.',
      [EQUALITY, 'firstText > lastResult', 'firstText >= lastResult'],
    ],
    [ASKED, [CHAIN, 'files?.plan', 'files.plan']],
    [
      'Behind the end of one list stands nothing, which is like no message of the other.',
      [
        LOGIC,
        'kept < before.length && kept < after.length',
        'kept < before.length || kept < after.length',
      ],
      [CONDITION, 'kept < before.length', 'true'],
      [EQUALITY, 'kept < before.length', 'kept <= before.length'],
      [CONDITION, 'kept < after.length', 'true'],
      [EQUALITY, 'kept < after.length', 'kept <= after.length'],
    ],
    [SHORTCUT, [CONDITION, 'one === other', 'false']],
  ]),
  ...aliveIn('packages/agent/src/machine/moves/stop.ts', [
    ['Nothing comes after the last case.', [CONDITION, 'default: return null;', 'default:']],
    [
      'The row was chosen by the same cause: here it has one value.',
      [CONDITION, "ends.state === 'Cancelled'", 'true'],
      [CONDITION, "ends.state === 'Cancelled'", 'false'],
      [EQUALITY, "ends.state === 'Cancelled'", "ends.state !== 'Cancelled'"],
      [CONDITION, "ends.state === 'BudgetExceeded'", 'true'],
      [CONDITION, "ends.state === 'BudgetExceeded'", 'false'],
      [EQUALITY, "ends.state === 'BudgetExceeded'", "ends.state !== 'BudgetExceeded'"],
    ],
  ]),
  ...aliveIn('packages/agent/src/machine/moves/turn.ts', [
    [KIND, [CONDITION, "reason.kind === 'budget'", 'true']],
    [
      ASKED,
      [CONDITION, 'objections !== undefined', 'true'],
      [CHAIN, 'known.get(inputId)?.images', 'known.get(inputId).images'],
    ],
  ]),
  ...aliveIn('packages/agent/src/machine/moves/reply.ts', [
    [ASKED, [CHAIN, 'calls[index]?.callId', 'calls[index].callId']],
    [SHORTCUT, [CONDITION, 'hooks.length === 0', 'false']],
  ]),
  ...aliveIn('packages/agent/src/machine/moves/retry.ts', [
    [KIND, [CONDITION, "retrySchedule.kind === 'exponential'", 'true']],
  ]),
  ...aliveIn('packages/agent/src/machine/moves/shutdown-and-resume.ts', [
    [SHORTCUT, [CONDITION, "status === 'previewing'", 'false']],
    [NOBODYS, [LIST, '[]', '["Stryker was here"]']],
  ]),
  ...aliveIn('packages/agent/src/machine/moves/hooks.ts', [
    [
      KIND,
      [CONDITION, "part.type === 'text'", 'true'],
      [CONDITION, "state.name === 'CallingLlm'", 'true'],
    ],
    [
      'What the model reads of hooks is shown to the user, too.',
      [CONDITION, 'session === state.session', 'true'],
    ],
    [SHORTCUT, [CONDITION, 'verdicts.length === 0', 'false']],
  ]),
];
