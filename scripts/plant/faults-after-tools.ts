/**
 * Each fault changes a text in one file of a copy of the machine. `caughtBy` is what has to notice
 * it: random walks through the machine, the explorer (which visits the states of a configuration),
 * or one test by its file and title. `why` is the harm that it would do.
 */

import { byCase, explorer, type Fault, walks } from './fault.js';

/**
 * Faults between the tools and the next call: hooks, summaries; and a session that is opened again.
 */
export const faultsAfterTools: readonly Fault[] = [
  {
    name: 'a request is not sent',
    file: 'packages/agent/src/machine/table.ts',
    edits: [{ from: '      rest: sendCall,\n', to: '' }],
    why: 'the turn waits for ever',
    caughtBy: walks,
  },
  {
    name: 'a hook that says stop is not heard',
    file: 'packages/agent/src/machine/moves/hooks.ts',
    edits: [{ from: 'boolean => !event.proceed;', to: "boolean => event.hookId === '';" }],
    why: 'the turn goes on against the rules of the project',
    caughtBy: explorer('hooks'),
  },
  {
    name: 'an old hook is taken for the current one',
    file: 'packages/agent/src/machine/moves/hooks.ts',
    edits: [{ from: '  event.hookId !== state.hookId;', to: "  event.hookId === '';" }],
    why: 'a turn goes on while its formatter still writes',
    caughtBy: walks,
  },
  {
    name: 'what a hook has to say is not told to the model',
    file: 'packages/agent/src/machine/moves/hooks.ts',
    edits: [
      { from: "event.note.trim() === '' ? counted :", to: 'event.note.length >= 0 ? counted :' },
    ],
    why: 'the next edit fails on text that the formatter has changed',
    caughtBy: byCase(
      'rules-hooks',
      'hook-notes: the note of each phase is appended at once, after the results',
    ),
  },
  {
    name: 'a summary splits calls from their results',
    file: 'packages/agent/src/machine/conversation.ts',
    edits: [
      {
        from: 'conversation.closed.length - (holdsResults(conversation) ? 1 : 0)',
        to: 'conversation.closed.length',
      },
    ],
    why: 'the provider refuses the request',
    caughtBy: walks,
  },
  {
    name: 'a summary swallows the question',
    file: 'packages/agent/src/machine/conversation.ts',
    edits: [{ from: 'parts: [first, ...openParts(conversation)]', to: 'parts: [first]' }],
    why: 'what was typed is gone',
    caughtBy: walks,
  },
  {
    name: 'summaries are made of summaries',
    file: 'packages/agent/src/machine/moves/compaction.ts',
    edits: [{ from: "mayCompact: 'no', unaccounted", to: "mayCompact: 'yes', unaccounted" }],
    why: 'a conversation that does not fit is summarised for ever',
    caughtBy: byCase(
      'rules-compaction',
      'one-compaction-between-replies: an overflow right after a failed compaction cuts the results instead',
    ),
  },
  {
    name: 'a session that was opened since is opened again',
    file: 'packages/agent/src/machine/moves/shutdown-and-resume.ts',
    edits: [{ from: 'event.epoch <= state.session.epoch', to: 'event.epoch < 0' }],
    why: 'everything in flight starts twice',
    caughtBy: explorer('everything'),
  },
  {
    name: 'after a crash half an answer stands before the whole one',
    file: 'packages/agent/src/machine/moves/shutdown-and-resume.ts',
    edits: [{ from: "{ session, partial: '' }", to: '{ session }' }],
    why: 'a cancel keeps text that was never an answer',
    caughtBy: byCase(
      'cases-shutdown',
      'resume-request: a session cut off in the middle of a reply asks again under the same id and attempt',
    ),
  },
];
