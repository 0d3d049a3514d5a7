/**
 * Plants faults in copies of the machine, one at a time, and looks whether what should catch each does. The checkout is
 * not touched. Words choose faults by their names; `--all` prints everything that catches each, and takes long.
 */
import { allCatchers, caught } from './plant/catch.js';
import { wordsOf } from './plant/fault.js';
import { faults } from './plant/faults.js';
import { type Garden, openGarden } from './plant/garden.js';

const firstLine = (text: string): string => text.trim().split('\n')[0] ?? '';

const tellOne = async (
  garden: Garden,
  fault: (typeof faults)[number],
  all: boolean,
): Promise<boolean> => {
  const plant = await garden.grow(fault);
  if (all) {
    const found = await allCatchers(plant);
    console.log(`${fault.name}\n${found.map((line) => `    ${firstLine(line)}`).join('\n')}`);
    return found.length > 0;
  }
  const said = await caught(fault.caughtBy, plant);
  console.log(
    `${said === null ? '✖' : '✔'} ${fault.name}\n    ${wordsOf(fault.caughtBy)}: ${said === null ? 'nothing' : firstLine(said)}`,
  );
  return said !== null;
};

const words = process.argv.slice(2);
const all = words.includes('--all');
const chosen = words.filter((word) => word !== '--all');
const wanted = faults.filter(
  ({ name }) =>
    chosen.length === 0 || chosen.some((word) => name.toLowerCase().includes(word.toLowerCase())),
);
const garden = await openGarden();
let caughtCount = 0;
for (const fault of wanted) if (await tellOne(garden, fault, all)) caughtCount += 1;
await garden.close();
console.log(
  wanted.length === 0
    ? `no fault is named like ${chosen.join(', ')}`
    : `${caughtCount} of ${wanted.length} caught`,
);
process.exitCode = wanted.length > 0 && caughtCount === wanted.length ? 0 : 1;
