import * as g from '../../../../test/kit/agent/given.js';
import { sketch } from '../../src/projections/seed-sketch.js';
import { checkTable } from './projected.js';
import {
  AFTER_TOOLS,
  change,
  formats,
  never,
  read,
  row,
  small,
  TO_RESULTS,
  TO_TOOLS,
} from './sketch-rows.js';

/** Seed 003 arrow by arrow. */

checkTable(sketch, [
  row('Ready WaitingForUserInput', {
    given: 'Ready',
    send: [g.begin],
    path: 'Ready WaitingForUserInput',
  }),
  row('WaitingForUserInput SendingToLLM', {
    given: 'W',
    send: [g.input('hi')],
    path: 'WaitingForUserInput SendingToLLM',
  }),
  row('WaitingForUserInput Error', {
    given: 'W',
    send: [g.inputFails],
    path: 'WaitingForUserInput Error WaitingForUserInput',
  }),
  row('SendingToLLM ProcessingLLMResponse', {
    given: 'C[u]',
    send: [g.says('yo')],
    path: 'SendingToLLM ProcessingLLMResponse EndOfTurn WaitingForUserInput',
  }),
  row('SendingToLLM Error', {
    given: 'C[u]',
    send: [g.refusedRequest],
    path: 'SendingToLLM Error WaitingForUserInput',
  }),
  row('ProcessingLLMResponse EndOfTurn', {
    given: 'C[t]',
    settings: never,
    send: [g.says('yo')],
    path: 'SendingToolResults ProcessingLLMResponse EndOfTurn WaitingForUserInput',
  }),
  row('ProcessingLLMResponse ToolUseRequested', {
    given: 'C[u]',
    send: [read],
    path: `SendingToLLM ${TO_TOOLS} RunningTool`,
  }),
  row('ProcessingLLMResponse Error', {
    given: 'C[u]',
    send: [g.completed({ message: null })],
    path: 'SendingToLLM ProcessingLLMResponse Error WaitingForUserInput',
  }),
  row('EndOfTurn WaitingForUserInput', {
    given: 'C[u]',
    send: [g.input('and'), g.says('yo')],
    path: 'SendingToLLM ProcessingLLMResponse EndOfTurn WaitingForUserInput SendingToLLM',
  }),
  row('ToolUseRequested CheckingForCancellation', {
    given: 'C[u]',
    send: [read],
    path: `SendingToLLM ${TO_TOOLS} RunningTool`,
  }),
  row('CheckingForCancellation RunningTool', {
    given: 'C[u]',
    send: [read],
    path: `SendingToLLM ${TO_TOOLS} RunningTool`,
  }),
  row('CheckingForCancellation Cancelled', {
    given: 'C[u]',
    settings: { cancelMode: 'drain' },
    send: [g.cancel, read],
    path: `SendingToLLM ${TO_TOOLS} Cancelled WaitingForUserInput`,
  }),
  row('RunningTool CheckingGitCommits', {
    given: 'C[u]',
    send: [read, g.ended('1')],
    path: AFTER_TOOLS,
  }),
  row('RunningTool Error', {
    given: 'X',
    send: [g.toolsFail],
    path: 'RunningTool Error WaitingForUserInput',
  }),
  row('CheckingGitCommits RunningAutoformatters', {
    given: 'H[c]',
    send: [g.hookDone({ commits: g.commits(1) })],
    path: 'CheckingGitCommits RunningAutoformatters',
  }),
  row('CheckingGitCommits CheckingBudget', {
    given: 'H[c]',
    send: [g.hookDone({ commits: g.commits(2) })],
    path: `CheckingGitCommits ${TO_RESULTS}`,
  }),
  row('RunningAutoformatters CheckingBudget', {
    given: 'H[f]',
    settings: formats,
    send: [g.hookDone()],
    path: `RunningAutoformatters ${TO_RESULTS}`,
  }),
  row('CheckingBudget GatheringAdditionalMessages', {
    given: 'C[u]',
    settings: never,
    send: [change, g.ended('1')],
    path: `${AFTER_TOOLS} ${TO_RESULTS}`,
  }),
  row('CheckingBudget BudgetExceeded', {
    given: 'C[u]',
    settings: never,
    send: [g.completed({ calls: [g.grep('1')], usage: g.usage(10) })],
    path: `SendingToLLM ${TO_TOOLS} ${AFTER_TOOLS} CheckingBudget BudgetExceeded WaitingForUserInput`,
  }),
  row('GatheringAdditionalMessages SendingToolResults', {
    given: 'H[c]',
    send: [g.hookDone()],
    path: `CheckingGitCommits ${TO_RESULTS}`,
  }),
  row('GatheringAdditionalMessages Error', {
    given: 'C[u] long',
    settings: { ...never, windowTokens: 10_000 },
    send: [
      g.completed({ calls: [g.grep('1')], usage: g.usage(0, 10_500) }),
      g.ended('1'),
      g.compactionFails,
    ],
    path: 'GatheringAdditionalMessages Error WaitingForUserInput',
  }),
  row('SendingToolResults ProcessingLLMResponse', {
    given: 'C[t]',
    settings: never,
    send: [read],
    path: `SendingToolResults ${TO_TOOLS} RunningTool`,
  }),
  row('SendingToolResults Error', {
    given: 'C[t]',
    settings: never,
    send: [g.refusedRequest],
    path: 'SendingToolResults Error WaitingForUserInput',
  }),
  row('Error WaitingForUserInput', {
    given: 'X',
    send: [g.toolsFail],
    path: 'RunningTool Error WaitingForUserInput',
  }),
  row('Cancelled WaitingForUserInput', {
    given: 'C[u]',
    send: [g.cancel],
    path: 'SendingToLLM Cancelled WaitingForUserInput',
  }),
  row('BudgetExceeded WaitingForUserInput', {
    given: 'H[c]',
    settings: { limits: { rounds: 1 } },
    send: [g.hookDone()],
    path: 'CheckingGitCommits CheckingBudget BudgetExceeded WaitingForUserInput',
  }),
  row('WaitingForUserInput Compacting', {
    given: 'W long',
    send: [g.compact],
    path: 'WaitingForUserInput Compacting',
  }),
  row('Compacting WaitingForUserInput', {
    given: 'K[i]',
    settings: small,
    send: [g.compacts()],
    path: 'Compacting WaitingForUserInput SendingToLLM',
  }),
  row('Compacting Error', {
    given: 'W long',
    send: [g.compact, g.compactionFails],
    path: 'Compacting Error WaitingForUserInput',
  }),
  // What its CancelTurn forces.
  row('SendingToLLM Cancelled', {
    given: 'Er',
    send: [g.cancel],
    path: 'SendingToLLM Cancelled WaitingForUserInput',
  }),
  row('SendingToolResults Cancelled', {
    given: 'C[t]',
    settings: never,
    send: [g.cancel],
    path: 'SendingToolResults Cancelled WaitingForUserInput',
  }),
  row('RunningTool Cancelled', {
    given: 'X',
    send: [g.cancel, g.cancel],
    path: 'RunningTool Cancelled WaitingForUserInput',
  }),
  row('CheckingGitCommits Cancelled', {
    given: 'H[c]',
    send: [g.cancel],
    path: 'CheckingGitCommits Cancelled WaitingForUserInput',
  }),
  row('RunningAutoformatters Cancelled', {
    given: 'H[f]',
    settings: formats,
    send: [g.cancel],
    path: 'RunningAutoformatters Cancelled WaitingForUserInput',
  }),
  row('GatheringAdditionalMessages Cancelled', {
    given: 'K[m]',
    settings: { ...never, ...small },
    send: [g.cancel],
    path: 'GatheringAdditionalMessages Cancelled WaitingForUserInput',
  }),
  row('Compacting Cancelled', {
    given: 'W long',
    send: [g.compact, g.cancel],
    path: 'Compacting Cancelled WaitingForUserInput',
  }),
]);
