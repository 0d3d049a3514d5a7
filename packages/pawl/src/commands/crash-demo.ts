/**
 * `pawl demo --crash`: Pawl is killed while a command runs, and resumed.
 *
 * 1. Everything is real but the model: two processes of Pawl, the signal, the command, the journal.
 * 2. The end is checked: the command was started once (by the demo), and the model got all of its
 *    output (by its script).
 */

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { journalPath } from '@pawl/agent/journal/state-folder';
import { stateFolder } from '@pawl/agent/platform/environment';
import { NODE_PROGRAM, startProgram } from '@pawl/agent/platform/start-program';
import { plural } from '@pawl/agent/platform/text';
import { detectLook, harmless, type Look, paint } from '@pawl/terminal/paint';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { exitCodes, listenToSignals, Stop } from '../process/exit-codes.js';
import { packageFolder } from '../process/package-folder.js';
import { lastSession } from '../sessions/stored-sessions.js';
import {
  chooseSandbox,
  ownCommand,
  prepareProject,
  printFacts,
  printLine,
  scriptedModel,
} from './demo.js';

const PROMPT = 'Run the slow check and tell me what it says.';
/** Steps of the command in demo/crash-script.json. */
const STEPS = 8;
/** Steps that the command has done when Pawl is killed, and when it is resumed. */
const KILLED_AFTER = 3;
const RESUMED_AFTER = 5;
const WAIT_MS_MAX = 20_000;
const POLL_MS = 50;
const STEPS_FILE = 'steps.txt';
const STDOUT = 1;

const demoFault = (why: string): Stop => new Stop(exitCodes.taskFailed, 'failed', why);

const linesIn = (folder: string, name: string): readonly string[] => {
  try {
    return readFileSync(join(folder, name), 'utf8').split('\n').slice(0, -1);
  } catch {
    return []; // not written yet
  }
};

/** Prints the lines that the command adds to steps.txt, until it has `enough` of them. */
const showSteps = async ({ folder, look }: CrashDemo, enough: number): Promise<void> => {
  const endsAt = performance.now() + WAIT_MS_MAX;
  for (let count = linesIn(folder, STEPS_FILE).length; count < enough; ) {
    if (performance.now() > endsAt) throw demoFault('The command makes no steps.');
    await pause(POLL_MS);
    const lines = linesIn(folder, STEPS_FILE);
    for (const line of lines.slice(count))
      printLine(paint(look, 'dim', safe`   ${harmless(line)}`));
    count = lines.length;
  }
};

/** The first process: it is killed in the middle of the command. */
const runUntilKill = async (demo: CrashDemo): Promise<void> => {
  const first = startPawl(demo, ['-p', PROMPT]);
  printLine(safe`   Process ${first.pid} is Pawl.`);
  try {
    await Promise.race([showSteps(demo, KILLED_AFTER), first.ended]);
  } finally {
    first.kill();
  }
  const code = await first.ended;
  if (code !== null) throw demoFault(`Pawl ended before it was killed: exit code ${code}.`);
  printLine(
    safe`\n${paint(demo.look, 'bold', safe`2. Pawl is killed (kill -9 ${first.pid}), without a warning`)}`,
  );
};

/** Watches the command while no Pawl runs, by the file that it writes. */
const watchAlone = async (demo: CrashDemo): Promise<void> => {
  printLine(
    safe`   Nobody reads the output now. The command goes on, as its file ${makeSafe(STEPS_FILE)} shows:`,
  );
  // At least one step more, also where the machine needed long to get here.
  const before = linesIn(demo.folder, STEPS_FILE).length;
  await showSteps(demo, Math.min(STEPS, Math.max(RESUMED_AFTER, before + 1)));
};

const resume = async (demo: CrashDemo, sessionId: string): Promise<void> => {
  printLine(
    safe`\n${paint(demo.look, 'bold', safe`3. The session is resumed: pawl --resume ${makeSafe(sessionId)}`)}`,
  );
  const isRunning = linesIn(demo.folder, STEPS_FILE).length < STEPS;
  const state = isRunning ? safe`it still runs` : safe`it has ended meanwhile`;
  printLine(safe`   The command: ${state}. Pawl reads its output from the beginning.`);
  const code = await startPawl(demo, ['--resume', sessionId, '-p', 'Go on.']).ended;
  // The script expects that the model gets all steps as the result.
  if (code !== exitCodes.done)
    throw demoFault(`The resumed session failed with exit code ${code ?? 'unknown'}.`);
  const starts = linesIn(demo.folder, 'starts.txt').length;
  if (starts !== 1) throw demoFault(`The command was started ${plural(starts, 'time')}.`);
};

export const runCrashDemo = async (): Promise<number> => {
  if (process.platform === 'win32')
    throw new Stop(
      exitCodes.unavailable,
      'unavailable',
      'Commands outlive a killed Pawl on Linux and macOS only.',
    );
  const look = detectLook(process.stdout, process.env);
  const folder = prepareProject();
  const { sandbox, why } = await chooseSandbox(folder);
  const model = scriptedModel('crash-script.json');
  const demo = {
    look,
    folder,
    flags: ['--model', model, '--preset', 'auto', '--sandbox', sandbox],
  };
  printLine(
    safe`${paint(look, 'bold', safe`A command that outlives a killed Pawl`)} in ${makeSafe(folder)}`,
  );
  printLine(paint(look, 'dim', makeSafe(`The model is a script, everything else is real. ${why}`)));
  printLine(safe`\n${paint(look, 'bold', safe`1. Pawl runs a command of ${STEPS} steps`)}`);
  printLine(safe`   > ${makeSafe(PROMPT)}`);
  await runUntilKill(demo);
  const sessionId = await lastSession('agent', folder);
  if (sessionId === null) throw demoFault('The session of the killed process is not there.');
  await watchAlone(demo);
  await resume(demo, sessionId);
  printFacts(look, folder, [
    [safe`started`, safe`once: starts.txt, to which the command adds a line, has 1 line`],
    [
      safe`result`,
      safe`the real one: the model got all ${STEPS} steps, from a process that outlived Pawl`,
    ],
    [safe`project`, makeSafe(folder)],
    [safe`journal`, makeSafe(journalPath(stateFolder(process.env), sessionId))],
    [safe`replay`, makeSafe(`${ownCommand()} replay ${sessionId}`)],
  ]);
  return exitCodes.done;
};

type CrashDemo = {
  readonly look: Look;
  readonly folder: string;
  /** How the processes of the demo are started. */
  readonly flags: readonly string[];
};

/** Pawl as a separate process, as a user would start it. Its lines are those of the demo. */
type PawlProcess = {
  readonly pid: number;
  /** Ends it at once, as `kill -9` does. */
  kill(): void;
  /** Its exit code; null after `kill`. Rejects with a `Stop` if the user interrupted the demo. */
  readonly ended: Promise<number | null>;
};

/** Without the user's settings: an empty place for files, and no variable of Pawl. */
const plainEnvironment = (folder: string): NodeJS.ProcessEnv => ({
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('PAWL_'))),
  XDG_CONFIG_HOME: join(folder, 'no-settings'),
});

const startPawl = ({ folder, flags }: CrashDemo, words: readonly string[]): PawlProcess => {
  const child = startProgram(
    NODE_PROGRAM,
    [join(packageFolder(), 'bin', 'pawl.js'), ...words, ...flags, '--verbose'],
    {
      cwd: folder,
      env: plainEnvironment(folder),
      stdio: ['ignore', STDOUT, STDOUT],
      detached: true, // the keys of the terminal reach it only through the listener below
    },
  );
  let isStopped = false;
  const stop = (): void => {
    isStopped = true;
    child.kill('SIGTERM');
  };
  const stopListening = listenToSignals({ interrupt: stop, interruptAgain: stop, terminate: stop });
  const end = async (): Promise<number | null> => {
    const [code] = await once(child, 'close').finally(stopListening);
    if (isStopped) throw new Stop(exitCodes.interrupted, 'cancelled', 'The demo was stopped.');
    return typeof code === 'number' ? code : null;
  };
  return { pid: child.pid ?? 0, kill: () => void child.kill('SIGKILL'), ended: end() };
};
