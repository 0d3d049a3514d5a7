import type { ModelPiece } from '../ports/model.js';

/** A queue of pieces from several writers for one reader, in order of arrival. */
export type PieceQueue = AsyncIterable<ModelPiece> & {
  push(piece: ModelPiece): void;
  /** Nothing more comes. */
  end(): void;
};

type Next = IteratorResult<ModelPiece, undefined>;
const END: Next = { done: true, value: undefined };

/** `begin` runs when the reader first asks, `leave` if it stops reading before the end. */
export const createPieceQueue = (begin: () => void, leave: () => void): PieceQueue => {
  let queue: ModelPiece[] = [];
  let waiting: ((next: Next) => void) | null = null;
  let state: 'new' | 'open' | 'ended' = 'new';
  const next = async (): Promise<Next> => {
    if (state === 'new') {
      state = 'open';
      begin();
    }
    const value = queue.shift();
    if (value !== undefined) return { done: false, value };
    if (state === 'ended') return END;
    return new Promise((resolve) => {
      waiting = resolve;
    });
  };
  const answer = (found: Next): boolean => {
    const resolve = waiting;
    waiting = null;
    resolve?.(found);
    return resolve !== null;
  };
  const end = (): void => {
    state = 'ended';
    answer(END);
  };
  return {
    push(value) {
      if (state !== 'ended' && !answer({ done: false, value })) queue.push(value);
    },
    end,
    [Symbol.asyncIterator]: () => ({
      next,
      async return() {
        if (state === 'open') leave();
        queue = [];
        end();
        return END;
      },
    }),
  };
};
