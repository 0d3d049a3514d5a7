import { costOf } from '@pawl/agent/machine/known-cost';
import type { State } from '@pawl/agent/machine/state';
import { ownPrograms } from '@pawl/agent/platform/programs/find-program';
import { askProgramSync, NODE_PROGRAM } from '@pawl/agent/platform/programs/start-program';
import type { Stepped } from '@pawl/agent/ports/session-input-output';
import { formatCost, type Look, lookOf, paint, warningText } from '@pawl/terminal/paint-text';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeOut } from '@pawl/terminal/write';
import { endingOf, exitCodes } from '../../exit-codes.js';
import { createStepPrinter, withDetail } from '../../interactive/progress-lines.js';
import { type Opened, openFromFlags } from '../../sessions/open-session.js';
import { countStates, moved, pathLine } from '../../sessions/show/step-path.js';
import { listenToSignals } from '../../signals.js';
import {
  chooseSandbox,
  git,
  ownCommand,
  prepareProject,
  say,
  sayFacts,
  scriptedModelOf,
} from './demo-setup.js';

/**
 * `pawl demo`: a scripted model repairs a small project. Files, search, tests and git are real.
 *
 * 1. The result is verified: the demo itself runs the tests and counts the commits at the end.
 * 2. Transitions are printed in the same form as by `pawl replay`.
 */

const PROMPT = 'The tests fail. Find out why, repair it, and commit the repair.';

/** Verifies the result (rule 1). Returns what is wrong; null if all is well. */
const findFault = (folder: string): string | null => {
  const { NODE_TEST_CONTEXT: _, ...environment } = process.env; // set inside a test run; with it `node --test` does nothing
  const own = { environment, searchPath: ownPrograms().folders };
  const tests = askProgramSync(NODE_PROGRAM, ['--test'], { ...own, folder });
  if (tests?.code !== 0) return 'the tests of the sample project still fail';
  if (git(folder, ['rev-list', '--count', 'HEAD']).trim() !== '2') return 'the repair was not committed';
  return git(folder, ['status', '--porcelain']).trim() === '' ? null : 'the commit left changes behind';
};

/** Prints model text as it streams, tool results in full, and each transition. */
const createTeller = (look: Look, workspace: string): ((stepped: Stepped) => void) => {
  const story = createStepPrinter(look, workspace);
  let open = false;
  const endText = (): void => {
    if (open) writeOut(safe`\n`);
    open = false;
  };
  return (stepped) => {
    const pieces = story(stepped);
    for (const piece of pieces) {
      if (piece.kind === 'stream') {
        writeOut(open ? piece.text : safe`\n${piece.text}`);
        open = true;
      } else if (piece.kind === 'lines') {
        endText();
        say(withDetail(piece));
      }
    }
    if (!moved(stepped)) return;
    endText();
    say(paint(look, 'dim', makeSafe(pathLine(stepped))));
  };
};

const summarise = (
  look: Look,
  opened: Opened,
  state: State,
  steps: readonly Stepped[],
  folder: string,
): void => {
  const cost = safe`${formatCost(costOf(state))}: the model was a script, everything else was real`;
  sayFacts(look, folder, [
    [safe`project`, makeSafe(folder)],
    [safe`commit`, makeSafe(git(folder, ['log', '--oneline', '--max-count=1']).trim())],
    [safe`path`, makeSafe(countStates(steps))],
    [safe`cost`, cost],
    [safe`journal`, makeSafe(opened.journal)],
    [safe`replay`, makeSafe(`${ownCommand()} replay ${opened.session.id}`)],
  ]);
};

/** Runs the turn. Returns its steps, the last state and the ending. */
const runTurn = async (opened: Opened, tell: (stepped: Stepped) => void) => {
  const { session } = opened;
  const steps: Stepped[] = [];
  let state = await session.state();
  const unwatch = session.watch((stepped) => {
    state = stepped.state;
    steps.push(stepped);
    tell(stepped);
  });
  const end = (): void => void session.close().catch(() => undefined); // `idle` rejects with the same fault
  const stopListening = listenToSignals({
    interrupt: () => void session.cancel(),
    interruptAgain: end,
    terminate: end,
  });
  try {
    await session.send({ type: 'UserInput', text: PROMPT, mode: 'steer' });
    await session.idle();
    const ending = endingOf(state);
    if (state.name !== 'ShuttingDown') await session.close();
    return { state, steps, ending };
  } finally {
    stopListening();
    unwatch();
  }
};

export const runDemo = async (): Promise<number> => {
  const look = lookOf(process.stdout, process.env);
  const folder = prepareProject();
  const { sandbox, why } = await chooseSandbox(folder);
  const opened = await openFromFlags(
    { model: scriptedModelOf('script.json'), workspace: folder, preset: 'auto', sandbox },
    'headless',
    { warn: (text) => writeError(safe`${warningText(text)}\n`), configured: false },
  );
  say(safe`${paint(look, 'bold', safe`A small project with a failing test`)} in ${makeSafe(folder)}`);
  say(paint(look, 'dim', safe`Each dim line is a transition: line of the journal, event, states.`));
  say(paint(look, 'dim', makeSafe(why)));
  say(safe`\n> ${makeSafe(PROMPT)}`);
  const { state, steps, ending } = await runTurn(opened, createTeller(look, folder));
  if (ending.exit !== exitCodes.done) {
    say(makeSafe(`\nThe demo did not finish: ${ending.reason} ${ending.message}`.trimEnd()));
    return ending.exit;
  }
  summarise(look, opened, state, steps, folder);
  const fault = findFault(folder);
  if (fault === null) return exitCodes.done;
  writeError(safe`pawl: ${makeSafe(fault)}.\n`);
  return exitCodes.taskFailed;
};
