/**
 * `npm run explore`: explores the machine within larger bounds, and writes the figures with
 * their date into docs/proof/exploration.md. Takes long.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { agent } from '../packages/agent/src/machine/machine.js';
import { exploreAll, reportText } from '../packages/pawl/src/commands/machine-check.js';
import { defaultBounds } from '../packages/verify/src/exploration/configuration.js';
import {
  type CheckResult,
  combineResults,
  excusedArrows,
  isSound,
} from '../packages/verify/src/exploration/explore.js';
import { projections } from '../packages/verify/src/projections/all-projections.js';
import { splice } from './diagram.js';

const DOCUMENT = path.join(fileURLToPath(import.meta.url), '../../docs/proof/exploration.md');
const STATES_MAX = 20_000_000;
const STATES_WANTED = 1_000_000;

const bounds = {
  ...defaultBounds,
  reads: 3,
  edits: 1,
  retries: 3,
  steers: 3,
  followUps: 3,
  budgetStops: 2,
};

const count = (amount: number): string => amount.toLocaleString('en-US');

/** The section of the document: date, bounds and results. */
const pageOf = (check: CheckResult, seconds: number): string => {
  // the bounds that differ from the usual ones
  const larger = Object.entries(bounds)
    .filter(([name, value]) =>
      Object.entries(defaultBounds).every(([other, least]) => other !== name || least !== value),
    )
    .map(([name, value]) => `${name}=${value}`);
  const rows = check.configurations.map(
    ({ name, states, steps, depth }) =>
      `| ${name} | ${count(states)} | ${count(steps)} | ${depth} |`,
  );
  const day = new Date().toISOString().slice(0, 10);
  return [
    `${day}, Node ${process.versions.node}, ${cpus().length} cores, ${Math.round(seconds / 60)} minutes, bounds ${larger.join(', ')}: ${check.complete ? 'complete' : 'not complete'}, ${check.violations} violations, ${check.illegalProjections} illegal projections, ${check.edges.reached} of ${check.edges.all} arrows.`,
    '',
    '| configuration | states | steps | depth |',
    '|---|--:|--:|--:|',
    ...rows,
    `| **together** | **${count(check.states)}** | **${count(check.steps)}** | |`,
  ].join('\n');
};

const startedAtMs = Date.now();
const explored = await exploreAll({ bounds, statesMax: STATES_MAX }, (name, { states, steps }) =>
  console.error(`${name}: ${count(states)} states, ${count(steps)} steps`),
);
// every arrow must be taken, but for the excused ones
const check = combineResults(explored, agent.edges, projections, excusedArrows);
console.log(reportText(check));
if (check.violation !== null) console.log(check.violation.trace);
if (isSound(check) && check.states >= STATES_WANTED) {
  const page = pageOf(check, (Date.now() - startedAtMs) / 1000);
  writeFileSync(DOCUMENT, splice(readFileSync(DOCUMENT, 'utf8'), 'deep', page));
} else {
  console.log(
    `nothing is written: the check is not sound, or has fewer than ${count(STATES_WANTED)} states`,
  );
  process.exitCode = 1;
}
