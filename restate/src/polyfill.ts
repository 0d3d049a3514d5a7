/** The engine's SDK calls `Promise.withResolvers`, which Node 20 lacks. Import this file before the SDK. */
type Resolvers<T> = {
  promise: Promise<T>;
  resolve: (value: T | PromiseLike<T>) => void;
  reject: (reason?: unknown) => void;
};

const withResolvers = <T>(): Resolvers<T> => {
  const made: Partial<Resolvers<T>> = {};
  made.promise = new Promise<T>((resolve, reject) => {
    made.resolve = resolve;
    made.reject = reject;
  });
  return made as Resolvers<T>; // the executor has run
};

if (!('withResolvers' in Promise)) Object.defineProperty(Promise, 'withResolvers', { value: withResolvers });
