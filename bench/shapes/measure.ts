/**
 * Asks one question about one file, in a process of its own, and measures time, memory and
 * requests. Its program prints the measurements as JSON for shapes.ts.
 */

import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createAsker } from '../../packages/ask/src/create-asker.js';
import { fileAskJournals } from '../../packages/ask/src/journaled-ask-machine.js';
import type { EnvironmentName } from '../../packages/ask/src/ports.js';
import { readerModel, rootModel, type Sent } from './models.js';

export type Measured = {
  /** The submitted answer, or how the run ended without one. */
  readonly answer: string;
  readonly wallMs: number;
  /** Largest resident set of this process, with all that it loaded. */
  readonly ownMegabytes: number;
  /** The same of the processes below it together; 0 where there are none. */
  readonly environmentMegabytes: number;
  readonly sent: Readonly<Sent>;
};

/** A file of /proc; empty of a process that is gone by now, or where there is no /proc. */
const proc = (file: string): string => {
  try {
    return readFileSync(`/proc/${file}`, 'utf8');
  } catch {
    return ''; // what was measured before stands
  }
};

const below = (pid: string): readonly string[] =>
  proc(`${pid}/task/${pid}/children`)
    .split(' ')
    .filter((word) => word !== '')
    .flatMap((child) => [child, ...below(child)]);

/** Notes the peak of each process below this one, ten times a second. */
const watchProcesses = (): (() => number) => {
  const peaks = new Map<string, number>();
  const note = (): void => {
    for (const pid of below(String(process.pid))) {
      const kilobytes = Number(/VmHWM:\s+(\d+)/.exec(proc(`${pid}/status`))?.[1] ?? 0);
      peaks.set(pid, Math.max(peaks.get(pid) ?? 0, kilobytes));
    }
  };
  const timer = setInterval(note, 100);
  return () => {
    note();
    clearInterval(timer);
    return [...peaks.values()].reduce((sum, kilobytes) => sum + kilobytes, 0) / 1_024;
  };
};

/**
 * Asks about a file with journals on disk, models that are scripted, and an environment that is
 * real.
 */
export const askAbout = async (
  file: string,
  question: string,
  environment: EnvironmentName,
): Promise<Measured> => {
  const folder = await mkdtemp(path.join(tmpdir(), 'pawl-bench-shapes-'));
  const sent: Sent = { calls: 0, characters: 0, longest: 0 };
  const endWatch = watchProcesses();
  try {
    const journals = fileAskJournals({ folder });
    const asker = createAsker({ model: rootModel(sent), subModel: readerModel(sent), journals });
    const startedAt = performance.now();
    const run = await asker.ask({
      question,
      contexts: [{ path: file }],
      workspace: folder,
      environment,
    });
    const outcome = await run.outcome;
    const wallMs = performance.now() - startedAt;
    await run.close();
    return {
      answer: outcome.status === 'answered' ? outcome.answer : JSON.stringify(outcome),
      wallMs,
      ownMegabytes: process.resourceUsage().maxRSS / 1_024,
      environmentMegabytes: endWatch(),
      sent,
    };
  } finally {
    endWatch();
    await rm(folder, { recursive: true, force: true });
  }
};

const [, , own, file, question, environment] = process.argv;
if (own === '--own-process' && file !== undefined && question !== undefined) {
  const known = (['javascript', 'quickjs', 'python'] as const).find((name) => name === environment);
  if (known === undefined) throw new Error(`unknown environment: ${environment}`);
  process.stdout.write(JSON.stringify(await askAbout(file, question, known)));
}
