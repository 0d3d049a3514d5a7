import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { realpathSync } from 'node:fs';
import os from 'node:os';
import { test } from 'node:test';
import { adapterOptions } from '../../../../test/kit/models/adapter-options.js';
import { ok, tool } from '../../../../test/kit/runtime/stage.js';
import { startChatServer } from '../../../../test/servers/chat.js';
import type { WireReply } from '../../../../test/servers/reply.js';
import { promptTokens } from '../../../../test/servers/strict.js';
import { memoryJournals } from '../../src/journal/memory-store.js';
import { UNKNOWN } from '../../src/models/catalogue.js';
import { compatibleModel } from '../../src/models/openai-compatible.js';
import { openSession } from '../../src/session/create-agent.js';

/** Long turns at a server that counts prompt and answer together: the turn ends with its answer. */

const WINDOW = 20_000;
const ROUNDS = 31;
/** About 1,000 tokens. */
const RESULT = 'word '.repeat(800);

type Row = {
  readonly title: string;
  /** Whether the server counts the answer, too. */
  readonly counts: 'both' | 'prompt';
  /** What the session takes the window for. */
  readonly windowTokens: number;
  readonly reports: 'usage' | 'nothing';
  /** Requests that are refused at most. */
  readonly refusals: number;
};

const rows: readonly Row[] = [
  { title: 'a known window', counts: 'both', windowTokens: WINDOW, reports: 'usage', refusals: 0 },
  {
    title: 'a known window without usage',
    counts: 'both',
    windowTokens: WINDOW,
    reports: 'nothing',
    refusals: 4,
  },
  {
    title: 'an unknown window',
    counts: 'both',
    windowTokens: 128_000,
    reports: 'usage',
    refusals: 6,
  },
  {
    title: 'the prompt alone',
    counts: 'prompt',
    windowTokens: WINDOW,
    reports: 'usage',
    refusals: 0,
  },
];

for (const { title, counts, windowTokens, reports, refusals } of rows) {
  test(`a turn goes on past the end of its window: ${title}`, async (context) => {
    let rounds = 0;
    const summaries: number[] = [];
    const reply = (body: object): WireReply => {
      const text = JSON.stringify(body);
      const input = promptTokens(body as never); // as it was sent
      const tokens = { input: reports === 'usage' ? input : 0, cached: 0, output: 20 };
      const isSummary = text.includes('Unknown: calls whose outcome');
      if (isSummary) summaries.push(Number((body as { max_tokens?: number }).max_tokens));
      const words = isSummary ? 'We read files.' : 'All is read.';
      if (isSummary || ++rounds > ROUNDS)
        return { type: 'message', parts: [{ type: 'text', text: words }], tokens };
      const call = { type: 'call', id: `c${rounds}`, name: 'read', input: {} } as const;
      return { type: 'message', parts: [call], tokens };
    };
    const habits = counts === 'both' ? { windowTokens: WINDOW } : {};
    const server = await startChatServer(reply, { habits });
    context.after(() => server.close());
    const session = await openSession({
      workspace: realpathSync(os.tmpdir()),
      journals: memoryJournals(),
      model: compatibleModel(
        adapterOptions('openai-compatible/m', `${server.url}/v1`, {
          apiKey: title,
          facts: { ...UNKNOWN, windowTokens },
        }),
      ),
      tools: [tool('read', () => ok(RESULT))],
      settings: { hooks: 'never', windowTokens, retrySchedule: { kind: 'linear', stepMs: 1 } },
    });
    context.after(() => session.close());
    await session.send({ type: 'UserInput', text: 'read all', mode: 'steer' });
    const state = await session.idle();
    assert.ok(state.name === 'WaitingForUserInput');
    assert.deepEqual(state.reason, { kind: 'endOfTurn', cause: 'answer' });
    const faults = server.requests.flatMap(({ fault }) => fault ?? []);
    assert.ok(faults.length <= refusals, faults.join('\n'));
    assert.ok(summaries.length > 0 && summaries.every((most) => most <= 4_000), `${summaries}`);
  });
}
