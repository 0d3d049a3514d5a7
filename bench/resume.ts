import { copyFile, mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { openSession } from '../src/api/create-agent.js';
import { fileJournals } from '../src/journal/file-store.js';
import { journalPath } from '../src/journal/journal-paths.js';
import { scriptedModel } from '../src/models/scripted/scripted-model.js';
import { median } from './figures.js';
import { inOwnProcess } from './own-process.js';
import { SESSION, writeJournal } from './replay.js';

/**
 * Opening a session of 10,000 events and sending its next request, against reading and parsing its file. Each in a
 * process of its own, in alternation.
 */

const EVENTS = 10_000;
/** As sessions are: the text of a whole reply is not journaled piece by piece, and results are parts of files. */
const SHAPE = { deltas: 0, found: 500 };
const TIMES = 9;

const candidates = ['read, parse', 'open', 'open, first request'] as const;
type Candidate = (typeof candidates)[number];
type Run = { readonly wallMs: number; readonly cpuMs: number };

const readAndParse = async (folder: string): Promise<void> => {
  const lines = (await readFile(journalPath(folder, SESSION), 'utf8')).trimEnd().split('\n');
  const values: unknown[] = lines.map((line) => JSON.parse(line));
  if (values.length !== EVENTS + 1) throw new Error(`${values.length} lines`);
};

/** Runs in the child. */
const measure = async (candidate: Candidate, folder: string): Promise<Run> => {
  const startedAt = performance.now();
  const startedCpu = process.cpuUsage();
  if (candidate === 'read, parse') await readAndParse(folder);
  else if (candidate === 'open') await fileJournals({ folder }).open(SESSION);
  else {
    const model = scriptedModel({ replies: [{ text: 'Here I am.' }] });
    const session = await openSession({
      model,
      journals: fileJournals({ folder }),
      workspace: tmpdir(),
      resume: SESSION,
    });
    await session.idle();
  }
  const { user, system } = process.cpuUsage(startedCpu);
  return { wallMs: performance.now() - startedAt, cpuMs: (user + system) / 1_000 };
};

export const benchResume = async (): Promise<string> => {
  const folder = await mkdtemp(path.join(tmpdir(), 'pawl-bench-resume-'));
  try {
    await writeJournal(folder, EVENTS, SHAPE);
    const [file, kept] = [journalPath(folder, SESSION), path.join(folder, 'kept')];
    await copyFile(file, kept);
    const runOne = async (candidate: Candidate): Promise<Run> => {
      await copyFile(kept, file);
      return inOwnProcess<Run>('bench/resume.ts', candidate, folder);
    };
    const runs: Record<Candidate, Run[]> = { 'read, parse': [], open: [], 'open, first request': [] };
    for (let time = 0; time < TIMES; time += 1)
      for (const candidate of candidates) runs[candidate].push(await runOne(candidate));
    const { size } = await stat(kept);
    const row = (name: string, figure: (run: Run) => number): string => {
      const figures = candidates.map((candidate) => median(runs[candidate].map(figure)));
      const [floor = Number.NaN, , whole = Number.NaN] = figures;
      return `| ${name} | ${figures.map((each) => each.toFixed(0)).join(' | ')} | ${(whole / floor).toFixed(2)} |`;
    };
    return [
      `| ${EVENTS.toLocaleString('en-US')} events, ${(size / 1e6).toFixed(1)} MB | ${candidates.join(' | ')} | ratio |`,
      '|---|--:|--:|--:|--:|',
      row('wall, ms', ({ wallMs }) => wallMs),
      row('CPU of the process, ms', ({ cpuMs }) => cpuMs),
      '',
      `Median of ${TIMES} runs.`,
    ].join('\n');
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};

const [, , own, wanted, folder] = process.argv;
if (own === '--own-process' && folder !== undefined) {
  const candidate = candidates.find((name) => name === wanted);
  if (candidate !== undefined) process.stdout.write(JSON.stringify(await measure(candidate, folder)));
}
