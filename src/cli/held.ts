/** Keeps what comes before somebody can be told, in order. */
export type Held<T extends object | string> = {
  give(item: T): void;
  /** Tells what was kept and what comes; after the returned function was called nothing more. */
  hear(told: (item: T) => void): () => void;
};

export const createHeld = <T extends object | string>(): Held<T> => {
  const early: T[] = [];
  let tell = (item: T): void => void early.push(item);
  return {
    give: (item) => tell(item),
    hear(told) {
      for (let item = early.shift(); item !== undefined; item = early.shift()) told(item);
      tell = told;
      return () => {
        tell = () => undefined;
      };
    },
  };
};
