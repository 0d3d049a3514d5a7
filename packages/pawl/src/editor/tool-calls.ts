/**
 * How calls of tools look in an editor: kind, title, locations, content, the to-do list as the
 * editor's plan, and changes of files as diffs.
 */

import type {
  PlanEntry,
  ToolCall,
  ToolCallContent,
  ToolCallLocation,
  ToolKind,
} from '@agentclientprotocol/sdk';
import { codeFence } from '@pawl/agent/platform/text';
import { callTitle, type JudgedCall } from '@pawl/agent/policy/judged-call';
import { decodeFile, hashLoaded, loadFile } from '@pawl/agent/tools/files';
import { harmless } from '@pawl/terminal/paint';

const kinds: Readonly<Record<string, ToolKind>> = {
  read: 'read',
  list: 'search',
  find: 'search',
  search: 'search',
  edit: 'edit',
  write: 'edit',
  bash: 'execute',
  fetch: 'fetch',
  todo: 'think',
  explore: 'think',
};

const toolKind = ({ tool, traits, facts }: JudgedCall): ToolKind => {
  const known = Object.hasOwn(kinds, tool) ? kinds[tool] : undefined;
  if (known !== undefined) return known;
  if (traits.group === 'fileChanges') return 'edit';
  if (facts.argv.length > 0) return 'execute';
  return facts.hosts.length > 0 ? 'fetch' : 'other';
};

/**
 * One line, with invisible characters shown as marks: the command of a command, else the tool and
 * what it is about.
 */
const lineTitle = (call: JudgedCall, workspace: string): string => {
  const about = callTitle(call, workspace).replace(/\s+/g, ' ').trim();
  return harmless(
    toolKind(call) === 'execute' && about !== '' ? about : `${call.tool} ${about}`.trim(),
  );
};

/** The line at which the call reads: its argument `offset`, as the tool `read` has it. */
const callLine = ({ input }: JudgedCall): number | null => {
  const { offset } = input;
  return typeof offset === 'number' && Number.isSafeInteger(offset) && offset > 0 ? offset : null;
};

/** The files that a call reads or changes. */
export const callLocations = (
  call: JudgedCall,
  line: number | null = callLine(call),
): ToolCallLocation[] => {
  const kind = toolKind(call);
  if (kind !== 'read' && kind !== 'edit') return [];
  return call.facts.paths.map((path) => (line === null ? { path } : { path, line }));
};

/** A call whose result is a list that stays visible: clients show it as the plan. */
export const showsPlan = (call: JudgedCall | undefined): boolean => call?.traits.shown === 'list';

/**
 * Clients show such a call by its list alone. One that asks the user to accept the list is shown as
 * a call too, since the question is about a call.
 */
export const isPlan = (call: JudgedCall | undefined): boolean =>
  showsPlan(call) && call?.traits.asks === undefined;

export const newToolCall = (toolCallId: string, call: JudgedCall, workspace: string): ToolCall => ({
  toolCallId,
  title: lineTitle(call, workspace),
  name: call.tool,
  kind: toolKind(call),
  status: 'pending',
  rawInput: call.input,
  locations: callLocations(call),
});

export const textContent = (text: string): ToolCallContent => ({
  type: 'content',
  content: { type: 'text', text },
});

/** The output of a tool, which is not Markdown. */
export const outputContent = (text: string): ToolCallContent[] =>
  text.trim() === '' ? [] : [textContent(codeFence(text))];

const planStatuses: Readonly<Record<string, PlanEntry['status']>> = {
  '[x]': 'completed',
  '[>]': 'in_progress',
  '[ ]': 'pending',
};

/** The entries of a to-do list: a heading, then one item per line with a mark, to an empty line. */
export const planEntries = (text: string): PlanEntry[] =>
  (text.split('\n\n')[0] ?? '').split('\n').flatMap((line): readonly PlanEntry[] => {
    const status = planStatuses[line.slice(0, 3)];
    return status === undefined
      ? []
      : [{ content: line.slice(3).trim(), priority: 'medium', status }];
  });

// Changes of files as a client shows them: the whole text before and after.
//
// Tools report a change as a unified diff. The whole texts are computed from it and the file, if
// the file is as the diff says. Otherwise, as in an older session, each hunk is a change of its
// own.

type Change = { readonly path: string; readonly oldText: string | null; readonly newText: string };

/** Larger files are shown by their hunks. */
const WHOLE_CHARACTERS_MAX = 400_000;

const diffContent = (change: Change): ToolCallContent => ({ type: 'diff', ...change });

const isNewFile = (diff: string): boolean => diff.startsWith('--- /dev/null\n');

/**
 * The changed lines with their context, one change for each hunk; null if the diff has none or was
 * cut.
 */
const hunkChanges = async (path: string, diff: string): Promise<readonly Change[] | null> => {
  const { parsePatch } = await import('diff');
  try {
    const hunks = parsePatch(diff).flatMap((file) => file.hunks);
    if (hunks.length === 0) return null;
    const side = (lines: readonly string[], sign: string): string =>
      lines
        .flatMap((line) => (line.startsWith(sign) || line.startsWith(' ') ? [line.slice(1)] : []))
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
export const findFirstLine = (diff: string): number | null => {
  const match = /^@@ -\d+(?:,\d+)? \+(\d+).*\n((?: .*\n)*)/m.exec(diff);
  if (match === null) return null;
  const [, start = '', context = ''] = match;
  return Math.max(1, Number(start) + context.split('\n').length - 1);
};

type Text = { readonly text: string; readonly sha256: string | null };

/** The file's text; empty for a missing file, null for one that can't be shown whole. */
const readShownText = async (path: string): Promise<Text | null> => {
  const loaded = await loadFile(path);
  const sha256 = hashLoaded(loaded);
  if (loaded.kind === 'absent') return { text: '', sha256 };
  if (loaded.kind !== 'file') return null;
  const decoded = decodeFile(loaded.bytes);
  if (decoded.kind !== 'text' || decoded.text.length > WHOLE_CHARACTERS_MAX) return null;
  return { text: decoded.text, sha256 };
};

/** The text after the diff, or before it if it is undone; null if it does not fit the text. */
const patchText = async (
  text: string,
  diff: string,
  way: 'apply' | 'undo',
): Promise<string | null> => {
  const { applyPatch, parsePatch, reversePatch } = await import('diff');
  try {
    const [patch] = parsePatch(diff);
    if (patch === undefined || patch.hunks.length === 0) return null;
    const result = applyPatch(text, way === 'apply' ? patch : reversePatch(patch), {
      fuzzFactor: 0,
    });
    return result === false ? null : result;
  } catch {
    return null; // a diff that was cut does not parse; the hunks are tried next
  }
};

/** `texts`: the whole ones, if they are known. */
const changeContent = async (
  path: string,
  diff: string,
  texts: { readonly oldText: string; readonly newText: string } | null,
): Promise<readonly ToolCallContent[] | null> => {
  if (texts === null) return (await hunkChanges(path, diff))?.map(diffContent) ?? null;
  return [diffContent({ path, ...texts, ...(isNewFile(diff) ? { oldText: null } : {}) })];
};

/** A change that is planned: the file is still as it was. */
export const plannedChange = async (
  path: string,
  diff: string,
): Promise<readonly ToolCallContent[] | null> => {
  const now = await readShownText(path);
  const newText = now === null ? null : await patchText(now.text, diff, 'apply');
  const texts = now === null || newText === null ? null : { oldText: now.text, newText };
  return changeContent(path, diff, texts);
};

/**
 * A change of a file; a call with a diff changes one. `sha256` is the file's hash after it; null if
 * it is unknown, as in an older session.
 */
export const madeChange = async (
  path: string,
  diff: string,
  sha256: string | null,
): Promise<readonly ToolCallContent[] | null> => {
  const now = sha256 === null ? null : await readShownText(path);
  const oldText =
    now !== null && now.sha256 === sha256 ? await patchText(now.text, diff, 'undo') : null;
  const texts = now === null || oldText === null ? null : { oldText, newText: now.text };
  return changeContent(path, diff, texts);
};
