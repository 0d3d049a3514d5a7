import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openHere } from '../../../../test/kit/api/stage.js';
import {
  command,
  completed,
  ok,
  pieces,
  say,
  testModel,
  tool,
} from '../../../../test/kit/runtime/stage.js';
import { type Model, type ModelPiece, openSession } from '../../src/index.js';
import { bad, CALL, goesOn, shown, uncaught } from './handed-in-stage.js';

/** What a program, a tool or a model hands in and should not: an error or a failed call, and a session that goes on. */

const usage = { inputTokens: 100, outputTokens: 10, cacheReadTokens: 0, cacheWriteTokens: 0 };
const USAGES: readonly [unknown, string][] = [
  [{ ...usage, inputTokens: Number.NaN }, 'inputTokens is NaN'],
  [{ ...usage, outputTokens: -5 }, 'outputTokens is -5'],
  [{ ...usage, cacheReadTokens: Number.POSITIVE_INFINITY }, 'cacheReadTokens is Infinity'],
  [{ ...usage, cacheWriteTokens: 0.5 }, 'cacheWriteTokens is 0.5'],
  [{ ...usage, inputTokens: '100' }, 'inputTokens is "100"'],
  [{ ...usage, inputTokens: 1e300 }, 'inputTokens is 1e+300'],
  [{ ...usage, inputTokens: 5n }, 'it holds a bigint'],
  [{ inputTokens: 5 }, 'outputTokens is missing'],
  [null, 'it is missing'],
  [undefined, 'it is missing'],
];

for (const [reported, why] of USAGES) {
  test(`usage that can't be counted (${why}) is unknown, and said; the reply holds`, async (context) => {
    const warnings: string[] = [];
    const reply = { ...completed([{ type: 'text', text: 'yes' }]), usage: reported } as ModelPiece;
    const { session, journals, workspace } = await openHere(
      context,
      testModel(pieces(reply), say('and')),
      {
        watcher: ({ actions }) => {
          for (const action of actions)
            if (action.type === 'DisplayWarning') warnings.push(action.text);
        },
        settings: { limits: { tokens: 1_000_000 } },
      },
    );
    const turn = await session.prompt('is it?');
    assert.deepEqual([turn.ok, turn.text, turn.usage.costUsd], [true, 'yes', null]);
    assert.equal(warnings.length, 1);
    assert.match(
      warnings[0] ?? '',
      /^the server of test\/one reports no usage that can be counted/,
    );
    const { usage: before } = (await session.state()).session;
    assert.deepEqual([before.costUsd, before.unpriced, before.estimated], [0, 1, ['test/one']]);
    assert.ok(before.inputTokens > 1_000, 'a limit in tokens counts an estimate');
    await session.prompt('and then?');
    const { usage: after } = (await session.state()).session;
    assert.equal(after.inputTokens, before.inputTokens + 100);
    await session.close();
    const again = await openSession({
      journals,
      workspace,
      model: testModel(),
      resume: session.id,
    });
    assert.equal((await again.state()).session.usage.unpriced, 1);
    await again.close();
  });
}

test('usage of a tool that spends is unknown, and said, where it can not be counted', async (context) => {
  const warnings: string[] = [];
  const spender = tool('odd', () => ({ ...ok('paid'), usage: { ...usage, costUsd: -3 } }), {
    ...command,
    spends: 'yes',
  });
  const { session } = await openHere(context, testModel(CALL, say('done')), {
    tools: [spender],
    watcher: ({ actions }) => {
      for (const action of actions)
        if (action.type === 'DisplayWarning') warnings.push(action.text);
    },
  });
  const { usage: used } = await session.prompt('go');
  assert.equal(used.inputTokens, 200, 'two replies, and nothing of the tool');
  assert.match(
    warnings.join(),
    /the tool odd reported usage that can't be counted \(costUsd is -3/,
  );
});

const STREAMS: readonly [string, Model['stream'], string][] = [
  ['nothing', () => bad(undefined), ''],
  [
    'a text in place of pieces',
    () => bad('abc'),
    'sent what is no piece of a reply: the piece is "a"',
  ],
  [
    'what throws undefined',
    () => {
      throw bad(undefined);
    },
    'it threw without saying why',
  ],
  [
    'what throws a text',
    async function* () {
      yield await Promise.reject('no luck');
    },
    'no luck',
  ],
  [
    'what throws what can not be written',
    async function* () {
      yield await Promise.reject(Object.create(null));
    },
    'can not be read',
  ],
  ['a piece of no type', pieces(bad({ type: 'song', text: 'la' })), 'type is "song"'],
  ['a text that is none', pieces(bad({ type: 'text', text: 5 })), 'text is 5'],
  [
    'parts that are none',
    pieces(bad({ ...completed([]), parts: [{ type: 'text' }] })),
    'parts[0].text is missing',
  ],
  [
    'a reason that is none',
    pieces(bad({ ...completed([]), stopReason: 'tired' })),
    'stopReason is "tired"',
  ],
  ['a failure without an error', pieces(bad({ type: 'failed', usage: null })), 'error is missing'],
  [
    'rubbish without end',
    async function* () {
      for (;;) yield bad(null);
    },
    'the piece is null',
  ],
];

for (const [what, stream, why] of STREAMS) {
  test(`a model that streams ${what} fails the turn, and answers the next one`, async (context) => {
    const caught = uncaught(context);
    const sound = testModel(say('still here'));
    let calls = 0;
    const model: Model = {
      ...sound,
      stream: (...given) => (calls++ === 0 ? stream(...given) : sound.stream(...given)),
    };
    const { session } = await openHere(context, model, { settings: { maxRetries: 0 } });
    const turn = await session.prompt('go');
    assert.equal(turn.reason.kind, 'error');
    assert.match(JSON.stringify(turn.reason), shown(JSON.stringify(why).slice(1, -1)));
    await goesOn(session, caught);
  });
}
