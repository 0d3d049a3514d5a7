/** Streams 5,000 tokens through one face in a separate terminal, and writes the cost to a file. */

import { writeFileSync, writeSync } from 'node:fs';
import { initialState, step } from '../packages/agent/src/machine/machine.js';
import { defaultSettings } from '../packages/agent/src/machine/settings.js';
import type { Stepped } from '../packages/agent/src/ports/session.js';
import { fakeClock } from '../packages/pawl/src/testing.js';
import {
  createLiveArea,
  inputBox,
  settingsRows,
  statusRow,
} from '../packages/terminal/src/live-area.js';
import { loadMarkdown } from '../packages/terminal/src/markdown.js';
import { safe } from '../packages/terminal/src/safe-text.js';
import { Transcript } from '../packages/terminal/src/transcript.js';
import { sections } from './streaming-text.js';

const [, , face = '', file = ''] = process.argv;
const COLUMNS = 100;
const ROWS = 30;
const TOKEN_CHARACTERS = 4;
/** Time that passes with each token: a thousand a second. */
const TOKEN_MS = 1;

let bytes = 0;
let largest = 0;
const write = (text: string): void => {
  const size = Buffer.byteLength(text);
  bytes += size;
  largest = Math.max(largest, size);
  let rest = Buffer.from(text);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(1, rest));
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) throw error;
    }
  }
};

type Face = { take(token: string): void; end(): void };

/** The floor: each token as it comes. */
const plain = (): Face => ({
  take: (token) => write(token.replaceAll('\n', '\r\n')),
  end: () => undefined,
});

/** The product's: Markdown, highlighted code, status, a live area. */
const pawl = (): Face => {
  const clock = fakeClock();
  const look = { colour: 'yes' as const, columns: COLUMNS };
  const area = createLiveArea({
    write,
    size: () => ({ columns: COLUMNS, rows: ROWS }),
    clock,
    reflow: 'all',
  });
  const scroll = new Transcript(look, '/w');
  const started = initialState({ ...defaultSettings, model: 'bench/x', workspace: '/w' });
  const { state } = step(started, {
    type: 'UserInput',
    at: clock.now(),
    text: 'go',
    mode: 'steer',
  });
  const draw = (): void =>
    area.draw(() => {
      const rows = scroll.rows(COLUMNS, clock.now());
      const status = statusRow(state, COLUMNS, clock.now());
      const line = { rows: [safe`> `], cursor: { row: 0, column: 2 } };
      const size = { columns: COLUMNS, rows: ROWS };
      const box = inputBox(line, look, size, settingsRows(state, look, size));
      const row = rows.length + 1 + (box.cursor?.row ?? 0);
      return { rows: [...rows, status, ...box.rows], cursor: { row, column: 2 } };
    });
  return {
    take(text) {
      const event: Stepped['event'] = {
        type: 'TextDelta',
        at: clock.now(),
        requestId: 'req-1',
        text,
      };
      const actions = [{ type: 'DisplayText' as const, text }];
      const lines = scroll.see({ seq: null, event, state, actions, path: [], diagnostics: [] });
      if (lines !== '') area.print(lines);
      draw();
      clock.advance(TOKEN_MS);
    },
    end: () => clock.advance(100),
  };
};

const faces: Readonly<Record<string, () => Face>> = { plain, pawl };

const run = async (): Promise<void> => {
  const makeFace = faces[face];
  if (makeFace === undefined) throw new Error(`no such face: ${face}`);
  const text = sections();
  const tokens = Array.from({ length: Math.ceil(text.length / TOKEN_CHARACTERS) }, (_, at) =>
    text.slice(at * TOKEN_CHARACTERS, (at + 1) * TOKEN_CHARACTERS),
  );
  await loadMarkdown();
  const { take, end } = makeFace();
  const before = process.cpuUsage();
  for (const token of tokens) take(token);
  end();
  const { user, system } = process.cpuUsage(before);
  const cpuMs = (user + system) / 1_000;
  writeFileSync(
    file,
    JSON.stringify({ tokens: tokens.length, characters: text.length, cpuMs, bytes, largest }),
  );
};

await run();
