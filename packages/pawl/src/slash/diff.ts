import path from 'node:path';
import type { Event } from '@pawl/agent/machine/event';
import { hashLoaded, loadFile } from '@pawl/agent/tools/files/file-text';
import { diffSinceHead } from '@pawl/agent/workspace/diff-since-head';
import { oneLine, paint, paintDiff } from '@pawl/terminal/paint-text';
import { joinSafe, makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { foldStored } from '../sessions/stored-sessions.js';
import { type Command, type CommandContext, NotNow } from './command-context.js';

/** `/diff`: all changes since HEAD, or only the edits and writes of this session. */

const LINES_MAX = 2_000;

type Written = {
  /** One diff for each edit or write, in order. */
  readonly diffs: string[];
  /** Real path to the sha256 of the file as the session, or a formatter after it, left it. */
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

/** A warning for each file that changed after the session wrote it: the diffs don't show that. */
const changedSince = async ({ left }: Written, workspace: string): Promise<readonly Safe[]> => {
  const rows: Safe[] = [];
  for (const [file, sha256] of left) {
    if (hashLoaded(await loadFile(file)) === sha256) continue;
    const shown = oneLine(path.relative(workspace, file), Number.POSITIVE_INFINITY);
    rows.push(safe`  ${shown} has changed since this session wrote it, by a command or by somebody else`);
  }
  return rows;
};

type Shown = {
  readonly what: string;
  /** Printed if `text` is empty. */
  readonly nothing: string;
  readonly text: string;
  readonly notes: readonly Safe[];
};

const bySession = async ({ session, workspace }: CommandContext, before = ''): Promise<Shown> => {
  const written: Written = { diffs: [], left: new Map() };
  await foldStored(session.id, undefined, ({ event }) => note(written, event));
  return {
    what: `${before}edits of this session in order, without changes by commands`,
    nothing: `${before}no edit of this session has changed a file.`,
    text: written.diffs.join('\n'),
    notes: await changedSince(written, workspace),
  };
};

const sinceHead = async (context: CommandContext): Promise<Shown> => {
  const { signal } = new AbortController();
  const since = await diffSinceHead({ workspace: context.workspace, environment: process.env, signal });
  if (since === null) return bySession(context, 'There is no git repository here: ');
  return { what: since.title, nothing: since.nothing, text: since.diff, notes: [] };
};

export const diff: Command = async (context, words) => {
  const { view, look } = context;
  if (words !== '' && words !== 'session')
    throw new NotNow(`There is no /diff ${words}, only /diff and /diff session.`);
  const { what, nothing, text, notes } = words === '' ? await sinceHead(context) : await bySession(context);
  if (text.trim() === '') return view.print(safe`  ${makeSafe(nothing)}`);
  const lines = paintDiff(look, text);
  const left = lines.length - LINES_MAX;
  const head = paint(look, 'bold', safe`  ${makeSafe(what)}`);
  view.print(joinSafe([head, ...lines.slice(0, LINES_MAX)], safe`\n`));
  if (left > 0) view.print(paint(look, 'dim', safe`  … ${left} more lines`));
  if (notes.length > 0) view.print(paint(look, 'yellow', joinSafe(notes, safe`\n`)));
};
