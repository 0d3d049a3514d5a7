import type { ToolContext, ToolOutcome } from '../needs.js';
import { replaceFile } from './atomic-write.js';
import { hashOf } from './file-text.js';
import { showPath } from './paths.js';

/** What the tools that change files have in common. */

const DIFF_CHARACTERS_MAX = 100_000;
const DIFF_EDITS_MAX = 3_000;

export const failed = (text: string): ToolOutcome => ({ status: 'failed', text });

const stoppedBefore = (signal: AbortSignal): ToolOutcome =>
  signal.reason === 'timedOut'
    ? { status: 'timedOut', text: 'Timed out before anything was changed.' }
    : { status: 'cancelled', text: 'Cancelled before anything was changed.' };

/** Why a file may not be changed on the strength of what the model saw of it, or null. */
export const staleness = (
  real: string,
  sha256: string,
  shown: string,
  context: ToolContext,
): ToolOutcome | null => {
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
export const carryOut = async (change: Change, context: ToolContext): Promise<ToolOutcome> => {
  if (context.signal.aborted) return stoppedBefore(context.signal);
  const shown = showPath(change.real, context.workspace);
  const diff = await diffOf(shown, change.before, change.after);
  const written = await replaceFile(change.real, change.bytes, change.expected);
  switch (written.kind) {
    case 'changedMeanwhile':
      return failed(
        `${shown} was changed by somebody else at the same moment. Read it again. Nothing was changed.`,
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
