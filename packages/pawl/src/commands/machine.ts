/**
 * `pawl machine`: the chart of the machine, ours or that of a seed system (`--view`): another
 * published agent, whose machine ours can be seen as.
 */

import { agent } from '@pawl/agent/machine/machine';
import { edgesJson, markdownTable, mermaid } from '@pawl/machine/kernel/diagrams';
import { safe } from '@pawl/terminal/safe-text';
import { writeError, writeResult } from '@pawl/terminal/write';
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

/** Prints the statechart of the agent, or with `--view` that of a seed system. */
export const showMachine = async ({ view, json, table }: Flags): Promise<number> => {
  const projection = view === undefined ? null : readView(view);
  let text: string;
  if (json)
    text = JSON.stringify(
      projection === null ? edgesJson(agent) : projectionJson(projection),
      null,
      2,
    );
  else if (projection !== null)
    text = table ? projectionTable(projection) : projectionDiagram(projection);
  else text = table ? markdownTable(agent) : mermaid(agent);
  if (process.stdout.isTTY && !json && !table)
    writeError(
      safe`A Mermaid diagram, which a browser draws. As a table: --table. Drawn: pawl inspect\n`,
    );
  writeResult(text.endsWith('\n') ? text : `${text}\n`);
  return exitCodes.done;
};

/** The view that `--view` names. */
export const readView = (name: string): Projection => {
  const view = projectionNamed(name);
  if (view !== undefined) return view;
  throw usageStop(
    `--view needs one of ${projections.map((one) => one.name).join(', ')}, not '${name}'.`,
  );
};
