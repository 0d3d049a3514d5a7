import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { countCases } from '../../../../test/tier.js';
import { bufferSource } from '../../src/journal/codec.js';
import { JournalError } from '../../src/journal/journal-error.js';
import { JournalScan } from '../../src/journal/reader.js';
import type { Mark } from '../../src/journal/state-folder.js';

/**
 * A real journal, cut at any byte or with any bit changed, gives exactly its entries up to there, or is refused.
 *
 * PAWL_COUNT of each, evenly spread; every byte and every bit with PAWL_COUNT=0 (some minutes).
 */
const RUNS = countCases(1_500);

/** The journal in an export: it stands after the line of the manifest. */
const journalIn = (name: string): Buffer => {
  const bytes = readFileSync(fileURLToPath(new URL(`golden/${name}.pawl`, import.meta.url)));
  const start = bytes.indexOf(0x0a) + 1;
  const { journal } = JSON.parse(bytes.toString('utf8', 0, start)); // our own file
  return bytes.subarray(start, start + Number(journal.bytes));
};

const good = journalIn('format-1');
/** Byte after each line, the header first. */
const ends = [...good.entries()].flatMap(([at, byte]) => (byte === 0x0a ? [at + 1] : []));

type Read = {
  readonly entries: readonly string[];
  readonly crcs: readonly number[];
  readonly ending: JournalScan<never>['ending'] | null;
};

const read = async (bytes: Buffer, mark: Mark | null): Promise<Read> => {
  const [entries, crcs]: [string[], number[]] = [[], []];
  try {
    const scan = await JournalScan.begin(bufferSource(bytes), 'a.jsonl', bytes.length);
    for await (const records of scan.records()) {
      for (const { entry } of records) entries.push(JSON.stringify(entry));
      crcs.push(scan.crc);
    }
    scan.compare(mark);
    return { entries, crcs, ending: scan.ending };
  } catch (error) {
    assert.ok(error instanceof JournalError, String(error)); // the header
    return { entries: [], crcs: [], ending: null };
  }
};

const whole = await read(good, null);
const lastMark = { seq: whole.entries.length, crc: whole.crcs.at(-1) ?? 0 };

/** Numbers below `count`: all, or some that are evenly spread, and those beside the ends of lines. */
const chosen = (count: number, perByte: number): readonly number[] => {
  const step = RUNS === 0 ? 1 : Math.max(1, Math.floor(count / RUNS));
  const spread = Array.from(
    { length: Math.ceil(count / step) },
    (_, index) => index * step + (index % step),
  );
  const edges = ends.flatMap((end) => [end - 2, end - 1, end, end + 1].map((at) => at * perByte));
  return [...new Set([...spread, ...edges])].filter((at) => at < count);
};

test('a journal that was cut at any byte gives exactly its whole entries', async () => {
  assert.deepEqual([whole.entries.length, whole.ending?.kind], [ends.length - 1, 'whole']);
  for (const size of chosen(good.length, 1)) {
    // without its line feed an entry is whole
    const lines = ends.filter((end) => end - 1 <= size).length;
    const cut = await read(good.subarray(0, size), null);
    assert.deepEqual(
      cut.entries,
      whole.entries.slice(0, Math.max(0, lines - 1)),
      `at byte ${size}`,
    );
    const atEnd = ends.includes(size) ? 'whole' : ends.includes(size + 1) ? 'unended' : 'torn';
    assert.equal(cut.ending?.kind ?? 'refused', lines === 0 ? 'refused' : atEnd, `at byte ${size}`);
    if (lines === 0 || lines === ends.length) continue;
    const missed = await read(good.subarray(0, size), lastMark);
    assert.equal(missed.ending?.kind, 'damaged', `the mark names entries behind byte ${size}`);
  }
});

test('a journal with any bit changed is refused, and gives exactly the entries before it', async () => {
  for (const bit of chosen(good.length * 8, 8)) {
    const at = bit >> 3;
    const changed = Buffer.from(good);
    changed[at] = (changed[at] ?? 0) ^ (1 << (bit & 7));
    const line = ends.findIndex((end) => at < end);
    for (const mark of [null, lastMark]) {
      const { entries, ending } = await read(changed, mark);
      assert.deepEqual(entries, whole.entries.slice(0, Math.max(0, line - 1)), `bit ${bit}`);
      assert.equal(ending?.kind ?? 'refused', line === 0 ? 'refused' : 'damaged', `bit ${bit}`);
    }
  }
});
