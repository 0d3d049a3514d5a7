import { type WireName, wires } from '../../../../../test/kit/models/wires.js';
import type { LeanBody, LeanFetch, LeanResponse } from '../../../src/platform/http.js';
import type { Model, ModelPiece } from '../../../src/ports/model.js';
import { ask, collect, endingOf, userSays } from '../conversing.js';

/** Plays bodies of replies to the adapters, in any chunks and without a connection. */

export type Chunks = readonly Uint8Array[];

/** `broken`: after the chunks the connection fails. */
export type Played = { readonly chunks: Chunks; readonly end?: 'closed' | 'broken' };

export const bodyOf = ({ chunks, end = 'closed' }: Played): LeanBody => ({
  discard: () => undefined,
  async *[Symbol.asyncIterator]() {
    yield* chunks;
    if (end === 'broken') throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
  },
});

export const respondWith = (body: LeanBody): LeanResponse => ({
  ok: true,
  status: 200,
  statusText: 'OK',
  headers: new Map([['content-type', 'text/event-stream']]),
  body,
  text: () => Promise.reject(new Error('a stream of events is not read as one text')),
  json: () => Promise.reject(new Error('a stream of events is not read as JSON')),
});

let played: Played = { chunks: [] };
const playing: LeanFetch = async () => respondWith(bodyOf(played));

/** One model for each wire. */
const models = new Map<WireName, Model>(
  wires.map((wire) => [wire.name, wire.model('http://localhost:1', undefined, undefined, playing)]),
);

/** What came of a body. */
export type Outcome = {
  /** The pieces before the ending, without signs of life, whose number depends on the chunks. */
  readonly streamed: readonly ModelPiece[];
  readonly ending: ReturnType<typeof endingOf>;
};

const isSignOfLife = (piece: ModelPiece): boolean =>
  piece.type === 'reasoning' && piece.text === '';

/** Ids of calls that the body does not hold were made at random: they become numbers. */
const withoutRandomIds = (ending: Outcome['ending'], { chunks }: Played): Outcome['ending'] => {
  if (ending.type === 'failed') return ending;
  const sent = Buffer.concat(chunks).toString();
  const parts = ending.parts.map((part, index) =>
    part.type !== 'call' || sent.includes(part.callId)
      ? part
      : { ...part, callId: `made-${index}` },
  );
  return { ...ending, parts };
};

export const play = async (wire: WireName, body: Played): Promise<Outcome> => {
  const model = models.get(wire);
  if (model === undefined) throw new Error(`no wire ${wire}`);
  played = body;
  const all = await collect(model.stream(ask(userSays('hello')), new AbortController().signal));
  const ending = withoutRandomIds(endingOf(all), body);
  const streamed = all.slice(0, -1).filter((piece) => !isSignOfLife(piece));
  return { streamed, ending };
};
