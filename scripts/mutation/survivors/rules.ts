import { aliveIn, CONDITION, EQUALITY, KIND, LIST, NOBODYS, SHORTCUT, type Survivor } from './survivor.js';

/** In what is promised of the agent machine, and in what its moves stand on. */
export const rules: readonly Survivor[] = [
  ...aliveIn('src/agent/conversation.ts', [[KIND, [CONDITION, "part.type === 'text'", 'true']]]),
  ...aliveIn('src/agent/in-flight.ts', [
    [KIND, [CONDITION, "before.name === 'PostToolsHook'", 'true'], [CONDITION, 'ended !== null', 'true']],
    ['Nothing comes after the last case.', [CONDITION, 'default: break;', 'default:']],
  ]),
  ...aliveIn('src/agent/invariants.ts', [
    [NOBODYS, [LIST, '[]', '["Stryker was here"]', 3]],
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
      [CONDITION, 'queue === before.session.queue && conversation === before.session.conversation', 'false'],
    ],
    [
      'The two places are never one: they are those of parts of different kinds.',
      [EQUALITY, 'firstText < lastResult', 'firstText <= lastResult'],
    ],
  ]),
  ...aliveIn('src/agent/request.ts', [[KIND, [CONDITION, "message.role === 'user'", 'false']]]),
];
