import type { Fault } from './fault.js';
import type { Plant } from './garden.js';

/** What a case says of a machine; null if it is content. Throws if there is no such case. */
export const ask = async (plant: Plant, title: string): Promise<string | null> => {
  const found = plant.tests.filter((test) => test.title === title);
  const [test] = found;
  if (test === undefined || found.length > 1)
    throw new Error(`${found.length} cases have the title '${title}'`);
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
      return ask(plant, caughtBy.title);
    default:
      return caughtBy satisfies never;
  }
};

/** Everything that would catch a fault, for whoever writes one. */
export const allCatchers = async (plant: Plant): Promise<readonly string[]> => {
  const found: string[] = [];
  const walked = plant.walk();
  if (walked !== null) found.push(`walks: ${walked}`);
  for (const name of plant.configurations()) {
    const said = plant.explore(name);
    if (said !== null) found.push(`explorer '${name}': ${said}`);
  }
  for (const test of plant.tests) if ((await ask(plant, test.title)) !== null) found.push(`case '${test.title}'`);
  return found;
};
