import assert from 'node:assert/strict';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { chooseRows } from '../../../../test/tier.js';
import { until } from '../../../../test/until.js';
import { prepareAsk, program } from './asking.js';
import { runInProcess } from './in-process.js';
import {
  bin,
  type Ended,
  expectCode,
  expectValid,
  makePlace,
  makeServed,
  type Place,
  readRecords,
  runPawl,
  sessionOf,
  start,
  startPawl,
} from './pawl.js';
import { call, done, message, overloaded, text } from './wire-words.js';

/** What goes wrong outside the agent: a clear message and the documented exit code. */

const lines = (printed: string): readonly string[] => printed.trimEnd().split('\n');

test('no key: three lines that say what to set, and one that offers the demo', async (context) => {
  const ended = await runInProcess(makePlace(context), ['-p', 'hello']);
  expectCode(ended, 78);
  assert.equal(ended.stdout, '');
  assert.equal(lines(ended.stderr).length, 4);
  assert.match(ended.stderr, /export ANTHROPIC_API_KEY=/);
  assert.match(ended.stderr, /pawl demo$/m);
});

const usageRows: readonly (readonly [string, readonly string[], RegExp])[] = [
  ['an unknown flag', ['-p', 'x', '--modle', 'y'], /--modle.*\n.*--model/],
  ['a flag of another agent', ['-p', 'x', '--max-turns', '3'], /Did you mean --max-rounds\?/],
  ['another one', ['-p', 'x', '--output-format', '3'], /Did you mean --json\?/],
  ['an unknown flag of a command', ['sessions', '--josn'], /--josn/],
  ['a missing id', ['fork', '--at', '3'], /'id'/],
  ['a limit that is no number', ['-p', 'x', '--max-usd', 'much'], /--max-usd/],
  ['a limit of nothing', ['-p', 'x', '--max-rounds', '0'], /--max-rounds/],
  ['an unknown preset', ['-p', 'x', '--preset', 'yolo'], /plan, careful, auto, ci/],
  ['an unknown provider', ['-p', 'x', '--model', 'acme/one'], /acme/],
  ['--json without a prompt and with an empty stdin', ['--json'], /empty|prompt/],
  ['a bound that there is not', ['machine', '--check', '--bounds', 'x=1'], /--bounds needs name=/],
  ['--resume without an id', ['-p', 'x', '--resume'], /--resume/],
];

for (const [title, words, said] of usageRows) {
  test(`${title} is wrong usage: exit 2`, async (context) => {
    const ended = await runInProcess(makePlace(context, { ANTHROPIC_API_KEY: 'key' }), words);
    expectCode(ended, 2);
    assert.equal(words.includes('--json') ? '' : ended.stdout, '');
    assert.match(ended.stderr, said);
  });
}

test('wrong usage is said before a missing key', async (context) => {
  for (const words of [
    ['-p', 'x', '--max-usd', 'much'],
    ['-p', 'x', '--preset', 'yolo'],
  ]) {
    expectCode(await runInProcess(makePlace(context), words), 2);
  }
});

const badRows: readonly (readonly [string, readonly string[], RegExp])[] = [
  ['a script that is not there', ['-p', 'x', '--model', 'scripted/none.json'], /none\.json/],
  ['a script that is not JSON', ['-p', 'x', '--model', 'scripted/broken.json'], /broken\.json/],
  ['a workspace that is not there', ['-p', 'x', '--workspace', 'nowhere'], /nowhere/],
  ['a session that is not there', ['show', 'nobody'], /nobody/],
];

for (const [title, words, said] of badRows) {
  test(`${title} is bad input: exit 65`, async (context) => {
    const place = makePlace(context, { ANTHROPIC_API_KEY: 'key' });
    writeFileSync(join(place.workspace, 'broken.json'), '{"replies":');
    const ended = await runInProcess(place, words);
    expectCode(ended, 65);
    assert.match(ended.stderr, said);
  });
}

test('a dollar limit on a model of unknown price does not start', async (context) => {
  const place = await makeServed(context, [done]);
  const words = ['-p', 'x', '--model', 'anthropic/unheard-of', '--max-usd', '1'];
  const refused = await runInProcess(place, words);
  expectCode(refused, 78);
  assert.match(refused.stderr, /unknown/);
  assert.equal(place.server.requests.length, 0);
  expectCode(await runInProcess(place, [...words, '--allow-unknown-price']), 0);
});

test('a model that the catalogue does not know is used, and one line says what is assumed and what may be meant', async (context) => {
  for (const [name, meant] of [
    ['unheard-of', ''],
    ['claude-sonet-5-5', ' Did you mean anthropic/claude-sonnet-5-5?'],
  ]) {
    const place = await makeServed(context, [done]);
    const ended = await runInProcess(place, ['-p', 'x', '--model', `anthropic/${name}`]);
    expectCode(ended, 0);
    assert.equal(
      ended.stderr,
      `! anthropic/${name} is not in the catalogue: a window of 128,000 tokens and replies of up to 8,192 are assumed, and its price is unknown.${meant} pawl models anthropic lists the models of your key.\n`,
    );
  }
});

test('an AGENTS.md that cannot be used is one line on stderr', async (context) => {
  const place = await makeServed(context, [done]);
  mkdirSync(join(place.workspace, 'AGENTS.md'));
  const ended = await runInProcess(place, ['-p', 'x']);
  expectCode(ended, 0);
  assert.equal(ended.stderr, '! AGENTS.md is not used: it is not a regular file\n');
});

/** Runs pawl as root of a user namespace in which mounts can be made. */
const inNamespace = (
  place: Place,
  setUp: string,
  words: readonly string[],
  exec: 'exec' | '' = 'exec',
): Promise<Ended> => {
  const quoted = [process.execPath, bin, ...words].map((word) => `'${word}'`).join(' ');
  const run = `set -e; ${setUp}; ${exec} ${quoted}`;
  return start(place, 'unshare', ['--user', '--map-root-user', '--mount', 'bash', '-c', run]).ended;
};

test('a read-only home: exit 74, and what to do', async (context) => {
  const place = await makeServed(context, [done]);
  const { XDG_STATE_HOME: _, ...environment } = place.environment;
  const setUp = `mount --bind '${place.home}' '${place.home}'; mount -o remount,bind,ro '${place.home}'`;
  const ended = await inNamespace({ ...place, environment }, setUp, ['-p', 'x']);
  expectCode(ended, 74);
  assert.match(ended.stderr, /read-only/i);
  assert.match(ended.stderr, /XDG_STATE_HOME/);
  assert.equal(place.server.requests.length, 0);
});

test('a full disk from the start: exit 74', async (context) => {
  const place = await makeServed(context, [done]);
  const setUp = `mount -t tmpfs -o size=16k,nr_inodes=3 none '${place.state}'`;
  const ended = await inNamespace(place, setUp, ['-p', 'x']);
  expectCode(ended, 74);
  assert.match(ended.stderr, /space|full/i);
});

test('a disk that fills up during the session: exit 74, and nothing is done that was not written', async (context) => {
  const place = await makeServed(context, [
    message(call('a', 'bash', { command: 'true', needs: 'network' })),
    message(text('x'.repeat(300_000)), call('b', 'bash', { command: 'touch effect' })),
    done,
  ]);
  const setUp = `mount -t tmpfs -o size=200k none '${place.state}'`;
  const ended = await inNamespace(place, setUp, ['-p', 'x', '--json', '--on-ask', 'deny']);
  expectCode(ended, 74);
  assert.match(ended.stderr, /space|full/i);
  const [opened, result] = [readRecords(ended.stdout)[0], readRecords(ended.stdout).at(-1)];
  assert.ok(opened?.type === 'session' && result?.type === 'result');
  assert.deepEqual([result.exit, result.sessionId], [74, opened.sessionId]);
  assert.equal(result.denied, 1);
  assert.ok(!existsSync(join(place.workspace, 'effect')));
});

test('a disk that fills up during pawl ask: the run that was opened is named, and how to go on', async (context) => {
  const place = makePlace(context);
  const usage = { inputTokens: 1_000 };
  const replies = [
    { text: program('print(1)'), usage },
    { text: program(`"${'x'.repeat(300_000)}"`), usage },
  ];
  const words = [...prepareAsk(place, { replies }), 'what?'];
  const setUp = `mount -t tmpfs -o size=200k none '${place.state}'`;
  const ended = await inNamespace(place, setUp, [...words, '--json']);
  expectCode(ended, 74);
  const [opened, result] = [readRecords(ended.stdout)[0], readRecords(ended.stdout).at(-1)];
  assert.ok(opened?.type === 'session' && result?.type === 'result');
  assert.equal(result.sessionId, opened.sessionId);
  assert.ok((result.usage?.inputTokens ?? 0) >= 1_000);
  const told = await inNamespace(place, setUp, words);
  assert.match(told.stderr, /^to continue: pawl ask --resume \S+$/m);
});

/** Fills the disk that holds the journal. The output of this command can't be kept there. */
const FILLING = 'cat /dev/zero > ../state/filler 2>/dev/null; echo ended';
/** More than what the removed files of a command free again. */
const TEXT = Array.from({ length: 1_000 }, (_, line) => `${line} ${'x'.repeat(40)}`).join('\n');

test('a disk that a command fills: a result that is known and the end of the session are still written', async (context) => {
  const calls = [call('a', 'bash', { command: FILLING }), call('b', 'read', { path: 'text.txt' })];
  const place = await makeServed(context, [message(...calls), done]);
  writeFileSync(join(place.workspace, 'text.txt'), TEXT);
  // a copy of the folder is left behind, since the disk goes with the namespace
  const keep = join(place.folder, 'kept');
  const setUp = `mount -t tmpfs -o size=4m none '${place.state}'; trap "cp -r '${place.state}/pawl' '${keep}'" EXIT`;
  const ended = await inNamespace(place, setUp, ['-p', 'x', '--json', '--sandbox', 'off'], '');
  expectCode(ended, 74);
  assert.match(ended.stderr, /disk is full/);
  assert.equal(place.server.requests.length, 1, 'nothing is started on a full disk');
  const [name = ''] = readdirSync(join(keep, 'sessions')).filter((file) => file.endsWith('.jsonl'));
  const events = lines(readFileSync(join(keep, 'sessions', name), 'utf8')).map(
    (line) => JSON.parse(line).event,
  );
  const results = events.filter((event) => event?.type === 'ToolCompleted');
  assert.match(results[0]?.outcome.text, /exit code 0/);
  assert.match(results[1]?.outcome.text, /^\[[^\n]*\]\n1\t0 x{40}\n2\t1 x{40}/);
  assert.ok(results[1]?.outcome.text.length > 10_000);
  assert.equal(events.at(-1)?.type, 'ShutdownRequested');
});

test('a closed pipe: exit 141, quietly, and the session is settled', async (context) => {
  const place = await makeServed(context, [
    message(call('a', 'bash', { command: 'until [ -e go ]; do sleep 0.05; done' })),
    done,
  ]);
  const running = startPawl(place, ['-p', 'x', '--json']);
  await until('a record', () => running.stdout().includes('toolStarted'));
  running.child.stdout?.destroy();
  writeFileSync(join(place.workspace, 'go'), '');
  const ended = await running.ended;
  expectCode(ended, 141);
  assert.equal(ended.stderr, '');
  const replayed = await runInProcess(place, ['replay', sessionOf(place)]);
  expectCode(replayed, 0);
  assert.match(replayed.stderr, /ShuttingDown/);
});

test('a pipe that is closed before the first word: exit 141, for every command that prints', async (context) => {
  const place = await makeServed(context, [done]);
  const commands = [
    ['-p', 'x'],
    ['sessions'],
    ['--help'],
    ['--version'],
    ['config'],
    ['machine'],
    ['doctor'],
  ];
  for (const words of chooseRows(commands, ([first]) => String(first === '-p'), 2)) {
    const running = startPawl(place, words);
    running.child.stdout?.destroy();
    expectCode(await running.ended, 141);
  }
});

test('a journal damaged later says how to look at what is good, and to go on from it', async (context) => {
  const place = await makeServed(context, [done, done]);
  expectCode(await runInProcess(place, ['-p', 'one']), 0);
  const sessionId = sessionOf(place);
  const journal = join(place.state, 'pawl', 'sessions', `${sessionId}.jsonl`);
  writeFileSync(
    journal,
    readFileSync(journal, 'utf8').replace('ShutdownRequested', 'ShutdownRequisite'),
  );
  const ended = await runInProcess(place, ['show', sessionId]);
  expectCode(ended, 65);
  const [, shown = ''] =
    /^To see the undamaged part: pawl (show \S+ --at \d+)$/m.exec(ended.stderr) ?? [];
  const [, forked = ''] =
    /^To continue from there: pawl (fork \S+ --at \d+)$/m.exec(ended.stderr) ?? [];
  expectCode(await runInProcess(place, shown.split(' ')), 0);
  expectCode(await runInProcess(place, [...forked.split(' '), 'two']), 0);
});

test('a journal of one user is not readable by others', async (context) => {
  const place = await makeServed(context, [done]);
  chmodSync(place.state, 0o755);
  expectCode(await runInProcess(place, ['-p', 'one']), 0);
  const folder = join(place.state, 'pawl');
  mkdirSync(folder, { recursive: true });
  const modes = start(place, 'stat', [
    '-c',
    '%a',
    folder,
    join(folder, 'sessions', readdirSync(join(folder, 'sessions'))[0] ?? ''),
  ]);
  assert.deepEqual(lines((await modes.ended).stdout), ['700', '600']);
});

/** What a provider's failures and half answers lead to. */

test('529 once more than is tried again is a transient failure', async (context) => {
  const place = await makeServed(context, [overloaded, overloaded, overloaded], {
    PAWL_MAX_RETRIES: '2',
  });
  const ended = await runInProcess(place, ['-p', 'go']);
  expectCode(ended, 75);
  assert.equal(ended.stdout, '');
  assert.match(ended.stderr, /Overloaded|overloaded/);
});

for (const end of ['cut', 'clean', 'unstopped', 'silent'] as const) {
  test(`a stream that is ${end} in the middle is asked for again`, async (context) => {
    const place = await makeServed(
      context,
      [{ type: 'message', parts: [text('Half a rep')], end }, message(text('The whole reply.'))],
      { PAWL_SILENCE_MS: '400' },
    );
    const ended = await runInProcess(place, ['-p', 'go', '--json']);
    expectCode(ended, 0);
    const result = readRecords(ended.stdout).at(-1);
    assert.ok(result?.type === 'result' && result.text === 'The whole reply.');
    assert.equal(result.costAtLeast, true, 'the half reply cost something, too');
    assert.equal(place.server.requests.length, 2);
    expectValid(place.server);
    const shown = await runInProcess(place, ['show', sessionOf(place), '--time']);
    assert.match(shown.stdout, / · at least \$/);
  });
}

test('an empty reply is asked for once more, and a second one ends the turn with exit 1', async (context) => {
  const empty = { type: 'message', parts: [] } as const;
  const place = await makeServed(context, [empty, done, empty, empty]);
  expectCode(await runInProcess(place, ['-p', 'go']), 0);
  const ended = await runInProcess(place, ['-p', 'go', '--json']);
  expectCode(ended, 1);
  const result = readRecords(ended.stdout).at(-1);
  assert.ok(result?.type === 'result' && result.reason === 'empty');
});

test('a context that is too long fails with exit 1 and a sentence', async (context) => {
  const place = await makeServed(context, [
    {
      type: 'error',
      status: 400,
      errorType: 'invalid_request_error',
      message: 'prompt is too long: 250000 tokens > 200000 maximum',
    },
  ]);
  const ended = await runInProcess(place, ['-p', 'go']);
  expectCode(ended, 1);
  assert.match(ended.stderr, /too long|window/);
});

test('a key that is wrong is a wrong set-up', async (context) => {
  const place = await makeServed(context, [
    { type: 'error', status: 401, errorType: 'authentication_error', message: 'invalid x-api-key' },
  ]);
  const ended = await runInProcess(place, ['-p', 'go']);
  expectCode(ended, 78);
  assert.match(ended.stderr, /ANTHROPIC_API_KEY/);
});

test('a server that is not there is unavailable', async (context) => {
  const place = await makeServed(context, []);
  const ended = await runInProcess(place, ['-p', 'go', '--base-url', 'http://127.0.0.1:9']);
  expectCode(ended, 69);
});

/** The built program over TLS: what it loads late is there when it is needed. */

const pem = fileURLToPath(new URL('../../../../test/servers/localhost.pem', import.meta.url));

const event = (type: string, rest: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`;

const REPLY = [
  event('message_start', {
    message: {
      id: 'm',
      type: 'message',
      role: 'assistant',
      model: 'x',
      content: [],
      stop_reason: null,
      usage: { input_tokens: 1, output_tokens: 1 },
    },
  }),
  event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
  event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'Over TLS.' } }),
  event('content_block_stop', { index: 0 }),
  event('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } }),
  event('message_stop', {}),
].join('');

test('a provider behind a certificate of one’s own, which answers compressed', async (context) => {
  const certificate = readFileSync(pem);
  const server = https.createServer({ key: certificate, cert: certificate }, (incoming, out) => {
    incoming.resume();
    out.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' });
    out.end(gzipSync(REPLY));
  });
  server.listen(0, 'localhost');
  await once(server, 'listening');
  context.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const url = `https://localhost:${(server.address() as AddressInfo).port}`; // it listens on a port
  const more = {
    ANTHROPIC_API_KEY: 'key',
    ANTHROPIC_BASE_URL: url,
    PAWL_MAX_RETRIES: '1',
    PAWL_RETRY_MS: '5',
  };
  const trusting = await runPawl(makePlace(context, { ...more, NODE_EXTRA_CA_CERTS: pem }), [
    '-p',
    'go',
  ]);
  expectCode(trusting, 0);
  assert.equal(trusting.stdout, 'Over TLS.\n');
  const wary = await runPawl(makePlace(context, more), ['-p', 'go']);
  expectCode(wary, 69);
  assert.match(wary.stderr, /NODE_EXTRA_CA_CERTS/);
});
