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

type Contents = Pick<CheckpointStore, 'get'>;

/** A text, or why there is none. */
type StateText =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'none'; readonly why: string };

const readState = async (store: Contents, state: FileState): Promise<StateText> => {
  if (state.kind === 'notKept') return { kind: 'none', why: state.why };
  if (state.kind === 'link') return { kind: 'text', text: `→ ${showName(state.target)}\n` };
  if (state.kind !== 'file') return { kind: 'text', text: '' };
  if (state.bytes > DIFF_BYTES_MAX) return { kind: 'none', why: 'too large to be compared' };
  const bytes = await store.get(state.sha256);
  if (bytes === null) return { kind: 'none', why: 'its content is no longer stored' };
  if (bytes.includes(0)) return { kind: 'none', why: 'binary' };
  return { kind: 'text', text: bytes.toString('utf8') };
};

const mode = (state: FileState): string => ('mode' in state ? state.mode.toString(8) : '');

/** The kind in words; empty for a file, and where nothing is known of the content. */
const kindWords = (state: FileState): string =>
  state.kind === 'folder' || state.kind === 'link' ? `${state.kind} ` : '';

/** The change in words where the text says nothing; empty for a plain change. */
const changeNote = ({ before, after }: PathChange): string => {
  if (before.kind === 'absent') return `${kindWords(after)}created`;
  if (after.kind === 'absent') return `${kindWords(before)}deleted`;
  if (before.kind === 'notKept' || after.kind === 'notKept') return ''; // its reason is shown
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

export const createFileDiff = async (store: Contents, change: PathChange): Promise<FileDiff> => {
  const diff = await createTextDiff(store, change);
  return isDuringCommands(change) ? { ...diff, duringCommands: 'yes' } : diff;
};

const createTextDiff = async (store: Contents, change: PathChange): Promise<FileDiff> => {
  const path = showName(change.path);
  const note = changeNote(change);
  const withoutDiff = (why: string): FileDiff => ({ path, note: joinNotes([note, why]), diff: '' });
  const [before, after] = [
    await readState(store, change.before),
    await readState(store, change.after),
  ];
  if (before.kind === 'none') return withoutDiff(before.why);
  if (after.kind === 'none') return withoutDiff(after.why);
  if (before.text === after.text)
    return hasSameBytes(change)
      ? { path, note, diff: '' }
      : withoutDiff('they differ only in bytes that are not UTF-8');
  const patch = createTwoFilesPatch(
    change.before.kind === 'absent' ? '/dev/null' : path,
    change.after.kind === 'absent' ? '/dev/null' : path,
    before.text,
    after.text,
    undefined,
    undefined,
    { context: 3, maxEditLength: DIFF_EDITS_MAX },
  );
  if (patch === undefined) return withoutDiff('too many changes to be shown');
  // the package `diff` puts `===` before the head of a unified diff, and sometimes `Index: …`
  return { path, note, diff: patch.replace(/^(Index: .*\n)?=+\n/, '') };
};

const hasSameBytes = ({ before, after }: PathChange): boolean =>
  before.kind !== 'file' || after.kind !== 'file' || before.sha256 === after.sha256;

const joinNotes = (notes: readonly string[]): string => notes.filter(Boolean).join('; ');

export const fileDiffText = (look: Look, { path, note, diff, duringCommands }: FileDiff): Safe => {
  const name = path.replace(/\s+/g, ' ');
  const during = duringCommands === undefined ? '' : 'changed while a command ran';
  const text = joinNotes([note, during]);
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
