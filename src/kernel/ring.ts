/** The last `most` items that were added, oldest first. */
export type Ring<T> = { add(item: T): void; toArray(): readonly T[] };

export const ring = <T>(most: number): Ring<T> => {
  const items: T[] = [];
  let next = 0;
  return {
    add(item) {
      items[next] = item;
      next = (next + 1) % most;
    },
    // Behind `next` stand the older ones, or nothing as long as it is not full.
    toArray: () => [...items.slice(next), ...items.slice(0, next)],
  };
};
