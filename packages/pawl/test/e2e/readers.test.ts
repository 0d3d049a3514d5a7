import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { requestAt } from '@pawl/inspector/model/sent-request';
import { SessionHistory } from '@pawl/inspector/model/session-history';
import { profiles, projections } from '@pawl/verify/projections/all-projections';
import { settingsFrom } from '../../../../test/kit/agent/trace-player.js';
import { eventsOf, STORY, StoredSession } from '../../../../test/kit/inspector/stored-session.js';
import { runInProcess } from './in-process.js';
import {
  bin,
  expectCode,
  makePlace,
  makeServed,
  type Place,
  readRecords,
  sessionOf,
  start,
} from './pawl.js';
import { call, done, message, text } from './wire-words.js';

/** Commands that look at what was written, and what the program says of itself. */

const worked = async (context: Parameters<typeof makeServed>[0]) => {
  const place = await makeServed(context, [
    message(text('I look.'), call('a', 'read', { path: 'note.txt' })),
    message(text('It says forty-two.')),
  ]);
  writeFileSync(join(place.workspace, 'note.txt'), 'forty-two\n');
  const ended = await runInProcess(place, ['-p', 'what does it say?', '--json']);
  expectCode(ended, 0);
  return { place, sessionId: sessionOf(place), ended };
};

test('the JSON stream begins with the session, ends with the result, and every record fits the schema', async (context) => {
  const { ended, sessionId, place } = await worked(context);
  const records = readRecords(ended.stdout);
  const [first] = records;
  assert.ok(
    first?.type === 'session' &&
      first.sessionId === sessionId &&
      first.workspace === place.workspace,
  );
  const result = records.at(-1);
  assert.ok(
    result?.type === 'result' &&
      result.ok &&
      result.text === 'It says forty-two.' &&
      result.exit === 0,
  );
  assert.equal(
    records.filter((record) => record.type === 'session' || record.type === 'result').length,
    2,
  );
  const kinds = new Set(records.map((record) => record.type));
  for (const kind of [
    'input',
    'request',
    'text',
    'reply',
    'toolStarted',
    'toolResult',
    'state',
  ] as const) {
    assert.ok(kinds.has(kind), kind);
  }
  const streamed = records
    .flatMap((record) => (record.type === 'text' ? [record.text] : []))
    .join('');
  assert.equal(streamed, 'I look.It says forty-two.');
});

test('a failure before there is a session is a result record, too', async (context) => {
  const ended = await runInProcess(makePlace(context), ['-p', 'x', '--json']);
  expectCode(ended, 78);
  const [only, ...more] = readRecords(ended.stdout);
  assert.ok(only?.type === 'result' && only.exit === 78 && only.sessionId === null);
  assert.equal(more.length, 0);
});

test('sessions lists what there is, for people and for programs', async (context) => {
  const { place, sessionId } = await worked(context);
  const listed = await runInProcess(place, ['sessions']);
  assert.match(listed.stdout, new RegExp(`^${sessionId}.*what does it say\\?`));
  const [line = ''] = (await runInProcess(place, ['sessions', '--json'])).stdout.split('\n');
  assert.equal(JSON.parse(line).sessionId, sessionId);
  const none = await runInProcess(makePlace(context), ['sessions']);
  expectCode(none, 0);
  assert.equal(none.stdout, '');
});

test('sessions marks forks', async (context) => {
  const { place, sessionId } = await worked(context);
  const forked = (await runInProcess(place, ['fork', sessionId, '--at', '4'])).stdout.trim();
  const { stdout } = await runInProcess(place, ['sessions']);
  const marks = stdout
    .trimEnd()
    .split('\n')
    .map((line) => [line.split(' ')[0], /\(fork of .*\)$/.exec(line)?.[0]]);
  assert.deepEqual(marks.sort(), [
    [sessionId, undefined],
    [forked, `(fork of ${sessionId} at 4)`],
  ]);
});

test('show tells the conversation, now and at an earlier line; part of an id is enough', async (context) => {
  const { place, sessionId } = await worked(context);
  const whole = await runInProcess(place, ['show', sessionId.slice(0, -3)]);
  expectCode(whole, 0);
  for (const said of ['what does it say?', 'I look.', 'forty-two', 'It says forty-two.']) {
    assert.ok(whole.stdout.includes(said), said);
  }
  const speakers = whole.stdout.split('\n').filter((line) => /^(you|pawl|tools|note)$/.test(line));
  assert.deepEqual(speakers, ['you', 'pawl', 'tools', 'pawl']);
  const early = await runInProcess(place, ['show', sessionId, '--at', '1']);
  assert.ok(early.stdout.includes('what does it say?') && !early.stdout.includes('I look.'));
  const beyond = await runInProcess(place, ['show', sessionId, '--at', '999']);
  expectCode(beyond, 2);
});

test('show --request is what the model was sent', async (context) => {
  const { place, sessionId } = await worked(context);
  const shown = JSON.parse((await runInProcess(place, ['show', sessionId, '--request'])).stdout);
  const sent = place.server.requests[1]?.body;
  assert.ok(sent !== undefined);
  assert.ok(
    sent.system
      ?.map((part) => part.text)
      .join('')
      .includes(shown.instructions),
  );
  assert.deepEqual(
    shown.tools.map(({ name }: { name: string }) => name),
    sent.tools?.map(({ name }) => name),
  );
  assert.equal(shown.messages.length, sent.messages.length);
  const first = JSON.parse(
    (await runInProcess(place, ['show', sessionId, '--request', '--at', '1'])).stdout,
  );
  assert.equal(first.messages.length, 1);
});

test('show --request and the inspector leave out the reasoning of other models, as the runtime does', async (context) => {
  const place = makePlace(context);
  const settings = settingsFrom('');
  const stored = await StoredSession.create(join(place.state, 'pawl'), 'foreign', settings);
  const events = eventsOf(STORY)
    .slice(0, 9)
    .map((event) =>
      event.type === 'LlmCompleted' && event.message !== null
        ? { ...event, message: { ...event.message, model: 'other/model' } }
        : event,
    );
  await stored.add(events);
  await stored.journal.close();
  const shown = JSON.parse((await runInProcess(place, ['show', 'foreign', '--request'])).stdout);
  assert.deepEqual([shown.seq, shown.model, shown.messages.length], [9, settings.model, 3]);
  assert.ok(
    !JSON.stringify(shown).includes('Rounding each line before the sum'),
    'a thought of another model',
  );
  const history = new SessionHistory(stored.header);
  history.add(events.map((event, index) => ({ seq: index + 1, event })));
  const inspected = requestAt(history, { instructions: shown.instructions, tools: '' }, 9);
  assert.deepEqual(
    inspected?.parts.slice(2).map(({ text }) => JSON.parse(text)),
    shown.messages,
  );
});

test('replay prints the path and proves the hashes; up to a line, too', async (context) => {
  const { place, sessionId } = await worked(context);
  const journal = join(place.state, 'pawl', 'sessions', `${sessionId}.jsonl`);
  const before = readFileSync(journal, 'utf8');
  const replayed = await runInProcess(place, ['replay', sessionId]);
  expectCode(replayed, 0);
  assert.match(
    replayed.stdout,
    /LlmCompleted +CallingLlm → ProcessingLlmResponse → ToolUseRequested/,
  );
  assert.match(replayed.stderr, /[1-9]\d* recorded state hashes compared, all equal/);
  assert.doesNotMatch(replayed.stdout, /(\w+) → \1/, 'what stays is no move');
  const early = await runInProcess(place, ['replay', sessionId, '--at', '1', '--json']);
  assert.match(early.stderr, /No state hash is recorded up to there/);
  assert.deepEqual(
    early.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line)),
    [{ seq: 1, event: 'UserInput', path: ['Ready', 'WaitingForUserInput', 'CallingLlm'] }],
  );
  assert.equal(readFileSync(journal, 'utf8'), before, 'replay performs and writes nothing');
  assert.equal(place.server.requests.length, 2);
});

test('machine draws itself: Mermaid, table, JSON', async (context) => {
  const place = makePlace(context);
  assert.match((await runInProcess(place, ['machine'])).stdout, /^stateDiagram-v2\n/);
  assert.match(
    (await runInProcess(place, ['machine', '--mermaid'])).stdout,
    /CallingLlm --> ProcessingLlmResponse/,
  );
  assert.match((await runInProcess(place, ['machine', '--table'])).stdout, /^\|/m);
  const { edges } = JSON.parse((await runInProcess(place, ['machine', '--json'])).stdout);
  assert.ok(
    edges.some(
      ({ from, to }: { from: string; to: string }) => from === 'CallingLlm' && to === 'Compacting',
    ),
  );
});

test('a big result gets whole through a slow pipe', async (context) => {
  const long = 'line of text\n'.repeat(12_000);
  const place = await makeServed(context, [message(text(long)), done]);
  const words = ['-c', `'${process.execPath}' '${bin}' -p x | (sleep 1; wc -c)`];
  const ended = await start(place, 'bash', words).ended;
  assert.equal(ended.stdout.trim(), String(long.length));
});

test('sums over all sessions: what a fork has copied counts once, and a damaged journal is named', async (context) => {
  const place = await makeServed(context, [done, done]);
  expectCode(await runInProcess(place, ['-p', 'hi']), 0);
  const folder = join(place.state, 'pawl', 'sessions');
  const [id = ''] = readdirSync(folder).filter((name) => name.endsWith('.jsonl'));
  const session = id.slice(0, -'.jsonl'.length);
  expectCode(await runInProcess(place, ['fork', session, '--at', '3']), 0);
  const statsNow = async () =>
    JSON.parse((await runInProcess(place, ['sessions', '--stats', '--json'])).stdout);
  const two = await statsNow();
  assert.deepEqual([two.sessions, two.forks, two.turns, two.models[0].requests], [2, 1, 1, 1]);
  assert.ok(two.usage.costUsd > 0 && two.damaged.length === 0);
  const broken = join(folder, '20200101-000000-00000000.jsonl');
  copyFileSync(join(folder, id), broken);
  writeFileSync(broken, readFileSync(broken, 'utf8').replace('Done.', 'Dune.'));
  const three = await statsNow();
  assert.deepEqual(
    three.damaged.map(({ sessionId }: { sessionId: string }) => sessionId),
    ['20200101-000000-00000000'],
  );
  const shown = await runInProcess(place, ['sessions', '--stats']);
  expectCode(shown, 0);
  assert.match(shown.stderr, /20200101-000000-00000000/);
});

test('sums count what hooks spent', async (context) => {
  const place = makePlace(context);
  const stored = await StoredSession.create(join(place.state, 'pawl'), 'hooks', settingsFrom(''));
  const cached = { cacheReadTokens: 0, cacheWriteTokens: 0 };
  const usage = { inputTokens: 10, outputTokens: 1, ...cached, costUsd: 2 };
  await stored.add(
    eventsOf(STORY).map((event) => (event.type === 'HookCompleted' ? { ...event, usage } : event)),
  );
  await stored.journal.close();
  const words = ['sessions', '--stats', '--json'];
  const stats = JSON.parse((await runInProcess(place, words)).stdout);
  const { costUsd } = stored.state.session.usage;
  assert.equal(stats.usage.costUsd.toFixed(6), costUsd.toFixed(6));
  assert.ok(stats.models.some(({ name }: { readonly name: string }) => name === '(hooks)'));
});

test('of a fork, what its damaged parent does not count counts once, and of a damaged fork nothing twice', async (context) => {
  const place = await makeServed(context, [done, done]);
  expectCode(await runInProcess(place, ['-p', 'hi']), 0);
  const folder = join(place.state, 'pawl', 'sessions');
  const [name = ''] = readdirSync(folder).filter((one) => one.endsWith('.jsonl'));
  const parent = join(folder, name);
  const { seq } = JSON.parse(readFileSync(parent, 'utf8').trimEnd().split('\n').at(-1) ?? '');
  const words = ['fork', name.slice(0, -'.jsonl'.length), '--at', String(seq)];
  expectCode(await runInProcess(place, words), 0);
  const [fork = ''] = readdirSync(folder)
    .filter((one) => one.endsWith('.jsonl') && one !== name)
    .map((one) => join(folder, one));
  const costNow = async () =>
    JSON.parse((await runInProcess(place, ['sessions', '--stats', '--json'])).stdout).usage.costUsd;
  const before = await costNow();
  assert.ok(before > 0);
  for (const damaged of [parent, fork]) {
    const whole = readFileSync(damaged, 'utf8');
    const last = damaged === parent ? 'Done.' : '"type":"ShutdownRequested"';
    writeFileSync(damaged, whole.replace(last, last.toUpperCase()));
    assert.equal(await costNow(), before, damaged);
    writeFileSync(damaged, whole);
  }
});

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

test('a view that does not exist: the choices, and exit 2; pawl help view names them', async (context) => {
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
  const help = (await runInProcess(place, ['help', 'view'])).stdout.replace(/\s+/g, ' ');
  assert.equal(help.split(`one of ${choices}`).length, 3, help); // machine and show
});

const workedTwice = async (context: Parameters<typeof makeServed>[0]) => {
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
  const { place, sessionId } = await workedTwice(context);
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
const journalOf = (place: Place): readonly string[] =>
  readFileSync(join(place.state, 'pawl', 'sessions', `${sessionOf(place)}.jsonl`), 'utf8')
    .trimEnd()
    .split('\n');

const settingsIn = (place: Place): Record<string, unknown> =>
  JSON.parse(journalOf(place)[0] ?? '').settings;

/** The changes of settings since the session began. */
const changesIn = (place: Place) =>
  journalOf(place).flatMap((line) => {
    const { event } = JSON.parse(line);
    return event?.type === 'SettingsChanged' ? [event.patch] : [];
  });

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
  const changes = changesIn(place);
  assert.ok(
    changes.some(
      (patch) =>
        patch.maxRetries === 2 && patch.autoCommit === 'on' && patch.limits.usd === 'unlimited',
    ),
    JSON.stringify(changes),
  );
});

for (const { profile, file, by, usd } of [
  { profile: 'full', file: '.config/pawl/config.toml', by: 'the user', usd: 1 },
  { profile: 'sketch', file: '.pawl/config.toml', by: 'a project', usd: 10 },
])
  test(`under --profile ${profile} a limit in dollars of ${by} makes it ${usd}`, async (context) => {
    const place = await makeServed(context, [done]);
    const config = join(by === 'the user' ? place.home : place.workspace, file);
    mkdirSync(dirname(config), { recursive: true });
    writeFileSync(config, `max_usd = ${by === 'the user' ? 1 : 500}\n`);
    expectCode(await runInProcess(place, ['-p', 'go', '--profile', profile]), 0);
    const limits = settingsIn(place).limits as { readonly usd: unknown };
    assert.equal(limits.usd, usd);
  });

test('a profile lifts no limit of the project, also not in a session that goes on', async (context) => {
  const place = await makeServed(context, [done, done]);
  mkdirSync(join(place.workspace, '.pawl'));
  writeFileSync(join(place.workspace, '.pawl', 'config.toml'), 'max_usd = 2\nmax_retries = 1\n');
  expectCode(await runInProcess(place, ['-p', 'go']), 0);
  expectCode(await runInProcess(place, ['-p', 'on', '--continue', '--profile', 'loom']), 0);
  for (const { limits, maxRetries = 1 } of changesIn(place))
    assert.deepEqual([limits?.usd ?? 2, maxRetries], [2, 1]);
});

test('a profile’s limit in dollars is left out where the price is unknown, and that is said; a user’s is not', async (context) => {
  const place = await makeServed(context, [done, done]);
  const words = ['-p', 'go', '--model', 'anthropic/claude-of-tomorrow'];
  const ended = await runInProcess(place, [...words, '--profile', 'sketch']);
  expectCode(ended, 0);
  assert.match(
    ended.stderr,
    /the profile sketch stops at \$10, but the price of \S+ is unknown: that limit is left out/,
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
