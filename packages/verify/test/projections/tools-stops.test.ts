import * as g from '../../../../test/kit/agent/given.js';
import { check, INTO_TOOLS, round } from './tools-rows.js';

// Tools mode of seed 004: what ends a run, at the edges of what the seed knows.

check([
  {
    title:
      'a call that can not run is an error result even where the limit stops the run in the same step',
    settings: { limits: { rounds: 1 } },
    given: [g.wants(g.unknownTool('1'))],
    path: [...INTO_TOOLS, 'MaxIterationsReached DONE'],
    finish: 'max_iterations',
  },
  {
    title: 'a policy stop with calls of which one can not run: that one was tried',
    settings: { limits: { usd: 1 } },
    given: [g.completed({ calls: [g.grep('1'), g.unknownTool('2')], usage: g.usage(2) })],
    path: [...INTO_TOOLS, 'PolicyStop DONE'],
    finish: 'policy_stop',
  },
  {
    title: 'a policy that would stop, but for a hook that runs first: the calls are being executed',
    settings: { limits: { usd: 1 }, hooks: 'always' },
    given: [g.completed({ calls: [g.grep('1')], usage: g.usage(2) })],
    path: INTO_TOOLS,
    at: 'EXECUTING_TOOLS',
    finish: null,
  },
  {
    title: 'the same after the hook',
    settings: { limits: { usd: 1 }, hooks: 'always' },
    given: [g.completed({ calls: [g.grep('1')], usage: g.usage(2) }), g.hookDone()],
    path: [...INTO_TOOLS, 'PolicyStop DONE'],
    finish: 'policy_stop',
  },
  {
    title: 'a policy that stops a call made long ago stops nothing',
    settings: { userPolicy: 'ask' },
    given: [...round('1'), g.policyStops('req-0')],
    path: INTO_TOOLS,
    at: 'EXECUTING_TOOLS',
    finish: null,
  },
  {
    title: 'a cancel that waits for the reply: what comes of the first call belongs to no run',
    settings: { cancelMode: 'drain' },
    given: [g.cancel, g.wants(g.grep('1'))],
    path: ['INIT'],
    finish: null,
  },
  {
    title: 'a cancel that waits for the reply: what comes after tools belongs to no run',
    settings: { cancelMode: 'drain' },
    given: [...round('1'), g.cancel, g.wants(g.grep('2'))],
    path: INTO_TOOLS,
    finish: null,
  },
  {
    title: 'the time is up while the first call is made, which the seed can not stop at',
    settings: { limits: { timeMs: 60_000 } },
    given: [g.timeIsUp],
    path: ['INIT'],
    finish: 'policy_stop',
  },
  {
    title: 'the time is up while the call after tools is made',
    settings: { limits: { timeMs: 60_000 } },
    given: [...round('1'), g.timeIsUp],
    path: [...INTO_TOOLS, 'PolicyStop DONE'],
    finish: 'policy_stop',
  },
  {
    title:
      'the time is up, and the reply is waited for: its calls belong to no run, the policy stops after the tools',
    settings: { limits: { timeMs: 60_000 }, cancelMode: 'drain' },
    given: [...round('1'), g.timeIsUp, g.wants(g.grep('2'))],
    path: [...INTO_TOOLS, 'PolicyStop DONE'],
    finish: 'policy_stop',
  },
  {
    title: 'a failure ends the run without a step of the seed',
    given: [...round('1'), g.refusedRequest],
    path: INTO_TOOLS,
    finish: null,
  },
  {
    title: 'a run that is done stays done when nothing is asked',
    given: [g.says('a house'), g.input(' ')],
    path: ['INIT', 'LLMResponseReceived PROMPTING', 'NoToolCalls DONE'],
    finish: 'stop',
  },
  {
    title: 'the next question is a run of its own',
    given: [...round('1'), g.says('a house'), g.input('and in b.ts?'), g.says('a garden')],
    path: [
      ...INTO_TOOLS,
      'ToolsExecuted PROMPTING',
      'NoToolCalls DONE',
      'LLMResponseReceived PROMPTING',
      'NoToolCalls DONE',
    ],
    finish: 'stop',
  },
]);
