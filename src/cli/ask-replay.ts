import type { TreeStepped } from './ask-records.js';
import { foldRun } from './ask-stored.js';
import { type Path, pathsOf, statesOf } from './path-line.js';
import { tellReplay } from './replay-report.js';

const lineOf = ({ seq, event }: TreeStepped, node: string, path: Path, json: boolean): string => {
  const states = statesOf({ path });
  return json
    ? JSON.stringify({ seq, event: event.type, node, path: states })
    : `${String(seq ?? '').padStart(4)}  ${event.type.padEnd(19)} ${node.padEnd(10)} ${states.join(' → ')}`;
};

/** `pawl replay` of a run: each event with the runs that it led somewhere. */
export const replayRun = async (
  sessionId: string,
  at: number | undefined,
  json: boolean,
): Promise<number> => {
  const lines: string[] = [];
  const folded = await foldRun(sessionId, at, (stepped) => {
    for (const [node, path] of pathsOf(stepped)) lines.push(lineOf(stepped, node, path, json));
  });
  return tellReplay(lines, folded);
};
