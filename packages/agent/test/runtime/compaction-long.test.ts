import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertStates } from '../../../../test/kit/agent/by-hand.js';
import {
  type Answer,
  collect,
  completed,
  ok,
  type Play,
  play,
  rawCall,
  settingsOf,
  testModel,
  tool,
} from '../../../../test/kit/runtime/stage.js';
import { chooseRows } from '../../../../test/tier.js';
import type { Event } from '../../src/machine/event.js';
import type { Message } from '../../src/machine/message.js';
import type { Settings } from '../../src/machine/settings.js';
import type { ModelRequest } from '../../src/ports/model.js';

// Long conversations in small windows, through the real runtime: a provider that counts and refuses what is too long.

const INSTRUCTIONS_TOKENS = 2; // 'be brief'

type World = {
  /** What the provider takes; what the session believes is in its settings. */
  readonly windowTokens: number;
  readonly rounds: number;
  readonly summary: string;
  /** Characters of the results of round n, one for each call. */
  resultsOf(round: number): readonly number[];
};

const tokensOf = ({ messages, tools }: ModelRequest): number => {
  const parts = messages.flatMap((message): readonly Message['parts'][number][] => message.parts);
  const characters = parts.map((part) =>
    part.type === 'call' ? JSON.stringify(part.input).length + part.tool.length : part.text.length,
  );
  const sum = characters.reduce((total, size) => total + size, JSON.stringify(tools).length);
  return INSTRUCTIONS_TOKENS + Math.ceil(sum / 4);
};

const isSummarising = (request: ModelRequest): boolean =>
  request.messages.at(-1)?.parts.some((part) => 'origin' in part && part.origin === 'note') ===
  true;

/** What a provider refuses whatever the size. */
const assertWellFormed = (messages: readonly Message[]): void => {
  let open: readonly string[] = [];
  for (const [index, message] of messages.entries()) {
    assert.equal(message.role, index % 2 === 0 ? 'user' : 'assistant', 'roles alternate');
    assert.ok(message.parts.length > 0, 'a message is empty');
    const answered = message.parts.flatMap((part) => (part.type === 'result' ? [part.callId] : []));
    assert.deepEqual(answered, open, 'each call is answered in the next message');
    open = message.parts.flatMap((part) => (part.type === 'call' ? [part.callId] : []));
  }
};

const wordsOf = (request: ModelRequest): string => JSON.stringify(request.messages);

type Heard = { readonly request: ModelRequest; readonly tokens: number; readonly refused: boolean };

/** A model that works for `rounds` rounds in each turn, behind a provider with a window. */
const workingModel = (world: World) => {
  const heard: Heard[] = [];
  let round = 0;
  const answer: Answer = async function* (request) {
    assertWellFormed(request.messages);
    const tokens = tokensOf(request);
    const refused = tokens > world.windowTokens;
    heard.push({ request, tokens, refused });
    const usage = {
      inputTokens: tokens,
      outputTokens: 10,
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
    };
    if (refused) {
      const error = {
        kind: 'contextOverflow',
        message: 'too long',
        retryable: false,
        retryAfterMs: null,
      } as const;
      yield { type: 'failed', error, usage: null };
      return;
    }
    if (isSummarising(request)) {
      yield { ...completed([{ type: 'text', text: world.summary }]), usage };
      return;
    }
    round += 1;
    if (round % world.rounds === 0) {
      yield { ...completed([{ type: 'text', text: `turn done after round ${round}` }]), usage };
      return;
    }
    const calls = world
      .resultsOf(round)
      .map((size, index) => rawCall(`${round}-${index}`, 'look', { size, round }));
    yield { ...completed(calls, 'toolUse'), usage };
  };
  const model = testModel();
  model.stream = (request, signal) => answer(request, signal);
  return { model, heard };
};

const look = tool('look', ({ size, round }) =>
  ok(`result of round ${round} ${'x'.repeat(Number(size))}`),
);

const open = async (
  world: World,
  own: Partial<Settings> = {},
): Promise<Play & { heard: Heard[] }> => {
  const { model, heard } = workingModel(world);
  const settings = { windowTokens: world.windowTokens, ...own };
  const limits = { ...settingsOf().limits, rounds: 0 };
  const on = await play({ model, tools: [look], settings: { ...settings, limits } });
  return { ...on, heard };
};

/** Says each text when the turn before has ended; the requests of each turn. */
const converse = async (on: Play & { heard: Heard[] }, texts: readonly string[]) => {
  const turns: { readonly text: string; readonly heard: readonly Heard[] }[] = [];
  for (const text of texts) {
    const from = on.heard.length;
    await on.say(text);
    const state = await on.rest();
    assert.ok(
      state.name === 'WaitingForUserInput' && state.reason.kind === 'endOfTurn',
      `the turn of "${text}" ended well: ${JSON.stringify('reason' in state ? state.reason : state.name)}`,
    );
    turns.push({ text, heard: on.heard.slice(from) });
  }
  return turns;
};

const compactions = (on: Play) =>
  on.steps.filter(({ actions }) => actions.some(({ type }) => type === 'StartCompaction'));

/** rules.md#one-compaction-between-replies: never one compaction after the other. */
const assertNoLoop = (on: Play): void => {
  let replies = 1;
  for (const { event, actions } of on.steps) {
    if (event.type === 'LlmCompleted' || event.type === 'UserInput') replies += 1;
    if (!actions.some(({ type }) => type === 'StartCompaction')) continue;
    assert.ok(replies > 0, 'a compaction follows a compaction, and nothing came between them');
    replies = 0;
  }
};

/** Nothing that was said is missing from the journal. */
const assertJournalWhole = async (on: Play, expected: readonly string[]): Promise<void> => {
  const entries: readonly { readonly event: Event }[] = await collect(on.journals.read(on.id));
  const written = JSON.stringify(entries);
  for (const text of expected) assert.ok(written.includes(text), `the journal lacks "${text}"`);
};

/** A sequence that looks random and is the same each time. */
const sizes = (seed: number, most: number) => {
  let value = seed;
  return (): number => {
    value = (value * 48_271) % 2_147_483_647;
    return value % most;
  };
};

const requestTexts = [
  'first: repair the parser',
  'second: now its tests',
  'third: and the documentation',
  'last: tidy up',
];

for (const seed of chooseRows([1, 7, 42])) {
  test(`hundreds of rounds in a small window are compacted before the provider refuses (seed ${seed})`, async () => {
    const draw = sizes(seed, 1_500);
    const results = Array.from({ length: 400 }, () =>
      Array.from({ length: 1 + (draw() % 3) }, draw),
    );
    const world: World = {
      windowTokens: 12_000,
      rounds: 75,
      summary: `summary ${'s'.repeat(2_000)}`,
      resultsOf: (round) => results[round] ?? [],
    };
    const on = await open(world);
    const turns = await converse(on, requestTexts);
    assertStates(on.steps);
    assertNoLoop(on);
    assert.ok(compactions(on).length >= 5, `${compactions(on).length} compactions`);
    assert.deepEqual(
      on.heard.filter(({ refused }) => refused).length,
      0,
      'a compaction came before each overflow',
    );
    for (const { text, heard } of turns) {
      for (const { request } of heard) {
        assert.equal(request.instructions, 'be brief');
        if (!isSummarising(request))
          assert.ok(wordsOf(request).includes(text), `a request lacks "${text}"`);
      }
    }
    await assertJournalWhole(on, [
      ...requestTexts,
      ...results
        .slice(1, 290)
        .flatMap((_sizes, index) =>
          (index + 1) % world.rounds === 0 ? [] : [`result of round ${index + 1} `],
        ),
    ]);
    const { state } = await on.journals.peek(on.id);
    assert.deepEqual(state, await on.state(), 'the journal folds to the same state');
  });
}

test('results that fill the window at once lead to one compaction, then are cut, and the turn goes on', async () => {
  const world: World = {
    windowTokens: 12_000,
    rounds: 12,
    summary: 'summary',
    resultsOf: (round) => (round % 5 === 0 ? [29_000, 29_000] : [800]),
  };
  const on = await open(world);
  await converse(on, requestTexts.slice(0, 3));
  assertStates(on.steps);
  assertNoLoop(on);
  const refused = on.heard.filter((one) => one.refused);
  assert.ok(refused.length > 0, 'the window was filled at once');
  const warned = on.steps.filter(({ actions }) =>
    actions.some(
      (action) => action.type === 'DisplayWarning' && action.text.includes('results were cut'),
    ),
  );
  assert.equal(
    warned.length,
    refused.length,
    'each refusal was answered by cutting the results, once',
  );
});

test('a window that is smaller than believed: each overflow leads to one compaction whose request fits', async () => {
  const world: World = {
    windowTokens: 8_000,
    rounds: 40,
    summary: 'summary',
    resultsOf: () => [1_200],
  };
  const on = await open(world, { windowTokens: 128_000 });
  await converse(on, requestTexts);
  assertStates(on.steps);
  assertNoLoop(on);
  const refused = on.heard.filter((one) => one.refused);
  assert.ok(refused.length > 2);
  assert.equal(compactions(on).length, refused.length);
  const summarising = on.heard.filter(({ request }) => isSummarising(request));
  assert.deepEqual(
    summarising.filter(({ tokens }) => tokens > 0.75 * world.windowTokens),
    [],
    'a summary needs room, too',
  );
});

test('a model with a smaller window takes the session over: what is summarised is made to fit', async () => {
  const world = {
    windowTokens: 60_000,
    rounds: 40,
    summary: 'summary',
    resultsOf: () => [4_500],
  };
  const on = await open(world);
  await converse(on, requestTexts.slice(0, 1));
  assert.equal(compactions(on).length, 0);
  world.windowTokens = 10_000;
  await on.runtime.send(on.id, { type: 'SettingsChanged', patch: { windowTokens: 10_000 } });
  await converse(on, requestTexts.slice(1));
  assertStates(on.steps);
  assert.deepEqual(
    on.heard.filter(({ refused }) => refused),
    [],
  );
  assert.match(
    wordsOf(on.heard.filter(({ request }) => isSummarising(request))[0]?.request ?? assert.fail()),
    /first: repair/,
  );
});

test('instructions that alone fill the threshold make a compaction a reply at most, and the turn ends', async () => {
  const world: World = {
    windowTokens: 12_000,
    rounds: 20,
    summary: 's'.repeat(40_000),
    resultsOf: () => [100],
  };
  const on = await open(world, { compactAtRatio: 0.5, compactMidRatio: 0.5 });
  await converse(on, requestTexts.slice(0, 2));
  assertStates(on.steps);
  assertNoLoop(on);
});

test('a model that writes no summaries is asked for one a reply at most, and the turn ends with the reason', async () => {
  const world: World = { windowTokens: 12_000, rounds: 200, summary: '', resultsOf: () => [1_000] };
  const on = await open(world);
  await on.say('first');
  const state = await on.rest();
  assert.ok(state.name === 'WaitingForUserInput' && state.reason.kind === 'error');
  assert.ok(compactions(on).length > 1);
  assertStates(on.steps);
  assertNoLoop(on);
  await assertJournalWhole(on, ['result of round 1 ', 'result of round 30 ']);
});
