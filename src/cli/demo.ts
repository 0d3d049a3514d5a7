import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import type { State } from '../agent/state.js';
import type { Stepped } from '../needs.js';
import { costOf } from '../terminal/cost.js';
import { formatCost, type Look, lookOf, paint, warningText, writeWhole } from '../terminal/print.js';
import { endingOf, exitCodes, Stop } from './exit-codes.js';
import { type Opened, openFromFlags } from './open-session.js';
import { packageFolder } from './package-folder.js';
import { countStates, moved, pathLine } from './path-line.js';
import { listenToSignals } from './signals.js';
import { createStory, wholeOf } from './story.js';

/**
 * `pawl demo`: the scripted model drives; files, search, tests and git are real.
 *
 * 1. Nothing is claimed: at the end the tests are run and the commits are counted here, not by the agent.
 * 2. What it prints of a step is what `pawl replay` prints of it.
 */

const PROMPT = 'The tests fail. Find out why, repair it, and commit the repair.';

const say = (text: string): void => writeWhole(1, `${text}\n`);

const git = (folder: string, words: readonly string[]): string => {
  const ran = spawnSync('git', words, { cwd: folder, encoding: 'utf8' });
  if (ran.error !== undefined) {
    throw new Stop(
      exitCodes.unavailable,
      'unavailable',
      `The demo needs git, which can't be started: ${ran.error.message}.`,
    );
  }
  if (ran.status !== 0)
    throw new Stop(exitCodes.unavailable, 'unavailable', `git ${words[0]} failed: ${ran.stderr.trim()}`);
  return ran.stdout;
};

/** A fresh copy of the sample project, as a repository with one commit. Git's own settings of the user stay out of it. */
const prepare = (): string => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'pawl-demo-')));
  cpSync(join(packageFolder(), 'demo', 'project'), folder, { recursive: true });
  git(folder, ['-c', 'init.defaultBranch=main', 'init', '--quiet', '--template=']);
  git(folder, ['config', 'commit.gpgsign', 'false']);
  git(folder, ['config', 'core.hooksPath', '.git/hooks']);
  git(folder, ['add', '--all']);
  const author = ['-c', 'user.name=Ann', '-c', 'user.email=ann@localhost'];
  git(folder, [...author, 'commit', '--quiet', '--message', 'Split a bill between friends']);
  return folder;
};

/** Rule 1. What is wrong, or null. */
const findFault = (folder: string): string | null => {
  const { NODE_TEST_CONTEXT: _, ...environment } = process.env; // inside another test run node --test would do nothing
  const tests = spawnSync(process.execPath, ['--test'], { cwd: folder, env: environment, encoding: 'utf8' });
  if (tests.status !== 0) return 'the tests of the sample project still fail';
  if (git(folder, ['rev-list', '--count', 'HEAD']).trim() !== '2') return 'the repair was not committed';
  return git(folder, ['status', '--porcelain']).trim() === '' ? null : 'the commit left changes behind';
};

/** Prints what the model says as it comes, results with their details, and each transition. */
const createTeller = (look: Look, workspace: string): ((stepped: Stepped) => void) => {
  const story = createStory(look, workspace);
  let open = false;
  const endText = (): void => {
    if (open) writeWhole(1, '\n');
    open = false;
  };
  return (stepped) => {
    const pieces = story(stepped);
    for (const piece of pieces) {
      if (piece.kind === 'stream') {
        writeWhole(1, `${open ? '' : '\n'}${piece.text}`);
        open = true;
      } else if (piece.kind === 'lines') {
        endText();
        say(wholeOf(piece));
      }
    }
    if (!moved(stepped)) return;
    endText();
    say(paint(look, 'dim', pathLine(stepped)));
  };
};

const summarise = (
  look: Look,
  opened: Opened,
  state: State,
  steps: readonly Stepped[],
  folder: string,
): void => {
  const title = (text: string): string => paint(look, 'bold', text.padEnd(9));
  say('');
  say(`${title('project')} ${folder}`);
  say(`${title('commit')} ${git(folder, ['log', '--oneline', '--max-count=1']).trim()}`);
  say(`${title('path')} ${countStates(steps)}`);
  say(`${title('cost')} ${formatCost(costOf(state))}: the model was a script, everything else was real`);
  say(`${title('journal')} ${opened.journal}`);
  say(`${title('replay')} pawl replay ${opened.session.id}`);
  say(paint(look, 'dim', `Nothing needs the project any more: rm -rf ${folder}`));
};

/** Runs the one turn; the steps that led anywhere, and where it ended. */
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
  const deaf = listenToSignals({
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
    deaf();
    unwatch();
  }
};

export const runDemo = async (): Promise<number> => {
  const look = lookOf(process.stdout, process.env);
  // The commands of the demo call `node`: where PATH has none, it is the one that runs us.
  process.env.PATH = `${process.env.PATH ?? ''}${delimiter}${dirname(process.execPath)}`;
  const folder = prepare();
  const script = join(packageFolder(), 'demo', 'script.json');
  const opened = await openFromFlags(
    { model: `scripted/${script}`, workspace: folder, preset: 'auto' },
    'headless',
    { warn: (text) => void process.stderr.write(`${warningText(text)}\n`), configured: false },
  );
  say(`${paint(look, 'bold', 'A small project with a failing test')} in ${folder}`);
  say(paint(look, 'dim', 'Each dim line is a transition: line of the journal, event, states.'));
  say(`\n> ${PROMPT}`);
  const { state, steps, ending } = await runTurn(opened, createTeller(look, folder));
  if (ending.exit !== exitCodes.done) {
    say(`\nThe demo did not come to its end: ${ending.reason} ${ending.message}`.trimEnd());
    return ending.exit;
  }
  summarise(look, opened, state, steps, folder);
  const fault = findFault(folder);
  if (fault === null) return exitCodes.done;
  process.stderr.write(`pawl: ${fault}.\n`);
  return exitCodes.taskFailed;
};
