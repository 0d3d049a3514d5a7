/** `pawl diff ID --at A..B`: what a session changed in files between two entries of its journal. */

import { changesBetween } from '@pawl/agent/workspace/checkpoints/files-at';
import {
  type FileState,
  isDuringCommands,
  type PathChange,
  showName,
} from '@pawl/agent/workspace/checkpoints/manifest';
import type { CheckpointStore } from '@pawl/agent/workspace/checkpoints/store';
import { detectLook, type Look, paint, paintDiff } from '@pawl/terminal/paint';
import { joinSafe, makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeJson, writeOut } from '@pawl/terminal/write';
import { createTwoFilesPatch } from 'diff';
import { exitCodes } from '../process/exit-codes.js';
import {
  type FileHistory,
  readFileHistory,
  refusePruned,
  stepsUntil,
} from '../sessions/file-history.js';
import { readPlace, usageStop } from '../settings/flags.js';

const DIFF_BYTES_MAX = 2_000_000;
const DIFF_EDITS_MAX = 5_000;

/** `A..B`, or `A..` up to the end. */
const readRange = (text: string, { sessionId, seq }: FileHistory): readonly [number, number] => {
  const [, first, second] = /^(\d+)\.\.(\d*)$/.exec(text) ?? [];
  if (first === undefined)
    throw usageStop(
      `--at needs two entries of the journal, as in --at 12..40, not '${text}'. ` +
        `pawl rewind ${sessionId} lists them.`,
    );
  const from = readPlace('--at', first);
  const to = second === undefined || second === '' ? seq : readPlace('--at', second);
  if (to > seq) throw usageStop(`--at ${text} is after the end: the last entry is ${seq}.`);
  if (from >= to)
    throw usageStop(`--at ${text}: the first entry must be the earlier one, as in --at 12..40.`);
  return [from, to];
};

type Texts = { readonly before: string; readonly after: string };

/** The texts of a change; otherwise why there are none. */
const readTexts = async (
  store: CheckpointStore,
  { before, after }: PathChange,
): Promise<Texts | string> => {
  const texts: string[] = [];
  for (const state of [before, after]) {
    if (state.kind === 'file') {
      if (state.bytes > DIFF_BYTES_MAX) return 'too large to be compared';
      const bytes = await store.get(state.sha256);
      if (bytes === null) return 'its content is no longer stored';
      if (bytes.includes(0)) return 'binary';
      texts.push(bytes.toString('utf8'));
    } else if (state.kind === 'notKept') return state.why;
    else texts.push(state.kind === 'link' ? `→ ${showName(state.target)}\n` : '');
  }
  const [old = '', now = ''] = texts;
  return { before: old, after: now };
};

const mode = (state: FileState): string =>
  state.kind === 'file' || state.kind === 'folder' ? state.mode.toString(8) : state.kind;

/** The change in words where the text says nothing; empty for a plain change. */
const changeNote = ({ before, after }: PathChange): string => {
  if (before.kind === 'absent') return after.kind === 'file' ? 'created' : `${after.kind} created`;
  if (after.kind === 'absent') return before.kind === 'file' ? 'deleted' : `${before.kind} deleted`;
  if (before.kind !== after.kind) return `${before.kind} became ${after.kind}`;
  return mode(before) === mode(after) ? '' : `mode ${mode(before)} → ${mode(after)}`;
};

export type FileDiff = {
  readonly path: string;
  readonly note: string;
  /** A unified diff; empty if there is none. */
  readonly diff: string;
  /** It changed while a command ran, so somebody else may have changed it. */
  readonly duringCommands?: 'yes';
};

export const createFileDiff = async (
  store: CheckpointStore,
  change: PathChange,
): Promise<FileDiff> => {
  const diff = await createTextDiff(store, change);
  return isDuringCommands(change) ? { ...diff, duringCommands: 'yes' } : diff;
};

const createTextDiff = async (store: CheckpointStore, change: PathChange): Promise<FileDiff> => {
  const path = showName(change.path);
  const texts = await readTexts(store, change);
  const note = changeNote(change);
  if (typeof texts === 'string')
    return { path, note: note === '' ? texts : `${note}; ${texts}`, diff: '' };
  if (texts.before === texts.after) return { path, note, diff: '' };
  const patch = createTwoFilesPatch(
    change.before.kind === 'absent' ? '/dev/null' : path,
    change.after.kind === 'absent' ? '/dev/null' : path,
    texts.before,
    texts.after,
    undefined,
    undefined,
    { context: 3, maxEditLength: DIFF_EDITS_MAX },
  );
  return patch === undefined
    ? { path, note: note === '' ? 'too many changes to be shown' : note, diff: '' }
    : { path, note, diff: patch.replace(/^(Index: .*\n)?=+\n/, '') };
};

export const fileDiffText = (look: Look, { path, note, diff, duringCommands }: FileDiff): Safe => {
  const name = path.replace(/\s+/g, ' ');
  const notes = [note, duringCommands === undefined ? '' : 'changed while a command ran'];
  const text = notes.filter((one) => one !== '').join('; ');
  const title = paint(look, 'bold', makeSafe(text === '' ? name : `${name} (${text})`));
  return joinSafe([title, ...(diff === '' ? [] : paintDiff(look, diff))], safe`\n`);
};

/** Exit code 0 if no file differs, 1 if one does. */
export const diffFiles = async (prefix: string, at: string, json: boolean): Promise<number> => {
  const history = await readFileHistory(prefix);
  const [from, to] = readRange(at, history);
  refusePruned(history); // contents that are compared may have been removed
  // how many checkpoints lie before each entry
  const counts = [from, to].map((seq) => stepsUntil(history, seq));
  const changes = changesBetween(history.manifests, counts[0] ?? 0, counts[1] ?? 0);
  const look = detectLook(process.stdout, process.env);
  const { sessionId } = history;
  const diffs: FileDiff[] = [];
  for (const change of changes) {
    const diff = await createFileDiff(history.store, change);
    if (json) diffs.push(diff);
    else writeOut(safe`${fileDiffText(look, diff)}\n`);
  }
  if (json) writeJson({ sessionId, from, to, files: diffs });
  else if (changes.length === 0)
    writeError(makeSafe(`No file of the session changed from ${from} to ${to}.\n`));
  return changes.length === 0 ? exitCodes.done : exitCodes.taskFailed;
};
