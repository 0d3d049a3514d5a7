import { askedActions } from '../../agent/asked-actions.js';
import { agent } from '../../agent/machine.js';
import type { Projection } from '../../agent/projections/projection.js';
import {
  projectionDiagram,
  projectionJson,
  projectionTable,
} from '../../agent/projections/projection-diagram.js';
import { edgesJson, markdownTable, mermaid } from '../../machine-kit/kernel/diagrams.js';
import { writeResult } from '../../terminal/write.js';
import { exitCodes } from '../exit-codes.js';
import { readView } from './view-flag.js';

type Flags = { readonly table?: true; readonly json?: true; readonly view?: string };

const textOfView = (view: Projection, flags: Flags): string => {
  if (flags.json) return JSON.stringify(projectionJson(view), null, 2);
  return flags.table ? projectionTable(view) : projectionDiagram(view);
};

const textOfAgent = (flags: Flags): string => {
  if (flags.json) return JSON.stringify(edgesJson(agent), null, 2);
  return flags.table ? markdownTable(agent, askedActions) : mermaid(agent);
};

/** `pawl machine`: prints the statechart of the agent, or with `--view` that of a seed system. */
export const showMachine = async (flags: Flags): Promise<number> => {
  const text = flags.view === undefined ? textOfAgent(flags) : textOfView(readView(flags.view), flags);
  writeResult(text.endsWith('\n') ? text : `${text}\n`);
  return exitCodes.done;
};
