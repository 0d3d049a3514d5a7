/** The phase RunningAutoformatters: runs the repository's formatters on the files that the batch changed. */

import { lstat } from 'node:fs/promises';
import path from 'node:path';
import type { CommandSandbox, PreparedCommand } from '../command/command-sandbox.js';
import { createCommandVariables } from '../command/environment.js';
import type { SessionSandbox } from '../command/session-sandbox.js';
import type { JudgedCall } from '../machine/call.js';
import type { ProcessEnvironment } from '../platform/environment.js';
import { isWithin } from '../platform/files.js';
import type { ProgramPath } from '../platform/find-program.js';
import { type ProgramEnd, ProgramFailure, runProgram, settleAll } from '../platform/run-program.js';
import { SYSTEM_SHELL } from '../platform/start-program.js';
import { plural } from '../platform/text.js';
import { levelOfCall } from '../policy/decide.js';
import type { HookContext, HookReport } from '../ports/hooks.js';
import { endingsOf, withEnding } from '../tools/edit/lines.js';
import { ABSENT, decodeFile, encodeText, hashOf, loadFile, replaceFile } from '../tools/files.js';
import {
  type ChosenFormatter,
  type FormatTarget,
  FormatterChoice,
  isForeign,
  isFormattable,
} from './formatter-choice.js';
import { type GitPlace, type Repository, useRepository } from './git.js';
import type { WorktreeSnapshot } from './repository-snapshot.js';

/**
 * The phase RunningAutoformatters: runs the repository's formatters on the files that the batch changed.
 *
 * 1. format-file.ts says what is formatted, and how. The model is told what has changed, so that its next edit matches.
 * 2. It fails open: a file that can't be formatted stays as the agent wrote it. A formatter that hangs or fails is not
 *    used again in this session, which is reported once.
 */

/** Time limit for one file, in ms. */
const RUN_MS = 20_000;
/** Maximum number of files. More changes come from a program, not from edits. */
const FILES_MAX = 100;
const AT_ONCE = 3;

type FormatterNeeds = {
  /** Pawl's own environment. */
  readonly environment: ProcessEnvironment;
  /** The content of a file when the batch began, as far as the repository knows it. */
  committed(file: string, context: HookContext): Promise<ContentBefore>;
  readonly runMs?: number;
  /** The sandbox for formatters: read-only workspace, no network. */
  readonly sandbox: SessionSandbox;
};

export class Autoformatters {
  readonly #needs: FormatterNeeds;
  readonly #earlier = new EarlierContent();
  readonly #variablesOf: ReturnType<typeof createCommandVariables>;
  /** Paths of programs that are no longer used. */
  readonly #broken = new Set<string>();
  readonly #told = new Set<string>();

  constructor(needs: FormatterNeeds) {
    this.#needs = needs;
    this.#variablesOf = createCommandVariables(needs.environment);
  }

  /** Remembers the current content of files that a call names. */
  before(call: JudgedCall): Promise<void> {
    return this.#earlier.keep(call);
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
    const files = [...new Set(changed)].filter((file) => isFormattable(file) && !isForeign(file, workspace));
    if (files.length > FILES_MAX) {
      const why = `${plural(files.length, 'file')} changed at once: too many for the formatters, none was formatted`;
      return reportOf([], this.#news([why]), last?.dirty ?? false);
    }
    const choice = new FormatterChoice(workspace, this.#needs.environment);
    const work = new BatchFormatter(context, choice, await this.#world(context), this.#broken);
    const outcomes: FileOutcome[] = [];
    for (let at = 0; at < files.length; at += AT_ONCE) {
      const wave = files.slice(at, at + AT_ONCE);
      const formatted = wave.map((file) => work.format(file, () => this.#earlierOf(file, context)));
      outcomes.push(...(await settleAll(formatted)));
    }
    return reportOf(outcomes, this.#news(work.faults), last?.dirty ?? false);
  }

  /** The content before a call that names the file; for other files, the committed content. */
  async #earlierOf(file: string, context: HookContext): Promise<ContentBefore> {
    const named = this.#earlier.of(file, context.calls);
    return named.kind === 'unknown' ? this.#needs.committed(file, context) : named;
  }

  /** Texts that the user has not seen in this session. */
  #news(texts: readonly string[]): readonly string[] {
    return texts.filter((text) => {
      const isNew = !this.#told.has(text);
      this.#told.add(text);
      return isNew;
    });
  }

  async #world({ workspace, signal, settings }: HookContext): Promise<FormatterRuntime> {
    const variables = Object.entries({
      ...this.#variablesOf(workspace, '', 'formatter'),
      // forbid tools to download other versions of themselves
      RUSTUP_AUTO_INSTALL: '0',
      GOTOOLCHAIN: 'local',
    }).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]));
    return {
      environment: Object.fromEntries(variables),
      sandbox: await this.#needs.sandbox.of(workspace),
      level: levelOfCall(settings.sandbox, undefined) === 'off' ? 'off' : 'read-only',
      runMs: this.#needs.runMs ?? RUN_MS,
      signal,
    };
  }
}

/**
 * Formats one file.
 *
 * 1. A file is formatted only if it was already formatted before the batch. A new file is formatted if the repository's
 *    configuration governs it. A file with unknown earlier content is left alone.
 * 2. A formatter reads and prints text; Pawl then replaces the file if it has not changed meanwhile. Mode, encoding and
 *    line endings stay.
 * 3. The edit tool's record of the file is updated.
 * 4. The new content's hash is in the journal before the file is replaced. A resumed phase so recognizes a file that was
 *    formatted before the interruption.
 */

const HEAD_CHARACTERS = 2_000;
const GENERATED =
  /@generated\b|\bDO NOT (EDIT|MODIFY)\b|\bcode generated by\b|\b(auto-?|automatically )generated\b/i;

type Loaded = { readonly text: string; readonly encoding: 'utf8' | 'utf8-bom'; readonly sha256: string };

const UNTOUCHED: FileOutcome = { kind: 'untouched' };

/** The text of a file that a formatter can process; null for others. */
const textOf = (bytes: Buffer): Pick<Loaded, 'text' | 'encoding'> | null => {
  const decoded = decodeFile(bytes);
  if (decoded.kind === 'binary' || bytes.length > FORMATTED_BYTES_MAX) return null;
  const { text, encoding } = decoded;
  return encoding === 'utf8' || encoding === 'utf8-bom' ? { text, encoding } : null;
};

const load = async (file: string): Promise<Loaded | null> => {
  const loaded = await loadFile(file);
  const text = loaded.kind === 'file' ? textOf(loaded.bytes) : null;
  if (loaded.kind !== 'file' || text === null || GENERATED.test(text.text.slice(0, HEAD_CHARACTERS)))
    return null;
  return { ...text, sha256: loaded.sha256 };
};

/** Compares texts regardless of line endings, which formatting does not change. */
const isSame = (one: string, other: string): boolean => withEnding(one, '\n') === withEnding(other, '\n');

const withEndingsOf = (model: string, text: string): string => {
  const ending = endingsOf(model);
  return ending === '\n' || ending === '\r\n' ? withEnding(text, ending) : text;
};

/** Formats the files of one batch. */
class BatchFormatter {
  /** Failures of the formatters themselves, each reported once. */
  readonly faults: string[] = [];
  readonly #context: HookContext;
  readonly #choice: FormatterChoice;
  readonly #world: FormatterRuntime;
  readonly #broken: Set<string>;

  /** `broken`: programs that are no longer used. Failing ones are added. */
  constructor(context: HookContext, choice: FormatterChoice, world: FormatterRuntime, broken: Set<string>) {
    this.#context = context;
    this.#choice = choice;
    this.#world = world;
    this.#broken = broken;
  }

  /** `earlier` is called only if a formatter would change the file. */
  async format(file: string, earlier: () => Promise<ContentBefore>): Promise<FileOutcome> {
    const loaded = await load(file);
    if (loaded === null) return UNTOUCHED;
    const earlierRun = this.#formattedEarlier(file, loaded);
    if (earlierRun !== null) return earlierRun;
    for (const chosen of await this.#choice.of(file)) {
      if (this.#broken.has(chosen.program)) continue;
      const outcome = await this.#formatWith(chosen, loaded, earlier);
      if (outcome !== null) return outcome;
    }
    return UNTOUCHED;
  }

  /** Rule 4. Null: the interrupted run of this phase did not format the file. */
  #formattedEarlier(file: string, { sha256 }: Loaded): FileOutcome | null {
    const { interrupted, files, workspace } = this.#context;
    const effect = interrupted?.find(
      (one) => one.kind === 'file' && one.path === file && one.after === sha256,
    );
    if (effect?.kind !== 'file') return null;
    if (files.get(file) === effect.before) files.set(file, effect.after);
    return { kind: 'formattedEarlier', file, shown: path.relative(workspace, file) };
  }

  /** Null: this formatter does not apply to the file. */
  async #formatWith(
    chosen: ChosenFormatter,
    loaded: Loaded,
    earlier: () => Promise<ContentBefore>,
  ): Promise<FileOutcome | null> {
    const now = await formatText(chosen, loaded.text, this.#world);
    switch (now.kind) {
      case 'leaves':
        return null;
      case 'broken':
        return this.#giveUp(chosen, now.why);
      case 'refuses': {
        const { formatter, target } = chosen;
        if (!(await this.#satisfied(chosen, await earlier(), null))) return null;
        const shown = shownTarget(target, this.#context.workspace);
        return { kind: 'refused', shown, formatter: formatter.name, why: now.why };
      }
      case 'text':
        if (isSame(now.text, loaded.text)) return UNTOUCHED;
        if (!(await this.#satisfied(chosen, await earlier(), now.text))) return null;
        return this.#rewrite(chosen, loaded, now.text);
      default:
        return now satisfies never;
    }
  }

  /**
   * Rule 1: the formatter must leave the earlier content unchanged. For a new file it must leave its own output
   * `printed` unchanged, so that a program that adds text does not count as a formatter.
   */
  async #satisfied(
    chosen: ChosenFormatter,
    earlier: ContentBefore,
    printed: string | null,
  ): Promise<boolean> {
    const isNew = earlier.kind === 'absent';
    // if several formatters are possible, a new file does not show which one is used
    if (isNew && (chosen.claim !== 'governs' || !chosen.isAlone)) return false;
    if (isNew && printed === null) return true;
    const sample = earlier.kind === 'bytes' ? (textOf(earlier.bytes)?.text ?? null) : isNew ? printed : null;
    if (sample === null) return false;
    const formatted = await formatText(chosen, sample, this.#world);
    if (formatted.kind === 'broken') this.#giveUp(chosen, formatted.why);
    if (formatted.kind === 'refuses') {
      this.faults.push(`${chosen.formatter.name} does not work here: ${formatted.why}`);
    }
    return formatted.kind === 'text' && isSame(formatted.text, sample);
  }

  /** Rules 2, 3 and 4. */
  async #rewrite(
    { formatter, target }: ChosenFormatter,
    loaded: Loaded,
    printed: string,
  ): Promise<FileOutcome> {
    this.#context.signal.throwIfAborted();
    const { file } = target;
    const shown = shownTarget(target, this.#context.workspace);
    const after = withEndingsOf(loaded.text, printed);
    const bytes = encodeText(after, loaded.encoding);
    const effect = { kind: 'file', path: file, before: loaded.sha256, after: hashOf(bytes) } as const;
    await this.#context.prepare(effect);
    const written = await replaceFile(file, bytes, loaded.sha256);
    if (written.kind === 'failed')
      return { kind: 'failed', why: `${shown} can't be written: ${written.why}` };
    if (written.kind !== 'written') return UNTOUCHED;
    const { files } = this.#context;
    // update the hash only if the model has seen the text before formatting
    if (files.get(file) === loaded.sha256) files.set(file, effect.after);
    return { kind: 'rewritten', file, shown, formatter: formatter.name, before: loaded.text, after };
  }

  /** A formatter that hangs or fails is not used again. */
  #giveUp({ formatter, program }: ChosenFormatter, why: string): FileOutcome {
    this.#broken.add(program);
    this.faults.push(`${why}; ${formatter.name} is not used any more in this session`);
    return UNTOUCHED;
  }
}

/** Runs a formatter over a text. */

/**
 * `leaves`: the formatter ignores the file. `refuses`: it can't format this text. `broken`: it can't be started, hangs,
 * or prints too much, whatever the text.
 */
type FormatterResult =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'leaves' }
  | { readonly kind: 'refuses' | 'broken'; readonly why: string };

type FormatterRuntime = {
  /** Variables of formatter processes, beside those of all commands. */
  readonly environment: Readonly<Record<string, string>>;
  readonly sandbox: CommandSandbox;
  /** `read-only`, or `off` if the user has turned the sandbox off. */
  readonly level: 'read-only' | 'off';
  readonly runMs: number;
  readonly signal: AbortSignal;
};

const ROOM_BYTES = 1024 * 1024;
const WHY_LINES = 5;
const WHY_CHARACTERS = 500;

const shortened = (errors: string): string => {
  const lines = errors.split('\n').filter((line) => line.trim() !== '');
  const text = lines.slice(0, WHY_LINES).join('\n').slice(0, WHY_CHARACTERS);
  return text === '' ? 'it did not say why' : text;
};

/** Error of the shell that could not start the formatter. */
const NOT_STARTED = /^sh: \d+: (exec|cd): /;

/** Changes the folder first, since the sandbox starts programs in the workspace. */
const inFolder = (folder: string, program: ProgramPath, words: readonly string[]) => ({
  program: SYSTEM_SHELL,
  words: ['-c', 'cd "$1" && shift && exec "$@"', 'sh', folder, program, ...words],
});

/** Prepares a run. Rejects with a ProgramFailure if it can't be fenced; nothing was started then. */
const prepareRun = async (chosen: ChosenFormatter, world: FormatterRuntime): Promise<PreparedCommand> => {
  const { formatter, target, program } = chosen;
  const folder = formatter.runs === 'beside the file' ? path.dirname(target.file) : target.folder;
  const { sandbox, level, environment } = world;
  try {
    const command = inFolder(folder, program, await formatter.words(target));
    return await sandbox.prepare({ level, environment, canBeGuarded: true, ...command });
  } catch (error) {
    throw new ProgramFailure('missing', `${formatter.name} can't be run in the sandbox: ${String(error)}`);
  }
};

const runFormatter = async (
  chosen: ChosenFormatter,
  text: string,
  world: FormatterRuntime,
): Promise<ProgramEnd> => {
  const prepared = await prepareRun(chosen, world);
  const { words, environment, folder, descriptors, isGuarded } = prepared;
  const running = runProgram({
    // bubblewrap, the shell or the formatter, all found by find-program.ts
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
    deadlineMs: world.runMs,
    signal: world.signal,
  });
  prepared.started();
  try {
    return await running;
  } finally {
    await prepared.finish();
  }
};

/** Formats a text. Rejects only if `world.signal` is aborted. */
const formatText = async (
  chosen: ChosenFormatter,
  text: string,
  world: FormatterRuntime,
): Promise<FormatterResult> => {
  try {
    const { code, output, errors } = await runFormatter(chosen, text, world);
    if (NOT_STARTED.test(errors)) return { kind: 'broken', why: `${chosen.program} can't be started` };
    if (code !== 0) return { kind: 'refuses', why: shortened(errors) };
    const printed = output.toString('utf8');
    return printed.trim() === '' && text.trim() !== '' ? { kind: 'leaves' } : { kind: 'text', text: printed };
  } catch (error) {
    if (!(error instanceof ProgramFailure) || error.kind === 'stopped') throw error;
    return { kind: error.kind === 'refused' ? 'refuses' : 'broken', why: error.message };
  }
};

/** The name of a file for people, relative to the workspace. */
const shownTarget = ({ file }: FormatTarget, workspace: string): string => path.relative(workspace, file);

/** Results of formatting, and the report about them for the model and the user. */

type FileOutcome =
  /** Unchanged: already formatted, or not to be formatted. */
  | { readonly kind: 'untouched' }
  /** `shown` is the name for people, `file` the real path. */
  | {
      readonly kind: 'rewritten';
      readonly file: string;
      readonly shown: string;
      readonly formatter: string;
      readonly before: string;
      readonly after: string;
    }
  /** Rewritten by a run of this phase that was interrupted. */
  | { readonly kind: 'formattedEarlier'; readonly file: string; readonly shown: string }
  /** The formatter accepted the file before the batch and rejects it now. */
  | { readonly kind: 'refused'; readonly shown: string; readonly formatter: string; readonly why: string }
  | { readonly kind: 'failed'; readonly why: string };

type Rewritten = Extract<FileOutcome, { readonly kind: 'rewritten' }>;

const DIFF_CHARACTERS_MAX = 3_000;
const DIFFS_CHARACTERS_MAX = 8_000;
const DIFF_EDITS_MAX = 500;
const WHY_CHARACTERS_MAX = 200;

/** The hunks of a unified diff without its header; null if the change is too large to show. */
const hunksOf = async ({ shown, before, after }: Rewritten): Promise<string | null> => {
  const { createTwoFilesPatch } = await import('diff');
  const patch = createTwoFilesPatch(shown, shown, before, after, undefined, undefined, {
    context: 1,
    maxEditLength: DIFF_EDITS_MAX,
  });
  const at = patch?.indexOf('@@') ?? -1;
  const hunks = patch === undefined || at < 0 ? '' : patch.slice(at).trimEnd();
  return hunks === '' || hunks.length > DIFF_CHARACTERS_MAX ? null : hunks;
};

const tellRewritten = async (rewritten: readonly Rewritten[]): Promise<readonly string[]> => {
  if (rewritten.length === 0) return [];
  const lines = [
    'Files that you changed were formatted, as shown here. Base your next edits on the formatted text.',
  ];
  let room = DIFFS_CHARACTERS_MAX;
  for (const one of rewritten) {
    const hunks = await hunksOf(one);
    const isShown = hunks !== null && hunks.length <= room;
    lines.push(`${one.shown} (${one.formatter})${isShown ? ':' : ': read it again before you edit it'}`);
    if (!isShown) continue;
    room -= hunks.length;
    lines.push(hunks);
  }
  return lines;
};

const firstLine = (why: string): string => (why.split('\n')[0] ?? '').slice(0, WHY_CHARACTERS_MAX);

const isKind =
  <K extends FileOutcome['kind']>(kind: K) =>
  (outcome: FileOutcome): outcome is Extract<FileOutcome, { readonly kind: K }> =>
    outcome.kind === kind;

/** `wasDirty`: whether the working tree had changes before formatting. */
const reportOf = async (
  outcomes: readonly FileOutcome[],
  warnings: readonly string[],
  wasDirty: boolean,
): Promise<HookReport> => {
  const rewritten = outcomes.filter(isKind('rewritten'));
  const refused = outcomes.filter(isKind('refused'));
  const earlier = outcomes.filter(isKind('formattedEarlier'));
  const note = [
    ...(await tellRewritten(rewritten)),
    ...earlier.map(
      ({ shown }) => `${shown} was formatted before an interruption: read it again before you edit it`,
    ),
    ...refused.map(({ shown, formatter, why }) => `${formatter} can't format ${shown} as it is now: ${why}`),
  ];
  const failed = outcomes.filter(isKind('failed')).map(({ why }) => why);
  const told = refused.map(
    ({ shown, formatter, why }) => `${formatter} can't format ${shown}: ${firstLine(why)}`,
  );
  return {
    commits: [],
    changedFiles: [...rewritten, ...earlier].map(({ file }) => file),
    dirty: wasDirty || rewritten.length + earlier.length > 0,
    note: note.length === 0 ? '' : `[formatters] ${note.join('\n')}`,
    warning: [...warnings, ...told, ...failed].join('\n'),
    proceed: true,
  };
};

/** The content of a file before a batch. */
export type ContentBefore =
  | { readonly kind: 'bytes'; readonly bytes: Buffer }
  | { readonly kind: 'absent' }
  | { readonly kind: 'unknown' };

const FORMATTED_BYTES_MAX = 1024 * 1024;
const KEPT_BYTES_MAX = 16 * 1024 * 1024;
const KEPT_CALLS_MAX = 200;

type Kept = { readonly files: ReadonlyMap<string, ContentBefore>; readonly bytes: number };

const readContent = async (file: string): Promise<ContentBefore> => {
  const status = await lstat(file).catch(() => null); // null: it does not exist
  if (status === null) return { kind: 'absent' };
  if (!status.isFile() || status.size > FORMATTED_BYTES_MAX) return { kind: 'unknown' };
  const loaded = await loadFile(file);
  return loaded.kind === 'file' ? { kind: 'bytes', bytes: loaded.bytes } : { kind: 'unknown' };
};

/**
 * Remembers the content of files before the calls of a batch. Its size is bounded, since not every batch is reported.
 */
class EarlierContent {
  readonly #calls = new Map<string, Kept>();
  readonly #carried = new Set<string>();
  #bytes = 0;

  /** Remembers the files that a call names. */
  async keep({ callId, facts }: JudgedCall): Promise<void> {
    const files = new Map<string, ContentBefore>();
    let bytes = 0;
    for (const file of facts.paths.filter(isFormattable)) {
      const found = await readContent(file);
      files.set(file, found);
      if (found.kind === 'bytes') bytes += found.bytes.length;
    }
    if (files.size === 0) return;
    this.#drop(callId);
    this.#calls.set(callId, { files, bytes });
    this.#bytes += bytes;
    for (const [oldest] of this.#calls) {
      if (this.#bytes <= KEPT_BYTES_MAX && this.#calls.size <= KEPT_CALLS_MAX) break;
      this.#drop(oldest);
    }
  }

  /** Counts the call to the next batch, since its own gets no report. */
  carryOver({ callId }: JudgedCall): void {
    this.#carried.add(callId);
  }

  /** The content before the first call that names the file, among these calls and those carried over. */
  of(file: string, calls: readonly JudgedCall[]): ContentBefore {
    const own = new Set(calls.map(({ callId }) => callId));
    for (const [callId, { files }] of this.#calls) {
      const found = own.has(callId) || this.#carried.has(callId) ? files.get(file) : undefined;
      if (found !== undefined) return found;
    }
    return { kind: 'unknown' };
  }

  clear(): void {
    this.#calls.clear();
    this.#carried.clear();
    this.#bytes = 0;
  }

  #drop(callId: string): void {
    this.#bytes -= this.#calls.get(callId)?.bytes ?? 0;
    this.#calls.delete(callId);
  }
}

/** Reads the earlier content of files from commits. Rejects if git fails. */

const UNKNOWN: ContentBefore = { kind: 'unknown' };
/** A regular file in a tree, with its object. */
const FILE = /^100(?:644|755) blob ([0-9a-f]+)\t/;

const read = async (repository: Repository, commit: string, file: string): Promise<ContentBefore> => {
  if (!isWithin(file, repository.top)) return UNKNOWN;
  const entry = await repository.ask(['ls-tree', '-z', commit, '--', path.relative(repository.top, file)]);
  if (entry === '') return { kind: 'absent' };
  const object = FILE.exec(entry)?.[1];
  if (object === undefined) return UNKNOWN;
  const { code, output } = await repository.run(['cat-file', 'blob', object]);
  return code === 0 ? { kind: 'bytes', bytes: output } : UNKNOWN;
};

const readAt = async (commit: string, file: string, place: GitPlace): Promise<ContentBefore> =>
  (await useRepository(place, (repository) => read(repository, commit, file))) ?? UNKNOWN;

/** The content at the time of a snapshot; known if the file had no uncommitted changes then. */
const contentAt = async (
  snapshot: WorktreeSnapshot,
  file: string,
  place: GitPlace,
): Promise<ContentBefore> => {
  if (snapshot.changed.has(path.relative(snapshot.top, file))) return UNKNOWN;
  return snapshot.head.hash === null ? { kind: 'absent' } : readAt(snapshot.head.hash, file, place);
};

/**
 * The content before the first call that names the file; known if its hash in the journal equals that of the committed
 * content.
 */
const contentRecorded = async (
  { calls, recorded }: HookContext,
  file: string,
  place: GitPlace,
): Promise<ContentBefore> => {
  const first = calls.find(({ facts }) => facts.paths.includes(file));
  const hash = first === undefined ? undefined : recorded.get(first.callId);
  if (hash === undefined) return UNKNOWN;
  if (hash === ABSENT) return { kind: 'absent' };
  const found = await readAt('HEAD', file, place);
  return found.kind === 'bytes' && hashOf(found.bytes) === hash ? found : UNKNOWN;
};

/**
 * The content of a file when the batch began. `began`: the snapshot of that time; null if there is none, as after a
 * crash.
 */
export const committedContent = (
  file: string,
  began: WorktreeSnapshot | null,
  context: HookContext,
  place: GitPlace,
): Promise<ContentBefore> =>
  began === null ? contentRecorded(context, file, place) : contentAt(began, file, place);
