import { harmless, paint, paintDiff } from '../../terminal/print.js';
import { diffSinceHead } from '../../workspace/diff.js';
import { foldStored } from '../stored.js';
import type { Command, Room } from './room.js';

/** What has changed. */

const LINES_MAX = 2_000;

/** The diffs that edits and writes of this session left, in their order. */
const recorded = async ({ session }: Room): Promise<string> => {
  const diffs: string[] = [];
  await foldStored(session.id, undefined, ({ actions }) => {
    for (const action of actions) {
      if (action.type === 'DisplayToolResult' && action.diff !== null) diffs.push(action.diff);
    }
  });
  return diffs.join('\n');
};

export const diff: Command = async (room) => {
  const { desk, look, workspace } = room;
  const stop = new AbortController();
  const place = { workspace, environment: process.env, signal: stop.signal };
  const since = await diffSinceHead(place);
  const text = since?.diff ?? (await recorded(room));
  const what = since === null ? 'written in this session (there is no git repository here)' : since.title;
  if (text.trim() === '') return desk.print(`  Nothing differs: ${what}.`);
  const lines = paintDiff(look, harmless(text)).split('\n');
  const left = lines.length - LINES_MAX;
  desk.print([paint(look, 'bold', `  ${what}`), ...lines.slice(0, LINES_MAX)].join('\n'));
  if (left > 0) desk.print(paint(look, 'dim', `  … ${left} more lines`));
};
