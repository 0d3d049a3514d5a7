/**
 * The fold of a journal of a million events, checks compared, against what can't be saved: reading
 * the file, summing each line and parsing its JSON. Each in a process of its own, in alternation.
 */

import { mkdtemp, open, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import {
  crc32c,
  encodeHeader,
  encodeRecord,
  NEWLINE,
} from '../packages/agent/src/journal/codec.js';
import { fileJournals } from '../packages/agent/src/journal/file-store.js';
import { agentMachine } from '../packages/agent/src/journal/journaled-agent-machine.js';
import { beginFold, CHECK_EVERY } from '../packages/agent/src/journal/replay.js';
import { journalPath } from '../packages/agent/src/journal/state-folder.js';
import { dueCheck } from '../packages/agent/src/journal/writer.js';
import { step } from '../packages/agent/src/machine/machine.js';
import type { Header } from '../packages/agent/src/ports/journal.js';
import * as given from '../test/kit/agent/given.js';
import { settingsOf } from '../test/kit/agent/settings.js';
import { median } from './figures.js';
import { inOwnProcess } from './own-process.js';

const EVENTS = 1_000_000;
export const SESSION = 'bench';
const TIMES = 5;
/** `deltas`: streamed pieces of one reply that are journaled; `found`: words of one result. */
type Shape = { readonly deltas: number; readonly found: number };
/** Many small entries, of which the machine has most work. */
const SMALL: Shape = { deltas: 20, found: 60 };
const ROUNDS_OF_A_TURN = 10;

const candidates = ['read, sum, parse', 'replay'] as const;
type Candidate = (typeof candidates)[number];
type Run = { readonly wallMs: number; readonly cpuMs: number; readonly megabytes: number };

/**
 * A session that reads and edits, turn after turn: what a model, its tools and its user would send.
 */
function* conversation({ deltas, found }: Shape): Generator<given.Given, never> {
  yield given.begin;
  for (let turn = 0; ; turn += 1) {
    yield given.input(`turn ${turn}: look at the next file, and repair it`);
    for (let round = 0; round < ROUNDS_OF_A_TURN; round += 1) {
      for (let delta = 0; delta < deltas; delta += 1) yield given.delta(`word ${delta} `);
      const [first, second] = [`call-${turn}-${round}-a`, `call-${turn}-${round}-b`];
      yield given.completed({
        text: 'I look at both.',
        calls: [given.grep(first), given.grep(second)],
      });
      for (const callId of [first, second]) {
        yield given.started(callId);
        yield given.ended(callId, 'ok', `src/file-${turn}.ts:${round}: ${'found '.repeat(found)}`);
      }
    }
    yield given.says('It is repaired.');
  }
}

const empty: Header = {
  version: 1,
  sessionId: SESSION,
  createdAt: given.NOW,
  workspace: '/project',
  parent: null,
  machine: agentMachine.fingerprint,
  settings: settingsOf({
    hooks: 'never',
    autoCommit: 'off',
    windowTokens: Number.MAX_SAFE_INTEGER,
    limits: { rounds: 0 },
  }),
  instructions: '',
  tools: '',
  prices: null,
};

/** Writes a journal of so many events as the runtime would, without waiting for the disk. */
export const writeJournal = async (
  folder: string,
  count: number,
  shape: Shape = SMALL,
  workspace = empty.workspace,
): Promise<Header> => {
  const usual: Header = { ...empty, workspace };
  const store = fileJournals({ folder });
  // Creates the folders, and a session that nobody looks at.
  await (await store.create({ ...usual, sessionId: 'other' })).close();
  const header: Header = {
    ...usual,
    instructions: await store.blobs.put('Be brief.'),
    tools: await store.blobs.put('[]'),
  };
  const file = await open(journalPath(folder, SESSION), 'w', 0o600);
  const fold = beginFold(header, agentMachine);
  const first = encodeHeader(header);
  let lines = [first.bytes];
  let { crc } = first;
  const events = conversation(shape);
  for (let seq = 1; seq <= count; seq += 1) {
    const event = given.eventOf(events.next().value, fold.state);
    const taken = step(fold.state, event);
    if (taken.diagnostics.length > 0) throw new Error(`event ${seq}: ${taken.diagnostics[0]?.why}`);
    fold.state = taken.state;
    const line = encodeRecord(
      { entry: { seq, event }, check: dueCheck(fold, seq, fold.state, CHECK_EVERY) },
      crc,
    );
    crc = line.crc;
    lines.push(line.bytes);
    if (lines.length < 10_000 && seq < count) continue;
    await file.write(Buffer.concat(lines));
    lines = [];
  }
  await file.close();
  return header;
};

/** The minimum work of any reader of such a file. */
const readSumParse = async (folder: string): Promise<number> => {
  const handle = await open(journalPath(folder, SESSION));
  let rest = Buffer.alloc(0);
  let crc = 0;
  let events = -1;
  const block = Buffer.allocUnsafe(1 << 20);
  for (;;) {
    const { bytesRead } = await handle.read(block, 0, block.length, null);
    if (bytesRead === 0) break;
    const bytes = Buffer.concat([rest, block.subarray(0, bytesRead)]);
    let start = 0;
    for (let stop = bytes.indexOf(NEWLINE); stop >= 0; stop = bytes.indexOf(NEWLINE, start)) {
      const line = bytes.subarray(start, stop);
      crc = crc32c(line.subarray(0, -SUM_BYTES), crc);
      const value = JSON.parse(line.toString());
      if (Number.parseInt(value.crc, 16) !== crc) throw new Error('a sum does not fit');
      events += 1;
      start = stop + 1;
    }
    rest = bytes.subarray(start);
  }
  await handle.close();
  return events;
};
/** `,"crc":"xxxxxxxx"}` */
const SUM_BYTES = 18;

const replay = async (folder: string): Promise<number> =>
  (await fileJournals({ folder }).peek(SESSION)).seq;

/** Runs in the child. */
const measure = async (candidate: Candidate, folder: string): Promise<Run> => {
  const startedAt = performance.now();
  const events = await (candidate === 'replay' ? replay : readSumParse)(folder);
  if (events !== EVENTS) throw new Error(`${candidate} came to ${events} events`);
  const { user, system } = process.cpuUsage();
  return {
    wallMs: performance.now() - startedAt,
    cpuMs: (user + system) / 1_000,
    megabytes: process.resourceUsage().maxRSS / 1_024,
  };
};

export const benchReplay = async (): Promise<string> => {
  const folder = await mkdtemp(path.join(tmpdir(), 'pawl-bench-replay-'));
  try {
    await writeJournal(folder, EVENTS);
    const runs: Record<Candidate, Run[]> = { 'read, sum, parse': [], replay: [] };
    for (let time = 0; time < TIMES; time += 1) {
      for (const candidate of candidates)
        runs[candidate].push(await inOwnProcess<Run>('bench/replay.ts', candidate, folder));
    }
    const { size } = await stat(journalPath(folder, SESSION));
    const row = (name: string, figure: (run: Run) => number): string => {
      const [floor, own] = candidates.map((candidate) => median(runs[candidate].map(figure)));
      return `| ${name} | ${floor?.toFixed(0)} | ${own?.toFixed(0)} | ${((own ?? Number.NaN) / (floor ?? Number.NaN)).toFixed(2)} |`;
    };
    return [
      `| ${EVENTS.toLocaleString('en-US')} events, ${(size / 1e6).toFixed(0)} MB | read, sum, parse | replay | ratio |`,
      '|---|--:|--:|--:|',
      row('wall, ms', ({ wallMs }) => wallMs),
      row('CPU of the process, ms', ({ cpuMs }) => cpuMs),
      row('peak memory, MB', ({ megabytes }) => megabytes),
      '',
      `Median of ${TIMES} runs. Replay steps the machine over every event and compares the check of every ${CHECK_EVERY}th, and of every state at rest.`,
    ].join('\n');
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};

const [, , own, wanted, folder] = process.argv;
if (own === '--own-process' && folder !== undefined) {
  const candidate = candidates.find((name) => name === wanted);
  if (candidate !== undefined)
    process.stdout.write(JSON.stringify(await measure(candidate, folder)));
}
