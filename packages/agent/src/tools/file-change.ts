/**
 * Changes of files, for the tools `edit` and `write`.
 *
 * From top to bottom: a planned change; its write, its preview, its hashes for the journal; the
 * check that the model has seen the file as it is; diffs; the memory of files that the model has
 * seen; and writes of protected files, such as git hooks, that the user allowed.
 *
 * Of each file, `name` is the path as the model wrote it, `real` the real path, and `shown` the
 * path for people.
 *
 * The protocol of the memory of files is beside its type, `FileMemory` in ports/tool.ts.
 */

import type { createNamedPlaces } from '../command/sandbox/git-folders.js';
import type { SessionSandbox } from '../command/session-sandbox.js';
import type { CallPreview } from '../machine/call.js';
import { createSeenFiles, joinLines, missingLines, wholeFile } from '../machine/seen-files.js';
import type { ProcessEnvironment } from '../platform/environment.js';
import { hashBytes, isWithin } from '../platform/files.js';
import { firstCharacters } from '../platform/text.js';
import { markOwn } from '../platform/untrusted-input.js';
import { protectionInWorkspace, type UserPlaces } from '../policy/paths.js';
import type {
  FileHashes,
  FileMemory,
  OwnWrite,
  PreviewContext,
  SeenText,
  Tool,
  ToolContext,
  ToolOutcome,
} from '../ports/tool.js';
import { showPath } from './define-tool.js';
import { describeRanges, fileLines } from './edit/lines.js';
import {
  ABSENT,
  exactText,
  findAllowed,
  hashLoaded,
  type LoadedFile,
  loadFile,
  replaceFile,
} from './files.js';
import { findLookAlikes, suggestNames } from './similar-names.js';

export type FileChange = {
  readonly real: string;
  /** Hash that the file must have before the change, or ABSENT. */
  readonly expected: string;
  /** null for a new file. */
  readonly before: string | null;
  readonly after: string;
  readonly bytes: Uint8Array;
  /** Result text for the model. */
  readonly text: string;
  /**
   * What the model knows of the file after a rebased edit: the text that it saw before (`earlier`)
   * with its edits, and the hash of that, which no file has. Default: the whole file.
   */
  readonly known?: Pick<SeenText, 'sha256' | 'text'> & { readonly earlier: string };
};

/** `extent`: whether the model has seen the whole file or some lines. Default: the whole. */
export type PlannedChange =
  | { readonly kind: 'change'; readonly change: FileChange; readonly extent?: SeenText['extent'] }
  | { readonly kind: 'refused'; readonly why: string };

/** Computes a change from the current file without touching anything. Also called for previews. */
export type PlanChange = {
  plan(loaded: LoadedFile, real: string, shown: string): PlannedChange;
  /**
   * Plans a change of some lines in a file that has changed since the model saw `earlier`; refused
   * if the lines of the change are not the same ones. Absent if the change needs the whole file.
   */
  rebase?(file: StaleFile): Promise<PlannedChange>;
};

/** A file that has changed since the model saw it. */
export type StaleFile = {
  readonly loaded: Extract<LoadedFile, { kind: 'file' }>;
  readonly real: string;
  readonly shown: string;
  /** The text that the model saw. */
  readonly earlier: string;
};

/** Every line of a file. No call is named, so none hides them. */
const EVERY_LINE = wholeFile('');

export const refuseChange = (why: string): PlannedChange => ({ kind: 'refused', why });

/** The result of a call that failed. */
export const failed = (text: string): ToolOutcome => ({ status: 'failed', text });

/** The result of a call that was stopped. */
export const stopped = ({ reason }: AbortSignal, text: string): ToolOutcome => ({
  status: reason === 'timedOut' ? 'timedOut' : 'cancelled',
  text,
});

/** Writes the change, all or nothing, and remembers the new file. */
export const changeFile = async (
  name: string,
  plan: PlanChange,
  context: ToolContext,
): Promise<ToolOutcome> => {
  const planned = await planSeen(name, plan, context);
  if (planned.kind === 'refused') return failed(planned.why);
  const { change } = planned;
  if (context.signal.aborted) return stoppedBefore(context.signal);
  const shown = showPath(change.real, context.workspace);
  const patch = await createPatch(shown, change, 3);
  const written = await replaceFile(change.real, change.bytes, change.expected);
  switch (written.kind) {
    case 'changedMeanwhile':
      return failed(
        `${shown} was changed by somebody else at the same moment. Read it again. Nothing ` +
          'was changed.',
      );
    case 'elsewhere':
      return failed(
        `${shown}: the path leads elsewhere than when it was allowed; look again and ask ` +
          'anew. Nothing was changed.',
      );
    case 'failed':
      return failed(`${shown} can't be written: ${written.why}. Nothing was changed.`);
    case 'written':
      await remember(context.files, planned, plan);
      // so that the session's own changes can be told from those of others
      context.files.wrote?.(change.real, change.expected, hashBytes(change.bytes), change.before);
      return {
        status: 'ok',
        text: `${change.text}${noteLostEnd(change)}`,
        diff: shortenPatch(patch, shown, change),
      };
    default:
      return written satisfies never;
  }
};

/** The last line break is easily lost, and seen in no line. */
const noteLostEnd = ({ before, after }: FileChange): string =>
  before?.endsWith('\n') && after !== '' && !after.endsWith('\n')
    ? ' The file has no line break at its end now.'
    : '';

/** Remembers what the model knows of the file now. Of a file that it only searched: some lines. */
const remember = async (
  files: FileMemory,
  { change, extent = 'whole' }: Extract<PlannedChange, { kind: 'change' }>,
  plan: PlanChange,
): Promise<void> => {
  const { real, before, after } = change;
  const known = change.known ?? {
    sha256: hashBytes(change.bytes),
    text: after,
    earlier: before ?? '',
  };
  const { sha256, text, earlier } = known;
  if (extent !== 'whole') return files.addLines?.(real, sha256, text);
  if (plan.rebase === undefined) return files.set(real, sha256, text); // the model gave every line
  const { moveLines } = await import('./edit/changed-lines.js');
  files.set(real, sha256, text, moveLines(files.shownLines?.(real) ?? [], earlier, text));
};

const stoppedBefore = (signal: AbortSignal): ToolOutcome =>
  signal.reason === 'timedOut'
    ? { status: 'timedOut', text: 'Timed out before anything was changed.' }
    : { status: 'cancelled', ran: 'no', text: 'Cancelled before anything was changed.' };

/** The whole change as a diff, or the message with which the call would be refused. */
export const previewChange = async (
  name: string,
  plan: PlanChange,
  context: PreviewContext,
): Promise<CallPreview> => {
  const planned = await planSeen(name, plan, context);
  if (planned.kind === 'refused') return { kind: 'refused', text: planned.why };
  const shown = showPath(planned.change.real, context.workspace);
  const patch = await createPatch(shown, planned.change, 2);
  if (patch === undefined || patch.length > PREVIEW_CHARACTERS_MAX) return { kind: 'none' };
  return { kind: 'change', diff: patch };
};

/**
 * Hashes of the file before and after the call, for the journal. Throws if they are unknown; the
 * call then reports why.
 */
export const hashChange = async (
  name: string,
  plan: PlanChange,
  context: ToolContext,
): Promise<FileHashes> => {
  const allowed = await findAllowed(name, context);
  if (allowed.kind === 'elsewhere') throw new Error(allowed.why);
  const loaded = await loadFile(allowed.real);
  const beforeHash = hashLoaded(loaded);
  if (beforeHash === null) throw new Error(`${allowed.shown} can't be read as a file`);
  // planned without the check of what the model has seen: a call that it refuses changes nothing
  const planned = plan.plan(loaded, allowed.real, allowed.shown);
  return planned.kind === 'refused'
    ? { before: beforeHash }
    : { before: beforeHash, after: hashBytes(planned.change.bytes) };
};

/** Plans the change of a file that the model has seen as it is, or at least its lines. */
const planSeen = async (
  name: string,
  plan: PlanChange,
  context: PreviewContext,
): Promise<PlannedChange> => {
  const allowed = await findAllowed(name, context);
  if (allowed.kind === 'elsewhere') return refuseChange(`${allowed.why} Nothing was changed.`);
  const { real, shown } = allowed;
  const loaded = await loadFile(real);
  const seen = context.files.get(real);
  // where no file is, nothing was to be read: `plan` creates one or refuses
  if (loaded.kind === 'absent') return planMissing(plan, real, shown);
  if (loaded.kind !== 'file') return plan.plan(loaded, real, shown);
  if (seen === loaded.sha256) {
    const unseen = plan.rebase === undefined ? findUnseen(context, real, loaded) : '';
    if (unseen === '') return plan.plan(loaded, real, shown);
    return refuseChange(
      `The conversation does not show ${unseen} of ${shown}: read them, or edit the file. ` +
        'Nothing was changed.',
    );
  }
  // a file that no edit can change: advice to read it would be wrong
  const exact = exactText(loaded.bytes, shown);
  if (exact.kind === 'refused') return exact;
  const recalled = plan.rebase === undefined ? undefined : context.files.recall?.(real);
  if (plan.rebase !== undefined && recalled !== undefined) {
    const { text: earlier, extent } = recalled;
    // equal hashes: a search showed lines of this very text
    const planned =
      recalled.sha256 === loaded.sha256
        ? plan.plan(loaded, real, shown)
        : await plan.rebase({ loaded, real, shown, earlier });
    return planned.kind === 'change' ? { ...planned, extent } : planned;
  }
  return refuseChange(
    seen === undefined
      ? `${shown} has not been read in this session. Read it first, then try again. Nothing ` +
          'was changed.'
      : `${shown} has changed since it was last read. Read it again and adapt. Nothing was ` +
          'changed.',
  );
};

/** Plans a change where no file is. A file whose name looks like another's is not made. */
const planMissing = async (
  plan: PlanChange,
  real: string,
  shown: string,
): Promise<PlannedChange> => {
  const planned = plan.plan({ kind: 'absent' }, real, shown);
  if (planned.kind === 'refused') return refuseChange(`${planned.why}${await suggestNames(real)}`);
  const { same, capitals } = await findLookAlikes(real);
  if (same.length > 0)
    return refuseChange(
      `${shown} would look like ${same.join(', ')}, which is there. Give that very name, or make ` +
        'a file of this name with a shell command. Nothing was changed.',
    );
  if (capitals.length === 0) return planned;
  const text = `${planned.change.text} Its folder also has ${capitals.join(', ')}.`;
  return { ...planned, change: { ...planned.change, text } };
};

/** The lines of the file that the conversation does not show; empty if the file is known whole. */
const findUnseen = (
  { files }: PreviewContext,
  real: string,
  { bytes, sha256 }: Extract<LoadedFile, { kind: 'file' }>,
): string => {
  const write = files.ownWrite?.(real);
  if (write?.before === ABSENT && write.after === sha256) return ''; // this session wrote all of it
  const exact = exactText(bytes, real);
  const count = exact.kind === 'text' ? fileLines(exact.text).length : 0;
  return describeRanges(missingLines(files.shownLines?.(real) ?? EVERY_LINE, count));
};

// ---- Diffs ----

const DIFF_CHARACTERS_MAX = 100_000;
const DIFF_EDITS_MAX = 3_000;
/** Longer previews are dropped. The question then shows the tool's input. */
const PREVIEW_CHARACTERS_MAX = 1_000_000;

/** A unified diff; undefined for a very large change. */
const createPatch = async (
  shown: string,
  { before, after }: FileChange,
  context: number,
): Promise<string | undefined> => {
  const { createTwoFilesPatch } = await import('diff');
  const from = before === null ? '/dev/null' : shown;
  // a new file is one added piece, so its comparison is quick
  const maxEditLength = before === null || before === '' ? Number.MAX_SAFE_INTEGER : DIFF_EDITS_MAX;
  const options = { context, maxEditLength };
  const patch = createTwoFilesPatch(
    from,
    shown,
    before ?? '',
    after,
    undefined,
    undefined,
    options,
  );
  // without the heading that the library puts first
  return patch?.replace(/^(Index: .*\n)?=+\n/, '');
};

/** For very large changes, one line that says so. */
const shortenPatch = (patch: string | undefined, shown: string, { before }: FileChange): string => {
  // a name with line breaks could look like a change; in a whole patch the library quotes it
  const name = shown.replace(/[\u0000-\u001f]/g, '\ufffd');
  if (patch === undefined)
    return (
      `--- ${before === null ? '/dev/null' : name}\n+++ ${name}\n(the change is too large to ` +
      `be shown)\n`
    );
  if (patch.length <= DIFF_CHARACTERS_MAX) return patch;
  return `${firstCharacters(patch, DIFF_CHARACTERS_MAX)}\n(the rest of the change is not shown)\n`;
};

// ---- The memory of files ----

/** Limits for the texts in memory, in characters: of one file, and of all. */
const TEXT_CHARACTERS_MAX = 2_000_000;
const TEXTS_CHARACTERS_MAX = 16_000_000;

/** Texts of files, the oldest of which go when they are too many. */
const createTexts = <Entry extends { readonly text: string }>() => {
  const texts = new Map<string, Entry>();
  let characters = 0;
  const forget = (file: string): void => {
    characters -= texts.get(file)?.text.length ?? 0;
    texts.delete(file);
  };
  return {
    get: (file: string): Entry | undefined => texts.get(file),
    /** null: there is no text. */
    set: (file: string, entry: Entry | null): void => {
      forget(file);
      if (entry === null || entry.text.length > TEXT_CHARACTERS_MAX) return;
      texts.set(file, entry);
      characters += entry.text.length;
      for (const oldest of texts.keys()) {
        if (characters <= TEXTS_CHARACTERS_MAX) return;
        forget(oldest);
      }
    },
  };
};

/** An empty record of the files that the model has seen. One per session. */
export const createFileMemory = (): FileMemory => {
  const seenFiles = createSeenFiles();
  const hash = (file: string): string | undefined => seenFiles.files.get(file)?.sha256;
  const shownLines = (file: string) => seenFiles.files.get(file)?.lines ?? [];
  const writes = new Map<string, OwnWrite>();
  const texts = createTexts<SeenText>();
  const earlierTexts = createTexts<{ text: string }>();
  return {
    get: hash,
    shownLines,
    hide: seenFiles.hide,
    set: (file, sha256, text, added = EVERY_LINE) => {
      const lines = hash(file) === sha256 ? joinLines(shownLines(file), added) : added;
      seenFiles.set({ path: file, sha256, lines });
      if (text !== undefined) texts.set(file, { sha256, text, extent: 'whole' });
    },
    wrote: (file, beforeHash, after, text) => {
      // several changes count as one, unless another program changed the file in between
      const earlier = writes.get(file);
      const isNext = earlier?.after === beforeHash;
      writes.set(file, { before: isNext ? earlier.before : beforeHash, after });
      if (!isNext) earlierTexts.set(file, typeof text === 'string' ? { text } : null);
    },
    ownWrite: (file) => {
      const write = writes.get(file);
      return write && { ...write, ...earlierTexts.get(file) };
    },
    addLines: (file, sha256, text) => {
      const extent = hash(file) === sha256 ? 'whole' : 'lines';
      texts.set(file, { sha256, text, extent });
    },
    recall: (file) => texts.get(file),
  };
};

// ---- Protected files ----

/**
 * Wraps a tool that changes files. Files that git's configuration names, such as hooks, count as
 * protected, so the policy asks about them. And when the tool writes a protected path, the user has
 * allowed that, so the sandbox is told: it sets protected files aside that appear while commands
 * run in the background. The result says what is wrong with the syntax of what was written.
 */
export const withFileSafeguards = (
  tool: Tool,
  sandbox: SessionSandbox,
  environment: ProcessEnvironment,
  userPlaces: UserPlaces,
): Tool => {
  const isNamed = createNamedCheck(environment);
  const judge: Tool['judge'] = async (input, workspace) => {
    const judged = await tool.judge(input, workspace);
    if (judged.kind === 'invalid') return judged;
    const named: string[] = [];
    for (const place of judged.facts.paths) if (await isNamed(workspace, place)) named.push(place);
    const { facts } = judged;
    return named.length === 0
      ? judged
      : { ...judged, facts: { ...facts, protected: [...(facts.protected ?? []), ...named] } };
  };
  const run: Tool['run'] = async (input, context) => {
    const { workspace, paths } = context;
    for (const place of paths) {
      const protection = protectionInWorkspace(workspace, place, userPlaces);
      if (protection === null && !(await isNamed(workspace, place))) continue;
      const workspaceSandbox = await sandbox.of(workspace);
      workspaceSandbox.allow(place);
    }
    const outcome = await tool.run(input, context);
    const { noteSyntax } = await import('./check-syntax.js');
    return noteSyntax(outcome, { sandbox, environment }, context);
  };
  // a spread would evaluate the schema, which is created on first use
  const parts = {
    ...Object.getOwnPropertyDescriptors(tool),
    judge: { value: judge, enumerable: true },
    run: { value: run, enumerable: true },
  };
  return markOwn(Object.defineProperties({}, parts) as Tool); // the descriptors are those of a Tool
};

/** Whether git's configuration names a path of the workspace, or a folder above it. */
const createNamedCheck = (environment: ProcessEnvironment) => {
  const readers = new Map<string, ReturnType<typeof createNamedPlaces>>();
  return async (workspace: string, place: string): Promise<boolean> => {
    const { createNamedPlaces } = await import('../command/sandbox/git-folders.js');
    const read = readers.get(workspace) ?? createNamedPlaces(workspace, environment);
    readers.set(workspace, read);
    return read().some((named) => isWithin(place, named.path));
  };
};
