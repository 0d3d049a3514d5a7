/**
 * `pawl ask`: answers a question about inputs that are too large for a model's window.
 *
 * A run is one question with its inputs: the model writes programs that read them, and calls
 * further models from these. It has a journal, and can be resumed.
 *
 * From top to bottom: the run of the command, `runAsk`; then how it is opened: question and inputs,
 * which run, and the opening.
 */

import { statSync } from 'node:fs';
import { journalPath } from '@pawl/agent/journal/state-folder';
import { isLimited, type Limit } from '@pawl/agent/machine/settings';
import type { Model } from '@pawl/agent/ports/model';
import type { Watcher } from '@pawl/agent/ports/session';
import { createEventBuffer, type EventBuffer } from '@pawl/agent/session/session';
import { type AskRun, createAsker } from '@pawl/ask/create-asker';
import { fileAskJournals } from '@pawl/ask/journaled-ask-machine';
import type { AskSettings, AskTypes } from '@pawl/ask/ports';
import { EnvironmentUnavailable } from '@pawl/ask/run/eager-values';
import type { Outcome } from '@pawl/ask/run/state';
import {
  findInputs,
  INPUT_BYTES_MAX,
  InputError,
  type InputSource,
} from '@pawl/ask/runtime/measure-inputs';
import { detectLook, harmless, oneLine, warningText } from '@pawl/terminal/paint';
import { makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeJson, writeResult } from '@pawl/terminal/write';
import type { JsonRecord } from '../headless/record-schema.js';
import {
  type ExitEnding,
  errorEnding,
  exitCodes,
  listenToSignals,
  Stop,
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
  outcomeEnding,
  runRecord,
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

const INTERRUPTED: ExitEnding = { exit: exitCodes.interrupted, reason: 'cancelled', message: '' };
const TERMINATED: ExitEnding = { exit: exitCodes.terminated, reason: 'terminated', message: '' };

const writeRecord = (record: JsonRecord): void => writeJson(record);

const jsonOutlet: Outlet = {
  begin(opened) {
    const { run, journal, workspace, resumed } = opened;
    const { id: sessionId, settings, tornTail } = run;
    const { model } = settings;
    writeRecord({
      type: 'session',
      schema: 1,
      sessionId,
      workspace,
      model,
      journal,
      resumed,
      tornTail,
    });
    writeRecord(runRecord(run));
  },
  see(stepped) {
    for (const record of createAskRecords(stepped)) writeRecord(record);
  },
  end(ending, outcome, opened) {
    writeRecord(askResultRecord(ending, outcome, opened?.run ?? null));
  },
};

const printLine = (text: Safe): void => writeError(safe`${text}\n`);

/** Prints where programs run, or a warning (`note`) why that is not the preferred place. */
const tellEnvironment = ({ run: { settings, note } }: OpenedRun, watched: boolean): void => {
  if (note !== null) printLine(warningText(oneLine(note, Number.POSITIVE_INFINITY)));
  else if (watched) printLine(safe`· programs run in ${makeSafe(settings.environment)}`);
};

/** Tells the user that a resumed run had already ended: its answer is printed again at no cost. */
const tellIfEnded = ({ run, resumed }: OpenedRun): void => {
  if (resumed && run.state().name === 'Ended')
    printLine(safe`· run ${makeSafe(run.id)} has already ended; this is its outcome`);
};

/** Text output. Warnings are always printed, other lines only in a terminal or with --verbose. */
const textOutlet = (verbose: boolean): Outlet => {
  const printSteps = createAskPrinter(detectLook(process.stderr, process.env));
  const watched = process.stderr.isTTY || verbose;
  return {
    begin(opened) {
      const { tornTail } = opened.run;
      if (tornTail !== null) printLine(tornText(tornTail));
      tellEnvironment(opened, watched);
      tellIfEnded(opened);
    },
    see(stepped) {
      for (const { text, detail, urgent } of printSteps(stepped)) {
        if (!watched && !urgent) continue;
        printLine(text);
        if (verbose && detail !== '') printLine(detail);
      }
    },
    end(ending, outcome, opened) {
      if (ending.message !== '') printLine(harmless(`pawl: ${ending.message}`));
      if (outcome === null && opened !== null)
        printLine(safe`to continue: pawl ask --resume ${makeSafe(opened.run.id)}`);
      if (outcome !== null && 'partial' in outcome && outcome.partial !== '')
        printLine(safe`its last words: ${oneLine(outcome.partial, 500)}`);
      const answer = outcome === null ? '' : getAnswer(outcome);
      if (answer !== '') writeResult(answer.endsWith('\n') ? answer : `${answer}\n`);
      if (watched && opened !== null) printLine(askSummary(opened.run.id, opened.run.state()));
    },
  };
};

type Steps = EventBuffer<TreeStepped>;
type Finished = { readonly ending: ExitEnding; readonly outcome: Outcome | null };

/** Waits until the run ends. Signals and a closed pipe close it early; it can be resumed later. */
const waitForEnd = async ({ run }: OpenedRun, outlet: Outlet, steps: Steps): Promise<Finished> => {
  let early: ExitEnding | null = null;
  const endEarly = (ending: ExitEnding): void => {
    early ??= ending;
    run.close().catch(() => undefined); // the wait below reports the same failure
  };
  const stopListening = listenToSignals({
    interrupt: () => endEarly(INTERRUPTED),
    interruptAgain: () => process.exit(exitCodes.interrupted),
    terminate: () => endEarly(TERMINATED),
  });
  const unwatch = steps.subscribe((stepped) => {
    // nobody reads the output any more
    if (early !== null && early.exit === exitCodes.closedPipe) return;
    try {
      outlet.see(stepped);
    } catch (fault) {
      endEarly(errorEnding(fault));
    }
  });
  try {
    const outcome = await run.outcome;
    await run.close();
    return { ending: early ?? outcomeEnding(outcome, outcome.pieces), outcome };
  } catch (fault) {
    if (early === null) throw fault;
    await run.close();
    return { ending: early, outcome: null };
  } finally {
    unwatch();
    stopListening();
  }
};

/** Opens the run. A signal that comes meanwhile ends it once it is open. */
const openRun = async (flags: AskFlags, words: readonly string[], steps: Steps) => {
  const endings: ExitEnding[] = [];
  const stopListening = listenToSignals({
    interrupt: () => void endings.push(INTERRUPTED),
    interruptAgain: () => process.exit(exitCodes.interrupted),
    terminate: () => void endings.push(TERMINATED),
  });
  try {
    const warn = (text: string): void => printLine(warningText(text));
    const opened = await openAsked(flags, words, { watcher: steps.push, warn });
    return { opened, early: endings[0] ?? null };
  } finally {
    stopListening();
  }
};

const runOpened = async (
  opened: OpenedRun,
  early: ExitEnding | null,
  outlet: Outlet,
  steps: Steps,
): Promise<number> => {
  try {
    outlet.begin(opened);
    if (early !== null) await opened.run.close();
    const { ending, outcome } =
      early === null ? await waitForEnd(opened, outlet, steps) : { ending: early, outcome: null };
    if (ending.exit !== exitCodes.closedPipe) outlet.end(ending, outcome, opened);
    return ending.exit;
  } catch (fault) {
    // The fault that ended the run is the one to report; a run that it stopped can't be closed
    // again.
    await opened.run.close().catch(() => undefined);
    throw fault;
  }
};

/** Runs `pawl ask`. Returns the exit code. */
export const runAsk = async (flags: AskFlags, words: readonly string[]): Promise<number> => {
  const outlet = flags.json ? jsonOutlet : textOutlet(flags.verbose ?? false);
  try {
    // keeps the steps of the opening until they can be printed
    const steps = createEventBuffer<TreeStepped>();
    const { opened, early } = await openRun(flags, words, steps);
    return await runOpened(opened, early, outlet, steps);
  } catch (fault) {
    const ending = errorEnding(fault);
    if (flags.json && ending.exit !== exitCodes.closedPipe) outlet.end(ending, null, null);
    throw fault;
  }
};

// How a new or resumed run is opened from flags, words and environment.

type OpenedRun = {
  readonly run: AskRun;
  /** Path of the journal. */
  readonly journal: string;
  readonly workspace: string;
  readonly resumed: boolean;
};

type OpeningRun = { readonly watcher: Watcher<AskTypes>; readonly warn: Warn };

// Question and inputs

const isFile = (word: string): boolean => statSync(word, { throwIfNoEntry: false }) !== undefined;

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

/** All of stdin as text, which the journal stores. */
const readStdin = async (): Promise<InputSource> => {
  if (process.stdin.isTTY) throw usageStop('- reads stdin: pipe something in.');
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of process.stdin) {
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
const readSources = async (contexts: readonly string[]): Promise<readonly InputSource[]> => {
  await findInputs(contexts.filter((name) => name !== '-'));
  return Promise.all(contexts.map(async (name) => (name === '-' ? readStdin() : { path: name })));
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
  return error;
};

/** The flags, completed by configuration: files and variables of the environment. */
type AllFlags = AskFlags & Configured;

const connect = async (
  modelName: string | undefined,
  flags: AllFlags,
  warn: Warn,
): Promise<Model> => {
  const modelId = modelName ?? chooseUsual(flags, warn);
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

const refuseUnpriced = (models: readonly Model[], usd: Limit | undefined): void => {
  const unknown = models.find(({ facts }) => facts.prices === null);
  if (unknown === undefined || !isLimited(usd)) return;
  const message =
    `The price of ${unknown.id} is unknown, so --max-usd has no effect. Limit the run with ` +
    '--max-tokens, --max-iterations or --max-minutes.';
  throw new Stop(exitCodes.configuration, 'configuration', message);
};

/** What opens runs: with the models and keys of flags and configuration. */
const makeAsker = async (
  flags: AllFlags,
  before: AskSettings | null,
  folder: string,
  warn: Warn,
) => {
  const models = await connectBoth(flags, before, warn);
  refuseUnpriced(Object.values(models), (before ?? readAskSettings(flags)).limits?.usd);
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

const openResumed = async (id: string, commandLine: CommandLine, { watcher, warn }: OpeningRun) => {
  refuseFrozen(commandLine.flags, commandLine.words);
  const limits = readChangedLimits(commandLine.flags);
  const flags = await withConfig(commandLine.flags, commandLine.workspace, {
    command: 'ask',
    resumed: true,
    warn,
  });
  const folder = openStateFolder(process.env);
  const { header } = await fileAskJournals({ folder }).inspect(id); // opens nothing
  const { settings } = header;
  // as they were at the start, with the limits of the flags
  const before = { ...settings, limits: { ...settings.limits, ...limits } };
  const asker = await makeAsker(flags, before, folder, warn);
  const takeOver = commandLine.flags.takeOver === true;
  return asker.resume(id, { watcher, takeOver, ...(limits === null ? {} : { limits }) });
};

/**
 * Opens a new run. Checks the command line before configuration, files and models, so that its
 * errors come first.
 */
const openNew = async (
  { flags: typed, words, workspace }: CommandLine,
  { watcher, warn }: OpeningRun,
) => {
  const { question, contexts } = readQuestion(typed.context ?? [], words);
  // Only for their errors. The values are read below, together with the configuration.
  for (const read of [readAskSettings, readEnvironment, readEffort]) read(typed);
  const flags = await withConfig(typed, workspace, { command: 'ask', resumed: false, warn });
  const [askSettings, environment] = [readAskSettings(flags), readEnvironment(flags)];
  const folder = openStateFolder(process.env);
  const sources = await readSources(contexts);
  const { cellMs } = flags; // the time limit of one program (a cell)
  const cellDeadline = cellMs === undefined ? {} : { cellDeadlineMs: Number(cellMs) };
  const settings = { ...modelCallSettings(flags), ...askSettings, ...cellDeadline };
  return (await makeAsker(flags, null, folder, warn)).ask({
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
