import {
  aliveIn,
  CONDITION,
  EQUALITY,
  KIND,
  LIST,
  NOBODYS,
  SHORTCUT,
  type Survivor,
} from './survivor.js';

/**
 * Mutants that no test catches, each with its reason (survivor.ts): in the rules of the agent
 * machine and the functions that its moves use.
 */
export const rules: readonly Survivor[] = [
  ...aliveIn('packages/agent/src/machine/conversation.ts', [
    [
      KIND,
      [CONDITION, "part.type === 'text'", 'true'],
      [CONDITION, "part.type !== 'text'", 'false'],
      [CONDITION, "message.role !== 'user'", 'false'],
    ],
    ['A summary stands in the first message alone.', [CONDITION, 'index === 0', 'true']],
  ]),
  ...aliveIn('packages/agent/src/machine/machine.ts', [
    [
      'Resumed leaves no other diagnostic where its epoch is new.',
      [CONDITION, "kind === 'malformed'", 'true'],
    ],
    ['No field is null or missing at the beginning.', [CONDITION, "kind !== 'any'", 'true']],
    [
      'Only the kinds of its fields are looked at.',
      ['ObjectLiteral', "{ ...defaultSettings, model: '', workspace: '' }", '{}'],
    ],
    ['A step of no state is one of no name.', ['ObjectLiteral', "{ name: '' }", '{}']],
  ]),
  ...aliveIn('packages/agent/src/machine/invariants.ts', [
    [KIND, [CONDITION, 'ended !== null', 'true']],
    ['Nothing comes after the last case.', [CONDITION, 'default: break;', 'default:', 2]],
  ]),
  ...aliveIn('packages/agent/src/machine/invariants.ts', [
    [NOBODYS, [LIST, '[]', '["Stryker was here"]', 4]],
    [
      KIND,
      [CONDITION, "action.type === 'RestoreQueue'", 'true'],
      [CONDITION, "message.role === 'user'", 'true'],
      [CONDITION, "part.type === 'text'", 'true'],
      [CONDITION, "state.name === 'CallingLlm'", 'true'],
      [CONDITION, "state.name === 'CallingLlm' || state.name === 'Error'", 'true'],
    ],
    [
      SHORTCUT,
      [CONDITION, 'isSame && typed.length === 0', 'false'],
      [
        CONDITION,
        'queue === before.session.queue && conversation === before.session.conversation',
        'false',
      ],
    ],
    [
      'The two places are never one: they are those of parts of different kinds.',
      [EQUALITY, 'firstText < lastResult', 'firstText <= lastResult'],
    ],
    [
      'No sum of prices is above the limit by just that much.',
      [
        EQUALITY,
        'committed <= Math.max(limit, earlier) + 1e-9',
        'committed < Math.max(limit, earlier) + 1e-9',
      ],
    ],
  ]),
  ...aliveIn('packages/agent/src/machine/settings.ts', [
    [KIND, [CONDITION, "limit !== 'unlimited'", 'true']],
  ]),
  ...aliveIn('packages/agent/src/machine/names.ts', [
    [
      'Only its type is looked at: from it the compiler takes the names of the events that have a default row.',
      [LIST, "['ShutdownRequested', 'SettingsChanged', 'UsageReported', 'Resumed']", '[]'],
    ],
  ]),
  ...aliveIn('packages/agent/src/machine/invariants.ts', [
    [
      KIND,
      [CONDITION, "event.type === 'TimerFired'", 'true'],
      [CONDITION, "before.name !== 'CallingLlm'", 'false'],
      [CONDITION, "before.name !== 'ExecutingTools'", 'false'],
      [CONDITION, "state.name === 'ExecutingTools'", 'true'],
    ],
  ]),
  ...aliveIn('packages/agent/src/machine/conversation.ts', [
    [KIND, [CONDITION, "message.role === 'user'", 'false']],
  ]),
  ...aliveIn('packages/agent/src/machine/carried-session.ts', [
    [
      KIND,
      [CONDITION, "event.type === 'Resumed'", 'true', 2],
      [CONDITION, "event.type === 'ShutdownRequested'", 'true'],
    ],
    ['Nothing comes after the last case.', [CONDITION, 'default: return;', 'default:']],
  ]),
];
