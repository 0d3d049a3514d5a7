import type { ReplyPart, ServerReply, WireBody } from '../../../../test/servers/anthropic.js';

/** Short words for replies of the local provider. */

export const text = (words: string): ReplyPart => ({ type: 'text', text: words });
export const call = (id: string, name: string, input: object): ReplyPart => ({
  type: 'call',
  id,
  name,
  input,
});
export const message = (...parts: readonly ReplyPart[]): ServerReply => ({
  type: 'message',
  parts,
});
export const done = message(text('Done.'));
export const overloaded: ServerReply = {
  type: 'error',
  status: 529,
  errorType: 'overloaded_error',
  message: 'Overloaded',
};

/** The parts of the last message that was sent. */
export const last = (body: WireBody | undefined) => body?.messages.at(-1)?.content ?? [];
