/**
 * Formats the files that the agent changed, with the formatters that the repository uses
 * (formatters.ts).
 *
 * A phase is a step of the work after a batch (the tool calls of one reply).
 *
 * From top to bottom: `Autoformatters`, the phase; one file; the formatter's run; the report for
 * the model.
 */

import path from 'node:path';
import type { CommandSandbox } from '../command/command-sandbox.js';
import { createCommandVariables } from '../command/environment.js';
import type { SessionSandbox } from '../command/session-sandbox.js';
import type { ProcessEnvironment } from '../platform/environment.js';
import { hashBytes } from '../platform/files.js';
import { type ProgramEnd, ProgramFailure, runProgram, settleAll } from '../platform/run-program.js';
import { SYSTEM_SHELL } from '../platform/start-program.js';
import { firstCharacters, plural } from '../platform/text.js';
import { levelOfCall } from '../policy/decide.js';
import { namesItsFiles } from '../policy/judged-call.js';
import type { HookContext, HookReport } from '../ports/hooks.js';
import { findEndings, withEnding } from '../tools/edit/lines.js';
import {
  ABSENT,
  decodeFile,
  editableText,
  encodeText,
  loadFile,
  replaceFile,
} from '../tools/files.js';
import { type ChosenFormatter, FormatterChoice, isDirtyBefore } from './formatters.js';

/** The content of a file before the session changed it, or before the batch. */
export type EarlierContent = Buffer | 'absent' | 'unknown';

/** Time limit for one file, in ms. */
const RUN_MS = 20_000;
/** Maximum number of files. A program, not edits, makes more changes. */
const FILES_MAX = 100;
/** A formatter is no command of the model. */
const NO_COMMAND = '';
/** Number of files that are formatted at the same time. */
const PARALLEL_MAX = 3;

export type FormatterOptions = {
  /** Pawl's environment. */
  readonly environment: ProcessEnvironment;
  /** The content of a file when the batch began; `unknown` if no checkpoint has it. */
  before(file: string, context: HookContext): Promise<EarlierContent>;
  readonly runMs?: number;
  /** The sandbox for formatters: read-only workspace, no network. */
  readonly sandbox: SessionSandbox;
};

/**
 * The phase RunningAutoformatters: runs the repository's formatters on the files that the batch
 * changed.
 *
 * A file is formatted only if its earlier content was: that before the session changed it, or else
 * before the batch. A new file is formatted if the repository's configuration governs it. A file
 * with unknown earlier content stays as it is. A formatter reads and prints text; Pawl then
 * replaces the file if it has not changed meanwhile. Mode, encoding and line endings stay.
 *
 * It fails open: a file that can't be formatted stays as the agent wrote it. A formatter that hangs
 * or fails is not used again in this session, which is reported once. One per session.
 */
export class Autoformatters {
  readonly #options: FormatterOptions;
  readonly #createVariables: ReturnType<typeof createCommandVariables>;
  /** Paths of programs that are no longer used. */
  readonly #broken = new Set<string>();
  /** Warnings that the user has seen. */
  readonly #reported = new Set<string>();

  constructor(options: FormatterOptions) {
    this.#options = options;
    this.#createVariables = createCommandVariables(options.environment);
  }

  /** Formats these files (`filesToFormat`). Rejects only if `context.signal` is aborted. */
  async run(context: HookContext, files: readonly string[]): Promise<HookReport> {
    const { workspace, files: memory } = context;
    const isDirty = isDirtyBefore(context);
    if (files.length > FILES_MAX) {
      const why =
        `${plural(files.length, 'file')} changed at once: too many for the formatters, none ` +
        'was formatted';
      return reportOutcomes([], this.#takeUnreported([why]), isDirty);
    }
    const batch: FormatBatch = {
      context,
      choice: new FormatterChoice(workspace, this.#options.environment),
      runtime: await this.#createRuntime(context),
      broken: this.#broken,
      faults: [],
      // `ownWrite`: the content before the session's tools first changed the file and after they
      // last did, if no other program changed it between
      earlier: async (file, sha256) => {
        const write = memory.ownWrite?.(file);
        if (write?.after === sha256 && write.before === ABSENT) return 'absent';
        return write?.after === sha256 && write.text !== undefined
          ? Buffer.from(write.text)
          : this.#options.before(file, context);
      },
    };
    const outcomes: FileOutcome[] = [];
    for (let at = 0; at < files.length; at += PARALLEL_MAX) {
      const wave = files.slice(at, at + PARALLEL_MAX);
      // like Promise.all, but waits for all even if one rejects
      outcomes.push(...(await settleAll(wave.map((file) => formatFile(batch, file)))));
    }
    return reportOutcomes(outcomes, this.#takeUnreported(batch.faults), isDirty);
  }

  /** The texts that the user has not seen in this session, which then count as seen. */
  #takeUnreported(texts: readonly string[]): readonly string[] {
    return texts.filter((text) => {
      const isNew = !this.#reported.has(text);
      this.#reported.add(text);
      return isNew;
    });
  }

  async #createRuntime({ workspace, signal, settings }: HookContext): Promise<FormatterRuntime> {
    const variables = Object.entries({
      ...this.#createVariables(workspace, NO_COMMAND, 'formatter'),
      // forbid tools to download other versions of themselves
      RUSTUP_AUTO_INSTALL: '0',
      GOTOOLCHAIN: 'local',
    }).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]));
    return {
      environment: Object.fromEntries(variables),
      sandbox: await this.#options.sandbox.of(workspace),
      // `undefined`: a formatter needs no access outside the sandbox
      level: levelOfCall(settings.sandbox, undefined) === 'off' ? 'off' : 'read-only',
      runMs: this.#options.runMs ?? RUN_MS,
      signal,
    };
  }
}

// ---- One file ----

type FormatBatch = {
  readonly context: HookContext;
  readonly choice: FormatterChoice;
  readonly runtime: FormatterRuntime;
  /** Paths of programs that are no longer used. Failing ones are added. */
  readonly broken: Set<string>;
  /** Failures of the formatters themselves, each reported once. */
  readonly faults: string[];
  /** The content before the session or the batch changed the file. `sha256`: its present hash. */
  earlier(file: string, sha256: string): Promise<EarlierContent>;
};

/** `shown` is the name for people, `file` the real path. */
type FileOutcome =
  /** Unchanged: already formatted, or not to be formatted. */
  | { readonly kind: 'untouched' }
  | Rewritten
  /** Rewritten by a run of this phase that was interrupted. */
  | { readonly kind: 'formattedBefore'; readonly file: string; readonly shown: string }
  /** The formatter accepts the earlier content, and rejects the present one. */
  | {
      readonly kind: 'refused';
      readonly shown: string;
      readonly formatter: string;
      readonly why: string;
    }
  | { readonly kind: 'failed'; readonly why: string };

type Rewritten = {
  readonly kind: 'rewritten';
  readonly file: string;
  readonly shown: string;
  readonly formatter: string;
  readonly before: string;
  readonly after: string;
};

const UNTOUCHED: FileOutcome = { kind: 'untouched' };

const formatFile = async (batch: FormatBatch, file: string): Promise<FileOutcome> => {
  const loaded = await loadText(file);
  if (loaded === null) return UNTOUCHED;
  // `interrupted`: prepared effects of an interrupted run of this phase; `memory`: the hash of each
  // file when the model last saw it
  const { interrupted, files: memory, workspace } = batch.context;
  // the hash of new content is in the journal before the file is replaced
  const prepared = interrupted?.find(
    (one) => one.kind === 'file' && one.path === file && one.after === loaded.sha256,
  );
  if (prepared?.kind === 'file') {
    // its lines count as shown; the report asks to read them again
    if (memory.get(file) === prepared.before) memory.set(file, prepared.after);
    return { kind: 'formattedBefore', file, shown: path.relative(workspace, file) };
  }
  if (!isUnchangedSinceWrite(batch.context, file, loaded.sha256)) return UNTOUCHED;
  for (const chosen of batch.choice.choose(file)) {
    if (batch.broken.has(chosen.program)) continue;
    const outcome = await formatWith(batch, chosen, loaded);
    if (outcome !== null) return outcome;
  }
  return UNTOUCHED;
};

/**
 * False if another program has changed a file since a file tool wrote it. True too for a file that
 * only a command changed.
 */
const isUnchangedSinceWrite = (
  { calls, files: memory }: HookContext,
  file: string,
  sha256: string,
): boolean => {
  const isNamed = calls.some((call) => namesItsFiles(call) && call.facts.paths.includes(file));
  return !isNamed || (memory.ownWrite?.(file)?.after ?? memory.get(file)) === sha256;
};

type LoadedText = { readonly text: string; readonly encoding: 'utf8' | 'utf8-bom' };

const HEAD_CHARACTERS = 2_000;
const GENERATED =
  /@generated\b|\bDO NOT (EDIT|MODIFY)\b|\bcode generated by\b|\b(auto-?|automatically )generated\b/i;

/** The text of a file that may be formatted; null for generated files and files without a text. */
const loadText = async (
  file: string,
): Promise<(LoadedText & { readonly sha256: string }) | null> => {
  const loaded = await loadFile(file);
  const decoded = loaded.kind === 'file' ? decodeText(loaded.bytes) : null;
  if (loaded.kind !== 'file' || decoded === null) return null;
  return GENERATED.test(decoded.text.slice(0, HEAD_CHARACTERS))
    ? null
    : { ...decoded, sha256: loaded.sha256 };
};

const TEXT_BYTES_MAX = 1024 * 1024;

/** The text of a file that a formatter can process; null for others. */
const decodeText = (bytes: Buffer): LoadedText | null => {
  const decoded = decodeFile(bytes);
  if (decoded.kind === 'binary' || bytes.length > TEXT_BYTES_MAX) return null;
  const { text, encoding } = decoded;
  return encoding === 'utf8' || encoding === 'utf8-bom' ? { text, encoding } : null;
};

/** Formats a file with one formatter. Null: it changes nothing, or does not apply; try the next. */
const formatWith = async (
  batch: FormatBatch,
  chosen: ChosenFormatter,
  loaded: LoadedText & { readonly sha256: string },
): Promise<FileOutcome | null> => {
  const { formatter, target } = chosen;
  const result = await formatText(chosen, loaded.text, batch.runtime);
  switch (result.kind) {
    case 'leaves':
      return null;
    case 'broken':
      stopUsing(batch, chosen, result.why);
      return null;
    case 'refuses': {
      if (!(await isSatisfied(batch, chosen, loaded, null))) return null;
      const shown = path.relative(batch.context.workspace, target.file);
      return { kind: 'refused', shown, formatter: formatter.name, why: result.why };
    }
    case 'text':
      if (isSameText(result.text, loaded.text)) return null;
      if (!(await isSatisfied(batch, chosen, loaded, result.text))) return null;
      return rewrite(batch, chosen, loaded, result.text);
    default:
      return result satisfies never;
  }
};

/** Compares texts regardless of line endings, which formatting does not change. */
const isSameText = (one: string, other: string): boolean =>
  withEnding(one, '\n') === withEnding(other, '\n');

/**
 * Whether the earlier content was formatted: the formatter must leave it unchanged. For a new file
 * it must leave its output `printed` unchanged, so that a program that adds text does not count as
 * a formatter. `printed` is null if the formatter refuses the present text.
 */
const isSatisfied = async (
  batch: FormatBatch,
  chosen: ChosenFormatter,
  { sha256 }: { readonly sha256: string },
  printed: string | null,
): Promise<boolean> => {
  const earlier = await batch.earlier(chosen.target.file, sha256);
  const isNew = earlier === 'absent';
  // a new file has no earlier content to compare: the signs must be certain (`governs`), for this
  // formatter alone
  if (isNew && (chosen.claim !== 'governs' || !chosen.isAlone)) return false;
  // the formatter rejects a new file that it must format, which is reported
  if (isNew && printed === null) return true;
  const text = typeof earlier === 'string' ? null : (decodeText(earlier)?.text ?? null);
  const sample = isNew ? printed : text;
  if (sample === null) return false;
  const formatted = await formatText(chosen, sample, batch.runtime);
  if (formatted.kind === 'broken') stopUsing(batch, chosen, formatted.why);
  // an earlier text that it refuses may just have had an error, if it accepts the present one
  if (formatted.kind === 'refuses' && (isNew || printed === null))
    batch.faults.push(`${chosen.formatter.name} does not work here: ${formatted.why}`);
  return formatted.kind === 'text' && isSameText(formatted.text, sample);
};

/** Excludes a formatter that hangs or fails from the rest of the session. */
const stopUsing = (
  { broken, faults }: FormatBatch,
  { formatter, program }: ChosenFormatter,
  why: string,
) => {
  broken.add(program);
  faults.push(`${why}; ${formatter.name} is not used any more in this session`);
};

const rewrite = async (
  { context }: FormatBatch,
  { formatter, target: { file } }: ChosenFormatter,
  { text, encoding, sha256 }: LoadedText & { readonly sha256: string },
  printed: string,
): Promise<FileOutcome> => {
  context.signal.throwIfAborted();
  const shown = path.relative(context.workspace, file);
  const ending = findEndings(text);
  const after = ending === '\n' || ending === '\r\n' ? withEnding(printed, ending) : printed;
  const bytes = encodeText(after, encoding);
  const effect = { kind: 'file', path: file, before: sha256, after: hashBytes(bytes) } as const;
  await context.prepare(effect);
  const written = await replaceFile(file, bytes, sha256);
  if (written.kind === 'failed')
    return { kind: 'failed', why: `${shown} can't be written: ${written.why}` };
  if (written.kind !== 'written') return UNTOUCHED;
  const { files: memory } = context;
  // only hash and shown lines change, and only if the model has seen the text before formatting
  if (memory.get(file) === sha256) {
    const { moveLines } = await import('../tools/edit/changed-lines.js');
    const lines = memory.shownLines?.(file) ?? [];
    memory.set(file, effect.after, undefined, moveLines(lines, text, after));
  }
  memory.wrote?.(file, sha256, effect.after, text);
  return { kind: 'rewritten', file, shown, formatter: formatter.name, before: text, after };
};

// ---- The formatter's run ----

type FormatterRuntime = {
  /** Variables of formatter processes, beside those of all commands. */
  readonly environment: Readonly<Record<string, string>>;
  readonly sandbox: CommandSandbox;
  /** `read-only`, or `off` if the user has turned the sandbox off. */
  readonly level: 'read-only' | 'off';
  readonly runMs: number;
  readonly signal: AbortSignal;
};

/**
 * `leaves`: the formatter ignores the file. `refuses`: it can't format this text. `broken`: it
 * can't be started, hangs, or prints too much, whatever the text.
 */
type FormatterResult =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'leaves' }
  | { readonly kind: 'refuses' | 'broken'; readonly why: string };

const WHY_LINES = 5;
const WHY_CHARACTERS = 500;
/** Exit codes of a shell that could not start a program. Its messages differ between shells. */
const NOT_STARTED = [126, 127];

/** Formats a text. Rejects only if `runtime.signal` is aborted. */
const formatText = async (
  chosen: ChosenFormatter,
  text: string,
  runtime: FormatterRuntime,
): Promise<FormatterResult> => {
  try {
    const { code, output, errors } = await runFormatter(chosen, text, runtime);
    if (NOT_STARTED.includes(code))
      return { kind: 'broken', why: `${chosen.program} can't be started` };
    if (code !== 0) {
      const lines = errors.split('\n').filter((line) => line.trim() !== '');
      const why = firstCharacters(lines.slice(0, WHY_LINES).join('\n'), WHY_CHARACTERS);
      return { kind: 'refuses', why: why === '' ? 'it did not say why' : why };
    }
    const printed = editableText(decodeFile(output));
    if (printed === undefined)
      return { kind: 'refuses', why: 'it printed bytes that are no UTF-8' };
    return printed.trim() === '' && text.trim() !== ''
      ? { kind: 'leaves' }
      : { kind: 'text', text: printed };
  } catch (error) {
    if (!(error instanceof ProgramFailure) || error.kind === 'stopped') throw error;
    return { kind: error.kind === 'refused' ? 'refuses' : 'broken', why: error.message };
  }
};

/** Most bytes that a formatter may print beyond four times its input. */
const EXTRA_BYTES_MAX = 1024 * 1024;

const runFormatter = async (
  chosen: ChosenFormatter,
  text: string,
  runtime: FormatterRuntime,
): Promise<ProgramEnd> => {
  const prepared = await prepareRun(chosen, runtime);
  const { program, words, environment, folder, descriptors, isGuarded } = prepared;
  const running = runProgram({
    program,
    words,
    environment,
    folder,
    descriptors,
    isGuarded,
    title: chosen.formatter.name,
    input: text,
    bytesMax: EXTRA_BYTES_MAX + 4 * Buffer.byteLength(text),
    atMax: 'fail',
    deadlineMs: runtime.runMs,
    signal: runtime.signal,
  });
  prepared.started(); // closes our copies of `descriptors`, which the formatter has inherited
  try {
    return await running;
  } finally {
    await prepared.finish();
  }
};

/**
 * Prepares a run in the sandbox. Rejects with a ProgramFailure if that is impossible, and has then
 * started nothing.
 */
const prepareRun = async (
  { formatter, target, program }: ChosenFormatter,
  { sandbox, level, environment }: FormatterRuntime,
) => {
  const folder = formatter.runsBesideFile ? path.dirname(target.file) : target.folder;
  // changes the folder first, since the sandbox starts programs in the workspace
  const script = ['-c', 'cd "$1" || exit 126; shift; exec "$@"', 'sh', folder, program];
  try {
    const words = [...script, ...formatter.args(target)];
    return await sandbox.prepare({
      level,
      environment,
      // the sandbox may add a pipe, so that the formatter is killed when Pawl ends
      canBeGuarded: true,
      program: SYSTEM_SHELL,
      words,
    });
  } catch (error) {
    throw new ProgramFailure(
      'missing',
      `${formatter.name} can't be run in the sandbox: ${String(error)}`,
    );
  }
};

// ---- The report ----

/** `wasDirty`: whether the working tree had changes before formatting. */
const reportOutcomes = async (
  outcomes: readonly FileOutcome[],
  warnings: readonly string[],
  wasDirty: boolean,
): Promise<HookReport> => {
  const rewritten = outcomes.filter((outcome) => outcome.kind === 'rewritten');
  const refused = outcomes.filter((outcome) => outcome.kind === 'refused');
  const formattedBefore = outcomes.filter((outcome) => outcome.kind === 'formattedBefore');
  const note = [
    ...(await describeRewritten(rewritten)),
    ...formattedBefore.map(
      ({ shown }) =>
        `${shown} was formatted before an interruption: read it again before you edit it`,
    ),
    ...refused.map(
      ({ shown, formatter, why }) => `${formatter} can't format ${shown} as it is now: ${why}`,
    ),
  ];
  const refusals = refused.map(
    ({ shown, formatter, why }) => `${formatter} can't format ${shown}: ${firstLine(why)}`,
  );
  const failures = outcomes.flatMap((outcome) => (outcome.kind === 'failed' ? [outcome.why] : []));
  return {
    commits: [],
    changedFiles: [...rewritten, ...formattedBefore].map(({ file }) => file),
    dirty: wasDirty || rewritten.length + formattedBefore.length > 0,
    note: note.length === 0 ? '' : `[formatters] ${note.join('\n')}`,
    warning: [...warnings, ...refusals, ...failures].join('\n'),
    proceed: true, // the turn continues
  };
};

const WARNING_CHARACTERS_MAX = 200;

const firstLine = (why: string): string =>
  firstCharacters(why.split('\n')[0] ?? '', WARNING_CHARACTERS_MAX);

const DIFF_CHARACTERS_MAX = 3_000;
const DIFFS_CHARACTERS_MAX = 8_000;
const DIFF_EDITS_MAX = 500;

/** Describes the changes for the model, so that its next edit matches. */
const describeRewritten = async (rewritten: readonly Rewritten[]): Promise<readonly string[]> => {
  if (rewritten.length === 0) return [];
  const lines = [
    'Files that you changed were formatted, as shown here. Base your next edits on the ' +
      'formatted text.',
  ];
  let room = DIFFS_CHARACTERS_MAX;
  for (const one of rewritten) {
    const hunks = await showHunks(one);
    const isShown = hunks !== null && hunks.length <= room;
    lines.push(
      `${one.shown} (${one.formatter})${isShown ? ':' : ': read it again before you edit it'}`,
    );
    if (!isShown) continue;
    room -= hunks.length;
    lines.push(hunks);
  }
  return lines;
};

/** The hunks of a unified diff without its header; null if the change is too large to show. */
const showHunks = async ({ shown, before, after }: Rewritten): Promise<string | null> => {
  const { createTwoFilesPatch } = await import('diff');
  const options = { context: 1, maxEditLength: DIFF_EDITS_MAX };
  const patch = createTwoFilesPatch(shown, shown, before, after, undefined, undefined, options);
  const at = patch?.indexOf('@@') ?? -1;
  const hunks = patch === undefined || at < 0 ? '' : patch.slice(at).trimEnd();
  return hunks === '' || hunks.length > DIFF_CHARACTERS_MAX ? null : hunks;
};
