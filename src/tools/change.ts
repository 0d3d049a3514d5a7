import type { FileHashes, ToolContext, ToolOutcome } from '../needs.js';
import { replaceFile } from './atomic-write.js';
import { hashLoaded, hashOf, type LoadedFile, loadFile } from './file-text.js';
import { findAllowed, showPath } from './paths.js';

/** What the tools that change files have in common. */

const DIFF_CHARACTERS_MAX = 100_000;
const DIFF_EDITS_MAX = 3_000;

export const failed = (text: string): ToolOutcome => ({ status: 'failed', text });

const stoppedBefore = (signal: AbortSignal): ToolOutcome =>
  signal.reason === 'timedOut'
    ? { status: 'timedOut', text: 'Timed out before anything was changed.' }
    : { status: 'cancelled', ran: 'no', text: 'Cancelled before anything was changed.' };

/** Why a file may not be changed on the strength of what the model saw of it, or null. */
const staleness = (real: string, sha256: string, shown: string, context: ToolContext): ToolOutcome | null => {
  const seen = context.files.get(real);
  if (seen === sha256) return null;
  return failed(
    seen === undefined
      ? `${shown} has not been read in this session. Read it first, then try again. Nothing was changed.`
      : `${shown} has changed since it was last read. Read it again and adapt. Nothing was changed.`,
  );
};

/** A unified diff; of very large changes only a line that says so. */
const diffOf = async (shown: string, before: string | null, after: string): Promise<string> => {
  const { createTwoFilesPatch } = await import('diff');
  const from = before === null ? '/dev/null' : shown;
  const patch = createTwoFilesPatch(from, shown, before ?? '', after, undefined, undefined, {
    context: 3,
    maxEditLength: before === null || before === '' ? Number.MAX_SAFE_INTEGER : DIFF_EDITS_MAX,
  });
  if (patch === undefined) return `--- ${from}\n+++ ${shown}\n(the change is too large to be shown)\n`;
  const body = patch.replace(/^(Index: .*\n)?=+\n/, '');
  if (body.length <= DIFF_CHARACTERS_MAX) return body;
  return `${body.slice(0, DIFF_CHARACTERS_MAX)}\n(the rest of the change is not shown)\n`;
};

export type Change = {
  readonly real: string;
  /** Hash that the file must still have, or ABSENT. */
  readonly expected: string;
  /** null: the file is new. */
  readonly before: string | null;
  readonly after: string;
  readonly bytes: Uint8Array;
  /** What the model is told when it is done. */
  readonly text: string;
};

/** Carries out a change, all or nothing, and remembers the new file. */
const carryOut = async (change: Change, context: ToolContext): Promise<ToolOutcome> => {
  if (context.signal.aborted) return stoppedBefore(context.signal);
  const shown = showPath(change.real, context.workspace);
  const diff = await diffOf(shown, change.before, change.after);
  const written = await replaceFile(change.real, change.bytes, change.expected);
  switch (written.kind) {
    case 'changedMeanwhile':
      return failed(
        `${shown} was changed by somebody else at the same moment. Read it again. Nothing was changed.`,
      );
    case 'elsewhere':
      return failed(
        `${shown}: the path leads elsewhere than when it was allowed; look again and ask anew. Nothing was changed.`,
      );
    case 'failed':
      return failed(`${shown} can't be written: ${written.why}. Nothing was changed.`);
    case 'written':
      context.files.set(change.real, hashOf(change.bytes));
      return { status: 'ok', text: change.text, diff };
    default:
      return written satisfies never;
  }
};

export type Worked =
  | { readonly kind: 'change'; readonly change: Change }
  | { readonly kind: 'refused'; readonly why: string };

/** What a call makes of the file as it is. Touches nothing: it is asked before the effect, too. */
export type Work = (loaded: LoadedFile, real: string, shown: string) => Worked;

export const refused = (why: string): Worked => ({ kind: 'refused', why });

/** Runs a call that changes the file `given`. */
export const changeFile = async (given: string, work: Work, context: ToolContext): Promise<ToolOutcome> => {
  const allowed = await findAllowed(given, context);
  if (allowed.kind === 'elsewhere') return failed(`${allowed.why} Nothing was changed.`);
  const { real, shown } = allowed;
  const loaded = await loadFile(real);
  const stale = loaded.kind === 'file' ? staleness(real, loaded.sha256, shown, context) : null;
  if (stale !== null) return stale;
  const worked = work(loaded, real, shown);
  return worked.kind === 'refused' ? failed(worked.why) : carryOut(worked.change, context);
};

/** What the file is and what it will be, for the journal. Throws where that can't be told; the call itself says why. */
export const hashesOf = async (given: string, work: Work, context: ToolContext): Promise<FileHashes> => {
  const allowed = await findAllowed(given, context);
  if (allowed.kind === 'elsewhere') throw new Error(allowed.why);
  const loaded = await loadFile(allowed.real);
  const before = hashLoaded(loaded);
  if (before === null) throw new Error(`${allowed.shown} can't be read as a file`);
  const worked = work(loaded, allowed.real, allowed.shown);
  return worked.kind === 'refused' ? { before } : { before, after: hashOf(worked.change.bytes) };
};
