/**
 * The page of the code mode of seed 004 (a published text that describes an agent as a state
 * machine): its chart and its arrows from its table. The rest is written by hand.
 */

import { type SeedEdge, seedEdges } from '../packages/ask/src/run/seed-projection.js';
import { codeMode } from '../packages/ask/src/run/table.js';
import { markdownTable, mermaid } from '../packages/machine/src/kernel/diagrams.js';
import type { MachineDescription } from '../packages/machine/src/kernel/table.js';
import { fenced, splice } from './diagram.js';

export const codeModePage = 'docs/seeds/recursive.md';

const edgeOf = ({ from, event, when, to, action }: SeedEdge) =>
  ({
    id: `${from}/${event}/${to}`,
    from,
    event,
    when,
    to,
    as: '',
    then: action,
    kind: 'go',
  }) as const;

const seedMachine: MachineDescription = { ...codeMode, edges: seedEdges.map(edgeOf), ignored: [] };

/**
 * The page with everything that comes from the table put in anew. Throws when it has no place for it.
 */
export const fillCodeModePage = (text: string): string =>
  splice(
    splice(text, 'diagram', fenced(mermaid(seedMachine))),
    'words',
    markdownTable(seedMachine),
  );
