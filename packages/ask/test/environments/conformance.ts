import assert from 'node:assert/strict';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { removeFolderSync } from '../../../../test/temporary-folder.js';
import { chooseRows } from '../../../../test/tier.js';
import type {
  Environment,
  EnvironmentKind,
  EnvironmentOptions,
  Subcall,
  SubcallAnswerer,
} from '../../src/ports.js';
import type { CellReport } from '../../src/run/cell-types.js';
import { answerRows } from './conformance-answers.js';
import { callRows } from './conformance-calls.js';
import { cellRows } from './conformance-cells.js';
import { harmRows } from './conformance-harms.js';
import { outsideTests } from './conformance-outside.js';
import { timeTests } from './conformance-time.js';

/**
 * What every environment does alike: rows of cells that run one after the other in one environment, in the language of
 * it, and what their reports say. Names of variables are a row's own, so that rows do not disturb each other.
 */

export type Code = string | { readonly code: string; readonly deadlineMs: number };

export type Row = {
  readonly title: string;
  readonly javascript: readonly Code[];
  /** Left out of a row about something that only JavaScript has. */
  readonly python?: readonly Code[];
  /** Default: `kind: prompt` for each prompt. */
  readonly answer?: SubcallAnswerer;
  /** The reports, then every call that was made. */
  then(reports: readonly CellReport[], subcalls: readonly Subcall[]): void;
};

const DEADLINE_MS = 20_000;
const OPTIONS = { outputMax: 20_000, memoryMax: 128 * 1024 * 1024 };

/** A report that must be there. */
export const nth = (reports: readonly CellReport[], index: number): CellReport =>
  reports[index] ?? assert.fail(`there are ${reports.length} reports`);

export const echo: SubcallAnswerer = ({ kind, prompts }) =>
  Promise.resolve(prompts.map((prompt) => `${kind}: ${prompt}`));

let cells = 0;
/** Runs one cell. */
export const runCell = (
  environment: Environment,
  code: string,
  given: {
    readonly deadlineMs?: number;
    readonly signal?: AbortSignal;
    readonly answer?: SubcallAnswerer;
  } = {},
): Promise<CellReport> => {
  cells += 1;
  const { deadlineMs = DEADLINE_MS, signal = new AbortController().signal, answer = echo } = given;
  return environment.run({ cellId: `cell-${cells}`, code, deadlineMs, signal }, answer);
};

/** An environment of its own with these contexts, closed whatever happens. */
export const withEnvironment = async (
  kind: EnvironmentKind,
  contexts: readonly (string | Buffer)[],
  look: (environment: Environment) => Promise<void>,
  options: Partial<EnvironmentOptions> = {},
): Promise<void> => {
  const folder = mkdtempSync(path.join(tmpdir(), 'pawl-environment-'));
  const files = contexts.map((text, index) => {
    const file = path.join(folder, `context-${index}.txt`);
    writeFileSync(file, text);
    return file;
  });
  try {
    const environment = await kind.start({
      ...OPTIONS,
      contexts: files,
      names: files.map((file) => path.basename(file)),
      ...options,
    });
    try {
      await look(environment);
    } finally {
      await environment.close();
    }
  } finally {
    removeFolderSync(folder);
  }
};

const runRow = async (
  environment: Environment,
  row: Row,
  codes: readonly Code[],
): Promise<void> => {
  const reports: CellReport[] = [];
  const subcalls: Subcall[] = [];
  const answer: SubcallAnswerer = (subcall) => {
    subcalls.push(subcall);
    return (row.answer ?? echo)(subcall);
  };
  for (const cell of codes) {
    const { code, deadlineMs } =
      typeof cell === 'string' ? { code: cell, deadlineMs: DEADLINE_MS } : cell;
    reports.push(await runCell(environment, code, { deadlineMs, answer }));
  }
  row.then(reports, subcalls);
};

/** The whole suite for one environment. */
export const conforms = (kind: EnvironmentKind): void => {
  describe(`${kind.name} conforms`, () => {
    let environment: Environment;
    const folder = mkdtempSync(path.join(tmpdir(), 'pawl-conformance-'));
    before(async () => {
      assert.equal(await kind.probe(), null);
      const file = path.join(folder, 'context.txt');
      writeFileSync(file, 'one\ntwo\nthree');
      environment = await kind.start({ ...OPTIONS, contexts: [file], names: ['context.txt'] });
    });
    after(async () => {
      await environment.close();
      removeFolderSync(folder);
    });
    // of endless loops, and of allocations, one kind a day: each runs until somebody ends it
    const kindOf = ({ title }: Row): string =>
      `${kind.name} ${title.replace(/\(\d\)|allocates [a-z ]+ without/, '')}`;
    const runRows = (rows: readonly Row[]): void => {
      for (const row of rows) {
        const codes = row[kind.language];
        if (codes !== undefined) it(row.title, () => runRow(environment, row, codes));
      }
    };
    runRows([...cellRows, ...callRows, ...answerRows]);
    timeTests(kind, () => environment);
    runRows(chooseRows(harmRows, kindOf));
    outsideTests(kind);
  });
};
