/**
 * Formats the files that the agent changed, with the formatters that the repository uses.
 *
 * A phase is a step of the work after a batch (the tool calls of one reply). A sign shows that the
 * repository uses a formatter: a configuration file, a key or a dependency in package.json.
 *
 * From top to bottom: `Autoformatters`, the phase; one file; the formatter's run; the report for
 * the model; `FormatterChoice`, which finds the formatters of a file; the signs; the table of
 * formatters; and `FormatterReach`, which decides whether a formatter may apply to files that a
 * command changes.
 */

import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import type { CommandSandbox } from '../command/command-sandbox.js';
import { createCommandVariables } from '../command/environment.js';
import type { SessionSandbox } from '../command/session-sandbox.js';
import type { ProcessEnvironment } from '../platform/environment.js';
import { isWithin, readTextOrEmptySync } from '../platform/files.js';
import { findProgram, findRepositoryProgram, type ProgramPath } from '../platform/find-program.js';
import { repositoryFolders } from '../platform/repository-folders.js';
import { type ProgramEnd, ProgramFailure, runProgram, settleAll } from '../platform/run-program.js';
import { SYSTEM_SHELL } from '../platform/start-program.js';
import { firstCharacters, plural } from '../platform/text.js';
import { isObject, type Loose } from '../platform/untrusted-input.js';
import { levelOfCall } from '../policy/decide.js';
import { namesItsFiles } from '../policy/judged-call.js';
import type { HookContext, HookReport } from '../ports/hooks.js';
import { findEndings, withEnding } from '../tools/edit/lines.js';
import {
  ABSENT,
  decodeFile,
  editableText,
  encodeText,
  hashBytes,
  loadFile,
  replaceFile,
} from '../tools/files.js';
import { FileCache, type GitPlace, locateRepository, type Repository, workWith } from './git.js';

/** The content of a file before the session changed it, or before the batch. */
export type EarlierContent = Buffer | 'absent' | 'unknown';

/** Time limit for one file, in ms. */
const RUN_MS = 20_000;
/** Maximum number of files. A program, not edits, makes more changes. */
const FILES_MAX = 100;
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

  /** Runs the phase. Rejects only if `context.signal` is aborted. */
  async run(context: HookContext): Promise<HookReport> {
    const { workspace, reports, calls, files: memory } = context;
    // the files in the report of the phase before; without it those that the calls name
    const last = reports.at(-1);
    const changed = last?.changedFiles ?? calls.flatMap(({ facts }) => facts.paths);
    const files = [...new Set(changed)].filter(
      (file) => isFormattable(file) && !isForeign(file, workspace),
    );
    const isDirty = last?.dirty ?? false;
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
      ...this.#createVariables(workspace, '', 'formatter'),
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
  // `interrupted`: prepared effects of an interrupted run of this phase; `files`: the hash of each
  // file when the model last saw it
  const { interrupted, files, workspace } = batch.context;
  // the hash of new content is in the journal before the file is replaced
  const prepared = interrupted?.find(
    (one) => one.kind === 'file' && one.path === file && one.after === loaded.sha256,
  );
  if (prepared?.kind === 'file') {
    // its lines count as shown; the report asks to read them again
    if (files.get(file) === prepared.before) files.set(file, prepared.after);
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

/** False if another program has changed a file since a file tool wrote it. */
const isUnchangedSinceWrite = (
  { calls, files }: HookContext,
  file: string,
  sha256: string,
): boolean => {
  const isNamed = calls.some((call) => namesItsFiles(call) && call.facts.paths.includes(file));
  return !isNamed || (files.ownWrite?.(file)?.after ?? files.get(file)) === sha256;
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
      return UNTOUCHED;
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
 * a formatter.
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
  // update the hash only if the model has seen the text before formatting
  if (context.files.get(file) === sha256) {
    const { moveLines } = await import('../tools/edit/changed-lines.js');
    const lines = context.files.shownLines?.(file) ?? [];
    context.files.set(file, effect.after, undefined, moveLines(lines, text, after));
  }
  context.files.wrote?.(file, sha256, effect.after, text);
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
  const interrupted = outcomes.filter((outcome) => outcome.kind === 'formattedBefore');
  const note = [
    ...(await describeRewritten(rewritten)),
    ...interrupted.map(
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
    changedFiles: [...rewritten, ...interrupted].map(({ file }) => file),
    dirty: wasDirty || rewritten.length + interrupted.length > 0,
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

// ---- The formatters of a file ----

/**
 * The certainty of a sign. `governs`: the repository formats such files with the formatter.
 * `perhaps`: the formatter is present, but may not be used for all files.
 */
type Claim = 'governs' | 'perhaps';

/** A file to format, and the folders of its formatter. */
type FormatTarget = {
  /** Real absolute path. */
  readonly file: string;
  /**
   * The folder with the formatter's signs. The command runs there, unless it runs beside the file.
   */
  readonly folder: string;
  /** Folders from that of the file up to the workspace. */
  readonly folders: readonly string[];
};

type PossibleFormatter = {
  readonly formatter: Formatter;
  readonly target: FormatTarget;
  readonly claim: Claim;
};

export type ChosenFormatter = PossibleFormatter & {
  /** Whether no other formatter has signs in the same folder for such files. */
  readonly isAlone: boolean;
  readonly program: ProgramPath;
};

const isFormattable = (file: string): boolean => formatters.some(({ files }) => files.test(file));

/** Folders with other people's files. */
const FOREIGN = /(^|\/)(node_modules|\.git|\.venv|venv|vendor)\//;

const isForeign = (file: string, workspace: string): boolean =>
  !isWithin(file, workspace) || FOREIGN.test(path.relative(workspace, file));

/**
 * Chooses the formatters of files. Reads each folder once.
 *
 * The nearest folder with signs counts, from that of the file up to the workspace. Uncertain signs
 * (`perhaps`) count only without certain ones in all folders. A formatter comes from the project's
 * own program folders or from the PATH. No formatter is downloaded.
 */
export class FormatterChoice {
  readonly #workspace: string;
  readonly #environment: ProcessEnvironment;
  readonly #folders = new Map<string, SignFolder>();

  constructor(workspace: string, environment: ProcessEnvironment) {
    this.#workspace = workspace;
    this.#environment = environment;
  }

  /** The formatters of a file: several if the same folder has signs of several. */
  choose(file: string): readonly ChosenFormatter[] {
    const candidates = formatters.filter(({ files }) => files.test(file));
    const folders = foldersUpTo(this.#workspace, path.dirname(file));
    let possible: readonly PossibleFormatter[] = [];
    for (const folder of candidates.length === 0 ? [] : folders) {
      const signFolder = this.#folders.get(folder) ?? openFolder(folder);
      this.#folders.set(folder, signFolder);
      const claims = candidates.flatMap((formatter) => {
        const claim = strongestClaim(formatter, signFolder);
        return claim === null ? [] : [{ formatter, claim, target: { file, folder, folders } }];
      });
      const certain = claims.filter(({ claim }) => claim === 'governs');
      if (certain.length > 0) return this.#installed(certain);
      if (possible.length === 0) possible = claims;
    }
    return this.#installed(possible);
  }

  /** Drops formatters that are not installed. */
  #installed(claims: readonly PossibleFormatter[]): readonly ChosenFormatter[] {
    const workspace = this.#workspace;
    const top = repositoryFolders(workspace).top ?? workspace;
    return claims.flatMap((claim) => {
      const { program: name, homes } = claim.formatter;
      const folders = foldersUpTo(top, path.dirname(claim.target.file));
      const places = folders.flatMap((folder) => homes.map((home) => path.join(folder, home)));
      const program =
        findRepositoryProgram(places, name) ??
        findProgram(name, { environment: this.#environment, workspace });
      return program === null ? [] : [{ ...claim, isAlone: claims.length === 1, program }];
    });
  }
}

const foldersUpTo = (top: string, folder: string): readonly string[] => {
  const folders: string[] = [];
  for (let place = folder; isWithin(place, top); place = path.dirname(place)) {
    folders.push(place);
    if (place === top) break;
  }
  return folders;
};

// ---- Signs that a formatter is used in a folder ----

/** One of these files: only the first that exists is read. */
type FileSign = {
  readonly files: readonly string[];
  /** What its text must match. Default: any. */
  readonly matches?: RegExp;
  /** What its text must not match. */
  readonly without?: RegExp;
  /** Default: the formatter governs. `matched`: the part of the text that matched. */
  readonly claim?: (matched: string) => Claim;
};
type PackageSign =
  /** A key in package.json with the formatter's settings. */
  | { readonly key: string }
  /** A dependency in package.json. It governs if a script calls the program. */
  | { readonly dependency: string };
type Sign = FileSign | PackageSign;

const MANIFEST = 'package.json';

/** A folder that is searched for signs. */
type SignFolder = { readonly names: ReadonlySet<string>; read(name: string): string };

/** Opens a folder. An unreadable folder counts as empty. */
const openFolder = (folder: string): SignFolder => {
  const texts = new Map<string, string>();
  const read = (name: string): string => {
    const text = texts.get(name) ?? readTextOrEmptySync(path.join(folder, name), TEXT_BYTES_MAX);
    texts.set(name, text);
    return text;
  };
  try {
    return { names: new Set(readdirSync(folder)), read };
  } catch {
    return { names: new Set(), read: () => '' };
  }
};

/** The strongest claim of a formatter's signs; null if there is none. */
const strongestClaim = ({ signs, program }: Formatter, folder: SignFolder): Claim | null => {
  let strongest: Claim | null = null;
  for (const sign of signs) {
    const claim =
      'files' in sign
        ? claimOfFile(sign, folder)
        : claimOfPackage(sign, folder.read(MANIFEST), program);
    if (claim === 'governs') return claim;
    strongest ??= claim;
  }
  return strongest;
};

const claimOfFile = (
  { files, matches, without, claim }: FileSign,
  folder: SignFolder,
): Claim | null => {
  const name = files.find((one) => folder.names.has(one));
  if (name === undefined) return null;
  const matched = matches === undefined ? '' : matches.exec(folder.read(name))?.[0];
  if (matched === undefined || without?.test(folder.read(name)) === true) return null;
  return claim?.(matched) ?? 'governs';
};

const claimOfPackage = (sign: PackageSign, text: string, program: string): Claim | null => {
  const manifest = parseManifest(text);
  if ('key' in sign) return Object.hasOwn(manifest, sign.key) ? 'governs' : null;
  const { dependencies, devDependencies, scripts } = manifest;
  const lists = (value: unknown): boolean => Object.hasOwn(asObject(value), sign.dependency);
  if (!lists(dependencies) && !lists(devDependencies)) return null;
  const call = new RegExp(`(^|[^\\w-])${program}([^\\w-]|$)`, 'm');
  const isCalled = Object.values(asObject(scripts)).some((line) => call.test(String(line)));
  return isCalled ? 'governs' : 'perhaps';
};

const asObject = (value: unknown): Loose => (isObject(value) ? value : {});

const parseManifest = (text: string): Readonly<Record<string, unknown>> => {
  try {
    return asObject(JSON.parse(text));
  } catch {
    return {}; // absent, or the package manager reports it as invalid
  }
};

// ---- The supported formatters ----

/**
 * A formatter: the signs that a repository uses it, the files it formats, and its command line.
 *
 * Every command reads the file's text from stdin and prints the formatted text, so a formatter that
 * hangs or fails can't harm the file. It finds its settings by the file's path. It prints ignored
 * files unchanged.
 */
export type Formatter = {
  readonly name: string;
  readonly program: string;
  /** Folders of a project that may contain the program. The PATH comes after these. */
  readonly homes: readonly string[];
  readonly files: RegExp;
  readonly signs: readonly Sign[];
  /** It runs beside the file, not in the folder with its signs. */
  readonly runsBesideFile?: true;
  args(target: FormatTarget): readonly string[];
};

const NODE_HOMES = ['node_modules/.bin'];
const PYTHON_HOMES = ['.venv/bin', 'venv/bin'];
const withEndings = (name: string, ...each: readonly string[]): readonly string[] =>
  each.map((ending) => `${name}.${ending}`);
const SCRIPTS = ['js', 'cjs', 'mjs', 'ts', 'cts', 'mts'];

/** The ignore files of all folders, since Prettier reads only those of its working folder. */
const prettierIgnores = (folders: readonly string[]): readonly string[] =>
  folders
    .flatMap((folder) => [path.join(folder, '.prettierignore'), path.join(folder, '.gitignore')])
    .filter((file) => existsSync(file))
    .flatMap((file) => ['--ignore-path', file]);

/**
 * The edition of the nearest manifest that names one. By default rustfmt uses the oldest edition.
 */
const rustEdition = (folders: readonly string[]): readonly string[] => {
  for (const folder of folders) {
    const manifest = readTextOrEmptySync(path.join(folder, 'Cargo.toml'), TEXT_BYTES_MAX);
    const edition = /^\s*edition\s*=\s*"(\d{4})"/m.exec(manifest)?.[1];
    if (edition !== undefined) return ['--edition', edition];
  }
  return [];
};

/** A hook of the pre-commit framework. */
const preCommitHook = (id: string): FileSign => ({
  files: ['.pre-commit-config.yaml'],
  matches: new RegExp(`^[\\s-]*id:\\s*['"]?${id}['"]?\\s*(#.*)?$`, 'm'),
});

/** For signs that don't show whether Ruff formats: it may be used for linting only. */
const perhapsRuff = (): Claim => 'perhaps';

const formatters: readonly Formatter[] = [
  {
    name: 'Biome',
    program: 'biome',
    homes: NODE_HOMES,
    files: /\.([cm]?[jt]sx?|jsonc?|css|graphql|gql)$/,
    signs: [
      {
        files: ['biome.json', 'biome.jsonc'],
        without: /"formatter"\s*:\s*\{[^{}]*"enabled"\s*:\s*false/,
      },
      { dependency: '@biomejs/biome' },
    ],
    args: ({ file }) => ['format', `--stdin-file-path=${file}`],
  },
  {
    name: 'Prettier',
    program: 'prettier',
    homes: NODE_HOMES,
    files:
      /\.([cm]?[jt]sx?|json[5c]?|css|scss|less|html?|vue|svelte|astro|mdx?|markdown|ya?ml|graphql|gql|hbs)$/,
    signs: [
      {
        files: [
          '.prettierrc',
          ...withEndings('.prettierrc', 'json', 'yml', 'yaml', 'json5', 'toml', ...SCRIPTS),
          ...withEndings('prettier.config', ...SCRIPTS),
        ],
      },
      { key: 'prettier' },
      { dependency: 'prettier' },
    ],
    args: ({ file, folders }) => [
      ...['--stdin-filepath', file, '--ignore-unknown'],
      ...prettierIgnores(folders),
    ],
  },
  {
    name: 'gofmt',
    program: 'gofmt',
    homes: [],
    files: /\.go$/,
    signs: [{ files: ['go.mod', 'go.work'] }],
    args: () => [],
  },
  {
    name: 'rustfmt',
    program: 'rustfmt',
    homes: [],
    files: /\.rs$/,
    signs: [{ files: ['Cargo.toml', 'rustfmt.toml', '.rustfmt.toml'] }],
    // it gets no path of its input, so it searches its settings from its working folder upwards
    runsBesideFile: true,
    args: ({ folders }) => rustEdition(folders),
  },
  {
    name: 'Ruff',
    program: 'ruff',
    homes: PYTHON_HOMES,
    files: /\.pyi?$/,
    signs: [
      { files: ['pyproject.toml'], matches: /^\s*\[\s*tool\.ruff\.format\s*\]/m },
      { files: ['ruff.toml'], matches: /^\s*\[\s*format\s*\]/m },
      { files: ['.ruff.toml'], matches: /^\s*\[\s*format\s*\]/m },
      preCommitHook('ruff-format'),
      { files: ['pyproject.toml'], matches: /^\s*\[\s*tool\.ruff\b/m, claim: perhapsRuff },
      { files: ['ruff.toml'], claim: perhapsRuff },
      { files: ['.ruff.toml'], claim: perhapsRuff },
    ],
    args: ({ file }) => ['format', '--no-cache', '--force-exclude', '--stdin-filename', file, '-'],
  },
  {
    name: 'Black',
    program: 'black',
    homes: PYTHON_HOMES,
    files: /\.pyi?$/,
    signs: [
      {
        files: ['pyproject.toml'],
        matches: /^\s*\[\s*tool\.black\s*\][\s\S]*?(?=^\s*\[|(?![\s\S]))/m,
        // Black's exclusions do not apply to stdin
        claim: (section) => (/^\s*(extend-)?exclude\s*=/m.test(section) ? 'perhaps' : 'governs'),
      },
      preCommitHook('black'),
    ],
    args: ({ file }) => ['--quiet', '--stdin-filename', file, '-'],
  },
  {
    name: 'clang-format',
    program: 'clang-format',
    homes: [],
    files: /\.(c|cc|cpp|cxx|c\+\+|h|hh|hpp|hxx|h\+\+|inl|m|mm|cu|cuh|proto)$/,
    signs: [{ files: ['.clang-format', '_clang-format'] }],
    args: ({ file }) => [`--assume-filename=${file}`, '--style=file', '--fallback-style=none'],
  },
];

// ---- Whether a formatter may apply to files that a command changes ----

const SIGN_FILES = [
  ...new Set(
    formatters.flatMap(({ signs }) => signs).flatMap((sign) => ('files' in sign ? sign.files : [])),
  ),
  MANIFEST,
];
/** Maximum number of folders to read. */
const FOLDERS_MAX = 200;

/**
 * Decides whether a formatter may apply to files that a command changes below the workspace. Only
 * then is a snapshot of the tree worth its cost.
 *
 * Signs are searched in the workspace, in tracked folders, and in folders of files that calls have
 * named. A formatter with signs only elsewhere applies to files that calls name, but not to files
 * that commands change. If unsure, the answer is yes, at the cost of an unnecessary snapshot. A
 * positive answer is final.
 */
export class FormatterReach {
  readonly #now: () => number;
  /** Folders of files that calls named. */
  readonly #named = new Set<string>();
  /** Tracked folders with files that may be signs. */
  readonly #tracked: FileCache<readonly string[]>;
  /** Folders without a sign. */
  readonly #without: FileCache<true>;
  #isReached = false;

  /** `now`: the file system's time, in ms since 1970. */
  constructor(now: () => number = Date.now) {
    this.#now = now;
    this.#tracked = new FileCache(now, 'listings');
    this.#without = new FileCache(now, 'listings');
  }

  /** Remembers the folders of files that calls name. */
  remember(files: readonly string[]): void {
    for (const file of files)
      if (this.#named.size < FOLDERS_MAX) this.#named.add(path.dirname(file));
  }

  /** Whether a formatter may apply. Rejects if git fails. */
  async isReached(place: GitPlace): Promise<boolean> {
    if (this.#isReached) return true;
    const { workspace } = place;
    const all = new Set([workspace, ...(await this.#trackedFolders(place)), ...this.#named]);
    const folders = [...all].filter((folder) => isWithin(folder, workspace));
    this.#isReached =
      folders.length > FOLDERS_MAX || folders.some((folder) => this.#hasSign(folder));
    return this.#isReached;
  }

  #hasSign(folder: string): boolean {
    if (this.#without.get(folder) === true) return false;
    const readAt = this.#now();
    const signFolder = openFolder(folder);
    if (formatters.some((formatter) => strongestClaim(formatter, signFolder) !== null)) return true;
    const files = SIGN_FILES.filter((name) => signFolder.names.has(name));
    const places = [folder, ...files.map((name) => path.join(folder, name))];
    this.#without.set(folder, true, places, readAt);
    return false;
  }

  /** Folders of tracked files that may be signs; none without a repository. */
  async #trackedFolders(place: GitPlace): Promise<readonly string[]> {
    const located = await locateRepository(place);
    if (located === null) return [];
    const { indexFile } = located.location;
    const cached = this.#tracked.get(indexFile);
    if (cached !== undefined) return cached;
    const readAt = this.#now();
    const folders = await workWith(place, located, askTrackedFolders);
    this.#tracked.set(indexFile, folders, [indexFile], readAt);
    return folders;
  }
}

const LISTING_MAX = 256 * 1024 * 1024;
const SIGNS: ReadonlySet<string> = new Set(SIGN_FILES);

const askTrackedFolders = async (repository: Repository): Promise<readonly string[]> => {
  // git takes five times as long with the names as patterns
  const names = (await repository.ask(['ls-files', '-z'], { bytesMax: LISTING_MAX })).split('\0');
  const signs = names.filter((name) => SIGNS.has(name.slice(name.lastIndexOf('/') + 1)));
  return [...new Set(signs.map((name) => path.dirname(path.join(repository.top, name))))];
};
