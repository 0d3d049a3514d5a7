import { askedActions } from '@pawl/agent/machine/asked-actions';
import { agent } from '@pawl/agent/machine/machine';
import { edgesJson, markdownTable, mermaid } from '@pawl/machine/kernel/diagrams';
import { writeResult } from '@pawl/terminal/write';
import { projectionNamed, projections } from '@pawl/verify/projections/all-projections';
import {
  type Projection,
  projectionDiagram,
  projectionJson,
  projectionTable,
} from '@pawl/verify/projections/projection';
import { exitCodes } from '../process/exit-codes.js';
import { usageStop } from '../settings/flags.js';

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

/** The view that `--view` names. */
export const readView = (name: string): Projection => {
  const view = projectionNamed(name);
  if (view !== undefined) return view;
  throw usageStop(`--view needs one of ${projections.map((one) => one.name).join(', ')}, not '${name}'.`);
};
