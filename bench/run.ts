import { benchFirstRequest, benchRounds } from './rounds.js';
import { benchShapes } from './shapes.js';
import { benchStart } from './start.js';
import { benchSteps } from './steps.js';

/** `npm run bench [-- steps start first-request rounds shapes]`: prints the tables of bench/README.md. */
const benches: Readonly<Record<string, () => Promise<string>>> = {
  steps: () => benchSteps(),
  start: () => benchStart(),
  'first-request': benchFirstRequest,
  rounds: benchRounds,
  shapes: benchShapes,
};

const asked = process.argv.slice(2);
for (const name of asked.length > 0 ? asked : Object.keys(benches)) {
  const bench = benches[name];
  if (bench === undefined)
    throw new Error(`no such benchmark: ${name}; there are ${Object.keys(benches).join(', ')}`);
  console.log(`\n## ${name}\n\n${await bench()}`);
}
