import assert from 'node:assert/strict';
import { adapterOptions } from '../../../../test/kit/models/adapter-options.js';
import { type ServerReply, startAnthropicServer } from '../../../../test/servers/anthropic.js';
import type { Message } from '../../src/machine/message.js';
import { anthropicModel } from '../../src/models/anthropic.js';
import { catalogueFacts } from '../../src/models/catalogue.js';
import type { ModelPiece, ModelRequest } from '../../src/ports/model.js';

/** One request to the strict server, and what comes of it. */

export type Completed = Extract<ModelPiece, { readonly type: 'completed' }>;
export type Failed = Extract<ModelPiece, { readonly type: 'failed' }>;

export const userSays = (text: string): Message => ({
  role: 'user',
  parts: [{ type: 'text', origin: 'user', text }],
});
const read = {
  name: 'read',
  description: 'Reads a file.',
  inputSchema: { type: 'object', properties: {} },
};
export const ask = (...messages: readonly Message[]): ModelRequest => ({
  instructions: 'Be brief.',
  tools: [read],
  messages,
});
export const noTokens = {
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
};

const MODEL = 'anthropic/claude-sonnet-5-5';

export const modelAt = (baseUrl: string, apiKey = 'key') =>
  anthropicModel(adapterOptions(MODEL, baseUrl, { apiKey, facts: catalogueFacts(MODEL) }));

export const collect = async (
  pieces: AsyncIterable<ModelPiece>,
): Promise<readonly ModelPiece[]> => {
  const all: ModelPiece[] = [];
  for await (const piece of pieces) all.push(piece);
  return all;
};

export const endingOf = (pieces: readonly ModelPiece[]): Completed | Failed => {
  const endings = pieces.filter((piece) => piece.type === 'completed' || piece.type === 'failed');
  const [ending] = endings;
  assert.equal(endings.length, 1, 'exactly one ending');
  assert.equal(pieces.at(-1), ending, 'nothing after the ending');
  assert.ok(ending);
  return ending;
};

/** The parts without the name of the server, which all that goes back to it has. */
export const placeless = ({ parts }: Completed): readonly object[] =>
  parts.map((part) => {
    if (part.metadata === undefined) return part;
    const { server, ...metadata } = part.metadata;
    assert.match(String(server), /^127\.0\.0\.1:\d+$/);
    return { ...part, metadata };
  });

/** One request against a server that has this one reply. */
export const converse = async (reply: ServerReply): Promise<Completed | Failed> => {
  const server = await startAnthropicServer({ replies: [reply] });
  try {
    const pieces = await collect(
      modelAt(server.url).stream(ask(userSays('hello')), new AbortController().signal),
    );
    assert.equal(server.requests.length, 1, 'nothing is retried');
    return endingOf(pieces);
  } finally {
    await server.close();
  }
};

export const text = (words: string) => ({ type: 'text' as const, text: words });
export const call = (
  id: string,
  rest: { rawInput?: string; input?: object; half?: boolean } = {},
) => ({
  type: 'call' as const,
  id,
  name: 'read',
  ...rest,
});
export const message = (
  parts: Extract<ServerReply, { type: 'message' }>['parts'],
  rest: object = {},
): ServerReply => ({
  type: 'message',
  parts,
  ...rest,
});
