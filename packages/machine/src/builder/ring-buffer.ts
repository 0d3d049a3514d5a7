/** Keeps the last `most` items, oldest first. */
export type RingBuffer<T> = { add(item: T): void; toArray(): readonly T[] };

export const ringBuffer = <T>(most: number): RingBuffer<T> => {
  const items: T[] = [];
  let next = 0;
  return {
    add(item) {
      items[next] = item;
      next = (next + 1) % most;
    },
    // The items from `next` on are older; there are none until the buffer is full.
    toArray: () => [...items.slice(next), ...items.slice(0, next)],
  };
};
