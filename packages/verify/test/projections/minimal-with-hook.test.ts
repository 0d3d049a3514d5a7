import * as g from '../../../../test/kit/agent/given.js';
import { minimalHead } from '../../src/projections/seed-minimal.js';
import {
  callAndRetry,
  ENDS_IN,
  GIVES_UP,
  ONE_OF_SOME,
  shutdowns,
  twoReads,
} from './minimal-rows.js';
import { check, checkTable } from './projected.js';

/** Seed 000 as its program went on, row by row. */

const HEAD_RUNS = 'ExecutingTools --ToolCompleted--> PostToolsHook / RunPostToolsHooks';
const HEAD_GOES_ON = 'PostToolsHook --HooksCompleted--> CallingLlm / SendLlmRequest';
const HEAD_STOPS = 'PostToolsHook --HooksCompleted--> WaitingForUserInput / DisplayWarning';

checkTable(minimalHead, [
  ...callAndRetry,
  ...shutdowns,
  {
    edge: 'ExecutingTools/ToolCompleted/PostToolsHook',
    given: 'C[u]',
    send: [twoReads, g.ended('2'), g.ended('1')],
    then: [HEAD_RUNS],
    does: ['RunHook'],
  },
  {
    edge: 'PostToolsHook/HooksCompleted/CallingLlm/1',
    given: 'H[c]',
    send: [g.hookDone()],
    then: [HEAD_GOES_ON],
    does: ['SendLlmRequest'],
  },
  {
    edge: 'PostToolsHook/HooksCompleted/CallingLlm/2',
    given: 'H[c]',
    send: [g.hookDone({ warning: 'look' })],
    then: ['PostToolsHook --HooksCompleted--> CallingLlm / DisplayWarning'],
    // Unlike the seed's, our machine does both.
    does: ['DisplayWarning', 'SendLlmRequest'],
  },
  {
    edge: 'PostToolsHook/HooksCompleted/WaitingForUserInput',
    given: 'H[c]',
    send: [g.hookDone({ proceed: false, warning: 'no' })],
    then: [HEAD_STOPS],
    does: ['DisplayWarning'],
  },
  {
    edge: 'PostToolsHook/ShutdownRequested/ShuttingDown',
    given: 'H[c]',
    send: [g.shutdown],
    then: [ENDS_IN('PostToolsHook')],
    does: ['Shutdown'],
  },
]);

check(minimalHead, [
  {
    title: 'a hook that is not wanted runs and ends at once',
    given: 'C[u]',
    settings: { hooks: 'never' },
    send: [g.wants(g.grep('1')), g.ended('1')],
    then: [HEAD_RUNS, HEAD_GOES_ON],
  },
  {
    title: 'the tools break: the hook says stop',
    given: 'X',
    send: [g.toolsFail],
    then: [ONE_OF_SOME, HEAD_RUNS, HEAD_STOPS],
  },
  {
    title: 'cancel during the hook: it says stop',
    given: 'H[c]',
    send: [g.cancel],
    then: [HEAD_STOPS],
  },
  {
    title: 'a limit is reached after the hook: the call is refused',
    given: 'H[c]',
    settings: { limits: { rounds: 1 } },
    send: [g.hookDone()],
    then: [HEAD_GOES_ON, GIVES_UP],
  },
  {
    title: 'a warning about a limit, while the hook has none to give, is none of the hook',
    given: 'C[u]',
    settings: { limits: { usd: 1 } },
    send: [g.completed({ calls: [g.edit('1')], usage: g.usage(0.9) }), g.ended('1'), g.hookDone()],
    then: [HEAD_GOES_ON],
    does: ['DisplayWarning', 'SendLlmRequest'],
  },
]);
