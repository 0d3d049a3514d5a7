import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppendList } from '@pawl/machine/kernel/append-list';
import {
  habits,
  type Scripted,
  type TestedWire,
  type WireName,
  wires,
} from '../../../../test/kit/models/wires.js';
import type { WireServer } from '../../../../test/servers/base.js';
import type { WireReply } from '../../../../test/servers/reply.js';
import { emptyConversation, requestMessages } from '../../src/machine/conversation.js';
import type { Message } from '../../src/machine/message.js';
import type { ModelPiece } from '../../src/ports/model.js';
import { ask, type Completed, collect, endingOf, type Failed, userSays } from './conversing.js';
import { type Outcome, type Row, rows } from './matrix-rows.js';

/** The matrix of wires and traps: every cell that a wire can express is a test, every other one has its reason. */

type Cell = { readonly trap: string; readonly wire: WireName; readonly shown: string };
const cells: Cell[] = [];

const signal = (): AbortSignal => new AbortController().signal;

const withServer = async <T>(
  wire: TestedWire,
  replies: Scripted,
  work: (url: string, server: Awaited<ReturnType<TestedWire['start']>>) => Promise<T>,
): Promise<T> => {
  const server = await wire.start(replies);
  try {
    return await work(server.url, server);
  } finally {
    await server.close();
  }
};

const textOf = ({ parts }: Completed): string =>
  parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
const callsOf = ({ parts }: Completed): readonly string[] =>
  parts.flatMap((part) => (part.type === 'call' ? part.rawInput : []));

const check = (ending: Completed | Failed, then: Outcome): string => {
  const told = JSON.stringify(ending);
  if ('kind' in then) {
    assert.ok(ending.type === 'failed', told);
    const { kind, retryable, retryAfterMs, message, about } = ending.error;
    assert.equal(about, then.about);
    const expected = [then.kind, then.retryable, then.retryAfterMs ?? null];
    assert.deepEqual([kind, retryable, retryAfterMs], expected, told);
    if (then.says !== undefined) assert.match(message, then.says);
    assert.equal(message.includes('\n'), false, 'one line');
    return `${kind}${retryable ? ', again' : ''}`;
  }
  assert.ok(ending.type === 'completed', told);
  assert.equal(ending.stopReason, then.stop, told);
  if (then.text !== undefined) assert.equal(textOf(ending), then.text);
  if (then.calls !== undefined) assert.deepEqual(callsOf(ending), then.calls);
  if (then.usage !== undefined) assert.deepEqual(ending.usage, then.usage);
  return `completed, ${ending.stopReason}`;
};

const testReply = (wire: TestedWire, { trap, given, then, except }: Row): void => {
  test(`${wire.name}: ${trap}`, async () => {
    const ending = await withServer(wire, [given], async (url, server) => {
      const pieces = await collect(wire.model(url).stream(ask(userSays('hello')), signal()));
      assert.equal(server.requests.length, 1, 'nothing is retried');
      assert.equal(server.requests[0]?.fault ?? null, null);
      return endingOf(pieces);
    });
    cells.push({ trap, wire: wire.name, shown: check(ending, except?.[wire.name] ?? then) });
  });
};

for (const row of rows) {
  for (const wire of wires) {
    const reason = row.empty?.[wire.name];
    if (reason === undefined) testReply(wire, row);
    else cells.push({ trap: row.trap, wire: wire.name, shown: `— ${reason}` });
  }
}

// ---- Traps that are not in one reply ----

/** A server may teach by a refusal what it takes: those requests are no others. */
const answeredIn = ({ requests }: WireServer) => requests.filter(({ fault }) => fault === null);

type Story = {
  readonly trap: string;
  readonly shown: string;
  readonly empty?: Partial<Record<WireName, string>>;
  readonly run: (wire: TestedWire) => Promise<void>;
};

const abortedAt = async (
  wire: TestedWire,
  reply: WireReply,
  expected: number,
): Promise<readonly ModelPiece[]> =>
  withServer(wire, [reply], async (url, server) => {
    const abortion = new AbortController();
    const pieces: ModelPiece[] = [];
    const watch = setInterval(() => {
      if (
        answeredIn(server).length === 1 &&
        pieces.filter(({ type }) => type === 'text').length === expected
      )
        abortion.abort();
    }, 5);
    for await (const piece of wire.model(url).stream(ask(userSays('hi')), abortion.signal))
      pieces.push(piece);
    clearInterval(watch);
    assert.equal(abortion.signal.aborted, true);
    return pieces;
  });

/** What the model answered, as the runtime stores it; input that is no JSON object is kept as `{}`. */
const stored = (model: string, { parts }: Completed): Message => ({
  role: 'assistant',
  model,
  cut: false,
  parts: parts.map((part) => {
    if (part.type !== 'call') return part;
    const { callId, tool, metadata } = part;
    return {
      type: 'call',
      callId,
      tool,
      input: {},
      ...(metadata === undefined ? {} : { metadata }),
    };
  }),
});

const THINKING: WireReply = {
  type: 'message',
  parts: [
    { type: 'thinking', text: 'Hm, a file.', secret: 'secret-1' },
    { type: 'text', text: 'I read.' },
    { type: 'call', id: 'c1', name: 'read', rawInput: '{"path": one}}', input: { path: 1 } },
  ],
};
const DONE: WireReply = { type: 'message', parts: [{ type: 'text', text: 'Done.' }] };
const INVALID = 'the arguments were not valid: path: is no text\nWhat you wrote: {"path": one}}';

const answered = (callId: string): Message => ({
  role: 'user',
  parts: [{ type: 'result', callId, tool: 'read', failed: true, text: INVALID }],
});

type Change = {
  /** The model of the second request. */
  readonly model?: string;
  /** The server of the second request. */
  readonly url?: string;
  /** Words of the user behind the result. */
  readonly words?: string;
};

/** Two requests: a thinking reply with a call that fails, and what is sent behind it, to this or another model. */
const goOn = (wire: TestedWire, { model, url: other, words }: Change = {}): Promise<string> =>
  withServer(wire, [THINKING, DONE], async (url, server) => {
    const first = wire.model(url);
    const ending = endingOf(await collect(first.stream(ask(userSays('hello')), signal())));
    assert.ok(ending.type === 'completed', JSON.stringify(ending));
    const callId = ending.parts.find((part) => part.type === 'call')?.callId ?? '';
    const results = answered(callId);
    const more = words === undefined ? [] : userSays(words).parts;
    const open = { ...results, parts: [...results.parts, ...more] } as Message; // all of the user
    const said = [userSays('hello'), stored(first.id, ending), open];
    const conversation = { ...emptyConversation, closed: AppendList.from(said) };
    const second = wire.model(other ?? url, model);
    const messages = requestMessages(conversation, 3, second.id);
    const last = endingOf(await collect(second.stream(ask(...messages), signal())));
    assert.ok(last.type === 'completed', JSON.stringify(last));
    const refusals = server.requests.flatMap(({ fault, body }) =>
      fault === null ? [] : `${(body as { readonly model: string }).model} ${fault}`,
    );
    assert.equal(new Set(refusals).size, refusals.length, 'nothing is refused twice');
    return answeredIn(server)[1]?.text ?? '';
  });

const others: Readonly<Record<WireName, string>> = {
  anthropic: 'claude-opus-5-5',
  openai: 'gpt-6-astra',
  google: 'gemini-3.5-flash',
  chat: 'llama4',
};

const stories: readonly Story[] = [
  {
    trap: 'our own abort before the headers is no failure',
    shown: 'nothing is said',
    run: async (wire) => assert.deepEqual(await abortedAt(wire, { type: 'nothing' }, 0), []),
  },
  {
    trap: 'our own abort in the middle of a reply tells at most what was charged',
    shown: 'tokens at most',
    run: async (wire) => {
      const reply: WireReply = {
        type: 'message',
        parts: [{ type: 'text', text: 'one' }],
        end: 'silent',
      };
      const pieces = await abortedAt(wire, reply, 1);
      assert.equal(pieces.filter(({ type }) => type === 'completed').length, 0);
      const ends = pieces.filter((piece) => piece.type === 'failed');
      assert.ok(ends.every(({ usage }) => usage !== null));
    },
  },
  {
    trap: 'what a model thought goes back to it, with a call whose input could not be read sent as {}',
    shown: 'thoughts, {}, and the text',
    run: async (wire) => {
      const text = await goOn(wire);
      if (wire.keeps === 'words') assert.match(text, /Hm, a file\./);
      if (wire.keeps === 'secret') assert.match(text, /secret-1/);
      assert.match(text, /"(input|args)":\{\}|"arguments":"\{\}"/);
      assert.match(
        text,
        /the arguments were not valid: path: is no text.{1,3}nWhat you wrote: \{.{1,3}"path.{1,3}": one\}\}/,
      );
    },
  },
  {
    trap: 'what a model thought does not go to another model of the same provider',
    shown: 'dropped, pairs whole',
    run: async (wire) => {
      const text = await goOn(wire, { model: others[wire.name] });
      assert.doesNotMatch(text, /secret-1|Hm, a file/);
      assert.match(text, /c00001001/);
    },
  },
  {
    trap: 'what a model thought does not go to another server of the same model',
    shown: 'dropped',
    run: (wire) =>
      withServer(wire, [DONE], async (url, server) => {
        await goOn(wire, { url });
        const [{ text } = assert.fail()] = answeredIn(server);
        assert.doesNotMatch(text, /secret-1|Hm, a file/);
      }),
  },
  {
    trap: 'the user may speak right behind a result',
    shown: 'taken',
    run: async (wire) => assert.match(await goOn(wire, { words: 'And now?' }), /And now\?/),
  },
  {
    trap: 'a result that failed says so in its text, whether or not the wire has a flag for it',
    shown: 'the text says it',
    run: async (wire) => {
      const text = await goOn(wire);
      assert.match(text, /the arguments were not valid/);
      assert.equal(text.includes('"is_error":true'), wire.name === 'anthropic');
    },
  },
];

for (const { trap, shown, empty, run } of stories) {
  for (const wire of [...wires, ...habits]) {
    const reason = empty?.[wire.name];
    if (reason !== undefined) {
      cells.push({ trap, wire: wire.name, shown: `— ${reason}` });
      continue;
    }
    test(`${wire.title}: ${trap}`, async () => {
      await run(wire);
      cells.push({ trap, wire: wire.name, shown });
    });
  }
}

test('every cell of the matrix is a test or has its reason', (context) => {
  const traps = [...rows, ...stories].map(({ trap }) => trap);
  assert.equal(new Set(traps).size, traps.length);
  for (const trap of traps) {
    context.diagnostic(trap);
    for (const { name } of wires) {
      const cell = cells.find((found) => found.trap === trap && found.wire === name);
      assert.ok(cell, `${name}: ${trap}`);
      context.diagnostic(`    ${name.padEnd(10)} ${cell.shown}`);
    }
  }
});
