/** Other models take over when a provider is down, as a user sees it who has set `fallback`. */

import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { startChatServer } from '../../../../test/servers/chat.js';
import type { WireFailure } from '../../../../test/servers/reply.js';
import { until } from '../../../../test/until.js';
import { runInProcess } from './in-process.js';
import { expectCode, makePlace, type Place, readRecords, sessionOf, startPawl } from './pawl.js';

const write = (file: string, text: string): void => {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
};
const model = (name: string, prices: string): string => `
[providers.${name}.models.m]
window = 200_000
output = 16_000
${prices}`;
const PRICES = 'input_price = 1\noutput_price = 2\n';
const DEAR = 'input_price = 10\noutput_price = 20\n';
type Request = { readonly model: string; readonly usage: { readonly costUsd: number } | null };

/** One that is down with this failure, until `failure` is null, and two that answer. */
const makeThree = async (context: TestContext, settings = '', prices = DEAR) => {
  const down: { failure: WireFailure | null } = { failure: 'overloaded' };
  const says = (text: string) => ({ type: 'message', parts: [{ type: 'text', text }] }) as const;
  let hangs = false;
  const servers = await Promise.all([
    startChatServer(() =>
      down.failure === null ? says('I am one.') : { type: 'failure', failure: down.failure },
    ),
    startChatServer(() => (hangs ? { type: 'nothing' } : says('I am two.'))),
    startChatServer(() => says('I am three.')),
  ]);
  context.after(() => Promise.all(servers.map((server) => server.close())));
  const place = makePlace(context, { ANTHROPIC_API_KEY: '', OPENAI_API_KEY: '' });
  const names = ['one', 'two', 'three'];
  const tables = servers.map(
    ({ url }, index) =>
      `[providers.${names[index]}]\nbase_url = "${url}/v1"\n${model(names[index] ?? '', index === 1 ? prices : PRICES)}`,
  );
  write(
    path.join(place.home, '.config', 'pawl', 'config.toml'),
    `model = "one/m"\nmax_retries = 1\nretry_ms = 1\n${settings}\n${tables.join('\n')}`,
  );
  const asked = (): readonly number[] => servers.map(({ requests }) => requests.length);
  const hang = (isHanging: boolean): void => {
    hangs = isHanging;
  };
  return { place, down, asked, hang };
};
const LIST = 'fallback = ["two/m", "three/m"]';
const ask = (place: Place, ...more: readonly string[]) => runInProcess(place, ['-p', 'x', ...more]);

test('the next model answers after the last retry, is told with its price, and the next turn asks the first', async (context) => {
  const { place, down, asked } = await makeThree(context, LIST);
  const first = await ask(place);
  expectCode(first, 0);
  assert.equal(first.stdout, 'I am two.\n');
  assert.deepEqual(asked(), [2, 1, 0]);
  const told = first.stderr.split('\n').filter((line) => line.includes('takes over'));
  assert.equal(told.length, 1, first.stderr);
  assert.match(
    told[0] ?? '',
    /overloaded.*two\/m takes over until the next turn, at \$10 in, \$20 out/,
  );
  const again = await ask(place, '-r', sessionOf(place), '--json');
  const records = readRecords(again.stdout);
  const kinds = records.flatMap((record) =>
    (record.type === 'warning' || record.type === 'notice') && record.kind === 'fallback'
      ? [`${record.type} ${record.text}`]
      : [],
  );
  assert.equal(kinds[0], 'notice one/m is asked again');
  assert.match(kinds[1] ?? '', /^warning .*two\/m takes over/);
  down.failure = null;
  const back = await ask(place, '-r', sessionOf(place));
  assert.equal(back.stdout, 'I am one.\n');
  assert.deepEqual(asked(), [5, 2, 0]);
  // each reply at the price of the model that gave it: 10 tokens in and 5 out
  const shown = await runInProcess(place, ['show', sessionOf(place), '--time', '--json']);
  const { requests } = JSON.parse(shown.stdout) as { requests: readonly Request[] };
  assert.deepEqual(
    requests.map(({ model, usage }) => `${model} ${usage?.costUsd ?? 'failed'}`),
    [
      'one/m failed',
      'one/m failed',
      'two/m 0.0002',
      'one/m failed',
      'one/m failed',
      'two/m 0.0002',
      'one/m 0.00002',
    ],
  );
  const atif = await runInProcess(place, ['export', sessionOf(place), '--atif', '-']);
  const models = [...atif.stdout.matchAll(/"model_name":\s*"([^"]+)"/g)].map(([, name]) => name);
  assert.deepEqual(models, ['one/m', 'two/m', 'two/m', 'one/m']);
});

test('a session that is killed while another model answers goes on with that one, and then asks the first', async (context) => {
  const { place, down, asked, hang } = await makeThree(context, LIST);
  hang(true);
  const killed = startPawl(place, ['-p', 'x']);
  await until('the second model is asked', () => asked()[1] === 1);
  killed.child.kill('SIGKILL');
  await killed.ended;
  hang(false);
  down.failure = null;
  const resumed = await ask(place, '-r', sessionOf(place), '--json');
  expectCode(resumed, 0);
  const replies = readRecords(resumed.stdout).flatMap((record) =>
    record.type === 'text' ? [record.text] : [],
  );
  assert.deepEqual(replies, ['I am two.', 'I am one.']);
  assert.deepEqual(asked(), [3, 2, 0]);
});

for (const [failure, answer] of [
  ['quota', 'I am two.\n'],
  ['broken', 'I am two.\n'],
  ['auth', ''],
  ['badRequest', ''],
] as const)
  test(`a provider with ${failure}: ${answer === '' ? 'no other is asked' : 'the next one'}`, async (context) => {
    const { place, down, asked } = await makeThree(context, LIST);
    down.failure = failure;
    const ended = await ask(place);
    assert.equal(ended.stdout, answer);
    assert.equal(asked()[1], answer === '' ? 0 : 1);
  });

test('under a limit in dollars a model without a price is passed over, unless the user allows it', async (context) => {
  const { place, asked } = await makeThree(context, LIST, '');
  const passed = await ask(place, '--max-usd', '1');
  assert.equal(passed.stdout, 'I am three.\n');
  assert.match(passed.stderr, /two\/m is passed over: its price is unknown, and there is a limit/);
  const allowed = await ask(place, '--max-usd', '1', '--allow-unknown-price');
  assert.equal(allowed.stdout, 'I am two.\n');
  assert.deepEqual(asked(), [4, 1, 1]);
});

test('a fallback by flag, by variable, and by nobody else; wrong names end, a missing key is left out', async (context) => {
  const { place, asked } = await makeThree(context);
  write(path.join(place.workspace, '.pawl', 'config.toml'), 'fallback = ["one/other"]\n');
  const none = await ask(place);
  assert.match(none.stderr, /fallback = one\/other is ignored: a project may not set it/);
  assert.equal(none.stdout, '');
  const flagged = await ask(place, '--fallback', 'anthropic/claude-opus-4-5,three/m');
  assert.equal(flagged.stdout, 'I am three.\n');
  assert.match(flagged.stderr, /The fallback anthropic\/claude-opus-4-5 is left out: No API key/);
  const variable = { ...place, environment: { ...place.environment, PAWL_FALLBACK: 'two/m' } };
  assert.equal((await ask(variable)).stdout, 'I am two.\n');
  for (const [list, why] of [
    ['three', /--fallback is a list of models: \["provider\/name"/],
    ['nobody/m', /There is no provider "nobody"/],
  ] as const) {
    const wrong = await ask(place, '--fallback', list);
    expectCode(wrong, 2);
    assert.match(wrong.stderr, why);
  }
  assert.deepEqual(asked(), [6, 1, 1]);
});
