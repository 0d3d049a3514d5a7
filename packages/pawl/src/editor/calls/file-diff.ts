import type { ToolCallContent } from '@agentclientprotocol/sdk';
import { decodeFile, hashLoaded, loadFile } from '@pawl/agent/tools/files/file-text';

/**
 * Changes of files as a client shows them: the whole text before and after.
 *
 * Tools report a change as a unified diff. The whole texts are computed from it and the file, if the file is as the diff
 * says. Otherwise, as in an older session, each hunk is a change of its own.
 */

type Change = { readonly path: string; readonly oldText: string | null; readonly newText: string };

/** Larger files are shown by their hunks. */
const WHOLE_CHARACTERS_MAX = 400_000;

const contentOf = (change: Change): ToolCallContent => ({ type: 'diff', ...change });

const isNewFile = (diff: string): boolean => diff.startsWith('--- /dev/null\n');

/** The changed lines with their context, one change for each hunk; null if the diff has none or was cut. */
const hunkChanges = async (path: string, diff: string): Promise<readonly Change[] | null> => {
  const { parsePatch } = await import('diff');
  try {
    const hunks = parsePatch(diff).flatMap((file) => file.hunks);
    if (hunks.length === 0) return null;
    const side = (lines: readonly string[], left: string): string =>
      lines
        .flatMap((line) => (line.startsWith(left) || line.startsWith(' ') ? [line.slice(1)] : []))
        .join('\n');
    return hunks.map(({ lines }) => ({
      path,
      oldText: isNewFile(diff) ? null : side(lines, '-'),
      newText: side(lines, '+'),
    }));
  } catch {
    return null; // a diff that was cut does not parse; the caller shows it as text
  }
};

/** Line of the first change in the new file, from 1; null if the diff has none. */
export const firstLineOf = (diff: string): number | null => {
  const found = /^@@ -\d+(?:,\d+)? \+(\d+)/m.exec(diff);
  return found === null ? null : Math.max(1, Number(found[1]));
};

type Text = { readonly text: string; readonly sha256: string | null };

/** The file's text; empty for a missing file, null for one that can't be shown whole. */
const textOf = async (path: string): Promise<Text | null> => {
  const loaded = await loadFile(path);
  const sha256 = hashLoaded(loaded);
  if (loaded.kind === 'absent') return { text: '', sha256 };
  if (loaded.kind !== 'file') return null;
  const decoded = decodeFile(loaded.bytes);
  if (decoded.kind !== 'text' || decoded.text.length > WHOLE_CHARACTERS_MAX) return null;
  return { text: decoded.text, sha256 };
};

/** The text after the diff, or before it if it is undone; null if it does not fit the text. */
const patched = async (text: string, diff: string, way: 'apply' | 'undo'): Promise<string | null> => {
  const { applyPatch, parsePatch, reversePatch } = await import('diff');
  try {
    const [patch] = parsePatch(diff);
    if (patch === undefined || patch.hunks.length === 0) return null;
    const result = applyPatch(text, way === 'apply' ? patch : reversePatch(patch), { fuzzFactor: 0 });
    return result === false ? null : result;
  } catch {
    return null; // a diff that was cut does not parse; the hunks are tried next
  }
};

/** A change that is planned: the file is still as it was. */
export const plannedChange = async (
  path: string,
  diff: string,
): Promise<readonly ToolCallContent[] | null> => {
  const now = await textOf(path);
  const newText = now === null ? null : await patched(now.text, diff, 'apply');
  if (now !== null && newText !== null)
    return [contentOf({ path, oldText: isNewFile(diff) ? null : now.text, newText })];
  return (await hunkChanges(path, diff))?.map(contentOf) ?? null;
};

/** A change that was made. `sha256` is the file's hash after it; null if it is unknown, as in an older session. */
export const madeChange = async (
  path: string,
  diff: string,
  sha256: string | null,
): Promise<readonly ToolCallContent[] | null> => {
  const now = sha256 === null ? null : await textOf(path);
  const oldText = now !== null && now.sha256 === sha256 ? await patched(now.text, diff, 'undo') : null;
  if (now !== null && oldText !== null)
    return [contentOf({ path, oldText: isNewFile(diff) ? null : oldText, newText: now.text })];
  return (await hunkChanges(path, diff))?.map(contentOf) ?? null;
};
