import { byCase, explorer, type Fault, walks } from './fault.js';

/** Turns: the queue, the budget, how a turn begins and why it ended. */
export const faultsInTurns: readonly Fault[] = [
  {
    name: 'a second question loses the queue',
    file: 'src/agent/moves/turn.ts',
    edits: [{ from: "state.next === 'sendQueue' ? [] : numbered.queue;", to: '[];' }],
    why: 'what was typed meanwhile is gone',
    caughtBy: walks,
  },
  {
    name: 'text typed while the machine works is dropped',
    file: 'src/agent/moves/queue.ts',
    edits: [
      {
        from: '  const session = enqueue(state.session, event);\n  const text',
        to: '  const { session } = state;\n  const text',
      },
    ],
    why: 'what was typed is gone',
    caughtBy: walks,
  },
  {
    name: 'later messages go to the model in the middle of a turn',
    file: 'src/agent/moves/compaction.ts',
    edits: [
      {
        from: "session.queue.filter((item) => item.mode === 'steer')",
        to: "session.queue.filter((item) => item.mode === 'followUp')",
      },
      {
        from: "session.queue.filter((item) => item.mode !== 'steer')",
        to: "session.queue.filter((item) => item.mode !== 'followUp')",
      },
    ],
    why: 'the model leaves its work for what was to be done afterwards',
    caughtBy: byCase('cases-budget', 'case 149a: a follow-up does not join the results'),
  },
  {
    name: 'messages that steer are told and stay in the queue',
    file: 'src/agent/moves/compaction.ts',
    edits: [
      { from: 'tellInputs(changeSession(session, { queue }), steers)', to: 'tellInputs(session, steers)' },
    ],
    why: 'the model is told everything twice',
    caughtBy: byCase(
      'rules-budget',
      'R52: steering texts join the results in order, a follow-up between them waits',
    ),
  },
  {
    name: 'whatever stopped a turn is said to be the user',
    file: 'src/agent/moves/stop.ts',
    edits: [
      {
        from: "reason: { kind: 'cancelled', cause: state.cause }",
        to: "reason: { kind: 'cancelled', cause: 'user' }",
      },
    ],
    why: 'nobody knows why the turn was stopped',
    caughtBy: walks,
  },
  {
    name: 'the budget is looked at after the tools only',
    file: 'src/agent/moves/batch.ts',
    edits: [{ from: "if (callLimit(session, at) !== null) return ended('skipped', skippedText);", to: '' }],
    why: 'a turn without money goes on changing files',
    caughtBy: walks,
  },
  {
    name: 'a limit that is just reached is not reached',
    file: 'src/agent/moves/budget.ts',
    edits: [
      {
        from: 'spentOf(session, dimension, at) >= limit;\n  }) ?? null;',
        to: 'spentOf(session, dimension, at) > limit;\n  }) ?? null;',
      },
    ],
    why: 'one more round than was allowed',
    caughtBy: explorer('replies'),
  },
  {
    name: 'rounds are not counted',
    file: 'src/agent/moves/budget.ts',
    edits: [{ from: 'rounds: session.turn.rounds + 1', to: 'rounds: session.turn.rounds' }],
    why: 'a turn goes on for ever',
    caughtBy: explorer('policies'),
  },
  {
    name: 'a turn begins although the session may not spend',
    file: 'src/agent/moves/turn.ts',
    edits: [
      {
        from: 'released(state) && sessionLimit(state.session) !== null',
        to: 'released(state) && sessionLimit(state.session) === undefined',
      },
    ],
    why: 'the limit of the user is none',
    caughtBy: explorer('everything'),
  },
  {
    name: 'the time limit outlives its turn',
    file: 'src/agent/moves/clock.ts',
    edits: [
      {
        from: '  return go({ ...state, session }, ...cancelled(state.session));',
        to: '  return go({ ...state, session });',
      },
    ],
    why: 'a timer stops the next turn',
    caughtBy: walks,
  },
  {
    name: 'notes about an interruption are forgotten',
    file: 'src/agent/moves/turn.ts',
    edits: [
      { from: "tell(state.session, 'note', state.session.notes)", to: "tell(state.session, 'note', [])" },
    ],
    why: 'the model does not know that it was interrupted',
    caughtBy: byCase('rules-cancel', 'R61: the model learns with the next message that it was interrupted'),
  },
  {
    name: 'an edited queue takes items that it never had',
    file: 'src/agent/moves/queue.ts',
    edits: [{ from: 'known.has(item.inputId) && isFirst', to: 'isFirst' }],
    why: 'text is sent that nobody typed',
    caughtBy: byCase('rules-budget', 'R57: an edit cannot add items or blank texts'),
  },
];
