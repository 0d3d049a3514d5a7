import { type WireName, wires } from '../../../../../test/kit/models/wires.js';
import type { MessageReply } from '../../../../../test/servers/reply.js';
import { createFetch, type LeanFetch } from '../../../src/platform/http.js';
import { delta, events } from '../answering.js';
import { ask, collect, userSays } from '../conversing.js';
import { bodyOf, respondWith } from './replay-stream.js';

/** Bodies of replies: what the strict servers of all wires send, and what other servers were seen to send. */

export type StreamBody = { readonly name: string; readonly wire: WireName; readonly bytes: Buffer };

const text = (words: string) => ({ type: 'text', text: words }) as const;
const call = (id: string, input: object) => ({ type: 'call', id, name: 'read', input }) as const;
const message = (parts: MessageReply['parts'], rest: Partial<MessageReply> = {}): MessageReply => ({
  type: 'message',
  parts,
  ...rest,
});

const replies: Readonly<Record<string, MessageReply>> = {
  'thoughts, text of many alphabets and two calls': message([
    { type: 'thinking', text: 'Zwei Dateien: «a» und 日本.', secret: 'sealed' },
    text('I read both 👩‍👩‍👧, naïvely:\r\n\tone "and" two\\.'),
    call('c1', { path: 'ä/日本/😀.ts' }),
    call('c2', { path: 'two', deep: { list: [1, null, true, '\n'] } }),
  ]),
  'text alone': message([text('Done. É finito 🎉')]),
  'an error in the middle': message([text('this fails soon'), call('c3', { path: 'x' })], {
    end: 'error',
  }),
  'no end': message([text('this breaks o')], { end: 'clean' }),
  'cut at the output limit': message([text('and then they all')], { stop: 'maxTokens' }),
};

const record = async (wire: (typeof wires)[number], reply: MessageReply): Promise<Buffer> => {
  const server = await wire.start([reply]);
  const through = createFetch({});
  const chunks: Uint8Array[] = [];
  const recording: LeanFetch = async (url, sent) => {
    const response = await through(url, sent);
    for await (const chunk of response.body) chunks.push(chunk);
    return respondWith(bodyOf({ chunks: [] }));
  };
  try {
    const model = wire.model(server.url, undefined, undefined, recording);
    await collect(model.stream(ask(userSays('hello')), new AbortController().signal));
  } finally {
    await server.close();
  }
  return Buffer.concat(chunks);
};

const toolDelta = (index: number, id: string | null, name: string | null, args: string): object =>
  delta({
    tool_calls: [
      {
        index,
        ...(id === null ? {} : { id, type: 'function' }),
        function: { ...(name === null ? {} : { name }), arguments: args },
      },
    ],
  });

const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };

/** Bodies of Chat Completions as compatible servers send them. */
const odd: Readonly<Record<string, string>> = {
  'comments, calls that alternate, and usage in an event of its own': `: PROCESSING\n\n${events(
    delta({ role: 'assistant', content: null }),
    toolDelta(0, 'call_1', 'read', ''),
    toolDelta(1, 'call_2', 'read', ''),
  )}: PROCESSING\n\n${events(
    toolDelta(0, null, null, '{"path":'),
    toolDelta(1, null, null, '{"path":"b"'),
    toolDelta(0, null, null, '"a"}'),
    toolDelta(1, null, null, '}'),
    delta({}, 'tool_calls'),
    { id: 'c', choices: [], usage },
    '[DONE]',
  )}`,
  'the id of a call in each of its events': events(
    toolDelta(0, 'call_1', 'read', '{"pa'),
    toolDelta(0, 'call_1', 'read', 'th":"a"}'),
    delta({}, 'tool_calls'),
    '[DONE]',
  ),
  'one id for two calls': events(
    toolDelta(0, 'call_1', 'read', '{"path":"a"}'),
    toolDelta(1, 'call_1', 'read', '{"path":"b"}'),
    delta({}, 'tool_calls'),
    '[DONE]',
  ),
  '[DONE] instead of a reason': events(delta({ content: 'fine' }), '[DONE]'),
  'a line that is an error and no event': `${events(delta({ content: 'so' }))}error: {"message":"the engine stopped","code":500}\n\n`,
  'an event that is no JSON, then a line that is an error':
    'data: {"choices":[\n\nerror: {"message":"the engine stopped","code":500}\n\n',
  'events with names, ids and two lines of data': `retry: 10\nid: 7\nevent: message\ndata: {"id":"c","choices":[{"index":0,\ndata: "delta":{"content":"two lines"},"finish_reason":null}]}\n\n${events(delta({}, 'stop'), '[DONE]')}`,
};

export const streamBodies = async (): Promise<readonly StreamBody[]> => {
  const bodies: StreamBody[] = [];
  for (const wire of wires)
    for (const [name, reply] of Object.entries(replies))
      bodies.push({ name, wire: wire.name, bytes: await record(wire, reply) });
  for (const [name, body] of Object.entries(odd))
    bodies.push({ name, wire: 'chat', bytes: Buffer.from(body) });
  return bodies;
};
