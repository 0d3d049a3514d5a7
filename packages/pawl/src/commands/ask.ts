/**
 * `pawl ask`: answers a question about inputs that are too large for a model's window.
 *
 * A run is one question with its inputs: the model writes programs that read them, and calls
 * further models from these. It has a journal, and can be resumed.
 *
 * From top to bottom: the run of the command, `runAsk`; then how it is opened: question and inputs,
 * which run, and the opening.
 */

import { journalPath } from '@pawl/agent/journal/state-folder';
import { followStatus } from '@pawl/agent/platform/files';
import type { Model } from '@pawl/agent/ports/model';
import type { Watcher } from '@pawl/agent/ports/session';
import { createWatchBuffer, type WatchBuffer } from '@pawl/agent/session/loop';
import { type AskRun, createAsker } from '@pawl/ask/create-asker';
import { fileAskJournals } from '@pawl/ask/journaled-ask-machine';
import type { AskSettings, AskTypes } from '@pawl/ask/ports';
import { EnvironmentUnavailable, UnknownPrice } from '@pawl/ask/run/eager-values';
import type { Outcome } from '@pawl/ask/run/state';
import {
  findInputs,
  INPUT_BYTES_MAX,
  InputError,
  type InputSource,
} from '@pawl/ask/runtime/measure-inputs';
import { detectLook, harmless, oneLine, warningText } from '@pawl/terminal/paint';
import { makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { withDetail } from '@pawl/terminal/step-lines';
import { writeError, writeJson, writeResult } from '@pawl/terminal/write';
import type { JsonRecord } from '../headless/record-schema.js';
import {
  type ExitEnding,
  errorEnding,
  exitCodes,
  INTERRUPTED,
  listenToSignals,
  Stop,
  TERMINATED,
} from '../process/exit-codes.js';
import { tornText } from '../sessions/session-text.js';
import { findSession, lastSession, openStateFolder } from '../sessions/stored-sessions.js';
import { type Configured, keysIn, withConfig } from '../settings/configuration.js';
import {
  chooseUsual,
  connectModel,
  modelCallSettings,
  realWorkspace,
  type Warn,
  warnOfEffort,
  warnOfUnknown,
} from '../settings/connect-model.js';
import { readEffort, refuseTakeOver, usageStop } from '../settings/flags.js';
import {
  type AskFlags,
  frozenFlags,
  readAskSettings,
  readChangedLimits,
  readEnvironment,
} from './ask-flags.js';
import {
  askResultRecord,
  askSummary,
  createAskPrinter,
  createAskRecords,
  getAnswer,
  type OpenedRun,
  openingRecords,
  outcomeEnding,
  type TreeStepped,
} from './ask-records.js';

/** Output of a run: JSON lines on stdout, or short lines on stderr and the answer on stdout. */
type Outlet = {
  /** Prints what is known at the start. */
  begin(opened: OpenedRun): void;
  /** Prints a step of the run. */
  see(stepped: TreeStepped): void;
  /** Prints the end; `outcome` is null for a run that can be resumed. */
  end(ending: ExitEnding, outcome: Outcome | null, opened: OpenedRun | null): void;
};

const writeRecords = (records: readonly JsonRecord[]): void => {
  for (const record of records) writeJson(record);
};

const jsonOutlet: Outlet = {
  begin: (opened) => writeRecords(openingRecords(opened)),
  see: (stepped) => writeRecords(createAskRecords(stepped)),
  end: (ending, outcome, opened) =>
    writeRecords([askResultRecord(ending, outcome, opened?.run ?? null)]),
};

const printLine = (text: Safe): void => writeError(safe`${text}\n`);

/** Text output. Warnings are always printed, other lines only in a terminal or with --verbose. */
const textOutlet = (verbose: boolean): Outlet => {
  const printSteps = createAskPrinter(detectLook(process.stderr, process.env));
  const watched = process.stderr.isTTY || verbose;
  return {
    begin({ run, resumed }) {
      const { id, settings, tornTail } = run;
      if (tornTail !== null) printLine(tornText(tornTail));
      if (watched) printLine(safe`· programs run in ${makeSafe(settings.environment)}`);
      if (resumed && run.state().name === 'Ended')
        printLine(safe`· run ${makeSafe(id)} has already ended; this is its outcome`);
    },
    see(stepped) {
      for (const piece of printSteps(stepped))
        if (watched || piece.urgent) printLine(verbose ? withDetail(piece) : piece.text);
    },
    end(ending, outcome, opened) {
      if (ending.message !== '') printLine(harmless(`pawl: ${ending.message}`));
      if (outcome === null && opened !== null)
        printLine(safe`to continue: pawl ask --resume ${makeSafe(opened.run.id)}`);
      if (outcome !== null && 'partial' in outcome && outcome.partial !== '')
        printLine(safe`its last words: ${oneLine(outcome.partial, 500)}`);
      const answer = getAnswer(outcome);
      if (answer !== '') writeResult(answer.endsWith('\n') ? answer : `${answer}\n`);
      if (watched && opened !== null) printLine(askSummary(opened.run.id, opened.run.state()));
    },
  };
};

type Finished = { readonly ending: ExitEnding; readonly outcome: Outcome | null };

/** A signal, or a fault of the output, that closes a run early; it can be resumed later. */
class EarlyEnd {
  ending: ExitEnding | null = null;
  #run: AskRun | null = null;
  readonly #opening = new AbortController();

  readonly end = (ending: ExitEnding): void => {
    this.ending ??= ending;
    this.#opening.abort(new Stop(ending.exit, ending.reason, ending.message));
    this.#run?.close().catch(() => undefined); // the wait for its outcome reports the same failure
  };

  /** Ends an opening that is under way: no run is begun. */
  get signal(): AbortSignal {
    return this.#opening.signal;
  }

  /** The run that is closed. A signal may have come while it was opened. */
  take(run: AskRun): void {
    this.#run = run;
    if (this.ending !== null) this.end(this.ending);
  }

  /** After a fault, which is the one to report: a run that it stopped can't be closed again. */
  async close(): Promise<void> {
    await this.#run?.close().catch(() => undefined);
  }
}

/** Waits until the run ends, or was closed early. */
const waitForEnd = async ({ run }: OpenedRun, early: EarlyEnd): Promise<Finished> => {
  try {
    const outcome = await run.outcome;
    await run.close();
    return { ending: early.ending ?? outcomeEnding(outcome, outcome.pieces), outcome };
  } catch (fault) {
    if (early.ending === null) throw fault;
    await run.close();
    return { ending: early.ending, outcome: null };
  }
};

const runOpened = async (
  opened: OpenedRun,
  steps: WatchBuffer<TreeStepped>,
  outlet: Outlet,
  early: EarlyEnd,
): Promise<number> => {
  early.take(opened.run);
  outlet.begin(opened);
  const unwatch = steps.subscribe((stepped) => {
    // nobody reads the output any more
    if (early.ending?.exit === exitCodes.closedPipe) return;
    try {
      outlet.see(stepped);
    } catch (fault) {
      early.end(errorEnding(fault));
    }
  });
  const { ending, outcome } = await waitForEnd(opened, early).finally(unwatch);
  if (ending.exit !== exitCodes.closedPipe) outlet.end(ending, outcome, opened);
  return ending.exit;
};

/** Runs `pawl ask`. Returns the exit code. */
export const runAsk = async (flags: AskFlags, words: readonly string[]): Promise<number> => {
  const outlet = flags.json ? jsonOutlet : textOutlet(flags.verbose ?? false);
  const early = new EarlyEnd();
  const stopListening = listenToSignals({
    interrupt: () => early.end({ ...INTERRUPTED, message: '' }),
    interruptAgain: () => process.exit(exitCodes.interrupted),
    terminate: () => early.end({ ...TERMINATED, message: '' }),
  });
  let opened: OpenedRun | null = null;
  try {
    // keeps the steps of the opening until they can be printed
    const steps = createWatchBuffer<TreeStepped>();
    const warn = (text: string): void => printLine(warningText(text));
    const { signal } = early;
    opened = await openAsked(flags, words, { watcher: steps.push, warn, signal });
    return await runOpened(opened, steps, outlet, early);
  } catch (fault) {
    await early.close();
    const ending = errorEnding(fault);
    // the caller prints the fault
    const told = flags.json ? ending : { ...ending, message: '' };
    if (ending.exit !== exitCodes.closedPipe) outlet.end(told, null, opened);
    if (fault === early.signal.reason) return ending.exit; // a signal needs no words
    throw fault;
  } finally {
    stopListening();
  }
};

// How a new or resumed run is opened from flags, words and environment.

type OpeningRun = {
  readonly watcher: Watcher<AskTypes>;
  readonly warn: Warn;
  readonly signal: AbortSignal;
};

// Question and inputs

const isFile = (word: string): boolean => followStatus(word) !== null;

type AskCommand = { readonly question: string; readonly contexts: readonly string[] };

/**
 * Separates question and inputs. The parser reads `--context *.txt "question"` as one list: without
 * other words its last entry is the question. If that entry is `-` or a file, the question was
 * forgotten.
 */
export const readQuestion = (context: readonly string[], words: readonly string[]): AskCommand => {
  const last = words.length === 0 ? context.at(-1) : undefined;
  const question = (last ?? words.join(' ')).trim();
  const contexts = last === undefined ? context : context.slice(0, -1);
  const example = 'pawl ask --context FILE "question"';
  if (question === '' || (last !== undefined && (last === '-' || isFile(last))))
    throw usageStop(`There is no question: ${example}`);
  if (contexts.length === 0) throw usageStop(`There are no files to ask about: ${example}`);
  if (contexts.filter((name) => name === '-').length > 1)
    throw usageStop('stdin can be read only once: give - once.');
  return { question, contexts };
};

/** All of stdin as text, which the journal stores. Rejects with the reason of the signal. */
const readStdin = async (signal: AbortSignal): Promise<InputSource> => {
  const { stdin } = process;
  if (stdin.isTTY) throw usageStop('- reads stdin: pipe something in.');
  const pieces: Buffer[] = [];
  let bytes = 0;
  signal.addEventListener('abort', () => stdin.destroy(signal.reason));
  for await (const piece of stdin) {
    const buffer = Buffer.from(piece);
    pieces.push(buffer);
    bytes += buffer.length;
    if (bytes > INPUT_BYTES_MAX)
      throw new InputError(
        'tooLarge',
        '-',
        `stdin is too large: at most ${INPUT_BYTES_MAX} bytes fit.`,
      );
  }
  const whole = Buffer.concat(pieces);
  const text = whole.toString('utf8');
  if (!Buffer.from(text).equals(whole))
    throw new InputError('notText', '-', 'stdin is not text in UTF-8: convert it first.');
  return { text, name: 'stdin' };
};

/** Checks all paths first, so that a wrong one is named before stdin is read. */
const readSources = async (
  contexts: readonly string[],
  signal: AbortSignal,
): Promise<readonly InputSource[]> => {
  await findInputs(contexts.filter((name) => name !== '-'));
  signal.throwIfAborted();
  const read = async (name: string) => (name === '-' ? readStdin(signal) : { path: name });
  return Promise.all(contexts.map(read));
};

// Which run

/** Id of the run to resume; null for a new run. */
const findRun = async (flags: AskFlags, workspace: string): Promise<string | null> => {
  if (flags.resume !== undefined) return findSession(flags.resume);
  if (!flags.continue) {
    refuseTakeOver(flags); // --take-over is for a run to resume
    return null;
  }
  const last = await lastSession('ask', workspace);
  if (last !== null) return last;
  throw new Stop(
    exitCodes.badInput,
    'notFound',
    `There is no run of pawl ask in ${workspace} to continue.`,
  );
};

/** Refuses what a resumed run keeps from its start, such as its question and its inputs. */
const refuseFrozen = (flags: AskFlags, words: readonly string[]): void => {
  const [flag] = frozenFlags(flags);
  if (flag !== undefined)
    throw usageStop(`Can't change ${flag} of a resumed run. Leave it out, or start a new run.`);
  if (words.length > 0)
    throw usageStop(
      "Can't change the question of a resumed run. Leave it out, or start a new run.",
    );
};

// Opening

/** A known error as a `Stop` with its exit code; any other as it is. */
const asStop = (error: unknown): unknown => {
  if (error instanceof InputError)
    return new Stop(
      exitCodes.badInput,
      error.kind === 'changed' ? 'changed' : 'badInput',
      error.message,
    );
  if (error instanceof EnvironmentUnavailable)
    return new Stop(exitCodes.configuration, 'environment', error.message);
  if (error instanceof UnknownPrice)
    return new Stop(exitCodes.configuration, 'configuration', error.message);
  return error;
};

/** The flags, completed by configuration: files and variables of the environment. */
type AllFlags = AskFlags & Configured;

const connect = async (
  modelName: string | undefined,
  flags: AllFlags,
  warn: Warn,
): Promise<Model> => {
  const modelId = modelName ?? (await chooseUsual(flags, warn));
  const model = await connectModel(modelId, flags, process.cwd());
  warnOfUnknown(model, warn);
  warnOfEffort(model, readEffort(flags), warn);
  return model;
};

/**
 * The models of a run: of a resumed run those it began with (`before`), else those of the flags.
 * `subModel` answers the calls that come from its programs.
 */
const connectBoth = async (flags: AllFlags, before: AskSettings | null, warn: Warn) => {
  const model = await connect(before?.model ?? flags.model, flags, warn);
  const sub = before?.subModel ?? flags.subModel;
  return {
    model,
    subModel: sub === undefined || sub === model.id ? model : await connect(sub, flags, warn),
  };
};

/** What opens runs: with the models and keys of flags and configuration. */
const makeAsker = async (
  flags: AllFlags,
  before: AskSettings | null,
  folder: string,
  warn: Warn,
) => {
  const models = await connectBoth(flags, before, warn);
  const effort = readEffort(flags);
  return createAsker({
    ...models,
    ...(effort === null ? {} : { effort }),
    secrets: keysIn(flags.variables ?? {}), // API keys from the configuration
    journals: fileAskJournals({ folder }),
    report: (fault) => warn(oneLine(fault.message, Number.POSITIVE_INFINITY)),
  });
};

type CommandLine = {
  readonly flags: AllFlags;
  readonly words: readonly string[];
  readonly workspace: string;
};

const openResumed = async (id: string, commandLine: CommandLine, opening: OpeningRun) => {
  const { watcher, warn, signal } = opening;
  refuseFrozen(commandLine.flags, commandLine.words);
  const limits = readChangedLimits(commandLine.flags);
  const flags = await withConfig(commandLine.flags, commandLine.workspace, {
    command: 'ask',
    resumed: true,
    warn,
  });
  const folder = openStateFolder(process.env);
  const { header } = await fileAskJournals({ folder }).inspect(id); // opens nothing
  const asker = await makeAsker(flags, header.settings, folder, warn);
  const takeOver = commandLine.flags.takeOver === true;
  signal.throwIfAborted();
  return asker.resume(id, { watcher, takeOver, ...(limits === null ? {} : { limits }) });
};

/**
 * Opens a new run. Checks the command line before configuration, files and models, so that its
 * errors come first.
 */
const openNew = async (
  { flags: typed, words, workspace }: CommandLine,
  { watcher, warn, signal }: OpeningRun,
) => {
  const { question, contexts } = readQuestion(typed.context ?? [], words);
  // Only for their errors. The values are read below, together with the configuration.
  for (const read of [readAskSettings, readEnvironment, readEffort]) read(typed);
  const flags = await withConfig(typed, workspace, { command: 'ask', resumed: false, warn });
  const [askSettings, environment] = [readAskSettings(flags), readEnvironment(flags)];
  const folder = openStateFolder(process.env);
  const sources = await readSources(contexts, signal);
  const { cellMs } = flags; // the time limit of one program (a cell)
  const cellDeadline = cellMs === undefined ? {} : { cellDeadlineMs: Number(cellMs) };
  const settings = { ...modelCallSettings(flags), ...askSettings, ...cellDeadline };
  const asker = await makeAsker(flags, null, folder, warn);
  signal.throwIfAborted();
  return asker.ask({
    question,
    contexts: sources,
    workspace,
    settings,
    watcher,
    ...(environment === null ? {} : { environment }),
  });
};

/** Opens the run that flags and words ask for. Known errors are thrown as `Stop`. */
const openAsked = async (
  flags: AskFlags,
  words: readonly string[],
  opening: OpeningRun,
): Promise<OpenedRun> => {
  try {
    const workspace = realWorkspace(process.cwd());
    const resume = await findRun(flags, workspace);
    const commandLine = { flags, words, workspace };
    const run = await (resume === null
      ? openNew(commandLine, opening)
      : openResumed(resume, commandLine, opening));
    const journal = journalPath(openStateFolder(process.env), run.id);
    return { run, journal, workspace, resumed: resume !== null };
  } catch (error) {
    throw asStop(error);
  }
};
