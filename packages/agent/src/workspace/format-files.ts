import path from 'node:path';
import type { CommandSandbox } from '../command/command-sandbox.js';
import { createCommandVariables } from '../command/environment.js';
import type { SessionSandbox } from '../command/session-sandbox.js';
import type { ProcessEnvironment } from '../platform/environment.js';
import { entryStatus, isWithin } from '../platform/files.js';
import type { ProgramPath } from '../platform/find-program.js';
import { type ProgramEnd, ProgramFailure, runProgram, settleAll } from '../platform/run-program.js';
import { SYSTEM_SHELL } from '../platform/start-program.js';
import { plural } from '../platform/text.js';
import { levelOfCall } from '../policy/decide.js';
import type { JudgedCall } from '../policy/judged-call.js';
import type { HookContext, HookReport } from '../ports/hooks.js';
import { findEndings, withEnding } from '../tools/edit/lines.js';
import {
  ABSENT,
  decodeFile,
  encodeText,
  hashBytes,
  loadFile,
  replaceFile,
} from '../tools/files.js';
import {
  type ChosenFormatter,
  FormatterChoice,
  isForeign,
  isFormattable,
} from './formatter-choice.js';
import { type GitPlace, type Repository, useRepository } from './git.js';
import type { WorktreeSnapshot } from './repository-snapshot.js';

/**
 * The phase RunningAutoformatters: runs the repository's formatters on the files that the batch
 * changed.
 *
 * A file is formatted only if it was already formatted before the batch. A new file is formatted if
 * the repository's configuration governs it. A file with unknown earlier content stays as it is. A
 * formatter reads and prints text; Pawl then replaces the file if it has not changed meanwhile.
 * Mode, encoding and line endings stay.
 *
 * It fails open: a file that can't be formatted stays as the agent wrote it. A formatter that hangs
 * or fails is not used again in this session, which is reported once.
 */

/** Time limit for one file, in ms. */
const RUN_MS = 20_000;
/** Maximum number of files. More changes come from a program, not from edits. */
const FILES_MAX = 100;
const AT_ONCE = 3;

export type FormatterOptions = {
  /** Pawl's environment. */
  readonly environment: ProcessEnvironment;
  /** The content of a file when the batch began, as far as the repository knows it. */
  committed(file: string, context: HookContext): Promise<EarlierContent>;
  readonly runMs?: number;
  /** The sandbox for formatters: read-only workspace, no network. */
  readonly sandbox: SessionSandbox;
};

/** The formatters of one session. */
export class Autoformatters {
  readonly #options: FormatterOptions;
  readonly #earlier = new ContentBeforeCalls();
  readonly #variablesOf: ReturnType<typeof createCommandVariables>;
  /** Paths of programs that are no longer used. */
  readonly #broken = new Set<string>();
  readonly #reported = new Set<string>();

  constructor(options: FormatterOptions) {
    this.#options = options;
    this.#variablesOf = createCommandVariables(options.environment);
  }

  /** Remembers the current content of files that a call names. */
  before(call: JudgedCall): Promise<void> {
    return this.#earlier.remember(call);
  }

  /** Counts the call to the next batch, since its own gets no report. */
  after(call: JudgedCall): void {
    this.#earlier.carryOver(call);
  }

  /** Forgets the content remembered for a batch. */
  forget(): void {
    this.#earlier.clear();
  }

  /** Runs the phase. Rejects only if `context.signal` is aborted. */
  async run(context: HookContext): Promise<HookReport> {
    const { workspace, reports, calls } = context;
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
      return reportOutcomes([], this.#unreported([why]), isDirty);
    }
    const batch: FormatBatch = {
      context,
      choice: new FormatterChoice(workspace, this.#options.environment),
      runtime: await this.#createRuntime(context),
      broken: this.#broken,
      faults: [],
      earlier: async (file) =>
        this.#earlier.find(file, calls) ?? (await this.#options.committed(file, context)),
    };
    const outcomes: FileOutcome[] = [];
    for (let at = 0; at < files.length; at += AT_ONCE) {
      const wave = files.slice(at, at + AT_ONCE);
      outcomes.push(...(await settleAll(wave.map((file) => formatFile(batch, file)))));
    }
    return reportOutcomes(outcomes, this.#unreported(batch.faults), isDirty);
  }

  /** Texts that the user has not seen in this session. */
  #unreported(texts: readonly string[]): readonly string[] {
    return texts.filter((text) => {
      const isNew = !this.#reported.has(text);
      this.#reported.add(text);
      return isNew;
    });
  }

  async #createRuntime({ workspace, signal, settings }: HookContext): Promise<FormatterRuntime> {
    const variables = Object.entries({
      ...this.#variablesOf(workspace, '', 'formatter'),
      // forbid tools to download other versions of themselves
      RUSTUP_AUTO_INSTALL: '0',
      GOTOOLCHAIN: 'local',
    }).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]));
    return {
      environment: Object.fromEntries(variables),
      sandbox: await this.#options.sandbox.of(workspace),
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
  /** Programs that are no longer used. Failing ones are added. */
  readonly broken: Set<string>;
  /** Failures of the formatters themselves, each reported once. */
  readonly faults: string[];
  /** The content before the batch. */
  earlier(file: string): Promise<EarlierContent>;
};

/** `shown` is the name for people, `file` the real path. */
type FileOutcome =
  /** Unchanged: already formatted, or not to be formatted. */
  | { readonly kind: 'untouched' }
  | Rewritten
  /** Rewritten by a run of this phase that was interrupted. */
  | { readonly kind: 'formattedEarlier'; readonly file: string; readonly shown: string }
  /** The formatter accepted the file before the batch and rejects it now. */
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
  const { interrupted, files, workspace } = batch.context;
  // the hash of new content is in the journal before the file is replaced
  const effect = interrupted?.find(
    (one) => one.kind === 'file' && one.path === file && one.after === loaded.sha256,
  );
  if (effect?.kind === 'file') {
    if (files.get(file) === effect.before) files.set(file, effect.after);
    return { kind: 'formattedEarlier', file, shown: path.relative(workspace, file) };
  }
  for (const chosen of batch.choice.of(file)) {
    if (batch.broken.has(chosen.program)) continue;
    const outcome = await formatWith(batch, chosen, loaded);
    if (outcome !== null) return outcome;
  }
  return UNTOUCHED;
};

type LoadedText = { readonly text: string; readonly encoding: 'utf8' | 'utf8-bom' };

const HEAD_CHARACTERS = 2_000;
const GENERATED =
  /@generated\b|\bDO NOT (EDIT|MODIFY)\b|\bcode generated by\b|\b(auto-?|automatically )generated\b/i;

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

/** Null: this formatter does not apply to the file. */
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
      giveUp(batch, chosen, result.why);
      return UNTOUCHED;
    case 'refuses': {
      if (!(await isSatisfied(batch, chosen, null))) return null;
      const shown = path.relative(batch.context.workspace, target.file);
      return { kind: 'refused', shown, formatter: formatter.name, why: result.why };
    }
    case 'text':
      if (isSameText(result.text, loaded.text)) return UNTOUCHED;
      if (!(await isSatisfied(batch, chosen, result.text))) return null;
      return rewrite(batch, chosen, loaded, result.text);
    default:
      return result satisfies never;
  }
};

/** Compares texts regardless of line endings, which formatting does not change. */
const isSameText = (one: string, other: string): boolean =>
  withEnding(one, '\n') === withEnding(other, '\n');

/**
 * Whether the file was formatted before the batch: the formatter must leave the earlier content
 * unchanged. For a new file it must leave its output `printed` unchanged, so that a program that
 * adds text does not count as a formatter.
 */
const isSatisfied = async (
  batch: FormatBatch,
  chosen: ChosenFormatter,
  printed: string | null,
): Promise<boolean> => {
  const earlier = await batch.earlier(chosen.target.file);
  const isNew = earlier === 'absent';
  // if several formatters are possible, a new file does not show which one is used
  if (isNew && (chosen.claim !== 'governs' || !chosen.isAlone)) return false;
  if (isNew && printed === null) return true;
  const text = typeof earlier === 'string' ? null : (decodeText(earlier)?.text ?? null);
  const sample = isNew ? printed : text;
  if (sample === null) return false;
  const formatted = await formatText(chosen, sample, batch.runtime);
  if (formatted.kind === 'broken') giveUp(batch, chosen, formatted.why);
  if (formatted.kind === 'refuses')
    batch.faults.push(`${chosen.formatter.name} does not work here: ${formatted.why}`);
  return formatted.kind === 'text' && isSameText(formatted.text, sample);
};

/** A formatter that hangs or fails is not used again. */
const giveUp = (
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
  if (context.files.get(file) === sha256) context.files.set(file, effect.after);
  return { kind: 'rewritten', file, shown, formatter: formatter.name, before: text, after };
};

// ---- The program ----

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
/** Error of the shell that could not start the formatter. */
const NOT_STARTED = /^sh: \d+: (exec|cd): /;

/** Formats a text. Rejects only if `runtime.signal` is aborted. */
const formatText = async (
  chosen: ChosenFormatter,
  text: string,
  runtime: FormatterRuntime,
): Promise<FormatterResult> => {
  try {
    const { code, output, errors } = await runFormatter(chosen, text, runtime);
    if (NOT_STARTED.test(errors))
      return { kind: 'broken', why: `${chosen.program} can't be started` };
    if (code !== 0) {
      const lines = errors.split('\n').filter((line) => line.trim() !== '');
      const why = lines.slice(0, WHY_LINES).join('\n').slice(0, WHY_CHARACTERS);
      return { kind: 'refuses', why: why === '' ? 'it did not say why' : why };
    }
    const printed = output.toString('utf8');
    return printed.trim() === '' && text.trim() !== ''
      ? { kind: 'leaves' }
      : { kind: 'text', text: printed };
  } catch (error) {
    if (!(error instanceof ProgramFailure) || error.kind === 'stopped') throw error;
    return { kind: error.kind === 'refused' ? 'refuses' : 'broken', why: error.message };
  }
};

const ROOM_BYTES = 1024 * 1024;

const runFormatter = async (
  chosen: ChosenFormatter,
  text: string,
  runtime: FormatterRuntime,
): Promise<ProgramEnd> => {
  const prepared = await prepareRun(chosen, runtime);
  const { words, environment, folder, descriptors, isGuarded } = prepared;
  const running = runProgram({
    // bubblewrap, the shell or the formatter, all from find-program.ts
    program: prepared.program as ProgramPath,
    words,
    environment,
    folder,
    descriptors,
    isGuarded,
    title: chosen.formatter.name,
    input: text,
    bytesMax: ROOM_BYTES + 4 * Buffer.byteLength(text),
    atMax: 'fail',
    deadlineMs: runtime.runMs,
    signal: runtime.signal,
  });
  prepared.started();
  try {
    return await running;
  } finally {
    await prepared.finish();
  }
};

/**
 * Prepares a run. Rejects with a ProgramFailure if it can't be fenced; nothing was started then.
 */
const prepareRun = async (
  { formatter, target, program }: ChosenFormatter,
  { sandbox, level, environment }: FormatterRuntime,
) => {
  const folder = formatter.runsBesideFile ? path.dirname(target.file) : target.folder;
  // changes the folder first, since the sandbox starts programs in the workspace
  const script = ['-c', 'cd "$1" && shift && exec "$@"', 'sh', folder, program];
  try {
    const words = [...script, ...formatter.args(target)];
    return await sandbox.prepare({
      level,
      environment,
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
  const earlier = outcomes.filter((outcome) => outcome.kind === 'formattedEarlier');
  const note = [
    ...(await describeRewritten(rewritten)),
    ...earlier.map(
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
    changedFiles: [...rewritten, ...earlier].map(({ file }) => file),
    dirty: wasDirty || rewritten.length + earlier.length > 0,
    note: note.length === 0 ? '' : `[formatters] ${note.join('\n')}`,
    warning: [...warnings, ...refusals, ...failures].join('\n'),
    proceed: true,
  };
};

const WHY_CHARACTERS_MAX = 200;

const firstLine = (why: string): string => (why.split('\n')[0] ?? '').slice(0, WHY_CHARACTERS_MAX);

const DIFF_CHARACTERS_MAX = 3_000;
const DIFFS_CHARACTERS_MAX = 8_000;
const DIFF_EDITS_MAX = 500;

/** Tells the model what has changed, so that its next edit matches. */
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

// ---- The content before the batch ----

/** The content of a file before a batch. */
export type EarlierContent = Buffer | 'absent' | 'unknown';

const REMEMBERED_BYTES_MAX = 16 * 1024 * 1024;
const REMEMBERED_CALLS_MAX = 200;

/**
 * Remembers the content of files before the calls of a batch. Its size is bounded, since not every
 * batch is reported.
 */
class ContentBeforeCalls {
  readonly #calls = new Map<string, ReadonlyMap<string, EarlierContent>>();
  readonly #carriedOver = new Set<string>();

  /** Remembers the files that a call names. */
  async remember({ callId, facts }: JudgedCall): Promise<void> {
    const files = new Map<string, EarlierContent>();
    for (const file of facts.paths.filter(isFormattable)) files.set(file, await readContent(file));
    if (files.size === 0) return;
    this.#calls.delete(callId);
    this.#calls.set(callId, files);
    let bytes = [...this.#calls.values()].reduce((sum, one) => sum + countBytes(one), 0);
    for (const [oldest, content] of this.#calls) {
      if (bytes <= REMEMBERED_BYTES_MAX && this.#calls.size <= REMEMBERED_CALLS_MAX) break;
      bytes -= countBytes(content);
      this.#calls.delete(oldest);
    }
  }

  /** Counts the call to the next batch, since its own gets no report. */
  carryOver({ callId }: JudgedCall): void {
    this.#carriedOver.add(callId);
  }

  /**
   * The content before the first call that names the file, among these calls and those carried
   * over; null if it is unknown.
   */
  find(file: string, calls: readonly JudgedCall[]): EarlierContent | null {
    const inBatch = new Set(calls.map(({ callId }) => callId));
    for (const [callId, files] of this.#calls) {
      const content =
        inBatch.has(callId) || this.#carriedOver.has(callId) ? files.get(file) : undefined;
      if (content !== undefined) return content === 'unknown' ? null : content;
    }
    return null;
  }

  clear(): void {
    this.#calls.clear();
    this.#carriedOver.clear();
  }
}

const countBytes = (files: ReadonlyMap<string, EarlierContent>): number =>
  [...files.values()].reduce((sum, one) => sum + (typeof one === 'string' ? 0 : one.length), 0);

const readContent = async (file: string): Promise<EarlierContent> => {
  const status = entryStatus(file);
  if (status === null) return 'absent';
  if (!status.isFile() || status.size > TEXT_BYTES_MAX) return 'unknown';
  const loaded = await loadFile(file);
  return loaded.kind === 'file' ? loaded.bytes : 'unknown';
};

/**
 * The content of a file when the batch began, from commits. `began`: the snapshot of that time;
 * null if there is none, as after a crash: then the content before the first call that names the
 * file counts, if its hash in the journal equals that of the committed content. Rejects if git
 * fails.
 */
export const readCommittedContent = async (
  file: string,
  began: WorktreeSnapshot | null,
  { calls, recorded }: HookContext,
  place: GitPlace,
): Promise<EarlierContent> => {
  const readAt = async (commit: string): Promise<EarlierContent> =>
    (await useRepository(place, (repository) => readBlob(repository, commit, file))) ?? 'unknown';
  if (began !== null) {
    if (began.changed.has(path.relative(began.top, file))) return 'unknown';
    return began.head.hash === null ? 'absent' : readAt(began.head.hash);
  }
  const first = calls.find(({ facts }) => facts.paths.includes(file));
  const hash = first === undefined ? undefined : recorded.get(first.callId);
  if (hash === undefined || hash === ABSENT) return hash === undefined ? 'unknown' : 'absent';
  const content = await readAt('HEAD');
  return typeof content !== 'string' && hashBytes(content) === hash ? content : 'unknown';
};

/** A regular file in a tree, with its object. */
const TREE_FILE = /^100(?:644|755) blob ([0-9a-f]+)\t/;

const readBlob = async (
  repository: Repository,
  commit: string,
  file: string,
): Promise<EarlierContent> => {
  if (!isWithin(file, repository.top)) return 'unknown';
  const entry = await repository.ask([
    'ls-tree',
    '-z',
    commit,
    '--',
    path.relative(repository.top, file),
  ]);
  if (entry === '') return 'absent';
  const object = TREE_FILE.exec(entry)?.[1];
  if (object === undefined) return 'unknown';
  const { code, output } = await repository.run(['cat-file', 'blob', object]);
  return code === 0 ? output : 'unknown';
};
