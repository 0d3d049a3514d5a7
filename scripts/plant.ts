/**
 * Plants faults in copies of the machine, one at a time, and looks whether what should catch each
 * does. The checkout is not touched. Words choose faults by their names; `--all` prints everything
 * that catches each, and takes long.
 */
import { allCatchers, caught } from './plant/catch.js';
import { wordsOf } from './plant/fault.js';
import { faults } from './plant/faults.js';
import { type MachineCopies, openMachineCopies } from './plant/machine-copies.js';

const firstLine = (text: string): string => text.trim().split('\n')[0] ?? '';

const tryFault = async (
  copies: MachineCopies,
  fault: (typeof faults)[number],
  all: boolean,
): Promise<boolean> => {
  const copy = await copies.build(fault);
  if (all) {
    const found = await allCatchers(copy);
    console.log(`${fault.name}\n${found.map((line) => `    ${firstLine(line)}`).join('\n')}`);
    return found.length > 0;
  }
  // runs what has to catch this fault, on the copy
  const finding = await caught(fault.caughtBy, copy);
  console.log(
    `${finding === null ? '✖' : '✔'} ${fault.name}\n    ${wordsOf(fault.caughtBy)}: ${finding === null ? 'nothing' : firstLine(finding)}`,
  );
  return finding !== null;
};

const words = process.argv.slice(2);
const all = words.includes('--all');
const chosen = words.filter((word) => word !== '--all');
const wanted = faults.filter(
  ({ name }) =>
    chosen.length === 0 || chosen.some((word) => name.toLowerCase().includes(word.toLowerCase())),
);
const copies = await openMachineCopies();
let caughtCount = 0;
for (const fault of wanted) if (await tryFault(copies, fault, all)) caughtCount += 1;
await copies.close();
console.log(
  wanted.length === 0
    ? `no fault is named like ${chosen.join(', ')}`
    : `${caughtCount} of ${wanted.length} caught`,
);
process.exitCode = wanted.length > 0 && caughtCount === wanted.length ? 0 : 1;
