import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { profiles, projections } from '@pawl/verify/projections/all-projections';
import { runInProcess } from './in-process.js';
import { expectCode, makePlace, makeServed, type Place, sessionOf } from './pawl.js';
import { call, done, message, text } from './wire-words.js';

/** The seed systems on the command line: drawn, told, and run. */

test('machine --view draws a seed’s own chart, prints its table, gives it as JSON', async (context) => {
  const place = makePlace(context);
  const chart = (await runInProcess(place, ['machine', '--view', 'loom'])).stdout;
  assert.match(chart, /^stateDiagram-v2\n {2}\[\*\] --> WaitingForUserInput\n/);
  assert.match(chart, /CallingLlm --> Error: Error \(retries < max\)/);
  assert.equal(
    (await runInProcess(place, ['machine', '--view', 'loom', '--mermaid'])).stdout,
    chart,
  );
  const table = (await runInProcess(place, ['machine', '--view', 'sketch', '--table'])).stdout;
  assert.match(table, /^\| SendingToLLM \| – \| {2}\| Cancelled \(forced\) \| {2}\|$/m);
  const json = JSON.parse(
    (await runInProcess(place, ['machine', '--view', 'minimal', '--json'])).stdout,
  );
  assert.equal(json.edges.length, projections.find(({ name }) => name === 'minimal')?.edges.length);
});

test('a view that does not exist: the choices, and exit 2; --help names them', async (context) => {
  const place = makePlace(context);
  const choices = projections.map(({ name }) => name).join(', ');
  for (const words of [
    ['machine', '--view', 'weaver'],
    ['show', 'x', '--view', 'weaver'],
  ]) {
    const ended = await runInProcess(place, words);
    expectCode(ended, 2);
    assert.equal(ended.stderr, `pawl: --view needs one of ${choices}, not 'weaver'.\n`);
  }
  for (const name of ['machine', 'show']) {
    const help = (await runInProcess(place, [name, '--help'])).stdout.replace(/\s+/g, ' ');
    assert.ok(help.includes(`(${choices})`), help);
  }
});

const worked = async (context: Parameters<typeof makeServed>[0]) => {
  const place = await makeServed(context, [
    message(
      text('I look.'),
      call('a', 'read', { path: 'note.txt' }),
      call('b', 'read', { path: 'note.txt' }),
    ),
    message(text('It says forty-two.')),
  ]);
  writeFileSync(join(place.workspace, 'note.txt'), 'forty-two\n');
  expectCode(await runInProcess(place, ['-p', 'what does it say?']), 0);
  return { place, sessionId: sessionOf(place) };
};

/** What was printed, with single spaces and without the lines' numbers. */
const told = async (place: Place, words: readonly string[]): Promise<readonly string[]> => {
  const ended = await runInProcess(place, words);
  expectCode(ended, 0);
  return ended.stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.slice(6).replace(/ +/g, ' ').trim());
};

test('show --view tells the path in a seed’s words', async (context) => {
  const { place, sessionId } = await worked(context);
  const LOOM = [
    'UserInput WaitingForUserInput → CallingLlm / SendLlmRequest',
    'Completed CallingLlm → ProcessingLlmResponse',
    'ProcessingLlmResponse → ExecutingTools / ExecuteTools',
    'ToolCompleted ExecutingTools → ExecutingTools / WaitForInput',
    'ToolCompleted ExecutingTools → CallingLlm / SendLlmRequest',
    'Completed CallingLlm → ProcessingLlmResponse',
    'ProcessingLlmResponse → WaitingForUserInput / WaitForInput',
    'ShutdownRequested WaitingForUserInput → ShuttingDown / Shutdown',
  ];
  assert.deepEqual(await told(place, ['show', sessionId, '--view', 'loom']), LOOM);
  const minimal = await told(place, ['show', sessionId, '--view', 'minimal']);
  assert.ok(
    minimal.includes('ProcessingLlmResponse → WaitingForUserInput / DisplayText'),
    minimal.join('\n'),
  );
  const sketch = await told(place, ['show', sessionId, '--view', 'sketch']);
  assert.deepEqual(sketch.slice(0, 5), [
    'UserInput Ready → WaitingForUserInput',
    'WaitingForUserInput → SendingToLLM',
    'LlmCompleted SendingToLLM → ProcessingLLMResponse',
    'ProcessingLLMResponse → ToolUseRequested',
    'ToolUseRequested → CheckingForCancellation',
  ]);
  assert.deepEqual(
    await told(place, ['show', sessionId, '--view', 'loom', '--at', '1']),
    LOOM.slice(0, 1),
  );
  const both = await runInProcess(place, ['show', sessionId, '--view', 'loom', '--request']);
  expectCode(both, 2);
  assert.match(both.stderr, /--view and --request exclude each other/);
});

/** The settings that a session began with. */
const settingsIn = (place: Place): Record<string, unknown> => {
  const journal = readFileSync(
    join(place.state, 'pawl', 'sessions', `${sessionOf(place)}.jsonl`),
    'utf8',
  );
  return JSON.parse(journal.split('\n')[0] ?? '').settings;
};

for (const name of ['minimal', 'loom', 'sketch', 'full'] as const) {
  test(`--profile ${name} runs the agent with its settings`, async (context) => {
    const place = await makeServed(context, [done]);
    expectCode(await runInProcess(place, ['-p', 'go', '--profile', name]), 0);
    const settings = settingsIn(place);
    const wanted = Object.keys(profiles[name]).map((key) => [key, settings[key]]);
    assert.deepEqual(Object.fromEntries(wanted), profiles[name]);
  });
}

test('a flag wins over the profile; a session that goes on takes the profile from then on', async (context) => {
  const place = await makeServed(context, [done, done, done]);
  expectCode(
    await runInProcess(place, [
      '-p',
      'go',
      '--profile',
      'sketch',
      '--max-usd',
      '2',
      '--max-rounds',
      '7',
    ]),
    0,
  );
  const { limits } = profiles.sketch;
  assert.deepEqual(settingsIn(place).limits, { ...limits, usd: 2, rounds: 7 });
  expectCode(await runInProcess(place, ['-p', 'on', '--continue', '--profile', 'loom']), 0);
  const journal = readFileSync(
    join(place.state, 'pawl', 'sessions', `${sessionOf(place)}.jsonl`),
    'utf8',
  );
  const changes = journal
    .trimEnd()
    .split('\n')
    .flatMap((line) => {
      const { event } = JSON.parse(line);
      return event?.type === 'SettingsChanged' ? [event.patch] : [];
    });
  assert.ok(
    changes.some(
      (patch) =>
        patch.maxRetries === 2 && patch.autoCommit === 'on' && patch.limits.usd === 'unlimited',
    ),
    JSON.stringify(changes),
  );
});

test('a profile’s limit in dollars is left out where the price is unknown, and that is said; a user’s is not', async (context) => {
  const place = await makeServed(context, [done, done]);
  const words = ['-p', 'go', '--model', 'anthropic/claude-of-tomorrow'];
  const ended = await runInProcess(place, [...words, '--profile', 'sketch']);
  expectCode(ended, 0);
  assert.match(
    ended.stderr,
    /the profile sketch stops at \$10, but the price of \S+ is unknown: the limit has no effect/,
  );
  assert.deepEqual(settingsIn(place).limits, { ...profiles.sketch.limits, usd: 'unlimited' });
  expectCode(await runInProcess(place, [...words, '--profile', 'sketch', '--max-usd', '1']), 78);
  expectCode(
    await runInProcess(place, [
      ...words,
      '--profile',
      'sketch',
      '--continue',
      '--allow-unknown-price',
    ]),
    0,
  );
});

test('a profile that does not exist: the choices, and exit 2', async (context) => {
  const ended = await runInProcess(makePlace(context), ['-p', 'go', '--profile', 'weaver']);
  expectCode(ended, 2);
  assert.match(
    ended.stderr,
    /--profile needs one of minimal, loom, sketch, tools, full, not 'weaver'\./,
  );
});
