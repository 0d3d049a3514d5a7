import { agent } from '../agent/machine.js';
import { chartOf, tableOf, viewJson } from '../agent/views/describe-view.js';
import type { View } from '../agent/views/view.js';
import { edgesJson, markdownTable, mermaid } from '../kernel/describe.js';
import { writeWhole } from '../terminal/print.js';
import { exitCodes } from './exit-codes.js';
import { readView } from './read-view.js';

type Flags = { readonly table?: true; readonly json?: true; readonly view?: string };

const textOfView = (view: View, flags: Flags): string => {
  if (flags.json) return JSON.stringify(viewJson(view), null, 2);
  return flags.table ? tableOf(view) : chartOf(view);
};

const textOfAgent = (flags: Flags): string => {
  if (flags.json) return JSON.stringify(edgesJson(agent), null, 2);
  return flags.table ? markdownTable(agent) : mermaid(agent);
};

/** `pawl machine`: the statechart from the table that drives the agent, or a seed system's own. */
export const showMachine = async (flags: Flags): Promise<number> => {
  const text = flags.view === undefined ? textOfAgent(flags) : textOfView(readView(flags.view), flags);
  writeWhole(1, text.endsWith('\n') ? text : `${text}\n`);
  return exitCodes.done;
};
