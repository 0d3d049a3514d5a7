import * as g from '../../../../test/kit/agent/given.js';
import type { TableRow } from './projected.js';

/** What seed 000 says, as lines, and the rows that its text and its later program share. */

export const ASKS = 'WaitingForUserInput --UserInput--> CallingLlm / SendLlmRequest';
export const REPLIES = 'CallingLlm --LlmCompleted--> ProcessingLlmResponse';
export const RUNS = 'ProcessingLlmResponse --> ExecutingTools / ExecuteTools';
export const SAYS = 'ProcessingLlmResponse --> WaitingForUserInput / DisplayText';
export const SAYS_NOTHING = 'ProcessingLlmResponse --> WaitingForUserInput / PromptForInput';
export const ONE_OF_SOME = 'ExecutingTools --ToolCompleted--> ExecutingTools / WaitForEvent';
export const ALL_DONE = 'ExecutingTools --ToolCompleted--> CallingLlm / SendLlmRequest';
export const TRIES_AGAIN = 'Error --RetryTimeout--> CallingLlm / SendLlmRequest';
export const GIVES_UP = 'CallingLlm --LlmError--> WaitingForUserInput / DisplayError';
export const ENDS_IN = (name: string) => `${name} --ShutdownRequested--> ShuttingDown / Shutdown`;

export const twoReads = g.wants(g.grep('1'), g.grep('2'));
/** Fails, and is tried again as often as there are retries. */
export const failsTimes = (times: number): readonly g.Given[] =>
  Array.from({ length: times }, (_, index) =>
    index === 0 ? [g.fails()] : [g.rings(), g.fails()],
  ).flat();

export const callAndRetry: readonly TableRow[] = [
  {
    edge: 'WaitingForUserInput/UserInput/CallingLlm',
    given: 'W',
    send: [g.input('hi')],
    then: [ASKS],
    does: ['SendLlmRequest'],
  },
  {
    edge: 'CallingLlm/LlmCompleted/ProcessingLlmResponse',
    given: 'C[u]',
    send: [g.says('yo')],
    then: [REPLIES, SAYS],
  },
  {
    edge: 'CallingLlm/LlmError/Error',
    given: 'C[u]',
    send: failsTimes(3),
    then: ['CallingLlm --LlmError--> Error / ScheduleRetry'],
    does: ['ScheduleTimer'],
  },
  {
    edge: 'CallingLlm/LlmError/WaitingForUserInput',
    given: 'C[u]',
    send: failsTimes(4),
    then: [GIVES_UP],
    does: ['DisplayError'],
  },
  {
    edge: 'ProcessingLlmResponse//ExecutingTools',
    given: 'C[u]',
    send: [twoReads],
    then: [REPLIES, RUNS],
    does: ['ExecuteTools'],
  },
  {
    edge: 'ProcessingLlmResponse//WaitingForUserInput/1',
    given: 'C[u]',
    send: [g.says('yo')],
    then: [REPLIES, SAYS],
    does: ['DisplayText'],
  },
  {
    edge: 'ProcessingLlmResponse//WaitingForUserInput/2',
    given: 'C[u]',
    send: [g.empty],
    then: [REPLIES, SAYS_NOTHING],
    does: ['PromptForInput'],
  },
  {
    edge: 'ExecutingTools/ToolCompleted/ExecutingTools',
    given: 'C[u]',
    send: [twoReads, g.ended('2')],
    then: [ONE_OF_SOME],
  },
  {
    edge: 'Error/RetryTimeout/CallingLlm',
    given: 'Er',
    send: [g.rings()],
    then: [TRIES_AGAIN],
    does: ['SendLlmRequest'],
  },
];

export const shutdowns: readonly TableRow[] = (
  [
    ['W', 'WaitingForUserInput'],
    ['C[u]', 'CallingLlm'],
    ['X', 'ExecutingTools'],
    ['Er', 'Error'],
    ['Z', 'ShuttingDown'],
  ] as const
).map(([given, name]) => ({
  edge: `${name}/ShutdownRequested/ShuttingDown`,
  given,
  send: [g.shutdown],
  then: [ENDS_IN(name)],
  does: ['Shutdown'],
}));
