/**
 * `pawl demo --crash`: Pawl is killed while a command runs, and resumed.
 *
 * 1. Everything is real but the model: two processes of Pawl, the signal, the command, the journal.
 * 2. The demo itself checks the end: the command was started once, and the model got all of its
 *    output.
 */

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { NODE_PROGRAM, startProgram } from '@pawl/agent/platform/start-program';
import { plural } from '@pawl/agent/platform/text';
import { detectLook, harmless, type Look, paint } from '@pawl/terminal/paint';
import { makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { writeError } from '@pawl/terminal/write';
import { parse } from 'valibot';
import { type JsonRecord, recordSchema } from '../headless/record-schema.js';
import { exitCodes, listenToSignals, Stop } from '../process/exit-codes.js';
import { packageFolder } from '../process/package-folder.js';
import {
  chooseSandbox,
  ownCommand,
  prepareProject,
  printFacts,
  printLine,
  scriptedModel,
} from './demo.js';

const PROMPT = 'Run the slow check and tell me what it says.';
/** Steps of the command in demo/crash-script.json, whose call has the id `slow-check`. */
const STEPS = 8;
/** Steps that the command has done when Pawl is killed, and when it is resumed. */
const KILLED_AFTER = 3;
const RESUMED_AFTER = 5;
const WAIT_MS_MAX = 20_000;
const POLL_MS = 50;

const demoFault = (why: string): Stop => new Stop(exitCodes.taskFailed, 'failed', why);

const linesIn = (folder: string, name: string): readonly string[] => {
  try {
    return readFileSync(join(folder, name), 'utf8').split('\n').slice(0, -1);
  } catch {
    return []; // not written yet
  }
};

const printOutput = (look: Look, text: string): void => {
  for (const line of text.trimEnd().split('\n'))
    printLine(paint(look, 'dim', safe`   ${harmless(line)}`));
};

/** What the demo needs of the records of a process. */
type SeenRecords = { sessionId: string; journal: string; result: string; reply: string };

type DemoReport = { readonly look: Look; readonly seen: SeenRecords };

/** Prints the calls, outputs and replies of a process. */
const createPrinter =
  ({ look, seen }: DemoReport): ((record: JsonRecord) => void) =>
  (record) => {
    if (record.type === 'session') {
      seen.sessionId = record.sessionId;
      seen.journal = record.journal;
    } else if (record.type === 'reply') {
      seen.reply = record.text;
      printLine(safe`   The model says: ${harmless(record.text)}`);
      for (const { tool, input } of record.calls)
        printLine(safe`   It calls ${makeSafe(tool)}: ${harmless(Object.values(input).join(' '))}`);
    } else if (record.type === 'toolProgress') {
      printOutput(look, record.text);
    } else if (record.type === 'toolResult' && record.callId === 'slow-check') {
      seen.result = record.text;
      printLine(safe`   The model gets these lines as the result, and after them:`);
      printOutput(look, record.text.split('\n').slice(STEPS).join('\n'));
    }
  };

/** The first process: it is killed in the middle of the command. */
const runUntilKill = async (
  folder: string,
  words: readonly string[],
  report: DemoReport,
): Promise<void> => {
  const tell = createPrinter(report);
  let printed = '';
  const first: PawlProcess = startPawl(folder, ['-p', PROMPT, ...words], (record) => {
    tell(record);
    if (record.type !== 'toolProgress') return;
    printed += record.text;
    if (printed.includes(`step ${KILLED_AFTER} of`)) first.kill();
  });
  printLine(safe`   Process ${first.pid} is Pawl.`);
  const code = await first.ended;
  if (code !== null)
    throw demoFault(`Pawl ended before it was killed: exit code ${code}. ${first.errors()}`);
  printLine(
    safe`\n${paint(report.look, 'bold', safe`2. Pawl is killed (kill -9 ${first.pid}), without a warning`)}`,
  );
};

/** Watches the command while no Pawl runs, by the file that it writes. */
const watchAlone = async (folder: string, look: Look): Promise<void> => {
  printLine(
    safe`   Nobody reads the output now. The command goes on, as its file steps.txt shows:`,
  );
  const endsAt = performance.now() + WAIT_MS_MAX;
  const before = linesIn(folder, 'steps.txt').length;
  // At least one step more, also where the machine needed long to get here.
  const enough = Math.min(STEPS, Math.max(RESUMED_AFTER, before + 1));
  for (let count = before; count < enough; ) {
    if (performance.now() > endsAt)
      throw demoFault('The command did not go on after Pawl was killed.');
    await pause(POLL_MS);
    const lines = linesIn(folder, 'steps.txt');
    if (lines.length > count) printOutput(look, lines.slice(count).join('\n'));
    count = lines.length;
  }
};

const resume = async (folder: string, report: DemoReport): Promise<void> => {
  const { look, seen } = report;
  const words = ['--resume', seen.sessionId];
  printLine(
    safe`\n${paint(look, 'bold', safe`3. The session is resumed: pawl --resume ${makeSafe(seen.sessionId)}`)}`,
  );
  const tell = createPrinter(report);
  const second = startPawl(folder, [...words, '-p', 'Go on.'], (record) => {
    if (record.type === 'session') {
      const done = linesIn(folder, 'steps.txt').length;
      const state = done < STEPS ? safe`it still runs` : safe`it has ended meanwhile`;
      printLine(safe`   Pawl finds the command: ${state}. It reads the output from the beginning:`);
    }
    tell(record);
  });
  const code = await second.ended;
  if (code !== exitCodes.done)
    throw demoFault(
      `The resumed session failed with exit code ${code ?? 'unknown'}. ${second.errors()}`,
    );
};

/** Checks that the command ran once and that the model got all its output. Null if all is well. */
const findFault = (folder: string, { result }: SeenRecords): string | null => {
  const starts = linesIn(folder, 'starts.txt').length;
  if (starts !== 1) return `the command was started ${plural(starts, 'time')}`;
  for (let step = 1; step <= STEPS; step++)
    if (!result.includes(`step ${step} of ${STEPS}\n`))
      return `step ${step} is missing in the model's result`;
  return null;
};

const summarise = (look: Look, folder: string, { sessionId, journal }: SeenRecords): void => {
  const fact = (text: string): Safe => makeSafe(text);
  printFacts(look, folder, [
    [safe`started`, fact('once: starts.txt, to which the command adds a line, has 1 line')],
    [
      safe`result`,
      fact(`the real one: the model got all ${STEPS} steps, from a process that outlived Pawl`),
    ],
    [safe`project`, fact(folder)],
    [safe`journal`, fact(journal)],
    [safe`replay`, fact(`${ownCommand()} replay ${sessionId}`)],
  ]);
};

export const runCrashDemo = async (): Promise<number> => {
  if (process.platform !== 'linux')
    throw new Stop(
      exitCodes.unavailable,
      'unavailable',
      'Commands outlive a killed Pawl on Linux only.',
    );
  const look = detectLook(process.stdout, process.env);
  const folder = prepareProject();
  const { sandbox, why } = await chooseSandbox(folder);
  const seen: SeenRecords = { sessionId: '', journal: '', result: '', reply: '' };
  const report = { look, seen };
  printLine(
    safe`${paint(look, 'bold', safe`A command that outlives a killed Pawl`)} in ${makeSafe(folder)}`,
  );
  printLine(paint(look, 'dim', makeSafe(`The model is a script, everything else is real. ${why}`)));
  printLine(safe`\n${paint(look, 'bold', safe`1. Pawl runs a command of ${STEPS} steps`)}`);
  printLine(safe`   > ${makeSafe(PROMPT)}`);
  const words = [
    '--model',
    scriptedModel('crash-script.json'),
    '--preset',
    'auto',
    '--sandbox',
    sandbox,
  ];
  await runUntilKill(folder, words, report);
  await watchAlone(folder, look);
  await resume(folder, report);
  const fault = findFault(folder, seen);
  if (fault !== null) {
    writeError(safe`pawl: ${makeSafe(fault)}.\n`);
    return exitCodes.taskFailed;
  }
  summarise(look, folder, seen);
  return exitCodes.done;
};

/** Pawl as a separate process, as a script would start it: `pawl … --json`. */
type PawlProcess = {
  readonly pid: number;
  /** Ends it at once, as `kill -9` does. */
  kill(): void;
  /** Its exit code; null after `kill`. Rejects with a `Stop` if the user interrupted the demo. */
  readonly ended: Promise<number | null>;
  /** What it printed to stderr. */
  errors(): string;
};

/** Without the user's settings: an empty place for files, and no variable of Pawl. */
const plainEnvironment = (folder: string): NodeJS.ProcessEnv => ({
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('PAWL_'))),
  XDG_CONFIG_HOME: join(folder, 'no-settings'),
});

const startPawl = (
  folder: string,
  words: readonly string[],
  tell: (record: JsonRecord) => void,
): PawlProcess => {
  const child = startProgram(
    NODE_PROGRAM,
    [join(packageFolder(), 'bin', 'pawl.js'), ...words, '--json'],
    {
      cwd: folder,
      env: plainEnvironment(folder),
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true, // the keys of the terminal reach it only through the listener below
    },
  );
  let isStopped = false;
  let errors = '';
  const stop = (): void => {
    isStopped = true;
    child.kill('SIGTERM');
  };
  const stopListening = listenToSignals({ interrupt: stop, interruptAgain: stop, terminate: stop });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  const lines = createInterface({ input: child.stdout });
  lines.on('line', (line) => {
    tell(parse(recordSchema, JSON.parse(line)));
  });
  const end = async (): Promise<number | null> => {
    try {
      const [[code]] = await Promise.all([once(child, 'close'), once(lines, 'close')]);
      if (isStopped) throw new Stop(exitCodes.interrupted, 'cancelled', 'The demo was stopped.');
      return typeof code === 'number' ? code : null;
    } finally {
      stopListening();
    }
  };
  return {
    pid: child.pid ?? 0,
    kill: () => void child.kill('SIGKILL'),
    ended: end(),
    errors: () => errors,
  };
};
