/**
 * Looks whether a faulty copy of the machine is caught: by random walks, by the explorer in one
 * configuration, or by one test.
 */

import type { Test } from '../mutation/one-by-one.js';
import { type Catcher, STATES_MAX } from './fault.js';
import type { MachineCopy } from './machine-copies.js';

/** The finding of a test; null if there is none. */
const foundBy = async (test: Test): Promise<string | null> => {
  try {
    await test.run();
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
};

/** The finding of a case; null if it passes. Throws if there is no such case. */
const ask = async (copy: MachineCopy, file: string, title: string): Promise<string | null> => {
  const found = (await copy.testsOf(file)).filter((test) => test.title === title);
  const [test] = found;
  if (test === undefined || found.length > 1)
    throw new Error(`${found.length} cases of ${file} have the title '${title}'`);
  return foundBy(test);
};

/** The finding of a catcher; null if there is none. */
export const caught = async (catcher: Catcher, copy: MachineCopy): Promise<string | null> => {
  switch (catcher.kind) {
    case 'walks':
      return copy.walk();
    case 'explorer':
      return copy.explore(catcher.configuration, catcher.statesMax);
    case 'case':
      return ask(copy, catcher.file, catcher.title);
    default:
      return catcher satisfies never;
  }
};

/** Lists everything that catches a fault: the walks, the first configuration, every case. */
export const allCatchers = async (copy: MachineCopy): Promise<readonly string[]> => {
  const found: string[] = [];
  const walked = copy.walk();
  if (walked !== null) found.push(`walks: ${walked}`);
  for (const name of copy.configurations()) {
    const said = copy.explore(name, STATES_MAX);
    if (said === null) continue;
    found.push(`explorer('${name}'): ${said}`);
    break;
  }
  for (const file of copy.files) found.push(...(await failing(copy, file)));
  return found;
};

const failing = async (copy: MachineCopy, file: string): Promise<readonly string[]> => {
  try {
    const found: string[] = [];
    for (const test of await copy.testsOf(file)) {
      if ((await foundBy(test)) !== null) found.push(`byCase('${file}', '${test.title}')`);
    }
    return found;
  } catch (error) {
    return [`${file} does not load: ${error instanceof Error ? error.message : error}`];
  }
};
