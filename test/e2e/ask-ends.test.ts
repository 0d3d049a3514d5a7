import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Script } from '../../src/models/script.js';
import { prepareAsk, program, runAsk, submit } from './asking.js';
import { bin, expectCode, makePlace, start } from './pawl.js';

/** How runs of `pawl ask` end: at limits, by refusal, and where an environment is missing. */

const answering = (text: string): Script => ({ replies: [{ text: submit('javascript', text) }] });

const limited: readonly (readonly [string, readonly string[], Script, number, string, RegExp])[] = [
  [
    'no money is left',
    ['--max-usd', '0.5'],
    {
      replies: [{ text: program('1'), usage: { inputTokens: 1_000_000 } }],
      facts: { prices: { input: 1, output: 0, cacheRead: 0, cacheWrite: 0 } },
    },
    125,
    '',
    /the budget is used up \(dollars\)/,
  ],
  [
    'no tokens are left',
    ['--max-tokens', '5000'],
    { replies: [{ text: program('1'), usage: { inputTokens: 5_000 } }] },
    125,
    '',
    /the budget is used up \(tokens\)/,
  ],
  [
    'iterations are used up, and the model only has words',
    ['--max-iterations', '2'],
    {
      replies: [
        { text: program('print(1)') },
        { text: program('print(2)') },
        { expect: { last: { contains: 'Give the final answer now' } }, text: 'About three.' },
      ],
    },
    126,
    'About three.\n',
    /submitted no answer/,
  ],
  [
    'iterations are used up, and the model submits what it has',
    ['--max-iterations', '1'],
    { replies: [{ text: program('print(1)') }, { text: submit('javascript', '"three"') }] },
    0,
    'three\n',
    /^$/,
  ],
  [
    'the model refuses',
    [],
    { replies: [{ fail: { kind: 'refused', message: 'I will not' } }] },
    1,
    '',
    /refused|I will not/,
  ],
];

for (const [what, flags, script, code, stdout, message] of limited) {
  test(`where ${what}, the run ends with ${code}`, async (context) => {
    const place = makePlace(context);
    const ended = await runAsk(place, prepareAsk(place, script), ...flags);
    expectCode(ended, code);
    assert.equal(ended.stdout, stdout);
    assert.match(ended.stderr, message);
  });
}

test('without bubblewrap programs run in QuickJS, and that is said', async (context) => {
  const place = makePlace(context);
  const words = prepareAsk(place, answering('context + "!"'));
  const bare = { ...place, environment: { ...place.environment, PATH: join(place.folder, 'nothing') } };
  const ended = await runAsk(bare, words);
  expectCode(ended, 0);
  assert.equal(ended.stdout, 'abc!\n');
  assert.match(ended.stderr, /^! .*QuickJS.*(bubblewrap|bwrap)/m);
  const named = await runAsk(bare, words, '--environment', 'javascript');
  expectCode(named, 78);
  assert.match(named.stderr, /bubblewrap|bwrap/);
});

test('without python3 nothing else takes its place', async (context) => {
  const place = makePlace(context);
  const words = prepareAsk(place, answering('1'));
  const hidden = 'mount --bind /dev/null /usr/bin/python3 && PATH=/nowhere exec "$@"';
  const line = [process.execPath, bin, ...words, '--environment', 'python', 'what?'];
  const unshare = ['--user', '--map-root-user', '--mount', 'sh', '-c', hidden, 'sh', ...line];
  const ended = await start(place, 'unshare', unshare).ended;
  expectCode(ended, 78);
  assert.match(ended.stderr, /python/);
});
