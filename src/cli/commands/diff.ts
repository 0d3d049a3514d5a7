import path from 'node:path';
import type { Event } from '../../agent/event.js';
import { harmless, oneLine, paint, paintDiff } from '../../terminal/print.js';
import { hashLoaded, loadFile } from '../../tools/file-text.js';
import { diffSinceHead } from '../../workspace/diff.js';
import { foldStored } from '../stored.js';
import { type Command, NotNow, type Room } from './room.js';

/** What has changed: since HEAD, by whomever; or by the edits and writes of the session. */

const LINES_MAX = 2_000;

type Written = {
  /** One of each edit or write, in their order. */
  readonly diffs: string[];
  /** By real path: the sha256 of what the session, or a formatter after it, left there. */
  readonly left: Map<string, string>;
};

const note = ({ diffs, left }: Written, event: Event): void => {
  if (event.type === 'ToolCompleted' && event.outcome.diff !== undefined) {
    diffs.push(event.outcome.diff);
    for (const { path: file, sha256 } of event.outcome.seen ?? []) left.set(file, sha256);
  }
  if (event.type === 'HookCompleted')
    for (const { path: file, sha256 } of event.seen ?? []) if (left.has(file)) left.set(file, sha256);
};

/** What was changed since is not in the diffs: that is said of each file. */
const changedSince = async ({ left }: Written, workspace: string): Promise<readonly string[]> => {
  const rows: string[] = [];
  for (const [file, sha256] of left) {
    if (hashLoaded(await loadFile(file)) === sha256) continue;
    const shown = oneLine(path.relative(workspace, file), Number.POSITIVE_INFINITY);
    rows.push(`  ${shown} is not as the session left it: a command or somebody else changed it since`);
  }
  return rows;
};

type Shown = {
  readonly what: string;
  /** Said where there is nothing to show. */
  readonly nothing: string;
  readonly text: string;
  readonly notes: readonly string[];
};

const bySession = async ({ session, workspace }: Room, before = ''): Promise<Shown> => {
  const written: Written = { diffs: [], left: new Map() };
  await foldStored(session.id, undefined, ({ event }) => note(written, event));
  return {
    what: `${before}what this session's edits wrote, in order; not what commands changed`,
    nothing: `${before}no edit of this session has changed a file.`,
    text: written.diffs.join('\n'),
    notes: await changedSince(written, workspace),
  };
};

const sinceHead = async (room: Room): Promise<Shown> => {
  const { signal } = new AbortController();
  const since = await diffSinceHead({ workspace: room.workspace, environment: process.env, signal });
  if (since === null) return bySession(room, 'There is no git repository here: ');
  return { what: since.title, nothing: since.nothing, text: since.diff, notes: [] };
};

export const diff: Command = async (room, words) => {
  const { desk, look } = room;
  if (words !== '' && words !== 'session')
    throw new NotNow(`/diff ${words} is nothing that can be shown. There are /diff and /diff session.`);
  const { what, nothing, text, notes } = words === '' ? await sinceHead(room) : await bySession(room);
  if (text.trim() === '') return desk.print(`  ${nothing}`);
  const lines = paintDiff(look, harmless(text)).split('\n');
  const left = lines.length - LINES_MAX;
  desk.print([paint(look, 'bold', `  ${what}`), ...lines.slice(0, LINES_MAX)].join('\n'));
  if (left > 0) desk.print(paint(look, 'dim', `  … ${left} more lines`));
  if (notes.length > 0) desk.print(paint(look, 'yellow', notes.join('\n')));
};
