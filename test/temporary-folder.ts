import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** A test, or the hooks of a suite or a file. */
export type TestScope = { after(hook: () => Promise<void>): void };

type End = () => unknown;

const endsOf = new WeakMap<TestScope, End[]>();

/** All of them run, whatever one of them throws. */
const runAll = async (ends: End[]): Promise<void> => {
  const end = ends.pop();
  if (end === undefined) return;
  try {
    await end();
  } finally {
    await runAll(ends);
  }
};

/**
 * Runs `end` after the test, the last given first: hooks of node:test run the first given first, which removes a folder
 * before the end of what was started in it.
 */
export const atEnd = (scope: TestScope, end: End): void => {
  const ends = endsOf.get(scope) ?? [];
  if (!endsOf.has(scope)) scope.after(() => runAll(ends));
  endsOf.set(scope, ends);
  ends.push(end);
};

/** A scope that is not a test. */
export const withScope = async <Result>(
  work: (scope: TestScope) => Promise<Result>,
): Promise<Result> => {
  const hooks: (() => Promise<void>)[] = [];
  try {
    return await work({ after: (hook) => void hooks.push(hook) });
  } finally {
    for (const hook of hooks) await hook();
  }
};

/** Processes that were told to end may still write for a moment. */
const PATIENTLY = { recursive: true, force: true, maxRetries: 20, retryDelay: 20 } as const;

const removeFolder = (folder: string): Promise<void> => rm(folder, PATIENTLY);

export const removeFolderSync = (folder: string): void => rmSync(folder, PATIENTLY);

/** Makes a folder and gives its real path. It is removed at the end of the test. */
export const temporaryFolder = (scope: TestScope, name: string): string => {
  const folder = realpathSync(mkdtempSync(path.join(tmpdir(), `pawl-${name}-`)));
  atEnd(scope, () => removeFolder(folder));
  return folder;
};
