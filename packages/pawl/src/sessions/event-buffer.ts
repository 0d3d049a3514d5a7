/** Keeps items in order until someone subscribes. */
export type EventBuffer<T extends object | string> = {
  push(item: T): void;
  /** Delivers the kept items, then each new one. The returned function ends the subscription. */
  subscribe(told: (item: T) => void): () => void;
};

export const createEventBuffer = <T extends object | string>(): EventBuffer<T> => {
  const early: T[] = [];
  let tell = (item: T): void => void early.push(item);
  return {
    push: (item) => tell(item),
    subscribe(listener) {
      for (let item = early.shift(); item !== undefined; item = early.shift()) listener(item);
      tell = listener;
      return () => {
        tell = () => undefined;
      };
    },
  };
};
