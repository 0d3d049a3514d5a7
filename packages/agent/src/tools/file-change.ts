/** Changes of files: plan, preview, check that the model has seen the file, write; and the writes of protected files that the user allowed. */

import { existsSync } from 'node:fs';
import path from 'node:path';
import type { createNamedPlaces } from '../command/sandbox/git-folders.js';
import type { SessionSandbox } from '../command/session-sandbox.js';
import type { CallPreview } from '../machine/call.js';
import type { ProcessEnvironment } from '../platform/environment.js';
import { isWithin } from '../platform/files.js';
import { protectionInWorkspace } from '../policy/paths.js';
import type {
  FileHashes,
  FileMemory,
  PreviewContext,
  Tool,
  ToolContext,
  ToolOutcome,
} from '../ports/tool.js';
import {
  findAllowed,
  hashLoaded,
  hashOf,
  type LoadedFile,
  loadFile,
  replaceFile,
  showPath,
} from './files.js';

const DIFF_CHARACTERS_MAX = 100_000;
const DIFF_EDITS_MAX = 3_000;
/** Longer previews are dropped. The question then shows the tool's input. */
const PREVIEW_CHARACTERS_MAX = 1_000_000;

export const failed = (text: string): ToolOutcome => ({ status: 'failed', text });

const stoppedBefore = (signal: AbortSignal): ToolOutcome =>
  signal.reason === 'timedOut'
    ? { status: 'timedOut', text: 'Timed out before anything was changed.' }
    : { status: 'cancelled', ran: 'no', text: 'Cancelled before anything was changed.' };

/** Why the model must read the file again before changing it, or null. */
const staleness = (
  real: string,
  sha256: string,
  shown: string,
  context: Pick<PreviewContext, 'files'>,
): ToolOutcome | null => {
  const seen = context.files.get(real);
  if (seen === sha256) return null;
  return failed(
    seen === undefined
      ? `${shown} has not been read in this session. Read it first, then try again. Nothing was changed.`
      : `${shown} has changed since it was last read. Read it again and adapt. Nothing was changed.`,
  );
};

/** A unified diff. For very large changes, one line that says so. */
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

type FileChange = {
  readonly real: string;
  /** Hash that the file must have before the change, or ABSENT. */
  readonly expected: string;
  /** null for a new file. */
  readonly before: string | null;
  readonly after: string;
  readonly bytes: Uint8Array;
  /** Result text for the model. */
  readonly text: string;
};

/** Writes the change, all or nothing, and remembers the new file. */
const applyChange = async (change: FileChange, context: ToolContext): Promise<ToolOutcome> => {
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

export type PlannedChange =
  | { readonly kind: 'change'; readonly change: FileChange }
  | { readonly kind: 'refused'; readonly why: string };

/** Computes a change from the current file without touching anything. Also called for previews. */
export type PlanChange = (loaded: LoadedFile, real: string, shown: string) => PlannedChange;

export const refuseChange = (why: string): PlannedChange => ({ kind: 'refused', why });

export const changeFile = async (
  given: string,
  work: PlanChange,
  context: ToolContext,
): Promise<ToolOutcome> => {
  const allowed = await findAllowed(given, context);
  if (allowed.kind === 'elsewhere') return failed(`${allowed.why} Nothing was changed.`);
  const { real, shown } = allowed;
  const loaded = await loadFile(real);
  const stale = loaded.kind === 'file' ? staleness(real, loaded.sha256, shown, context) : null;
  if (stale !== null) return stale;
  const worked = work(loaded, real, shown);
  return worked.kind === 'refused' ? failed(worked.why) : applyChange(worked.change, context);
};

/** Hashes of the file before and after the call, for the journal. Throws if they are unknown; the call then reports why. */
export const hashesOf = async (
  given: string,
  work: PlanChange,
  context: ToolContext,
): Promise<FileHashes> => {
  const allowed = await findAllowed(given, context);
  if (allowed.kind === 'elsewhere') throw new Error(allowed.why);
  const loaded = await loadFile(allowed.real);
  const before = hashLoaded(loaded);
  if (before === null) throw new Error(`${allowed.shown} can't be read as a file`);
  const worked = work(loaded, allowed.real, allowed.shown);
  return worked.kind === 'refused' ? { before } : { before, after: hashOf(worked.change.bytes) };
};

/** The whole change as a diff, or the message with which the call would be refused. */
export const previewOf = async (
  given: string,
  work: PlanChange,
  context: PreviewContext,
): Promise<CallPreview> => {
  const allowed = await findAllowed(given, context);
  if (allowed.kind === 'elsewhere') return { kind: 'refused', text: `${allowed.why} Nothing was changed.` };
  const { real, shown } = allowed;
  const loaded = await loadFile(real);
  const stale = loaded.kind === 'file' ? staleness(real, loaded.sha256, shown, context) : null;
  if (stale !== null) return { kind: 'refused', text: stale.text };
  const worked = work(loaded, real, shown);
  if (worked.kind === 'refused') return { kind: 'refused', text: worked.why };
  const { before, after } = worked.change;
  const name = shown.replace(/[\u0000-\u001f]/g, '\ufffd'); // a name with line breaks could look like a change
  const { createTwoFilesPatch } = await import('diff');
  const from = before === null ? '/dev/null' : name;
  const limit = before === null || before === '' ? Number.MAX_SAFE_INTEGER : DIFF_EDITS_MAX;
  const patch = createTwoFilesPatch(from, name, before ?? '', after, undefined, undefined, {
    context: 2,
    maxEditLength: limit,
  });
  if (patch === undefined || patch.length > PREVIEW_CHARACTERS_MAX) return { kind: 'none' };
  return { kind: 'change', diff: patch.replace(/^(Index: .*\n)?=+\n/, '') };
};

/** The path, and the folders that must be created for it. */
const withNewFolders = (place: string, workspace: string): readonly string[] => {
  const places = [place];
  for (let folder = path.dirname(place); isWithin(folder, workspace); folder = path.dirname(folder)) {
    if (folder === workspace || existsSync(folder)) break;
    places.push(folder);
  }
  return places;
};

type Named = (workspace: string, place: string) => Promise<boolean>;

/** Whether git's configuration names a path of the workspace, or a folder above it. */
const createNamed = (environment: ProcessEnvironment): Named => {
  const readers = new Map<string, ReturnType<typeof createNamedPlaces>>();
  return async (workspace, place) => {
    const { createNamedPlaces } = await import('../command/sandbox/git-folders.js');
    const read = readers.get(workspace) ?? createNamedPlaces(workspace, environment);
    readers.set(workspace, read);
    return read().some((named) => isWithin(place, named.path));
  };
};

const withNamedPaths =
  (tool: Tool, isNamed: Named): Tool['judge'] =>
  async (input, workspace) => {
    const judged = await tool.judge(input, workspace);
    if (judged.kind === 'invalid') return judged;
    const named: string[] = [];
    for (const place of judged.facts.paths) if (await isNamed(workspace, place)) named.push(place);
    return named.length === 0 ? judged : { ...judged, facts: { ...judged.facts, protected: named } };
  };

/**
 * Wraps a tool that changes files. It asks about files that git's configuration names, as about other protected paths.
 * And when it writes a protected path, the user has allowed that, so the sandbox keeps the file in place while commands
 * run in the background.
 */
export const withAllowedWrites = (
  tool: Tool,
  sandbox: SessionSandbox,
  environment: ProcessEnvironment,
): Tool => {
  const isNamed = createNamed(environment);
  const run: Tool['run'] = async (input, context) => {
    const { workspace, paths } = context;
    const kept: string[] = [];
    for (const place of paths) {
      const isKept = protectionInWorkspace(workspace, place) !== null;
      if (isKept || (await isNamed(workspace, place))) kept.push(place);
    }
    for (const place of kept) {
      const commands = await sandbox.of(workspace);
      for (const one of withNewFolders(place, workspace)) commands.allow(one);
    }
    return tool.run(input, context);
  };
  // A spread would evaluate the schema, which is created on first use.
  const parts = {
    ...Object.getOwnPropertyDescriptors(tool),
    judge: { value: withNamedPaths(tool, isNamed), enumerable: true },
    run: { value: run, enumerable: true },
  };
  return Object.defineProperties({}, parts) as Tool; // the descriptors are those of a Tool
};

/** An empty record of the files that the model has seen. One per session. */
export const createFileMemory = (): FileMemory => {
  const hashes = new Map<string, string>();
  return {
    get: (path) => hashes.get(path),
    set: (path, sha256) => {
      hashes.set(path, sha256);
    },
  };
};
