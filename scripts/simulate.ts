/**
 * `npm run simulate -- --sessions N --seed S --threads T`: runs simulated sessions on all cores,
 * and prints their number, their rate and how often each situation occurred that must occur.
 * Ends with 1 if a promise was broken, or if a situation never occurred.
 */
import { spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import type {
  SimulationFailure,
  SimulationReport,
} from '../packages/verify/src/simulation/report-types.js';
import { runWorkers } from './simulation/run-workers.js';

const { values } = parseArgs({
  options: {
    sessions: { type: 'string', default: '10000' },
    seed: { type: 'string', default: String(Math.floor(Date.now() / 1000) * 1000) },
    threads: { type: 'string', default: String(availableParallelism()) },
  },
});
const sessions = Number(values.sessions);
const seed = Number(values.seed);
const threads = Number(values.threads);

/** Unknown outside of a git repository. */
const commit = (): string => {
  const { stdout, status } = spawnSync('git', ['rev-parse', '--short', 'HEAD'], {
    encoding: 'utf8',
  });
  return status === 0 ? stdout.trim() : 'unknown';
};

const describeFailure = ({ seed: failed, checker, text, trace }: SimulationFailure): string =>
  [
    ...trace,
    `${checker}: ${text.split('\n')[0]}`,
    `Seed ${failed}, commit ${commit()}. Repeat it: npm run simulate -- --sessions 1 --seed ${failed}`,
  ].join('\n');

const rate = ({ sessions: done }: SimulationReport, startedAt: number): string => {
  const seconds = (performance.now() - startedAt) / 1000;
  const { user, system } = process.cpuUsage();
  const cpuSeconds = (user + system) / 1_000_000;
  return (
    `${done} sessions in ${seconds.toFixed(0)} s on ${threads} threads, ${(done / seconds).toFixed(0)} a second, ` +
    `${(done / cpuSeconds).toFixed(0)} a second of CPU time`
  );
};

/** About so many lines of progress. */
const LINES = 40;

const runAll = async (): Promise<boolean> => {
  const startedAt = performance.now();
  let sessionsShown = 0;
  const report = await runWorkers({
    seed,
    sessions,
    threads,
    onPart: (done) => {
      if (done.sessions - sessionsShown < sessions / LINES) return;
      sessionsShown = done.sessions;
      console.log(rate(done, startedAt));
    },
  });
  const rows = Object.entries(report.situations).toSorted(([, one], [, other]) => one - other);
  for (const [situation, count] of rows) console.log(`${String(count).padStart(8)}  ${situation}`);
  console.log(
    `${rate(report, startedAt)}; ${report.events} events; seeds from ${seed}, commit ${commit()}`,
  );
  if (report.failure !== null) console.log(describeFailure(report.failure));
  const missing = rows.filter(([, count]) => count === 0).length;
  if (missing > 0) console.log(`${missing} situations never occurred: run more sessions`);
  return report.failure === null && missing === 0;
};

process.exitCode = (await runAll()) ? 0 : 1;
