import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { adapterOptions } from '../../../../test/kit/models/adapter-options.js';
import { compatibleModel } from '../../src/models/openai-compatible.js';
import { openAiModel } from '../../src/models/openai-responses.js';
import type { ModelFacts, ModelPiece } from '../../src/ports/model.js';
import { ask, collect, endingOf, userSays } from './conversing.js';

/** A server that answers with given bytes, and models that speak to it: for what no strict server would say. */

export const facts: ModelFacts = {
  windowTokens: 100_000,
  outputTokensMax: 1_000,
  thinking: 'yes',
  tools: 'yes',
  prices: null,
  source: 'test',
};

export type Seen = { readonly headers: http.IncomingHttpHeaders; readonly body: Loose };
export type Loose = { readonly [key: string]: unknown };
/** `number` counts from 1. */
export type Answering = (out: http.ServerResponse, number: number) => void;

export const serve = async (
  context: TestContext,
  answer: Answering,
): Promise<{ readonly url: string; readonly seen: readonly Seen[] }> => {
  const seen: Seen[] = [];
  const server = http.createServer((incoming, out) => {
    let text = '';
    incoming.setEncoding('utf8');
    incoming.on('data', (piece) => {
      text += piece;
    });
    incoming.on('end', () => {
      seen.push({ headers: incoming.headers, body: text === '' ? {} : JSON.parse(text) });
      answer(out, seen.length);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  context.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, seen }; // it listens on a port
};

/** Events of a stream, one for each object or text. */
export const events = (...contents: readonly (object | string)[]): string =>
  contents
    .map((each) => `data: ${typeof each === 'string' ? each : JSON.stringify(each)}\n\n`)
    .join('');

export const streamed =
  (text: string | Buffer, headers: Readonly<Record<string, string>> = {}): Answering =>
  (out) => {
    out.writeHead(200, { 'content-type': 'text/event-stream', ...headers });
    out.end(text);
  };

export const delta = (
  content: object,
  finish: string | null = null,
  rest: object = {},
): object => ({
  id: 'c',
  choices: [{ index: 0, delta: content, finish_reason: finish }],
  ...rest,
});

/** A reply of Chat Completions that says ok. */
export const OK = events(delta({ content: 'ok' }), delta({}, 'stop'), '[DONE]');

export const chatModel = (baseUrl: string, rest: Partial<ModelFacts> = {}) =>
  compatibleModel(
    adapterOptions('openai-compatible/m', baseUrl, {
      keyVariable: 'KEY',
      facts: { ...facts, ...rest },
    }),
  );

export const openAi = (baseUrl: string, apiKey = 'key', rest: { summaries?: 'on' | 'off' } = {}) =>
  openAiModel(adapterOptions('openai/gpt-6.2-sol', baseUrl, { apiKey, facts, ...rest }));

/** A reply of Responses that says ok. */
export const RESPONSES_OK = events(
  { type: 'response.created', response: { id: 'r', created_at: 1, model: 'm' } },
  { type: 'response.output_item.added', output_index: 0, item: { type: 'message', id: 'm1' } },
  { type: 'response.output_text.delta', item_id: 'm1', delta: 'ok' },
  { type: 'response.output_item.done', output_index: 0, item: { type: 'message', id: 'm1' } },
  {
    type: 'response.completed',
    response: { usage: { input_tokens: 3, output_tokens: 2 }, incomplete_details: null },
  },
);

/** One request that says hello; all that came of it, and its end. */
export const hello = async (model: ReturnType<typeof chatModel>, rest: object = {}) => {
  const pieces: readonly ModelPiece[] = await collect(
    model.stream({ ...ask(userSays('hello')), ...rest }, new AbortController().signal),
  );
  return { pieces, ending: endingOf(pieces) };
};

export const textOf = (pieces: readonly ModelPiece[]): string =>
  pieces.map((piece) => (piece.type === 'text' ? piece.text : '')).join('');
