/**
 * `node --import tsx scripts/plant.ts [WORDS…]`: plants faults in copies of the sources, one at a
 * time, and looks whether what should find each does. The checkout is not touched. Words choose
 * faults by their harm or by what finds them (`simulator`).
 */
import { plantedFaults } from '../packages/verify/test/planted-faults.js';
import { describeCatcher, findFault } from './plant/fault.js';

const words = process.argv.slice(2).map((word) => word.toLowerCase());
const chosen = plantedFaults.filter((fault) => {
  const text = `${fault.harm} ${describeCatcher(fault.catcher)}`.toLowerCase();
  return words.length === 0 || words.some((word) => text.includes(word));
});
/** The rarest faults show once in tens of thousands of sessions. */
const SESSIONS_MAX = 100_000;

let found = 0;
for (const fault of chosen) {
  const finding = await findFault(fault.catcher, fault, SESSIONS_MAX);
  if (finding !== null) found += 1;
  const [first] = finding?.trim().split('\n') ?? ['nothing'];
  console.log(`${finding === null ? '✖' : '✔'} ${fault.harm}`);
  console.log(`    ${describeCatcher(fault.catcher)}: ${first}`);
}
console.log(`${found} of ${chosen.length} found`);
process.exitCode = chosen.length > 0 && found === chosen.length ? 0 : 1;
