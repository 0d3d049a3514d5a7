import * as g from '../../../../test/kit/agent/given.js';
import type { TableRow } from './projected.js';

/** What seed 003 says, as paths. */

/** `A B C` as the steps from A to B and from B to C. */
export const path = (names: string): readonly string[] => {
  const states = names.split(' ');
  return states.slice(1).map((to, index) => `${states[index]} --> ${to}`);
};

type Way = Omit<TableRow, 'edge' | 'then'> & { readonly path: string };
export const row = (edge: string, way: Way): TableRow => {
  const { path: names, ...rest } = way;
  const [from = '', to = ''] = edge.split(' ');
  return { edge: `${from}//${to}`, ...rest, then: path(names) };
};

export const read = g.wants(g.grep('1'));
export const change = g.wants(g.edit('1'));
export const AFTER_TOOLS = 'RunningTool CheckingGitCommits';
export const TO_RESULTS = 'CheckingBudget GatheringAdditionalMessages SendingToolResults';
export const TO_TOOLS = 'ProcessingLLMResponse ToolUseRequested CheckingForCancellation';
export const never = { hooks: 'never' } as const;
export const formats = { formatter: 'onChanges' } as const;
export const small = { windowTokens: 10_000, compactAtRatio: 0.8, compactMidRatio: 0.9 };
