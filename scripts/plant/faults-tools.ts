/**
 * Each fault changes a text in one file of a copy of the machine. `caughtBy` is what has to notice
 * it: random walks through the machine, the explorer (which visits the states of a configuration),
 * or one test by its file and title. `why` is the harm that it would do.
 */

import { byCase, explorer, type Fault, walks } from './fault.js';

/** Faults in batches of calls: permissions, order, reports. */
export const faultsInTools: readonly Fault[] = [
  {
    name: 'a call with bad arguments is run',
    file: 'packages/agent/src/machine/moves/tool-batch.ts',
    edits: [
      {
        from: "if (judged.verdict.kind === 'invalid') {",
        to: "if (judged.verdict.kind === 'noSuchTool') {",
      },
    ],
    why: 'a command is executed with half of its arguments',
    caughtBy: byCase(
      'cases-tools',
      'calls-that-never-run: arguments that are not JSON are answered with the raw text',
    ),
  },
  {
    name: 'a no without a reason is a yes',
    file: 'packages/agent/src/machine/moves/batch-events.ts',
    edits: [
      {
        from: "if (event.answer.kind === 'deny')",
        to: "if (event.answer.kind === 'deny' && event.answer.reason !== '')",
      },
    ],
    why: 'the command that was refused is executed',
    caughtBy: byCase(
      'rules-policy',
      'answered-approval: a call that the user refuses without a reason is refused all the same',
    ),
  },
  {
    name: 'an accepted plan gives more than there was before',
    file: 'packages/agent/src/policy/presets.ts',
    edits: [
      {
        from: "before === 'auto' || before === 'ci' ? before : 'careful'",
        to: "before === 'careful' || before === 'ci' ? before : 'auto'",
      },
    ],
    why: 'files are changed unasked in a session that began with a plan',
    caughtBy: byCase(
      'rules-policy',
      'answered-question: a plan that is accepted goes on with careful where no preset was before',
    ),
  },
  {
    name: 'words allow a call that asks nothing',
    file: 'packages/agent/src/machine/moves/batch-events.ts',
    edits: [{ from: " && event.answer.kind !== 'reply'", to: '' }],
    why: 'a change runs that nobody has allowed',
    caughtBy: byCase(
      'rules-policy',
      'answered-question: words are no yes to a call that asks nothing',
    ),
  },
  {
    name: 'a yes to one question is a yes to all',
    file: 'packages/agent/src/policy/rules.ts',
    edits: [{ from: "    case 'once':\n      return null;", to: "    case 'once':" }],
    why: 'commands run that nobody was asked about',
    caughtBy: byCase(
      'rules-policy',
      'answered-approval: allowing once does not cover the next call',
    ),
  },
  {
    name: 'nobody to ask, and the turn goes on',
    file: 'packages/agent/src/machine/moves/batch-events.ts',
    edits: [
      {
        from: "state.phase.mode === 'stopping';",
        to: "state.phase.mode === 'stopping' && state.calls.length === 0;",
      },
    ],
    why: 'a script spends money on a turn that can do nothing',
    caughtBy: walks,
  },
  {
    name: 'a call that was cancelled is killed at once',
    file: 'packages/agent/src/machine/moves/batch-events.ts',
    edits: [
      {
        from: 'return go(stopped, ...cancelCalls(state, [call], false)',
        to: 'return go(stopped, ...cancelCalls(state, [call], true)',
      },
    ],
    why: 'a tool has no time to clean up',
    caughtBy: walks,
  },
  {
    name: 'after a crash calls that had begun begin again',
    file: 'packages/agent/src/machine/moves/tool-batch.ts',
    edits: [
      {
        from: "if (call.status === 'starting')\n      calls",
        to: "if (call.status === 'starting' || call.status === 'running')\n      calls",
      },
    ],
    why: 'a command that took effect is executed twice',
    caughtBy: byCase(
      'rules-shutdown',
      'resume-calls: calls that had not started are started again, approvals are asked for again',
    ),
  },
  {
    name: 'a second outcome overwrites the first',
    file: 'packages/agent/src/machine/moves/batch-events.ts',
    edits: [
      {
        from: 'return call !== undefined && isRunning(call);',
        to: 'return call !== undefined && (isRunning(call) || isEnded(call));',
      },
      {
        from: 'if (call === undefined || !isRunning(call)) return ignoreOutcome(state, event);',
        to: 'if (call === undefined) return ignoreOutcome(state, event);',
      },
      {
        from: '...cancelTimer(call.graceTimerId), shown',
        to: '...cancelTimer(isRunning(call) ? call.graceTimerId : null), shown',
      },
    ],
    why: 'the model reads an outcome that the user was not shown',
    caughtBy: walks,
  },
  {
    name: 'results stand in the order in which their calls ended',
    file: 'packages/agent/src/machine/moves/batch-events.ts',
    edits: [
      {
        from: 'const ended = calls.filter(isEnded);',
        to: 'const ended = calls.filter(isEnded).toSorted((one, other) => one.completedAt - other.completedAt);',
      },
    ],
    why: 'the provider refuses the conversation',
    caughtBy: walks,
  },
  {
    name: 'what the user says stands before the results',
    file: 'packages/agent/src/machine/conversation.ts',
    edits: [
      {
        from: 'parts: [...openParts(conversation), ...parts]',
        to: 'parts: [...parts, ...openParts(conversation)]',
      },
    ],
    why: 'the provider refuses the conversation',
    caughtBy: walks,
  },
  {
    name: 'one call more than may run at once',
    file: 'packages/agent/src/machine/moves/tool-batch.ts',
    edits: [
      {
        from: 'return running.length < session.settings.maxParallel;',
        to: 'return running.length <= session.settings.maxParallel;',
      },
    ],
    why: 'a limit that was set is not kept',
    caughtBy: byCase('cases-tools', 'call-order: no more calls run at once than allowed'),
  },
  {
    name: 'reads start beside an edit',
    file: 'packages/agent/src/machine/moves/tool-batch.ts',
    edits: [
      {
        from: 'if (isExclusive(next) || running.some(({ judged }) => isExclusive(judged))) return false;',
        to: 'if (isExclusive(next)) return false;',
      },
    ],
    why: 'a file is read while it is written',
    caughtBy: explorer('rules change'),
  },
  {
    name: 'a call overtakes one that has no room',
    file: 'packages/agent/src/machine/moves/tool-batch.ts',
    edits: [
      {
        from: 'if (!hasRoom(batch.session, running, waiting.judged)) break;',
        to: 'if (!hasRoom(batch.session, running, waiting.judged)) continue;',
      },
    ],
    why: 'a file is read before the edit that was asked for first',
    caughtBy: byCase(
      'cases-tools',
      'call-order: an edit between reads holds back what comes after it',
    ),
  },
  {
    name: 'a call overtakes one that waits for an answer',
    file: 'packages/agent/src/machine/moves/tool-batch.ts',
    edits: [
      {
        from: 'if (isAsked(waiting)) break;',
        to: 'if (isAsked(waiting)) continue;',
      },
    ],
    why: 'a command runs before the one that it builds on',
    caughtBy: explorer('rules change'),
  },
];
