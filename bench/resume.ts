/**
 * Opening a session and sending its next request, against reading and parsing its file. Each in a
 * process of its own, in alternation. The session was closed before, as users close it.
 */

import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileJournals } from '../packages/agent/src/journal/file-store.js';
import {
  journalPath,
  makeOwn,
  sessionsFolder,
} from '../packages/agent/src/journal/state-folder.js';
import { scriptedModel } from '../packages/agent/src/models/scripted-model.js';
import { openSession } from '../packages/agent/src/session/create-agent.js';
import { median } from './figures.js';
import { inOwnProcess } from './own-process.js';
import { SESSION, writeJournal } from './replay.js';

const COUNTS = [1_000, 10_000] as const;
/**
 * As sessions are: the text of a whole reply is not journaled piece by piece, and results are parts
 * of files.
 */
const SHAPE = { deltas: 0, found: 500 };
const TIMES = 9;

const candidates = ['read, parse', 'open', 'open, first request'] as const;
type Candidate = (typeof candidates)[number];
type Run = { readonly wallMs: number; readonly cpuMs: number };

const readAndParse = async (folder: string): Promise<void> => {
  const lines = (await readFile(journalPath(folder, SESSION), 'utf8')).trimEnd().split('\n');
  const values: unknown[] = lines.map((line) => JSON.parse(line));
  if (values.length === 0) throw new Error('no lines');
};

const askOnce = async (folder: string): Promise<{ close(): Promise<void> }> => {
  const session = await openSession({
    model: scriptedModel({ replies: [{ text: 'Here I am.' }] }),
    journals: fileJournals({ folder }),
    workspace: folder,
    resume: SESSION,
  });
  await session.idle();
  return session;
};

/** Runs in the child. */
const measure = async (candidate: Candidate, folder: string): Promise<Run> => {
  const startedAt = performance.now();
  const startedCpu = process.cpuUsage();
  if (candidate === 'read, parse') await readAndParse(folder);
  else if (candidate === 'open') await fileJournals({ folder }).open(SESSION);
  else await askOnce(folder);
  const { user, system } = process.cpuUsage(startedCpu);
  return { wallMs: performance.now() - startedAt, cpuMs: (user + system) / 1_000 };
};

/** Puts the files of the sessions back as they were. */
const copySessions = async (from: string, to: string): Promise<void> => {
  await rm(to, { recursive: true, force: true });
  await mkdir(to, { recursive: true, mode: 0o700 });
  for (const name of await readdir(from))
    await copyFile(path.join(from, name), path.join(to, name));
};

const tableOf = async (count: number): Promise<string> => {
  const folder = await mkdtemp(path.join(tmpdir(), 'pawl-bench-resume-'));
  try {
    // as a session that was created here: snapshots of one from elsewhere are not used
    await makeOwn(folder, await writeJournal(folder, count, SHAPE));
    await (await askOnce(folder)).close();
    const [sessions, kept] = [sessionsFolder(folder), path.join(folder, 'kept')];
    await copySessions(sessions, kept);
    const { size } = await stat(journalPath(folder, SESSION));
    const runs: Record<Candidate, Run[]> = {
      'read, parse': [],
      open: [],
      'open, first request': [],
    };
    for (let time = 0; time < TIMES; time += 1)
      for (const candidate of candidates) {
        await copySessions(kept, sessions);
        runs[candidate].push(await inOwnProcess<Run>('bench/resume.ts', candidate, folder));
      }
    const row = (name: string, figure: (run: Run) => number): string => {
      const figures = candidates.map((candidate) => median(runs[candidate].map(figure)));
      const [floor = Number.NaN, ...ours] = figures;
      const ratios = ours.map((each) => (each / floor).toFixed(2)).join(' | ');
      return `| ${name} | ${figures.map((each) => each.toFixed(1)).join(' | ')} | ${ratios} |`;
    };
    return [
      `| ${count.toLocaleString('en-US')} events, ${(size / 1e6).toFixed(1)} MB | ${candidates.join(' | ')} | ratio of open | with the request |`,
      '|---|--:|--:|--:|--:|--:|',
      row('wall, ms', ({ wallMs }) => wallMs),
      row('CPU of the process, ms', ({ cpuMs }) => cpuMs),
    ].join('\n');
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};

export const benchResume = async (): Promise<string> => {
  const tables: string[] = [];
  for (const count of COUNTS) tables.push(await tableOf(count));
  return [...tables, `Median of ${TIMES} runs.`].join('\n\n');
};

const [, , own, wanted, folder] = process.argv;
if (own === '--own-process' && folder !== undefined) {
  const candidate = candidates.find((name) => name === wanted);
  if (candidate !== undefined)
    process.stdout.write(JSON.stringify(await measure(candidate, folder)));
}
