import { arrowsOf, rows } from './arrows.js';
import { actions, callAndRetry, events, minimal, ours, plain, shutdowns, states } from './minimal.js';
import { type Plain, projectPlain } from './plain.js';
import type { View } from './view.js';

/** Seed 000 as its program went on after the text: with a hook after every batch, which may warn and may say stop. */

const headStates = { ...states, PostToolsHook: 'Hooks run; the results wait to be added' };

const headEdges = arrowsOf([
  ...rows('text', ...callAndRetry),
  ...rows(
    'code',
    ['ExecutingTools', 'ToolCompleted', 'all done', 'PostToolsHook', 'RunPostToolsHooks'],
    ['PostToolsHook', 'HooksCompleted', 'proceed', 'CallingLlm', 'SendLlmRequest'],
    ['PostToolsHook', 'HooksCompleted', 'proceed, with a warning', 'CallingLlm', 'DisplayWarning'],
    ['PostToolsHook', 'HooksCompleted', 'do not proceed', 'WaitingForUserInput', 'DisplayWarning'],
  ),
  ...rows('text', ...shutdowns(Object.keys(states))),
  ...rows('code', ...shutdowns(['PostToolsHook'])),
]);

const notProceeded = {
  event: 'HooksCompleted',
  to: 'WaitingForUserInput',
  action: 'DisplayWarning',
  supposed: true,
} as const;

const headPlain: Plain = {
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

/** 000 with the hook that its program got later. */
export const minimalHead: View = {
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
  project: projectPlain(headPlain),
};
