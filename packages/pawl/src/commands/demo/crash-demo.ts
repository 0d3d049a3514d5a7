import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { plural } from '@pawl/agent/platform/base/plural';
import { harmless, type Look, lookOf, paint } from '@pawl/terminal/paint-text';
import { makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { writeError } from '@pawl/terminal/write';
import { exitCodes, Stop } from '../../exit-codes.js';
import type { JsonRecord } from '../../headless/record-schema.js';
import { chooseSandbox, ownCommand, prepareProject, say, sayFacts, scriptedModelOf } from './demo-setup.js';
import { type PawlProcess, startPawl } from './pawl-process.js';

/**
 * `pawl demo --crash`: Pawl is killed while a command runs, and resumed.
 *
 * 1. Everything is real but the model: two processes of Pawl, the signal, the command, the journal.
 * 2. The demo itself checks the end: the command was started once, and the model got all of its output.
 */

const PROMPT = 'Run the slow check and tell me what it says.';
/** Of the command in demo/crash-script.json. */
const STEPS = 8;
/** Steps that the command has done when Pawl is killed, and when it is resumed. */
const KILLED_AFTER = 3;
const RESUMED_AFTER = 5;
const PATIENCE_MS = 20_000;
const LOOK_MS = 50;

const broken = (why: string): Stop => new Stop(exitCodes.taskFailed, 'failed', why);

const linesIn = (folder: string, name: string): readonly string[] => {
  try {
    return readFileSync(join(folder, name), 'utf8').split('\n').slice(0, -1);
  } catch {
    return []; // not written yet
  }
};

const shown = (look: Look, text: string): void => {
  for (const line of text.trimEnd().split('\n')) say(paint(look, 'dim', safe`   ${harmless(line)}`));
};

/** What the demo needs of the records of a process. */
type Seen = { sessionId: string; journal: string; result: string; reply: string };

type Told = { readonly look: Look; readonly seen: Seen };

/** Prints the calls, outputs and replies of a process. */
const createTeller =
  ({ look, seen }: Told): ((record: JsonRecord) => void) =>
  (record) => {
    if (record.type === 'session') {
      seen.sessionId = record.sessionId;
      seen.journal = record.journal;
    } else if (record.type === 'reply') {
      seen.reply = record.text;
      say(safe`   The model says: ${harmless(record.text)}`);
      for (const { tool, input } of record.calls)
        say(safe`   It calls ${makeSafe(tool)}: ${harmless(Object.values(input).join(' '))}`);
    } else if (record.type === 'toolProgress') {
      shown(look, record.text);
    } else if (record.type === 'toolResult' && record.callId === 'slow-check') {
      seen.result = record.text;
      say(safe`   The model gets these lines as the result, and after them:`);
      shown(look, record.text.split('\n').slice(STEPS).join('\n'));
    }
  };

/** The first process: it is killed in the middle of the command. */
const runUntilKill = async (folder: string, words: readonly string[], told: Told): Promise<void> => {
  const tell = createTeller(told);
  let printed = '';
  const first: PawlProcess = startPawl(folder, ['-p', PROMPT, ...words], (record) => {
    tell(record);
    if (record.type !== 'toolProgress') return;
    printed += record.text;
    if (printed.includes(`step ${KILLED_AFTER} of`)) first.kill();
  });
  say(safe`   Process ${first.pid} is Pawl.`);
  const code = await first.ended;
  if (code !== null) throw broken(`Pawl ended before it was killed: exit code ${code}. ${first.errors()}`);
  say(safe`\n${paint(told.look, 'bold', safe`2. Pawl is killed (kill -9 ${first.pid}), without a warning`)}`);
};

/** Watches the command while no Pawl runs, by the file that it writes. */
const watchAlone = async (folder: string, look: Look): Promise<void> => {
  say(safe`   Nobody reads the output now. The command goes on, as its file steps.txt shows:`);
  const endsAt = performance.now() + PATIENCE_MS;
  for (let count = linesIn(folder, 'steps.txt').length; count < RESUMED_AFTER; ) {
    if (performance.now() > endsAt) throw broken('The command did not go on after Pawl was killed.');
    await pause(LOOK_MS);
    const lines = linesIn(folder, 'steps.txt');
    if (lines.length > count) shown(look, lines.slice(count).join('\n'));
    count = lines.length;
  }
};

const resume = async (folder: string, told: Told): Promise<void> => {
  const { look, seen } = told;
  const words = ['--resume', seen.sessionId];
  say(
    safe`\n${paint(look, 'bold', safe`3. The session is resumed: pawl --resume ${makeSafe(seen.sessionId)}`)}`,
  );
  const tell = createTeller(told);
  const second = startPawl(folder, [...words, '-p', 'Go on.'], (record) => {
    if (record.type === 'session') {
      const done = linesIn(folder, 'steps.txt').length;
      const state = done < STEPS ? safe`it still runs` : safe`it has ended meanwhile`;
      say(safe`   Pawl finds the command: ${state}. It reads the output from the beginning:`);
    }
    tell(record);
  });
  const code = await second.ended;
  if (code !== exitCodes.done)
    throw broken(`The resumed session failed with exit code ${code ?? 'unknown'}. ${second.errors()}`);
};

/** Rule 2. Returns what is wrong; null if all is well. */
const findFault = (folder: string, { result }: Seen): string | null => {
  const starts = linesIn(folder, 'starts.txt').length;
  if (starts !== 1) return `the command was started ${plural(starts, 'time')}`;
  for (let step = 1; step <= STEPS; step++)
    if (!result.includes(`step ${step} of ${STEPS}\n`))
      return `step ${step} is missing in the model's result`;
  return null;
};

const summarise = (look: Look, folder: string, { sessionId, journal }: Seen): void => {
  const fact = (text: string): Safe => makeSafe(text);
  sayFacts(look, folder, [
    [safe`started`, fact('once: starts.txt, to which the command adds a line, has 1 line')],
    [safe`result`, fact(`the real one: the model got all ${STEPS} steps, from a process that outlived Pawl`)],
    [safe`project`, fact(folder)],
    [safe`journal`, fact(journal)],
    [safe`replay`, fact(`${ownCommand()} replay ${sessionId}`)],
  ]);
};

export const runCrashDemo = async (): Promise<number> => {
  if (process.platform !== 'linux')
    throw new Stop(exitCodes.unavailable, 'unavailable', 'Commands outlive a killed Pawl on Linux only.');
  const look = lookOf(process.stdout, process.env);
  const folder = prepareProject();
  const { sandbox, why } = await chooseSandbox(folder);
  const seen: Seen = { sessionId: '', journal: '', result: '', reply: '' };
  const told = { look, seen };
  say(safe`${paint(look, 'bold', safe`A command that outlives a killed Pawl`)} in ${makeSafe(folder)}`);
  say(paint(look, 'dim', makeSafe(`The model is a script, everything else is real. ${why}`)));
  say(safe`\n${paint(look, 'bold', safe`1. Pawl runs a command of ${STEPS} steps`)}`);
  say(safe`   > ${makeSafe(PROMPT)}`);
  const words = ['--model', scriptedModelOf('crash-script.json'), '--preset', 'auto', '--sandbox', sandbox];
  await runUntilKill(folder, words, told);
  await watchAlone(folder, look);
  await resume(folder, told);
  const fault = findFault(folder, seen);
  if (fault !== null) {
    writeError(safe`pawl: ${makeSafe(fault)}.\n`);
    return exitCodes.taskFailed;
  }
  summarise(look, folder, seen);
  return exitCodes.done;
};
