import type { Test } from '../mutation/one-by-one.js';
import type { Fault } from './fault.js';
import type { Plant } from './garden.js';

/** The tests of a file; those that fail already when they are loaded have none. */
const testsOf = async (plant: Plant, file: string): Promise<readonly Test[]> => {
  const load = plant.files[file];
  if (load === undefined) throw new Error(`there is no file of cases '${file}'`);
  plant.tests.length = 0;
  await load();
  return [...plant.tests];
};

/** What a case says of a machine; null if it is content. Throws if there is no such case. */
const ask = async (plant: Plant, file: string, title: string): Promise<string | null> => {
  const found = (await testsOf(plant, file)).filter((test) => test.title === title);
  const [test] = found;
  if (test === undefined || found.length > 1)
    throw new Error(`${found.length} cases of ${file} have the title '${title}'`);
  return fault(test);
};

/** What a test finds; null for nothing. */
const fault = async (test: Test): Promise<string | null> => {
  try {
    await test.run();
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
};

/** What the catcher of a fault says of a machine; null if it finds nothing wrong. */
export const caught = async ({ caughtBy }: Fault, plant: Plant): Promise<string | null> => {
  switch (caughtBy.kind) {
    case 'walks':
      return plant.walk();
    case 'explorer':
      return plant.explore(caughtBy.configuration);
    case 'case':
      return ask(plant, caughtBy.file, caughtBy.title);
    default:
      return caughtBy satisfies never;
  }
};

/** As many states as are looked at in a configuration to choose one. */
const GLANCE = 400;

/** What would catch a fault, for whoever writes one: the walks, the first configuration, every case. */
export const allCatchers = async (plant: Plant): Promise<readonly string[]> => {
  const found: string[] = [];
  const walked = plant.walk();
  if (walked !== null) found.push(`walks: ${walked}`);
  for (const name of plant.configurations()) {
    const said = plant.explore(name, GLANCE);
    if (said === null) continue;
    found.push(`explorer '${name}': ${said}`);
    break;
  }
  for (const file of Object.keys(plant.files)) found.push(...(await failing(plant, file)));
  return found;
};

const failing = async (plant: Plant, file: string): Promise<readonly string[]> => {
  try {
    const found: string[] = [];
    for (const test of await testsOf(plant, file)) {
      if ((await fault(test)) !== null) found.push(`byCase('${file}', '${test.title}')`);
    }
    return found;
  } catch (error) {
    return [`${file} does not load: ${error instanceof Error ? error.message : error}`];
  }
};
