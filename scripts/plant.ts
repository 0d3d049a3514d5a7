/**
 * Plants faults in copies of the machine, one at a time, and looks whether what should catch each does. The checkout is
 * not touched. Words choose faults by their names; `--all` prints everything that catches each, and takes long.
 */
import { allCatchers, caught } from './plant/catch.js';
import { faults } from './plant/faults.js';
import { type Garden, openGarden } from './plant/garden.js';

const firstLine = (text: string): string => text.trim().split('\n')[0] ?? '';

const wordOf = ({ caughtBy }: (typeof faults)[number]): string => {
  if (caughtBy.kind === 'walks') return 'random walks';
  return caughtBy.kind === 'explorer' ? `explorer, '${caughtBy.configuration}'` : `'${caughtBy.title}'`;
};

const tellOne = async (garden: Garden, fault: (typeof faults)[number], all: boolean): Promise<boolean> => {
  const plant = await garden.grow(fault);
  if (all) {
    const found = await allCatchers(plant);
    console.log(`${fault.name}\n${found.map((line) => `    ${firstLine(line)}`).join('\n')}`);
    return found.length > 0;
  }
  const said = await caught(fault, plant);
  console.log(
    `${said === null ? '✖' : '✔'} ${fault.name}\n    ${wordOf(fault)}: ${said === null ? 'nothing' : firstLine(said)}`,
  );
  return said !== null;
};

const words = process.argv.slice(2);
const all = words.includes('--all');
const chosen = words.filter((word) => word !== '--all');
const garden = await openGarden();
let survived = 0;
for (const fault of faults) {
  if (chosen.length > 0 && !chosen.some((word) => fault.name.includes(word))) continue;
  if (!(await tellOne(garden, fault, all))) survived += 1;
}
await garden.close();
console.log(survived === 0 ? 'every fault is caught' : `${survived} faults survive`);
process.exitCode = survived === 0 ? 0 : 1;
