/**
 * `pawl demo`: a scripted model repairs a small project. Files, search, tests and git are real.
 *
 * In a terminal it is a session as any other; without one, or with `-p`, a log:
 *
 * 1. The result is verified: the demo itself runs the tests and counts the commits at the end.
 * 2. Transitions are printed in the same form as by `pawl replay`.
 */

import { cpSync, existsSync, mkdtempSync, realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, relative } from 'node:path';
import { probeSandbox } from '@pawl/agent/command/session-sandbox';
import { knownCostUsd, type State } from '@pawl/agent/machine/state';
import { ownPrograms } from '@pawl/agent/platform/find-program';
import { askProgramSync, NODE_PROGRAM } from '@pawl/agent/platform/start-program';
import { quoteWord } from '@pawl/agent/policy/approval-question';
import type { Stepped } from '@pawl/agent/ports/session';
import { detectLook, formatCost, type Look, paint, wrapWords } from '@pawl/terminal/paint';
import { makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeOut } from '@pawl/terminal/write';
import type { EndedTurn } from '../headless/headless.js';
import { exitCodes, Stop } from '../process/exit-codes.js';
import { packageFolder } from '../process/package-folder.js';
import type { Opened } from '../sessions/open-session.js';
import { changesState, countStates, createLogPrinter, pathLine } from '../sessions/session-text.js';
import { consult } from '../settings/configuration.js';
import type { RunFlags } from '../settings/flags.js';

const PROMPT = 'The tests fail. Find out why, repair it, and commit the repair.';

/** Runs the tests and counts the commits. Returns what is wrong; null if all is well. */
const findFault = (folder: string): string | null => {
  // set inside a test run; with it `node --test` does nothing
  const { NODE_TEST_CONTEXT: _, ...environment } = process.env;
  const options = { environment, searchPath: ownPrograms().folders };
  const tests = askProgramSync(NODE_PROGRAM, ['--test'], { ...options, folder });
  if (tests?.code !== 0) return 'the tests of the sample project still fail';
  if (git(folder, ['rev-list', '--count', 'HEAD']).trim() !== '2')
    return 'the repair was not committed';
  return git(folder, ['status', '--porcelain']).trim() === ''
    ? null
    : 'the commit left changes behind';
};

const summarise = (
  look: Look,
  opened: Opened,
  state: State,
  steps: readonly Stepped[],
  folder: string,
): void => {
  const cost = safe`${formatCost(knownCostUsd(state.session.usage))}: the model was a script, everything else was real`;
  printFacts(look, folder, [
    [safe`project`, makeSafe(folder)],
    [safe`commit`, makeSafe(git(folder, ['log', '--oneline', '--max-count=1']).trim())],
    [safe`path`, makeSafe(countStates(steps))],
    [safe`cost`, cost],
    [safe`journal`, makeSafe(opened.journal)],
    [safe`replay`, makeSafe(`${ownCommand()} replay ${opened.session.id}`)],
  ]);
};

type Demo = {
  readonly look: Look;
  readonly folder: string;
  readonly flags: RunFlags;
  /** A sentence on how its commands run: in a sandbox, or why in none. */
  readonly why: string;
};

/** `log`: print a log in a terminal too. */
export const runDemo = async (log: boolean): Promise<number> => {
  const look = detectLook(process.stdout, process.env);
  const folder = prepareProject();
  const { sandbox, why } = await chooseSandbox(folder);
  const model = scriptedModel('script.json');
  const flags: RunFlags = { model, workspace: folder, preset: 'auto', sandbox };
  printLine(
    safe`${paint(look, 'bold', safe`A small project with a failing test`)} in ${makeSafe(folder)}`,
  );
  const demo = { look, folder, flags, why };
  const isTerminal = process.stdin.isTTY && process.stdout.isTTY;
  return isTerminal && !log ? openInTerminal(demo) : printLog(demo);
};

/** The model knows one task alone, so the session begins with it. */
const openInTerminal = async ({ look, folder, flags, why }: Demo): Promise<number> => {
  const words = `The model is a script that knows this one task, everything else is real. ${why}`;
  for (const row of wrapWords(makeSafe(words), look.columns - 1))
    printLine(paint(look, 'dim', row));
  printLine(safe``);
  const { runTerminal } = await import('../interactive/run-sessions.js');
  // `false`: without the user's configuration files
  const exit = await runTerminal(flags, PROMPT, false);
  printFacts(look, folder, [[safe`project`, makeSafe(folder)]]);
  return exit;
};

const printLog = async ({ look, folder, flags, why }: Demo): Promise<number> => {
  const { runPrinted } = await import('../headless/headless.js');
  const printer = createLogPrinter(look, folder);
  const steps: Stepped[] = [];
  const see = (stepped: Stepped): void => {
    steps.push(stepped);
    printer.see(stepped);
    if (changesState(stepped))
      printer.writeLines(paint(look, 'dim', makeSafe(`${pathLine(stepped)}\n`)));
  };
  const prompt = { text: PROMPT, typed: PROMPT };
  const demands = { schema: null, failOn: [] };
  const createOutlet = (opened: Opened) => ({
    begin() {
      const about = safe`Each dim line is a transition: line of the journal, event, states.`;
      for (const line of [about, makeSafe(why)]) printLine(paint(look, 'dim', line));
      printLine(safe``);
      opened.session.watch(see);
    },
    see: () => undefined, // the log has the end of the session too
    end({ ending, state }: EndedTurn) {
      const { reason, message } = ending;
      if (ending.exit !== exitCodes.done || state === null)
        printLine(makeSafe(`\nThe demo did not finish: ${reason} ${message}`.trimEnd()));
      else summarise(look, opened, state, steps, folder);
    },
  });
  // without the user's configuration files
  const more = { configured: false } as const;
  const ending = await runPrinted(flags, prompt, demands, createOutlet, more);
  const fault = ending.exit === exitCodes.done ? findFault(folder) : null;
  if (fault === null) return ending.exit;
  writeError(safe`pawl: ${makeSafe(fault)}.\n`);
  return exitCodes.taskFailed;
};

// The project of `pawl demo`, and what both demos do with it.

export const printLine = (text: Safe): void => writeOut(safe`${text}\n`);

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

/**
 * A fresh copy of the sample project in a repository with one commit. The user's git signing and
 * hooks don't apply.
 */
export const prepareProject = (): string => {
  // The commands of the demo call `node`. If PATH has none, they get the one that runs Pawl.
  const folders = [process.env.PATH, dirname(process.execPath)]; // an empty one is the current one
  process.env.PATH = folders.filter(Boolean).join(delimiter);
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

/** The model's name for a script in the folder `demo`. */
export const scriptedModel = (script: string): string =>
  `scripted/${join(packageFolder(), 'demo', script)}`;

/**
 * The command that starts this program again: in a clone, and under npx, `pawl` is not on the PATH.
 */
export const ownCommand = (): string => {
  const folder = packageFolder();
  if (existsSync(join(folder, 'src')))
    return `node ${relative(process.cwd(), join(folder, 'bin/pawl.js'))}`;
  return process.env.npm_command === 'exec' ? 'npx pawl' : 'pawl';
};

/**
 * The sandbox level of the demo. Where none works it runs without: its commands are harmless, and
 * the user is told.
 */
export const chooseSandbox = async (
  folder: string,
): Promise<{ readonly sandbox: 'workspace' | 'off'; readonly why: string }> => {
  const { resolved } = await consult(folder, process.env, {}); // the user's settings
  if (resolved.find(({ setting }) => setting.key === 'sandbox')?.value === 'off')
    return {
      sandbox: 'off',
      why: 'Its commands run without a sandbox, because your settings turn it off.',
    };
  const probe = await probeSandbox(process.env, folder, 'kept'); // a stored answer will do
  return probe.kind === 'works'
    ? {
        sandbox: 'workspace',
        why:
          'Its commands run in a sandbox: they can write only in this folder and have no ' +
          'network.',
      }
    : {
        sandbox: 'off',
        why: `Its commands run without a sandbox: ${probe.reason} pawl doctor explains the repair.`,
      };
};

/** Facts at the end of a demo, each with a bold title. */
export const printFacts = (
  look: Look,
  folder: string,
  facts: readonly (readonly [Safe, Safe])[],
): void => {
  printLine(safe``);
  for (const [title, fact] of facts)
    printLine(safe`${paint(look, 'bold', title.padEnd(9))} ${fact}`);
  printLine(paint(look, 'dim', safe`To remove the project: rm -rf ${makeSafe(quoteWord(folder))}`));
};
