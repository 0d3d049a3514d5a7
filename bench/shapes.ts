/**
 * Questions about inputs of 8 thousand to 50 million characters, whose answers are known. A wrong
 * answer, or prompts that grow with the input, fail it. Each combination of task, size and
 * environment runs in a process of its own (shapes/measure.ts).
 */

import { execFile } from 'node:child_process';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import type { EnvironmentName } from '../packages/ask/src/ports.js';
import type { Measured } from './shapes/measure.js';
import { type TaskName, taskNames, writeTask } from './shapes/tasks.js';

const run = promisify(execFile);

type Case = {
  readonly task: TaskName;
  readonly characters: number;
  readonly environment: EnvironmentName;
};

const sizes = [8e3, 8e4, 8e5, 8e6, 5e7];
const cases: readonly Case[] = taskNames.flatMap((task) =>
  sizes.flatMap((characters) => {
    const environments = ['javascript', 'quickjs', 'python'] as const;
    const asked = characters === 8e5 ? environments : environments.slice(0, 1);
    return asked.map((environment) => ({ task, characters, environment }));
  }),
);

/** From the sources: the programs of the environments stand beside them. */
const inOwnProcess = async (...words: readonly string[]): Promise<Measured> => {
  const file = path.join(import.meta.dirname, 'shapes', 'measure.ts');
  const { stdout } = await run(process.execPath, [
    '--import',
    'tsx',
    file,
    '--own-process',
    ...words,
  ]);
  // The child prints what `askAbout` returns.
  return JSON.parse(stdout) as Measured;
};

type Row = Case & Measured & { readonly size: number };

const measure = async (one: Case, folder: string): Promise<Row> => {
  const { task, characters, environment } = one;
  const file = path.join(folder, 'input.txt');
  const { question, answer } = writeTask(task, characters, file);
  const { size } = await stat(file);
  const measured = await inOwnProcess(file, question, environment);
  if (measured.answer === answer) return { ...one, ...measured, size };
  const where = `${task}, ${size} characters, ${environment}`;
  throw new Error(`${where}: the answer is ${answer}, and it said ${measured.answer}`);
};

/**
 * Requests must not grow with the input. The 5 % allow for numbers in them and the words of two
 * languages.
 */
const refuseGrowth = (rows: readonly Row[]): void => {
  for (const task of taskNames) {
    const sent = rows.filter((row) => row.task === task).map((row) => row.sent.characters);
    const [least, most] = [Math.min(...sent), Math.max(...sent)];
    if (most > least * 1.05)
      throw new Error(`${task}: prompts grow with the input, ${least} to ${most}`);
  }
};

const lineOf = ({
  task,
  size,
  environment,
  wallMs,
  ownMegabytes,
  environmentMegabytes,
  sent,
}: Row): string => {
  const beside = environmentMegabytes === 0 ? 'in ours' : environmentMegabytes.toFixed(0);
  const words = [
    task,
    size,
    environment,
    (wallMs / 1_000).toFixed(1),
    ownMegabytes.toFixed(0),
    beside,
  ];
  return `| ${[...words, sent.calls, sent.characters, sent.longest].join(' | ')} |`;
};

export const benchShapes = async (): Promise<string> => {
  const folder = await mkdtemp(path.join(tmpdir(), 'pawl-bench-'));
  try {
    const rows: Row[] = [];
    for (const one of cases) rows.push(await measure(one, folder));
    refuseGrowth(rows);
    return [
      '| task | characters of input | environment | seconds | our MB | environment MB | model calls | characters sent | longest prompt |',
      '|---|--:|---|--:|--:|--:|--:|--:|--:|',
      ...rows.map(lineOf),
      '',
      `All ${rows.length} answers are right.`,
    ].join('\n');
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};
