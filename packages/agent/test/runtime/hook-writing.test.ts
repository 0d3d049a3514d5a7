import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Answer,
  callTools,
  command,
  completed,
  ok,
  overloaded,
  rawCall,
  say,
  settle,
  testModel,
  tool,
} from '../../../../test/kit/runtime/stage.js';
import { toldUsage } from '../../src/machine/moves/request.js';
import { defaultSettings, type Settings } from '../../src/machine/settings.js';
import { reservedUsd } from '../../src/machine/state.js';
import type { Hooks } from '../../src/ports/hooks.js';
import type { TokenUsage } from '../../src/ports/model.js';
import type { ToolOutcome } from '../../src/ports/tool.js';
import { ALL, CHANGED, eventsOf, hooksOf, playWith, QUIET, type Watched } from './hooks.js';

// One call of the test model costs 100 tokens at 1 dollar a million, and 10 at 10.
const ONE_CALL_USD = 0.0002;

const writing = (...texts: readonly string[]): Watched => {
  const hooks: Watched = hooksOf({
    CheckingGitCommits: () => CHANGED,
    AutoCommitting: async ({ write }) => {
      for (const text of texts) hooks.log.push(`wrote ${await write('be brief', text)}`);
      return QUIET;
    },
  });
  return hooks;
};

const asking = (...answers: readonly Answer[]) =>
  testModel(callTools(rawCall('1', 'make')), ...answers, say('done'));

const COMMITTING: Partial<Settings> = { ...ALL, formatter: 'off' };

test('what a hook has the model write is asked for aside from the conversation, and paid for', async () => {
  const hooks = writing('a diff', 'another');
  const on = await playWith(hooks, {
    model: asking(say(' Add a\n'), say('Add b')),
    settings: COMMITTING,
  });
  await on.say('go');
  const { session } = await on.rest();
  assert.deepEqual(hooks.log.slice(-2), ['wrote Add a', 'wrote Add b']);
  const asked = on.model.requests[1];
  assert.deepEqual(
    [asked?.instructions, asked?.tools, asked?.messages.length],
    ['be brief', [], 1],
  );
  assert.doesNotMatch(JSON.stringify(on.model.requests.at(-1)), /a diff/);
  const [event] = await eventsOf(on, 'HookCompleted').then((events) => events.slice(-1));
  assert.ok(event?.type === 'HookCompleted' && event.usage !== null);
  assert.ok(Math.abs((event.usage.costUsd ?? 0) - 2 * ONE_CALL_USD) < 1e-9);
  assert.ok(Math.abs(session.usage.costUsd - 4 * ONE_CALL_USD) < 1e-9);
});

const cut: Answer = async function* () {
  yield completed([{ type: 'text', text: 'Add' }], 'maxTokens');
};

for (const usd of ['unlimited', 10] as const)
  test(`a text that is refused costs nothing: limit ${usd}`, async () => {
    const limits = { ...defaultSettings.limits, usd };
    const settings = { ...COMMITTING, limits };
    const on = await playWith(writing('a diff'), { model: asking(overloaded), settings });
    await on.say('go');
    const state = await on.rest();
    assert.ok(Math.abs(state.session.usage.costUsd - 2 * ONE_CALL_USD) < 1e-9);
    assert.equal(reservedUsd(state.session), 0);
    assert.equal(toldUsage(state).atLeast, undefined);
  });

/** Was given up after a part of it was counted, or without a word of its usage. */
const breaksOff = (usage: TokenUsage | null): Answer =>
  async function* () {
    const error = {
      kind: 'unreachable',
      message: '',
      retryable: true,
      retryAfterMs: null,
    } as const;
    yield { type: 'text', text: 'Add' };
    yield { type: 'failed', error, usage };
  };
const begun = { inputTokens: 100, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 };

for (const usage of [begun, null])
  test(`a text that breaks off makes the sum a lower bound, or its worst case counts: ${usage === null ? 'without' : 'with'} usage`, async () => {
    const plain = await playWith(writing('a diff'), {
      model: asking(breaksOff(usage)),
      settings: COMMITTING,
    });
    await plain.say('go');
    assert.equal(toldUsage(await plain.rest()).atLeast, true);

    const settings = { ...COMMITTING, limits: { ...defaultSettings.limits, usd: 10 } };
    const on = await playWith(writing('a diff'), { model: asking(breaksOff(usage)), settings });
    await on.say('go');
    const state = await on.rest();
    const { outputTokensMax = 0 } = on.model.requests[1] ?? {};
    const worstUsd = (outputTokensMax * 10) / 1e6;
    assert.ok(worstUsd > ONE_CALL_USD, 'control');
    assert.ok(state.session.usage.costUsd >= 2 * ONE_CALL_USD + worstUsd);
    assert.equal(toldUsage(state).atLeast, undefined);
  });

test('a text that fails, is cut off or breaks is none', async () => {
  const hooks = writing('one', 'two', 'three');
  const broken: Answer = () => {
    throw new Error('no such model');
  };
  const on = await playWith(hooks, {
    model: asking(overloaded, cut, broken),
    settings: COMMITTING,
  });
  await on.say('go');
  await on.rest();
  assert.deepEqual(hooks.log.slice(-3), ['wrote null', 'wrote null', 'wrote null']);
});

/** Says what it used only after it was given up. */
const usesLate: Answer = async function* (_request, signal) {
  await new Promise<void>((resolve) =>
    signal.addEventListener('abort', () => resolve(), { once: true }),
  );
  yield completed([{ type: 'text', text: 'too late' }]);
};

for (const usd of ['unlimited', 10] as const)
  test(`a text that does not come in time is none, and what it used counts all the same: limit ${usd}`, async () => {
    const limits = { ...defaultSettings.limits, usd };
    const hooks = writing('a diff');
    const slow: Hooks = { ...hooks, deadlinesMs: { ...hooks.deadlinesMs, AutoCommitting: 60_000 } };
    const on = await playWith(slow, {
      model: asking(usesLate),
      settings: { ...COMMITTING, limits },
    });
    await on.say('go');
    await on.until(({ path }) => path.some(({ as }) => as === 'AutoCommitting'));
    await settle();
    on.clock.advance(20_000);
    const { session } = await on.rest();
    assert.equal(hooks.log.at(-1), 'wrote null');
    assert.ok(
      Math.abs(session.usage.costUsd - 3 * ONE_CALL_USD) < 1e-9,
      String(session.usage.costUsd),
    );
    assert.deepEqual(session.unaccounted, []);
  });

test('a model that does not fall silent holds the phase up for a grace time only', async () => {
  const hooks = writing('a diff');
  const slow: Hooks = { ...hooks, deadlinesMs: { ...hooks.deadlinesMs, AutoCommitting: 60_000 } };
  const deaf: Answer = async function* () {
    await new Promise(() => undefined);
  };
  const on = await playWith(slow, { model: asking(deaf), settings: COMMITTING });
  await on.say('go');
  await on.until(({ path }) => path.some(({ as }) => as === 'AutoCommitting'));
  await settle();
  on.clock.advance(20_000);
  await settle();
  assert.equal((await on.state()).name, 'PostToolsHook');
  on.clock.advance(5_000);
  await on.rest();
});

test('under a limit in dollars, what a model that does not fall silent may have cost counts as spent', async () => {
  const hooks = writing('a diff');
  const slow: Hooks = { ...hooks, deadlinesMs: { ...hooks.deadlinesMs, AutoCommitting: 60_000 } };
  const deaf: Answer = async function* () {
    await new Promise(() => undefined);
  };
  const settings = { ...COMMITTING, limits: { ...defaultSettings.limits, usd: 10 } };
  const on = await playWith(slow, { model: asking(deaf), settings });
  await on.say('go');
  await on.until(({ path }) => path.some(({ as }) => as === 'AutoCommitting'));
  await settle();
  const held = reservedUsd((await on.state()).session);
  assert.ok(held > 0, 'control: money is set aside for the text');
  on.clock.advance(20_000);
  await settle();
  on.clock.advance(5_000);
  const { session } = await on.rest();
  assert.ok(Math.abs(session.usage.costUsd - 2 * ONE_CALL_USD - held) < 1e-9);
  assert.equal(reservedUsd(session), 0);
});

test('once a limit of the session is reached nothing is written', async () => {
  const hooks = writing('a diff');
  let end = (_outcome: ToolOutcome): void => undefined;
  const waits = tool(
    'make',
    () =>
      new Promise<ToolOutcome>((resolve) => {
        end = resolve;
      }),
    command,
  );
  const on = await playWith(hooks, { tools: [waits], model: asking(), settings: COMMITTING });
  await on.say('go');
  await settle();
  const limits = { ...defaultSettings.limits, usd: ONE_CALL_USD };
  await on.runtime.send(on.id, { type: 'SettingsChanged', patch: { limits } });
  end(ok('made'));
  await on.rest();
  assert.equal(hooks.log.at(-1), 'wrote null');
  assert.equal(on.model.requests.length, 1);
});

test('what a phase used that failed, or was cancelled, is reported when it is known', async () => {
  const failing = hooksOf({
    CheckingGitCommits: () => CHANGED,
    AutoCommitting: async ({ write }) => {
      await write('be brief', 'a diff');
      throw new Error('the disk is full');
    },
  });
  const on = await playWith(failing, { model: asking(say('Add a')), settings: COMMITTING });
  await on.say('go');
  const { session } = await on.rest();
  assert.ok(Math.abs(session.usage.costUsd - 3 * ONE_CALL_USD) < 1e-9);

  const cancelled = await playWith(writing('a diff'), {
    model: asking(usesLate),
    settings: COMMITTING,
  });
  await cancelled.say('go');
  await cancelled.until(({ path }) => path.some(({ as }) => as === 'AutoCommitting'));
  await settle();
  await cancelled.runtime.send(cancelled.id, { type: 'CancelTurn' });
  await cancelled.until(({ event }) => event.type === 'UsageReported');
  const after = await cancelled.state();
  assert.equal(after.name, 'WaitingForUserInput');
  assert.ok(Math.abs(after.session.usage.costUsd - 2 * ONE_CALL_USD) < 1e-9);
  assert.equal(cancelled.clock.waiting(), 0);
});
