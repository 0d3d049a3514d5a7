import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { writeError } from '@pawl/terminal/write';
import { buildProgram } from '../../../src/commands/command-line.js';
import { errorEnding } from '../../../src/process/exit-codes.js';
import type { Hostile } from './hostile.js';
import type { Surface } from './surface.js';

/** Runs command lines in this process, and makes sessions for them. */

/** Runs a command line; a failure is told as the program tells it. */
export const run = async (...words: readonly string[]): Promise<void> => {
  try {
    await buildProgram(() => undefined).parseAsync([...words], { from: 'user' });
  } catch (error) {
    writeError(safe`pawl: ${makeSafe(errorEnding(error).message)}\n`);
  }
};

const sessionsFolder = (): string =>
  path.join(process.env.XDG_STATE_HOME ?? '', 'pawl', 'sessions');

export const forgetSessions = (): void =>
  rmSync(sessionsFolder(), { recursive: true, force: true });

/** The ids of the stored sessions, the oldest first. */
const storedIds = (): readonly string[] =>
  readdirSync(sessionsFolder())
    .filter((name) => name.endsWith('.jsonl'))
    .sort()
    .map((name) => name.slice(0, -'.jsonl'.length));

export const newestSession = (): string => storedIds().at(-1) ?? '';

/** A turn whose prompt, thoughts, text, unknown tools and failure are hostile. */
const turnMore = async (
  hostile: Hostile,
  size: number,
  ...flags: readonly string[]
): Promise<void> => {
  const part = Math.ceil(size / 6);
  const call = {
    tool: hostile.text(40),
    input: { command: hostile.text(part), [hostile.text(20)]: 1 },
  };
  const replies = [
    { reasoning: hostile.text(part), text: hostile.text(part), calls: [call] },
    { text: hostile.text(part) },
  ];
  writeFileSync('script.json', JSON.stringify({ replies }));
  await run('-p', `fix ${hostile.text(part)}`, '--model', 'scripted/script.json', ...flags);
};

/** Such a turn, whose session is the only one. */
export const turn = async (
  hostile: Hostile,
  size: number,
  ...flags: readonly string[]
): Promise<void> => {
  forgetSessions();
  await turnMore(hostile, size, ...flags);
};

export const afterTurn =
  (...words: readonly string[]): Surface['show'] =>
  async (hostile, _out, size) => {
    await turn(hostile, size);
    await run(...words.map((word) => (word === 'ID' ? newestSession() : word)));
  };
