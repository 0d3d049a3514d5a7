import { agent } from '../agent/machine.js';
import { edgesJson, markdownTable, mermaid } from '../kernel/describe.js';
import { exitCodes } from './exit-codes.js';
import { writeWhole } from './print.js';

/** `pawl machine`: the statechart from the table that drives the agent. */
export const showMachine = async (flags: {
  readonly table?: true;
  readonly json?: true;
}): Promise<number> => {
  const drawn = flags.table ? markdownTable(agent) : mermaid(agent);
  const text = flags.json ? JSON.stringify(edgesJson(agent), null, 2) : drawn;
  writeWhole(1, text.endsWith('\n') ? text : `${text}\n`);
  return exitCodes.done;
};
