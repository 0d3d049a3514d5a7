import assert from 'node:assert/strict';
import type { AssistantMessage, Message, UserMessage } from '../../src/machine/message.js';
import type { Model, ModelPiece, ModelRequest } from '../../src/ports/model.js';

/** Conversations in a few words, and what a scripted model answers to them. */

export type Ending = Extract<ModelPiece, { readonly type: 'completed' | 'failed' }>;

export const user = (text: string): UserMessage => ({
  role: 'user',
  parts: [{ type: 'text', origin: 'user', text }],
});
export const summary = (text: string): UserMessage => ({
  role: 'user',
  parts: [{ type: 'text', origin: 'summary', text }],
});
export const results = (...callIds: readonly string[]): UserMessage => ({
  role: 'user',
  parts: callIds.map((callId) => ({
    type: 'result',
    callId,
    tool: 'read',
    failed: false,
    text: `result of ${callId}`,
  })),
});
export const said = (text: string, rest: Partial<AssistantMessage> = {}): AssistantMessage => ({
  role: 'assistant',
  model: 'scripted/script',
  cut: false,
  parts: [{ type: 'text', text }],
  ...rest,
});
export const called = (...callIds: readonly string[]): AssistantMessage => ({
  ...said(''),
  parts: callIds.map((callId) => ({ type: 'call', callId, tool: 'read', input: {} })),
});
export const ask = (
  messages: readonly Message[],
  rest: Partial<ModelRequest> = {},
): ModelRequest => ({
  instructions: 'Be brief.',
  tools: [{ name: 'read', description: '', inputSchema: {} }],
  messages,
  ...rest,
});

export const collect = async (
  model: Model,
  request: ModelRequest,
  signal = new AbortController().signal,
) => {
  const pieces: ModelPiece[] = [];
  for await (const piece of model.stream(request, signal)) pieces.push(piece);
  return pieces;
};

export const endingOf = async (model: Model, request: ModelRequest): Promise<Ending> => {
  const last = (await collect(model, request)).at(-1);
  assert.ok(last?.type === 'completed' || last?.type === 'failed');
  return last;
};

/** A reply in one word: its text, its first call, the kind of its failure, or `empty`. */
export const wordFor = (ending: Ending): string => {
  if (ending.type === 'failed') return ending.error.kind;
  const part = ending.parts.at(-1);
  if (part === undefined) return 'empty';
  return part.type === 'call' ? part.callId : part.text;
};
