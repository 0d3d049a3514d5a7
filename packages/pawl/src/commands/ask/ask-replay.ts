import { makeSafe, type Safe, safeJson } from '@pawl/terminal/safe-text';
import { tellReplay } from '../../sessions/show/replay-report.js';
import { type Path, pathsOf, statesOf } from '../../sessions/show/step-path.js';
import type { TreeStepped } from './ask-records.js';
import { foldRun } from './fold-stored-run.js';

const lineOf = ({ seq, event }: TreeStepped, node: string, path: Path, json: boolean): Safe => {
  const states = statesOf({ path });
  return json
    ? safeJson({ seq, event: event.type, node, path: states })
    : makeSafe(
        `${String(seq ?? '').padStart(4)}  ${event.type.padEnd(19)} ${node.padEnd(10)} ${states.join(' → ')}`,
      );
};

/** `pawl replay` for a run of `pawl ask`: one line per event and run that changed its state. */
export const replayRun = async (
  sessionId: string,
  at: number | undefined,
  json: boolean,
): Promise<number> => {
  const lines: Safe[] = [];
  const folded = await foldRun(sessionId, at, (stepped) => {
    for (const [node, path] of pathsOf(stepped)) lines.push(lineOf(stepped, node, path, json));
  });
  return tellReplay(lines, folded);
};
