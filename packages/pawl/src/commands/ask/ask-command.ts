import type { Outcome } from '@pawl/ask/run/state';
import { harmless, lookOf, oneLine, warningText } from '@pawl/terminal/paint-text';
import { makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeJson, writeResult } from '@pawl/terminal/write';
import { type ExitEnding, endingOfError, exitCodes } from '../../exit-codes.js';
import type { JsonRecord } from '../../headless/record-schema.js';
import { createEventBuffer, type EventBuffer } from '../../interactive/event-buffer.js';
import { tornText } from '../../sessions/show/torn-journal-text.js';
import { listenToSignals } from '../../signals.js';
import { answerOf, endingOfOutcome } from './ask-exit-codes.js';
import type { AskFlags } from './ask-flags.js';
import { askSummary, createAskPrinter } from './ask-progress-lines.js';
import { askRecordsOf, askResultRecord, runRecord, type TreeStepped } from './ask-records.js';
import { type OpenedRun, openAsked } from './open-ask.js';

/** `pawl ask`: answers a question about inputs that are too large for a model's window. */

/** Output of a run: JSON lines on stdout, or short lines on stderr and the answer on stdout. */
type Outlet = {
  begin(opened: OpenedRun): void;
  see(stepped: TreeStepped): void;
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
    writeRecord({ type: 'session', schema: 1, sessionId, workspace, model, journal, resumed, tornTail });
    writeRecord(runRecord(run));
  },
  see(stepped) {
    for (const record of askRecordsOf(stepped)) writeRecord(record);
  },
  end(ending, outcome, opened) {
    const ended = opened === null ? null : { sessionId: opened.run.id, tree: opened.run.state() };
    writeRecord(askResultRecord(ending, outcome, ended));
  },
};

const say = (text: Safe): void => writeError(safe`${text}\n`);

/** Prints the environment, or a warning if it is not the preferred one. */
const tellEnvironment = ({ run: { settings, note } }: OpenedRun, watched: boolean): void => {
  if (note !== null) say(warningText(oneLine(note, Number.POSITIVE_INFINITY)));
  else if (watched) say(safe`· programs run in ${makeSafe(settings.environment)}`);
};

/** Tells the user that a resumed run had already ended: its answer is printed again at no cost. */
const tellOver = ({ run, resumed }: OpenedRun): void => {
  if (resumed && run.state().name === 'Ended')
    say(safe`· run ${makeSafe(run.id)} has already ended; this is its outcome`);
};

/** Text output. Warnings are always printed, other lines only in a terminal or with --verbose. */
const textOutlet = (verbose: boolean): Outlet => {
  const story = createAskPrinter(lookOf(process.stderr, process.env));
  const watched = process.stderr.isTTY || verbose;
  return {
    begin(opened) {
      const { tornTail } = opened.run;
      if (tornTail !== null) say(tornText(tornTail));
      tellEnvironment(opened, watched);
      tellOver(opened);
    },
    see(stepped) {
      for (const { text, detail, urgent } of story(stepped)) {
        if (!watched && !urgent) continue;
        say(text);
        if (verbose && detail !== '') say(detail);
      }
    },
    end(ending, outcome, opened) {
      if (ending.message !== '') say(harmless(`pawl: ${ending.message}`));
      if (outcome === null && opened !== null)
        say(safe`to continue: pawl ask --resume ${makeSafe(opened.run.id)}`);
      if (outcome !== null && 'partial' in outcome && outcome.partial !== '')
        say(safe`its last words: ${oneLine(outcome.partial, 500)}`);
      const answer = outcome === null ? '' : answerOf(outcome);
      if (answer !== '') writeResult(answer.endsWith('\n') ? answer : `${answer}\n`);
      if (watched && opened !== null) say(askSummary(opened.run.id, opened.run.state()));
    },
  };
};

type Steps = EventBuffer<TreeStepped>;
type Finished = { readonly ending: ExitEnding; readonly outcome: Outcome | null };

/** Waits until the run ends. Signals and a closed pipe close it early; it can be resumed later. */
const waitForEnd = async ({ run }: OpenedRun, outlet: Outlet, steps: Steps): Promise<Finished> => {
  let early: ExitEnding | null = null;
  const standDown = (ending: ExitEnding): void => {
    early ??= ending;
    run.close().catch(() => undefined); // the wait below reports the same failure
  };
  const stopListening = listenToSignals({
    interrupt: () => standDown(INTERRUPTED),
    interruptAgain: () => process.exit(exitCodes.interrupted),
    terminate: () => standDown(TERMINATED),
  });
  const unwatch = steps.subscribe((stepped) => {
    if (early !== null && early.exit === exitCodes.closedPipe) return;
    try {
      outlet.see(stepped);
    } catch (fault) {
      standDown(endingOfError(fault));
    }
  });
  try {
    const outcome = await run.outcome;
    await run.close();
    return { ending: early ?? endingOfOutcome(outcome, outcome.pieces), outcome };
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
const begin = async (flags: AskFlags, words: readonly string[], steps: Steps) => {
  const endings: ExitEnding[] = [];
  const stopListening = listenToSignals({
    interrupt: () => void endings.push(INTERRUPTED),
    interruptAgain: () => process.exit(exitCodes.interrupted),
    terminate: () => void endings.push(TERMINATED),
  });
  try {
    const warn = (text: string): void => say(warningText(text));
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
    // The fault that ended the run is the one to report; a run that it stopped can't be closed again.
    await opened.run.close().catch(() => undefined);
    throw fault;
  }
};

/** Runs `pawl ask`. Returns the exit code. */
export const runAsk = async (flags: AskFlags, words: readonly string[]): Promise<number> => {
  const outlet = flags.json ? jsonOutlet : textOutlet(flags.verbose ?? false);
  try {
    const steps = createEventBuffer<TreeStepped>();
    const { opened, early } = await begin(flags, words, steps);
    return await runOpened(opened, early, outlet, steps);
  } catch (fault) {
    const ending = endingOfError(fault);
    if (flags.json && ending.exit !== exitCodes.closedPipe) outlet.end(ending, null, null);
    throw fault;
  }
};
