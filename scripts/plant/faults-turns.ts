/**
 * Each fault changes a text in one file of a copy of the machine. `caughtBy` is what has to notice
 * it: random walks through the machine, the explorer (which visits the states of a configuration),
 * or one test by its file and title. `why` is the harm that it would do.
 */

import { byCase, explorer, type Fault, walks } from './fault.js';

/** Faults in turns: the queue, the budget, how a turn begins and why it ended. */
export const faultsInTurns: readonly Fault[] = [
  {
    name: 'a second question loses the queue',
    file: 'packages/agent/src/machine/moves/turn.ts',
    edits: [{ from: "state.next === 'sendQueue' ? [] : numbered.queue;", to: '[];' }],
    why: 'what was typed meanwhile is gone',
    caughtBy: walks,
  },
  {
    name: 'text typed while the machine works is dropped',
    file: 'packages/agent/src/machine/moves/turn.ts',
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
    file: 'packages/agent/src/machine/moves/compaction.ts',
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
    caughtBy: byCase(
      'cases-budget',
      'steering-joins-results: a follow-up does not join the results',
    ),
  },
  {
    name: 'messages that steer are told and stay in the queue',
    file: 'packages/agent/src/machine/moves/compaction.ts',
    edits: [
      {
        from: 'appendInputs(changeSession(session, { queue }), steers)',
        to: 'appendInputs(session, steers)',
      },
    ],
    why: 'the model is told everything twice',
    caughtBy: byCase(
      'rules-budget',
      'steering-joins-results: steering texts join the results in order, a follow-up between them waits',
    ),
  },
  {
    name: 'whatever stopped a turn is said to be the user',
    file: 'packages/agent/src/machine/moves/stop.ts',
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
    file: 'packages/agent/src/machine/moves/tool-batch.ts',
    edits: [{ from: 'if (sessionLimit(session) !== null) return skippedText;', to: '' }],
    why: 'a turn without money goes on changing files',
    caughtBy: walks,
  },
  {
    name: 'a limit that is just reached is not reached',
    file: 'packages/agent/src/machine/settings.ts',
    edits: [{ from: 'spent >= limit;', to: 'spent > limit;' }],
    why: 'one more round than was allowed',
    caughtBy: byCase(
      'cases-tools',
      'limit-after-round: the turn ends at its limit of rounds, results stored',
    ),
  },
  {
    name: 'rounds are not counted',
    file: 'packages/agent/src/machine/moves/budget.ts',
    edits: [{ from: 'rounds: session.turn.rounds + 1', to: 'rounds: session.turn.rounds' }],
    why: 'a turn goes on for ever',
    caughtBy: explorer('policies'),
  },
  {
    name: 'a turn begins although the session may not spend',
    file: 'packages/agent/src/machine/moves/turn.ts',
    edits: [
      {
        from: 'released(state) && sessionIsSpent(state)',
        to: 'released(state) && state.session === undefined',
      },
    ],
    why: 'what was typed is gone from the queue, and is not answered',
    caughtBy: byCase(
      'rules-budget',
      'limit-at-end-of-turn: messages queued when a turn ends at a limit are held with one notice',
    ),
  },
  {
    name: 'a retry is sent although the session may not spend',
    file: 'packages/agent/src/machine/table.ts',
    edits: [
      {
        from: "      alwaysOnEntry: [{ when: budget.sessionIsSpent, to: 'BudgetExceeded', then: budget.stopBeforeCall }],\n      rest: sendCall,",
        to: '      rest: sendCall,',
      },
    ],
    why: 'whoever limits dollars pays for retries beyond them',
    caughtBy: explorer('budget'),
  },
  {
    name: 'a summary is made although the session may not spend',
    file: 'packages/agent/src/machine/table.ts',
    edits: [
      {
        from: "      alwaysOnEntry: [{ when: budget.sessionIsSpent, to: 'BudgetExceeded', then: budget.stopBeforeCall }],\n      rest: compaction.startCompaction,",
        to: '      rest: compaction.startCompaction,',
      },
    ],
    why: 'whoever limits dollars pays for summaries beyond them',
    caughtBy: explorer('everything'),
  },
  {
    name: 'two calls are handed the same budget',
    file: 'packages/agent/src/machine/moves/tool-batch.ts',
    edits: [
      {
        from: '  if (spendsAlone && running.some(({ judged }) => isSpending(judged))) return false;\n',
        to: '',
      },
    ],
    why: 'each of them spends all that is left',
    caughtBy: explorer('tools that spend'),
  },
  {
    name: 'a queue that is released is not sent',
    file: 'packages/agent/src/machine/moves/turn.ts',
    edits: [
      {
        from: "queue.length > 0 ? 'sendQueue' : 'sendAgain'",
        to: "queue.length > 0 ? 'rest' : 'sendAgain'",
      },
    ],
    why: 'what was typed meanwhile waits for ever',
    caughtBy: explorer('everything'),
  },
  {
    name: 'the time limit outlives its turn',
    file: 'packages/agent/src/machine/moves/budget.ts',
    edits: [
      {
        from: '  return go({ ...state, session }, ...cancelClock(state.session));',
        to: '  return go({ ...state, session });',
      },
    ],
    why: 'a timer stops the next turn',
    caughtBy: walks,
  },
  {
    name: 'notes about an interruption are forgotten',
    file: 'packages/agent/src/machine/moves/turn.ts',
    edits: [
      {
        from: "appendTexts(state.session, 'note', state.session.notes)",
        to: "appendTexts(state.session, 'note', [])",
      },
    ],
    why: 'the model does not know that it was interrupted',
    caughtBy: byCase(
      'rules-cancel',
      'cancel-request: the model learns with the next message that it was interrupted',
    ),
  },
  {
    name: 'an edited queue takes items that it never had',
    file: 'packages/agent/src/machine/moves/turn.ts',
    edits: [{ from: 'known.has(item.inputId) && isFirst', to: 'isFirst' }],
    why: 'text is sent that nobody typed',
    caughtBy: byCase('rules-budget', 'edit-queue: an edit cannot add items or blank texts'),
  },
];
