import { cpSync, existsSync, mkdtempSync, realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, relative } from 'node:path';
import type { State } from '../agent/state.js';
import type { Stepped } from '../ports/session.js';
import { ownPrograms } from '../programs/find-program.js';
import { askProgramSync, NODE_PROGRAM } from '../programs/start-program.js';
import { probeSandbox } from '../sandbox/session/session-sandbox.js';
import { costOf } from '../terminal/cost.js';
import { formatCost, type Look, lookOf, paint, warningText } from '../terminal/print.js';
import { makeSafe, type Safe, safe } from '../terminal/safe-text.js';
import { writeError, writeOut } from '../terminal/write.js';
import { endingOf, exitCodes, Stop } from './exit-codes.js';
import { createStepPrinter, withDetail } from './interactive/step-printer.js';
import { packageFolder } from './package-folder.js';
import { type Opened, openFromFlags } from './sessions/open-session.js';
import { countStates, moved, pathLine } from './sessions/step-path.js';
import { consult } from './settings/apply-config.js';
import { listenToSignals } from './signals.js';

/**
 * `pawl demo`: a scripted model repairs a small project. Files, search, tests and git are real.
 *
 * 1. The result is verified: the demo itself runs the tests and counts the commits at the end.
 * 2. Transitions are printed in the same form as by `pawl replay`.
 */

const PROMPT = 'The tests fail. Find out why, repair it, and commit the repair.';

const say = (text: Safe): void => writeOut(safe`${text}\n`);

const git = (folder: string, words: readonly string[]): string => {
  const stop = (why: string): Stop => new Stop(exitCodes.unavailable, 'unavailable', why);
  const programs = ownPrograms();
  const program = programs.find('git');
  const options = { environment: process.env, searchPath: programs.folders, folder };
  const ran = program === null ? null : askProgramSync(program, words, options);
  if (ran === null) throw stop('The demo needs git, which was not found. Install it.');
  if (ran.code !== 0) throw stop(`git ${words[0]} failed: ${ran.errors.trim()}`);
  return ran.output;
};

/** A fresh copy of the sample project in a repository with one commit. The user's git signing and hooks don't apply. */
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

/** The command that starts this program again: in a clone, and under npx, `pawl` is not on the PATH. */
const ownCommand = (): string => {
  const folder = packageFolder();
  if (existsSync(join(folder, 'src'))) return `node ${relative(process.cwd(), join(folder, 'bin/pawl.js'))}`;
  return process.env.npm_command === 'exec' ? 'npx pawl' : 'pawl';
};

const summarise = (
  look: Look,
  opened: Opened,
  state: State,
  steps: readonly Stepped[],
  folder: string,
): void => {
  const title = (text: Safe): Safe => paint(look, 'bold', text.padEnd(9));
  say(safe``);
  say(safe`${title(safe`project`)} ${makeSafe(folder)}`);
  say(safe`${title(safe`commit`)} ${makeSafe(git(folder, ['log', '--oneline', '--max-count=1']).trim())}`);
  say(safe`${title(safe`path`)} ${makeSafe(countStates(steps))}`);
  say(
    safe`${title(safe`cost`)} ${formatCost(costOf(state))}: the model was a script, everything else was real`,
  );
  say(safe`${title(safe`journal`)} ${makeSafe(opened.journal)}`);
  say(safe`${title(safe`replay`)} ${makeSafe(`${ownCommand()} replay ${opened.session.id}`)}`);
  say(paint(look, 'dim', safe`To remove the project: rm -rf ${makeSafe(folder)}`));
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

/** The sandbox level of the demo. Where none works it runs without: its commands are harmless, and the user is told. */
const chooseSandbox = async (
  folder: string,
): Promise<{ readonly sandbox: 'workspace' | 'off'; readonly why: string }> => {
  const { resolved } = await consult(folder, process.env, {});
  if (resolved.find(({ setting }) => setting.key === 'sandbox')?.value === 'off')
    return { sandbox: 'off', why: 'Its commands run without a sandbox, because your settings turn it off.' };
  const probe = await probeSandbox(process.env, folder, 'kept');
  return probe.kind === 'works'
    ? {
        sandbox: 'workspace',
        why: 'Its commands run in a sandbox: they can write only in this folder and have no network.',
      }
    : {
        sandbox: 'off',
        why: `Its commands run without a sandbox: ${probe.reason} pawl doctor explains the repair.`,
      };
};

export const runDemo = async (): Promise<number> => {
  const look = lookOf(process.stdout, process.env);
  // The commands of the demo call `node`. If PATH has none, they get the one that runs Pawl.
  process.env.PATH = `${process.env.PATH ?? ''}${delimiter}${dirname(process.execPath)}`;
  const folder = prepare();
  const script = join(packageFolder(), 'demo', 'script.json');
  const { sandbox, why } = await chooseSandbox(folder);
  const opened = await openFromFlags(
    { model: `scripted/${script}`, workspace: folder, preset: 'auto', sandbox },
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
