import type { Stepped } from '@pawl/agent/ports/session-input-output';
import { makeSafe, type Safe, safeJson } from '@pawl/terminal/safe-text';
import { readSeq } from '../../flags.js';
import { findInfo, foldStored } from '../stored-sessions.js';
import { tellReplay } from './replay-report.js';
import { moved, pathLine, statesOf } from './step-path.js';

type Flags = { readonly at?: string; readonly json?: true };

const lineOf = (stepped: Stepped, json: boolean): Safe =>
  json
    ? safeJson({ seq: stepped.seq, event: stepped.event.type, path: statesOf(stepped) })
    : makeSafe(pathLine(stepped));

const replayAgent = async (sessionId: string, at: number | undefined, json: boolean): Promise<number> => {
  const lines: Safe[] = [];
  const folded = await foldStored(sessionId, at, (stepped) => {
    if (moved(stepped)) lines.push(lineOf(stepped, json));
  });
  return tellReplay(lines, folded);
};

/** `pawl replay`: folds a journal, performs nothing, compares the recorded hashes, prints the path. */
export const replaySession = async (given: string, flags: Flags): Promise<number> => {
  const at = flags.at === undefined ? undefined : readSeq('--at', flags.at);
  const { sessionId, kind } = await findInfo(given);
  const json = flags.json ?? false;
  if (kind === 'agent') return replayAgent(sessionId, at, json);
  return (await import('../../commands/ask/ask-replay.js')).replayRun(sessionId, at, json);
};
