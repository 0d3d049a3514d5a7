import assert from 'node:assert/strict';
import test from 'node:test';
import { plain } from '../../../../test/kit/journal/story.js';
import {
  callTools,
  collect,
  ok,
  type Play,
  play,
  rawCall,
  say,
  testModel,
  tool,
} from '../../../../test/kit/runtime/stage.js';
import { agentMachine, replay } from '../../src/journal/journaled-agent-machine.js';
import { memoryJournals } from '../../src/journal/memory-store.js';
import { type JournalStep, steps } from '../../src/journal/steps.js';
import type { Entry, Header } from '../../src/ports/journal.js';
import type { Stepped } from '../../src/ports/session.js';

/** The steps of a journal are the steps as they happened. */

/** A session with a tool, a second turn and a change of settings, until it was shut down. */
const playSession = async (): Promise<Play> => {
  const model = testModel(callTools(rawCall('1', 'look')), say('done'), say('again'));
  const on = await play({
    model,
    tools: [tool('look', () => ok('seen'))],
    journals: memoryJournals(),
  });
  await on.say('look');
  await on.rest();
  await on.runtime.send(on.id, { type: 'SettingsChanged', patch: { maxRetries: 1 } });
  await on.say('once more');
  await on.rest();
  await on.runtime.close(on.id);
  return on;
};

const journalOf = async ({
  journals,
  id,
}: Play): Promise<{ header: Header; entries: readonly Entry[] }> => ({
  header: (await journals.peek(id)).header,
  entries: await collect(journals.read(id)),
});

/** A step as JSON; the edges, which are the same objects in every step, by their ids. */
const shown = ({ seq, event, state, actions, path, diagnostics }: Stepped): unknown =>
  JSON.parse(
    JSON.stringify({ seq, event, state, actions, path: path.map(({ id }) => id), diagnostics }),
  );

test('the steps of a journal are equal to the steps as they happened', async () => {
  const on = await playSession();
  const { header, entries } = await journalOf(on);
  const live = on.steps.filter(({ seq }) => seq !== null);
  const folded = [...steps(header, entries)];
  assert.deepEqual([folded.length, folded.at(-1)?.state.name], [entries.length, 'ShuttingDown']);
  assert.deepEqual(folded.map(shown), live.map(shown));
});

test('each step begins with the state in which the one before it ended', async () => {
  const { header, entries } = await journalOf(await playSession());
  let last = agentMachine.initialState(header.settings);
  for (const { before, state } of steps(header, entries)) {
    assert.deepEqual(plain(before), plain(last));
    last = state;
  }
});

test('entries that come one after another give the same steps, until the reader stops', async () => {
  const { journals, id, ...on } = await playSession();
  const { header, entries } = await journalOf({ ...on, journals, id });
  const expected = [...steps(header, entries)].map(shown);
  assert.deepEqual((await collect(steps(header, journals.read(id)))).map(shown), expected);
  const first: JournalStep[] = [];
  for await (const step of steps(header, journals.read(id))) if (first.push(step) === 3) break;
  assert.deepEqual(first.map(shown), expected.slice(0, 3));
});

test('a replay visits the same steps', async () => {
  const { journals, id, ...on } = await playSession();
  const { header, entries } = await journalOf({ ...on, journals, id });
  const visited: JournalStep[] = [];
  const records = entries.map((entry) => ({ entry, check: null }));
  await replay(header, records, { visit: (step) => visited.push(step) });
  assert.deepEqual(visited, [...steps(header, entries)]);
});

test('an event that the machine does not know leaves a diagnostic and changes nothing', async () => {
  const { header } = await journalOf(await playSession());
  const unknown = { seq: 1, event: { type: 'Sneezed', at: 1 } } as never; // as a later version may write it
  const [step] = steps(header, [unknown]);
  assert.deepEqual(
    [step?.diagnostics.map(({ kind }) => kind), step?.state],
    [['malformed'], step?.before],
  );
});
