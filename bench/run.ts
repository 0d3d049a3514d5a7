import { benchSteps } from './steps.js';

/** `npm run bench [-- steps]`: prints the tables of bench/README.md. */
const benches: Readonly<Record<string, () => Promise<string>>> = {
  steps: () => benchSteps(),
};

const asked = process.argv.slice(2);
for (const name of asked.length > 0 ? asked : Object.keys(benches)) {
  const bench = benches[name];
  if (bench === undefined)
    throw new Error(`no such benchmark: ${name}; there are ${Object.keys(benches).join(', ')}`);
  console.log(`\n## ${name}\n\n${await bench()}`);
}
