import type { AnyMessage, JsonRpcId, Stream } from '@agentclientprotocol/sdk';

export type HookedStream = {
  readonly stream: Stream;
  /** Calls `then` after the answer to this request was written. */
  afterAnswer(id: JsonRpcId, then: () => void): void;
};

/** Watches the messages that are sent, so that something can follow an answer and never precede it. */
export const hookAnswers = ({ readable, writable }: Stream): HookedStream => {
  const waiting = new Map<JsonRpcId, () => void>();
  const writer = writable.getWriter();
  const write = async (message: AnyMessage): Promise<void> => {
    await writer.write(message);
    if (!('id' in message) || 'method' in message) return;
    const then = waiting.get(message.id);
    waiting.delete(message.id);
    then?.();
  };
  return {
    stream: { readable, writable: new WritableStream({ write }) },
    afterAnswer: (id, then) => void waiting.set(id, then),
  };
};
