/**
 * `pawl bisect ID -- COMMAND`: finds the first checkpoint of a session after which a command fails,
 * by halving.
 *
 * 1. Each try runs in a new copy of the workspace as it was, in the sandbox, without network. The
 *    workspace itself is never touched.
 * 2. The command has to fail after the last checkpoint. Where it fails before the first one, too,
 *    because it needs what the session made, they are tried in order up to the first one where it
 *    passes: the search begins there.
 *
 * A checkpoint is what some calls of the session changed in files. From top to bottom: the search;
 * one try; and the command.
 */

import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { lstat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { startCommand } from '@pawl/agent/command/command';
import { createCommandVariables } from '@pawl/agent/command/environment';
import { createSessionSandbox, type SessionSandbox } from '@pawl/agent/command/session-sandbox';
import { atExit } from '@pawl/agent/platform/start-program';
import { plural } from '@pawl/agent/platform/text';
import { PROGRAM as SHELL } from '@pawl/agent/tools/bash';
import { changesBetween, copyFiles } from '@pawl/agent/workspace/checkpoints/files-at';
import { detectLook, oneLine, paint } from '@pawl/terminal/paint';
import { joinSafe, makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeOut } from '@pawl/terminal/write';
import { exitCodes, Stop } from '../process/exit-codes.js';
import {
  type FileHistory,
  type HistoryCopies,
  openCopies,
  readFileHistory,
} from '../sessions/file-history.js';
import { usageStop } from '../settings/flags.js';
import { createFileDiff, fileDiffText } from './diff-files.js';

// The search

export type Answer = 'passes' | 'fails';

/**
 * The first checkpoint found after which the command fails, from 1 on. Halves between `start`
 * checkpoints, where the command passes, and `total`, where it fails. `ask` runs it on the files as
 * they were after so many checkpoints.
 */
export const searchFirst = async (
  { start, total }: { readonly start: number; readonly total: number },
  ask: (count: number) => Promise<Answer>,
): Promise<number> => {
  let [low, high] = [start, total];
  while (high - low > 1) {
    const middle = low + Math.floor((high - low) / 2);
    if ((await ask(middle)) === 'passes') low = middle;
    else high = middle;
  }
  return high;
};

// One try

const quoted = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;

/** One word is a command line; several are a program and its arguments. */
export const commandLine = (words: readonly string[]): string =>
  words.length === 1 ? (words[0] ?? '') : words.map(quoted).join(' ');

/** Folders of installed packages, which git ignores: a copy reads those of the workspace. */
const PACKAGE_FOLDERS = ['node_modules', '.venv', 'venv'];

const linkPackages = async (workspace: string, copy: string): Promise<void> => {
  for (const name of PACKAGE_FOLDERS) {
    const [from, to] = [path.join(workspace, name), path.join(copy, name)];
    const status = await lstat(from).catch(() => null); // not there
    const isCopied = (await lstat(to).catch(() => null)) !== null;
    if (status?.isDirectory() && !isCopied) symlinkSync(from, to);
  }
};

/** `exit`: null if a signal ended it. `ending`: how it ended, for the user. */
type Trial = {
  readonly answer: Answer;
  readonly exit: number | null;
  readonly ending: string;
  readonly output: string;
};

/** The shell found no such command, or may not run it. */
const NOT_RUN: readonly (number | null)[] = [126, 127];

class Bisector {
  readonly history: FileHistory;
  readonly #copies: HistoryCopies;
  readonly #command: string;
  readonly #scratch: string;
  readonly #sandboxes: SessionSandbox = createSessionSandbox({ environment: process.env });
  readonly #warned = new Set<string>();
  readonly #variables = createCommandVariables(process.env);
  #tries = 0;

  constructor(history: FileHistory, copies: HistoryCopies, command: string, scratch: string) {
    this.history = history;
    this.#copies = copies;
    this.#command = command;
    this.#scratch = scratch;
  }

  async try(count: number): Promise<Trial> {
    const copy = path.join(this.#scratch, `try-${++this.#tries}`);
    mkdirSync(copy);
    try {
      await this.#fill(copy, count);
      return await this.#run(copy);
    } finally {
      rmSync(copy, { recursive: true, force: true });
    }
  }

  async #fill(copy: string, count: number): Promise<void> {
    const { workspace, store } = this.history;
    const states = this.#copies.after(count); // what stood in the files then, by path
    const { signal } = new AbortController(); // Ctrl-C ends the program
    const place = { workspace, target: copy, environment: process.env, signal };
    const notCopied = await copyFiles({ ...place, states, store });
    for (const { path: file, why } of [...this.#copies.untouched, ...notCopied]) {
      const text = `${file} is not in the copies as it was then: ${why}`;
      if (this.#warned.has(text)) continue;
      this.#warned.add(text);
      writeError(safe`! ${oneLine(text, Number.POSITIVE_INFINITY)}\n`);
    }
    await linkPackages(workspace, copy);
  }

  async #run(copy: string): Promise<Trial> {
    // names the processes of this try, so that they can be ended together
    const marker = `bisect-${process.pid}-${this.#tries}`;
    const command = startCommand({
      sandbox: () => this.#sandboxes.of(copy),
      level: 'workspace',
      fresh: false, // an empty home is for a command that is allowed more than its level
      program: SHELL,
      ownEnvironment: process.env,
      command: this.#command,
      workspace: copy,
      environment: this.#variables(copy, this.#command, marker),
      deadlineMs: null, // a test suite may take long; Ctrl-C ends one that hangs
      record: { call: marker, marker, job: null },
      progress: () => undefined,
    });
    const { how } = await command.ended;
    const output = command.output.text();
    if (how.kind === 'notStarted')
      throw new Stop(
        exitCodes.configuration,
        'configuration',
        `The command can't be started in the sandbox: ${how.why}. pawl doctor says how to repair it.`,
      );
    if (how.kind === 'killed')
      return { answer: 'fails', exit: null, ending: `ended by ${how.signal}`, output };
    const answer = how.code === 0 ? 'passes' : 'fails';
    return { answer, exit: how.code, ending: `exit code ${how.code}`, output };
  }

  async close(): Promise<void> {
    await this.#sandboxes.close();
  }
}

const lastLines = (text: string, count: number): string =>
  text.trimEnd().split('\n').slice(-count).join('\n');

// The command

const LINES_SHOWN = 10;

const outputText = (output: string): string =>
  output.trim() === '' ? '' : `\nIts output ends with:\n${lastLines(output, LINES_SHOWN)}`;

/** Runs the command after so many checkpoints, and tells the user the answer. */
const askAndTell = async (bisector: Bisector, count: number): Promise<Answer> => {
  const { answer, ending } = await bisector.try(count);
  const { seq = 0, title = '' } = bisector.history.steps[count - 1] ?? {};
  const how = answer === 'fails' ? ` (${ending})` : '';
  writeError(safe`${makeSafe(`${answer} after seq ${seq}${how}`)}  ${oneLine(title, 60)}\n`);
  return answer;
};

/**
 * The first number of checkpoints after which the command passes. Throws a `Stop` if the command
 * gives no answer that a search could use.
 */
const findStart = async (bisector: Bisector, total: number): Promise<number> => {
  const before = await bisector.try(0);
  const after = await bisector.try(total);
  // before the first checkpoint alone: the session may have made the program
  if (NOT_RUN.includes(before.exit) && NOT_RUN.includes(after.exit))
    throw usageStop(
      `The command can't be run in a copy of the workspace (${after.ending}).${outputText(after.output)}`,
    );
  if (after.answer === 'passes')
    throw usageStop(
      'The command passes after the last checkpoint: there is nothing to look for. It runs in a ' +
        'copy of the files, without what git ignores and without network.',
    );
  if (before.answer === 'passes') return 0;
  writeError(
    makeSafe(
      `It fails before the first checkpoint (${before.ending}): looking for one where it passes.\n`,
    ),
  );
  for (let count = 1; count < total; count += 1)
    if ((await askAndTell(bisector, count)) === 'passes') return count;
  throw usageStop(
    `The command fails before the first checkpoint (${before.ending}), and after each one: no call ` +
      `of the session made it fail.${outputText(before.output)}`,
  );
};

const foundText = async (history: FileHistory, first: number): Promise<Safe> => {
  const { steps, manifests, store } = history;
  const step = steps[first - 1];
  if (step === undefined) return safe``;
  const look = detectLook(process.stdout, process.env);
  const before = first === 1 ? null : (steps[first - 2] ?? null);
  const diffs: Safe[] = [];
  for (const change of changesBetween(manifests, first - 1, first))
    diffs.push(fileDiffText(look, await createFileDiff(store, change)));
  const prompt = step.prompt === '' ? [] : [safe`prompt: ${oneLine(step.prompt, 200)}`];
  const passes =
    before === null ? 'before the first checkpoint' : `after the one at seq ${before.seq}`;
  return joinSafe(
    [
      paint(look, 'bold', makeSafe(`It fails since seq ${step.seq}, and passes ${passes}.`)),
      safe`${makeSafe(step.by === 'agent' ? 'call' : 'by')}: ${oneLine(step.title, 200)}`,
      ...prompt,
      ...diffs,
    ],
    safe`\n`,
  );
};

const bisect = async (bisector: Bisector): Promise<number> => {
  const { history } = bisector;
  const total = history.steps.length;
  const start = await findStart(bisector, total);
  const first = await searchFirst({ start, total }, (count) => askAndTell(bisector, count));
  writeOut(safe`${await foundText(history, first)}\n`);
  const from = history.steps[first - 1]?.from ?? 1;
  writeError(
    makeSafe(
      `To take it back, and all after it: pawl rewind ${history.sessionId} --at ${from} --files\n`,
    ),
  );
  return exitCodes.done;
};

/** Exit code 0: the checkpoint was found; 2: there is nothing to find; 78: the sandbox can't start. */
export const bisectSession = async (prefix: string, words: readonly string[]): Promise<number> => {
  if (words.length === 0 || words.every((word) => word.trim() === ''))
    throw usageStop('It is written as: pawl bisect ID -- COMMAND, for example -- npm test');
  const history = await readFileHistory(prefix);
  const { steps, sessionId } = history;
  if (steps.length === 0)
    throw usageStop(`${sessionId} has no checkpoints: it has changed no file.`);
  const copies = await openCopies(history); // throws if there can be none
  const scratch = realpathSync(mkdtempSync(path.join(tmpdir(), 'pawl-bisect-')));
  const clear = (): void => rmSync(scratch, { recursive: true, force: true });
  const cancelAtExit = atExit(clear); // also if a signal ends the program
  const bisector = new Bisector(history, copies, commandLine(words), scratch);
  writeError(
    makeSafe(`${plural(steps.length, 'checkpoint')}; each try runs in a copy, without network.\n`),
  );
  try {
    return await bisect(bisector);
  } finally {
    await bisector.close();
    clear();
    cancelAtExit();
  }
};
