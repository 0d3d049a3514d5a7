import { projectSeed, type SeedWords } from './project-seed.js';
import type { Projection } from './projection.js';
import { arrowRows, arrowsOf } from './rows-to-edges.js';
import { actions, callAndRetry, events, minimal, ours, plain, shutdowns, states } from './seed-minimal.js';

/** Seed 000 with the later hook of its program: it runs after every batch, may warn and may stop the turn. */

const headStates = { ...states, PostToolsHook: 'Hooks run; the results wait to be added' };

const headEdges = arrowsOf([
  ...arrowRows('text', ...callAndRetry),
  ...arrowRows(
    'code',
    ['ExecutingTools', 'ToolCompleted', 'all done', 'PostToolsHook', 'RunPostToolsHooks'],
    ['PostToolsHook', 'HooksCompleted', 'proceed', 'CallingLlm', 'SendLlmRequest'],
    ['PostToolsHook', 'HooksCompleted', 'proceed, with a warning', 'CallingLlm', 'DisplayWarning'],
    ['PostToolsHook', 'HooksCompleted', 'do not proceed', 'WaitingForUserInput', 'DisplayWarning'],
  ),
  ...arrowRows('text', ...shutdowns(Object.keys(states))),
  ...arrowRows('code', ...shutdowns(['PostToolsHook'])),
]);

const notProceeded = {
  event: 'HooksCompleted',
  to: 'WaitingForUserInput',
  action: 'DisplayWarning',
  supposed: true,
} as const;

const headPlain: SeedWords = {
  ...plain,
  edges: headEdges,
  hook: 'always',
  warns: 'DisplayWarning',
  refusals: {
    ...plain.refusals,
    ExecutingTools: [
      { event: 'ToolCompleted', to: 'PostToolsHook', action: 'RunPostToolsHooks', supposed: true },
      notProceeded,
    ],
    PostToolsHook: [notProceeded],
  },
};

/** Seed 000 with the later hook of its program. */
export const minimalHead: Projection = {
  ...minimal,
  name: 'minimal-head',
  title: 'Seed 000 as its program went on: with a hook after the tools',
  states: headStates,
  events: { ...events, HooksCompleted: 'Hooks finished: whether to proceed, perhaps with a warning' },
  actions: {
    ...actions,
    RunPostToolsHooks: 'Run hooks for the tools that ran',
    DisplayWarning: 'Show a warning to user',
  },
  edges: headEdges,
  ours: {
    states: {
      ...ours.states,
      ExecutingTools: 'ExecutingTools',
      PostToolsHook: 'PostToolsHook, all its phases',
    },
    events: { ...ours.events, HooksCompleted: 'HookCompleted, HookFailed of the last phase; CancelTurn' },
    actions: { ...ours.actions, RunPostToolsHooks: 'RunHook', DisplayWarning: 'DisplayWarning' },
  },
  stands: { ...minimal.stands, PostToolsHook: ['PostToolsHook'] },
  settings: { ...minimal.settings, hooks: 'always' },
  project: projectSeed(headPlain),
};
