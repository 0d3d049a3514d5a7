import type { Outcome } from '../recursive/state.js';
import { lookOf, oneLine, warningText, writeWhole } from '../terminal/print.js';
import { answerOf, endingOfOutcome } from './ask-endings.js';
import type { AskFlags } from './ask-flags.js';
import { type OpenedRun, openAsked } from './ask-open.js';
import { askRecordsOf, askResultRecord, runRecord, type TreeStepped } from './ask-records.js';
import { askSummary, createAskStory } from './ask-story.js';
import { type Ending, endingOfError, exitCodes } from './exit-codes.js';
import { createHeld, type Held } from './held.js';
import type { JsonRecord } from './record-schema.js';
import { listenToSignals } from './signals.js';
import { tornText } from './torn-text.js';

/** `pawl ask`: a question about inputs that are too large for any window. */

/** Where a run is told: JSON lines on stdout, or short lines on stderr and the answer on stdout. */
type Outlet = {
  begin(opened: OpenedRun): void;
  see(stepped: TreeStepped): void;
  end(ending: Ending, outcome: Outcome | null, opened: OpenedRun | null): void;
};

const INTERRUPTED: Ending = { exit: exitCodes.interrupted, reason: 'cancelled', message: '' };
const TERMINATED: Ending = { exit: exitCodes.terminated, reason: 'terminated', message: '' };

const writeRecord = (record: JsonRecord): void => writeWhole(1, `${JSON.stringify(record)}\n`);

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

const say = (text: string): void => void process.stderr.write(`${text}\n`);

/** Which environment is used and, where that is not the first choice, why. */
const tellEnvironment = ({ run: { settings, note } }: OpenedRun, watched: boolean): void => {
  if (note !== null) say(warningText(oneLine(note, Number.POSITIVE_INFINITY)));
  else if (watched) say(`· programs run in ${settings.environment}`);
};

/** A run that is over says its answer again, and nothing is paid for. */
const tellOver = ({ run, resumed }: OpenedRun): void => {
  if (resumed && run.state().name === 'Ended') say(`· run ${run.id} was over already; this is how it ended`);
};

/** Warnings always; the rest of the story to a person who watches, or with --verbose. */
const textOutlet = (verbose: boolean): Outlet => {
  const story = createAskStory(lookOf(process.stderr, process.env));
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
      if (ending.message !== '') say(`pawl: ${ending.message}`);
      if (outcome === null && opened !== null) say(`to go on: pawl ask --resume ${opened.run.id}`);
      if (outcome !== null && 'partial' in outcome && outcome.partial !== '')
        say(`its last words: ${oneLine(outcome.partial, 500)}`);
      const answer = outcome === null ? '' : answerOf(outcome);
      if (answer !== '') writeWhole(1, answer.endsWith('\n') ? answer : `${answer}\n`);
      if (watched && opened !== null) say(askSummary(opened.run.id, opened.run.state()));
    },
  };
};

type Steps = Held<TreeStepped>;
type Finished = { readonly ending: Ending; readonly outcome: Outcome | null };

/** Waits until the run is over. Signals and a closed pipe let it stand down, so that it can go on later. */
const waitForEnd = async ({ run }: OpenedRun, outlet: Outlet, steps: Steps): Promise<Finished> => {
  let early: Ending | null = null;
  const standDown = (ending: Ending): void => {
    early ??= ending;
    run.close().catch(() => undefined); // the wait below reports the same failure
  };
  const deaf = listenToSignals({
    interrupt: () => standDown(INTERRUPTED),
    interruptAgain: () => process.exit(exitCodes.interrupted),
    terminate: () => standDown(TERMINATED),
  });
  const unhear = steps.hear((stepped) => {
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
    return { ending: early ?? endingOfOutcome(outcome), outcome };
  } catch (fault) {
    if (early === null) throw fault;
    await run.close();
    return { ending: early, outcome: null };
  } finally {
    unhear();
    deaf();
  }
};

/** Opens the run. A signal meanwhile ends it as soon as it is open. */
const begin = async (flags: AskFlags, words: readonly string[], steps: Steps) => {
  const endings: Ending[] = [];
  const deaf = listenToSignals({
    interrupt: () => void endings.push(INTERRUPTED),
    interruptAgain: () => process.exit(exitCodes.interrupted),
    terminate: () => void endings.push(TERMINATED),
  });
  try {
    const warn = (text: string): void => say(warningText(text));
    const opened = await openAsked(flags, words, { watcher: steps.give, warn });
    return { opened, early: endings[0] ?? null };
  } finally {
    deaf();
  }
};

const runOpened = async (
  opened: OpenedRun,
  early: Ending | null,
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

/** `pawl ask`; its exit code. */
export const runAsk = async (flags: AskFlags, words: readonly string[]): Promise<number> => {
  const outlet = flags.json ? jsonOutlet : textOutlet(flags.verbose ?? false);
  try {
    const steps = createHeld<TreeStepped>();
    const { opened, early } = await begin(flags, words, steps);
    return await runOpened(opened, early, outlet, steps);
  } catch (fault) {
    const ending = endingOfError(fault);
    if (flags.json && ending.exit !== exitCodes.closedPipe) outlet.end(ending, null, null);
    throw fault;
  }
};
