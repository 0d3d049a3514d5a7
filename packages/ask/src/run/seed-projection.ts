/**
 * The table of code mode in seed 004 (a published text about such runs), and the projection of our
 * edges onto it.
 *
 * 1. An edge with a name of the seed (`as`) is one step of the seed, and the seed's table must
 *    contain it.
 * 2. An unnamed edge from a state to itself is part of one step of the seed: it is skipped.
 * 3. An unnamed edge between two states has no counterpart in the seed (a failure, a cancel, a
 *    used-up budget, all exceptions there). The seed's trace ends.
 */

import type { Edge } from '@pawl/machine/kernel/table';
import type { RunStateName } from './state.js';

/** One row of the seed's table. */
export type SeedEdge = {
  readonly from: RunStateName;
  readonly event: string;
  readonly when: string;
  readonly to: RunStateName;
  readonly action: string;
};

export const seedEdges: readonly SeedEdge[] = [
  {
    from: 'INIT',
    event: 'DepthExceeded',
    when: 'depth ≥ max depth',
    to: 'SHALLOW_CALL',
    action: '',
  },
  {
    from: 'INIT',
    event: 'LLMResponseReceived',
    when: '',
    to: 'PROMPTING',
    action: 'store completion',
  },
  { from: 'PROMPTING', event: 'FinalAnswerFound', when: '', to: 'DONE', action: 'store answer' },
  { from: 'PROMPTING', event: 'CodeBlocksFound', when: '', to: 'EXECUTING', action: '' },
  { from: 'EXECUTING', event: 'FinalAnswerFound', when: '', to: 'DONE', action: 'store answer' },
  { from: 'EXECUTING', event: 'MaxIterationsReached', when: '', to: 'DONE', action: '' },
  { from: 'EXECUTING', event: 'CodeExecuted', when: '', to: 'PROMPTING', action: '' },
  {
    from: 'SHALLOW_CALL',
    event: 'LLMResponseReceived',
    when: '',
    to: 'DONE',
    action: 'store completion',
  },
];

/**
 * One step of the seed's machine. `edge` is null where its table has no such row: an illegal step.
 */
export type SeedStep = {
  readonly from: string;
  readonly event: string;
  readonly to: string;
  readonly edge: SeedEdge | null;
};

/** The state of the seed's machine; `ended` once our edges have no counterpart in it. */
export type SeedCursor = RunStateName | 'ended';

/** Our edges of one run as the seed's steps, from where it stands. */
export const projectEdges = (
  cursor: SeedCursor,
  edges: readonly Edge[],
): { readonly cursor: SeedCursor; readonly steps: readonly SeedStep[] } => {
  const steps: SeedStep[] = [];
  let from = cursor;
  for (const { from: source, as: event, to } of edges) {
    if (from === 'ended' || (event === '' && source === to)) continue;
    if (event === '') {
      from = 'ended';
      continue;
    }
    const edge =
      seedEdges.find((row) => row.from === from && row.event === event && row.to === to) ?? null;
    steps.push({ from, event, to, edge });
    from = edge?.to ?? 'ended';
  }
  return { cursor: from, steps };
};
