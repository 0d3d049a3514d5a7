import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { type Scripted, wires } from '../../../../test/kit/models/wires.js';
import { startChatServer } from '../../../../test/servers/chat.js';
import { startGoogleServer } from '../../../../test/servers/google.js';
import { startOpenAiServer } from '../../../../test/servers/openai.js';
import type { WireReply } from '../../../../test/servers/reply.js';
import { makePng } from '../../../../test/servers/sample-pictures.js';
import { chooseRows } from '../../../../test/tier.js';
import { runInProcess } from './in-process.js';
import { expectCode, expectValid, makePlace, makeServed, type Place, sessionOf } from './pawl.js';
import { openReady } from './window.js';
import { call, done, last, message } from './wire-words.js';

/** Pictures from the file to the provider: named by the user, or read by the model. */

const CONTROL_D = '\u0004';
const [SHOT, OTHER] = [makePng(1), makePng(2)];
const [SHOT_64, OTHER_64] = [SHOT.toString('base64'), OTHER.toString('base64')];

const saying = (text: string): WireReply => ({ type: 'message', parts: [{ type: 'text', text }] });
const reading = (path: string): WireReply => ({
  type: 'message',
  parts: [{ type: 'call', id: 'c1', name: 'read', input: { path } }],
});

type Wire = {
  readonly model: string;
  readonly start: (replies: Scripted) => ReturnType<(typeof wires)[number]['start']>;
  readonly variables: (url: string) => NodeJS.ProcessEnv;
};

const sees = { id: 'qwen3-vl', architecture: { input_modalities: ['text', 'image'] } };
const isBlind = { id: 'qwen3', architecture: { input_modalities: ['text'] } };

const served: Readonly<Record<string, Wire>> = {
  anthropic: {
    model: 'anthropic/claude-sonnet-5-5',
    start: (replies) => wires[0]?.start(replies) ?? assert.fail('the first wire is Anthropic’s'),
    variables: (url) => ({ ANTHROPIC_API_KEY: 'key', ANTHROPIC_BASE_URL: url }),
  },
  openai: {
    model: 'openai/gpt-6.2-sol',
    start: startOpenAiServer,
    variables: (url) => ({ OPENAI_API_KEY: 'key', OPENAI_BASE_URL: `${url}/v1` }),
  },
  google: {
    model: 'google/gemini-3.8-flash',
    start: startGoogleServer,
    variables: (url) => ({ GEMINI_API_KEY: 'key', GOOGLE_GEMINI_BASE_URL: url }),
  },
  compatible: {
    model: 'openai-compatible/qwen3-vl',
    start: (replies) => startChatServer(replies, { listed: [sees, isBlind] }),
    variables: (url) => ({ OPENAI_COMPATIBLE_BASE_URL: `${url}/v1` }),
  },
};

const put = (place: Place, files: Readonly<Record<string, string | Buffer>>): void => {
  for (const [name, bytes] of Object.entries(files)) {
    mkdirSync(join(place.workspace, name, '..'), { recursive: true });
    writeFileSync(join(place.workspace, name), bytes);
  }
};

/** How often the text holds each. */
const counts = (text: string | undefined, ...parts: readonly string[]): readonly number[] =>
  parts.map((part) => (text ?? '').split(part).length - 1);

for (const [name, wire] of chooseRows(Object.entries(served))) {
  test(`${name}: a picture that the provider refuses does not end the session, now or in the next process`, async (context) => {
    const server = await wire.start((body) =>
      JSON.stringify(body).includes(SHOT_64)
        ? { type: 'failure', failure: 'picture' }
        : saying('I see none.'),
    );
    context.after(() => server.close());
    const place = makePlace(context, wire.variables(server.url));
    put(place, { 'shot.png': SHOT });
    const first = await runInProcess(place, ['-p', 'what is @shot.png', '--model', wire.model]);
    expectCode(first, 0);
    assert.match(first.stderr, /sent again without the picture, which no later request shows/);
    expectCode(await runInProcess(place, ['--continue', '-p', 'and now?']), 0);
    const sent = server.requests.map(({ text }) =>
      counts(text, SHOT_64, 'refused by the provider'),
    );
    assert.deepEqual(sent, [
      [1, 0],
      [0, 1],
      [0, 1],
    ]);
  });

  test(`${name}: a picture that the user names and one that the model reads are sent, and again by the next process`, async (context) => {
    const server = await wire.start([
      reading('pictures/other.png'),
      saying('seen'),
      saying('still seen'),
    ]);
    context.after(() => server.close());
    const place = makePlace(context, wire.variables(server.url));
    put(place, { 'my shot.png': SHOT, 'pictures/other.png': OTHER });
    const first = ['-p', 'compare @"my shot.png" with the other', '--model', wire.model];
    const ended = await runInProcess(place, first);
    expectCode(ended, 0);
    assert.doesNotMatch(ended.stderr, /picture|png/);
    for (const file of ['my shot.png', 'pictures/other.png'])
      unlinkSync(join(place.workspace, file));
    expectCode(await runInProcess(place, ['--continue', '-p', 'and again?']), 0);
    const [one, two, three] = server.requests;
    assert.deepEqual(
      server.requests.map(({ fault }) => fault),
      [null, null, null],
    );
    assert.deepEqual(counts(one?.text, SHOT_64, OTHER_64), [1, 0]);
    assert.deepEqual(counts(two?.text, SHOT_64, OTHER_64), [1, 1]);
    assert.deepEqual(counts(three?.text, SHOT_64, OTHER_64), [1, 1]);
    assert.match(three?.text ?? '', /image\/png/);

    const sessions = join(place.state, 'pawl', 'sessions');
    const journal = readFileSync(join(sessions, `${sessionOf(place)}.jsonl`), 'utf8');
    assert.deepEqual(
      counts(journal, SHOT_64, OTHER_64),
      [0, 0],
      'bytes are no part of the journal',
    );
    for (const base64 of [SHOT_64, OTHER_64]) {
      const sha256 = createHash('sha256').update(base64).digest('hex');
      assert.ok(journal.includes(sha256));
      const blob = readdirSync(place.state, { recursive: true, encoding: 'utf8' }).filter((file) =>
        file.includes(sha256),
      );
      assert.equal(blob.length, 1, 'they are a blob by their hash');
    }
  });
}

test('a model that takes no pictures reads that there is one, the user is told; the next model is shown it', async (context) => {
  const wire = served.compatible ?? assert.fail();
  const server = await wire.start([
    saying('I am blind'),
    reading('shot.png'),
    saying('yes'),
    saying('I see'),
  ]);
  context.after(() => server.close());
  const place = makePlace(context, wire.variables(server.url));
  put(place, { 'shot.png': SHOT });
  const ended = await runInProcess(place, [
    '-p',
    'see @shot.png',
    '--model',
    'openai-compatible/qwen3',
  ]);
  expectCode(ended, 0);
  assert.match(
    ended.stderr,
    /The model does not get the pictures: openai-compatible\/qwen3 takes none\./,
  );
  expectCode(await runInProcess(place, ['--continue', '-p', 'read it']), 0);
  expectCode(await runInProcess(place, ['--continue', '-p', 'and you?', '--model', wire.model]), 0);
  assert.deepEqual(
    server.requests.map(({ text, fault }) => [
      fault,
      ...counts(text, SHOT_64, 'a picture is not shown'),
    ]),
    [
      [null, 0, 1],
      [null, 0, 1],
      [null, 0, 2],
      [null, 2, 0],
    ],
  );
  assert.match(
    server.requests[0]?.text ?? '',
    /see @shot\.png\\n\[a picture is not shown: .*qwen3 takes none\]/,
  );
});

const BAD = {
  'fake.png': 'I say that I am one',
  'broken.png': Buffer.concat([Buffer.alloc(8), SHOT]),
  'large.png': makePng(0, 'x'.repeat(4_000_000)),
};

test('-p: what can’t go with a prompt is said, and why; the prompt and what can go are sent', async (context) => {
  const place = await makeServed(context, [done]);
  put(place, { ...BAD, 'half.png': SHOT.subarray(0, -12), 'shot.png': SHOT });
  const prompt = 'see @fake.png @large.png @gone.png @half.png @shot.png';
  const ended = await runInProcess(place, ['-p', prompt]);
  expectCode(ended, 0);
  expectValid(place.server);
  assert.equal(ended.stdout, 'Done.\n');
  const lines = ended.stderr.trimEnd().split('\n');
  assert.equal(lines.length, 4, ended.stderr);
  assert.match(lines[0] ?? '', /fake\.png is not sent: .* it is no PNG, JPEG, GIF or WebP/);
  assert.match(
    lines[1] ?? '',
    /large\.png is not sent: .*\d bytes, and models take at most 3750000/,
  );
  assert.match(lines[2] ?? '', /gone\.png is not sent: there is no such file/);
  assert.match(lines[3] ?? '', /half\.png is not sent: .*breaks off before its end/);
  const parts = last(place.server.requests[0]?.body);
  assert.deepEqual(
    parts.map(({ type, text }) => text ?? type),
    [prompt, 'image'],
  );
});

test('the model reads why it can’t be shown a file, and goes on', async (context) => {
  const place = await makeServed(context, [
    message(
      ...Object.keys(BAD).map((name) => call(name.slice(0, -4), 'read', { path: name })),
      call('good', 'read', { path: 'shot.png' }),
    ),
    done,
  ]);
  put(place, { ...BAD, 'shot.png': SHOT });
  expectCode(await runInProcess(place, ['-p', 'look']), 0);
  expectValid(place.server);
  const parts = last(place.server.requests[1]?.body);
  const said = parts.map((part) => JSON.stringify(part));
  assert.equal(said.length, 5);
  assert.match(said[0] ?? '', /I say that I am one/, 'a text by another name is a text');
  assert.match(said[1] ?? '', /broken\.png is a binary file .*"is_error":true/);
  assert.match(
    said[2] ?? '',
    /can't be shown: .*at most 3750000\. Make a smaller copy.*"is_error":true/,
  );
  assert.match(said[3] ?? '', /shot\.png: image\/png, 1 x 1 pixels/);
  assert.deepEqual(counts(said[4], SHOT_64), [1]);
});

for (const [title, words, input, sent] of [
  ['a prompt that comes from stdin names pictures', ['-p', '-'], 'see @shot.png', 1],
  ['what is piped in beside a prompt names none', ['-p', 'explain', '-'], 'see @shot.png', 0],
  ['the prompt beside it does', ['-p', 'explain @shot.png', '-'], 'text', 1],
] as const) {
  test(title, async (context) => {
    const place = await makeServed(context, [done]);
    put(place, { 'shot.png': SHOT });
    expectCode(await runInProcess(place, words, input), 0);
    expectValid(place.server);
    assert.deepEqual(counts(place.server.requests[0]?.text, SHOT_64), [sent]);
  });
}

test('in the terminal: the name is completed with its quotes, the picture goes along, and again after --continue', async (context) => {
  const place = await makeServed(context, [done, done, done]);
  put(place, {
    'my pictures/a shot.png': SHOT,
    'my pictures/notes.txt': 'x',
    'fake.png': 'no picture',
  });
  const window = await openReady(context, place);
  window.press('see @pict');
  await window.seesLine(/^> see @pict\n› my pictures\//);
  window.press('\t');
  await window.seesLine(/^> see @"my pictures\/"\n› my pictures\//);
  window.press('sh');
  await window.seesLine('> see @"my pictures/sh"\n› my pictures/a shot.png');
  window.press('\t');
  await window.seesLine('> see @"my pictures/a shot.png"');
  window.press('please\r');
  await window.sees('Done.');
  window.press('and @fake.png\r');
  await window.sees(/fake\.png is not sent: .*it is no PNG, JPEG, GIF or\s+WebP/);
  await window.sees(/and @fake\.png[\s\S]*Done\./);
  window.press(CONTROL_D);
  assert.equal(await window.ended, 0);
  const again = await openReady(context, place, { words: ['--continue'] });
  again.press('again\r');
  await again.sees(/again\n[\s\S]*Done\./);
  again.press(CONTROL_D);
  assert.equal(await again.ended, 0);
  expectValid(place.server);
  assert.deepEqual(
    place.server.requests.map(({ text }) => counts(text, SHOT_64)[0]),
    [1, 1, 1],
  );
  const [first, second] = place.server.requests;
  assert.deepEqual(
    last(first?.body).map(({ type, text }) => text ?? type),
    ['see @"my pictures/a shot.png" please', 'image'],
  );
  assert.deepEqual(
    last(second?.body).map(({ type, text }) => text ?? type),
    ['and @fake.png'],
  );
});
