import { notCommitted, type Row } from './auto-commit-cases.js';

/** Whose files are after a turn that was cancelled, and between turns. */

export const rowsOfTurns: readonly Row[] = [
  {
    title:
      'what a cancelled call wrote is committed with the next batch, what the user wrote then is not',
    when: [
      [{ command: 'echo x > new; echo x >> b', cancelled: true }],
      'echo user > theirs',
      [{ edit: 'a', text: 'x' }],
    ],
    committed: ['M\ta', 'M\tb', 'A\tnew'],
    status: ['?? theirs'],
  },
  {
    title:
      'what a call wrote before another call of its batch was cancelled is committed with the next batch',
    when: [
      [
        { edit: 'new', text: 'x' },
        { command: 'true', cancelled: true },
      ],
      [{ edit: 'new', text: 'y' }],
    ],
    committed: ['A\tnew'],
  },
  {
    title:
      "what was written while a call waited for an answer that cancelled the turn is not the call's",
    when: [
      [{ command: 'echo x > new' }, { command: 'echo user >> b', outside: true, cancelled: true }],
      [{ edit: 'a', text: 'x' }],
    ],
    committed: ['M\ta', 'A\tnew'],
    status: [' M b'],
    note: notCommitted('b', 'it changed when the call had just ended'),
    warning: notCommitted('b', 'it changed when the call had just ended'),
  },
  {
    title: 'a file of a cancelled call that the user changed since is left alone',
    when: [
      [{ command: 'echo x > new; echo x >> b', cancelled: true }],
      'echo user >> b',
      [{ edit: 'a', text: 'x' }],
    ],
    committed: ['M\ta', 'A\tnew'],
    status: [' M b'],
    note: notCommitted('b', 'somebody else changed it too'),
    warning: notCommitted('b', 'somebody else changed it too'),
  },
  {
    title: 'a file that the user changed between the turns, and a call after that',
    when: [[{ edit: 'a', text: 'x' }], 'echo user >> b', [{ edit: 'b', text: 'y' }]],
    status: [' M b'],
    note: notCommitted('b', 'it had uncommitted changes before the agent changed it'),
    warning: notCommitted('b', 'it had uncommitted changes before the agent changed it'),
  },
];
