/**
 * The engine's SDK calls `Promise.withResolvers`, which Node 20 lacks. Import this file before the
 * SDK.
 */
type Resolvers<T> = {
  promise: Promise<T>;
  resolve: (value: T | PromiseLike<T>) => void;
  reject: (reason?: unknown) => void;
};

const withResolvers = <T>(): Resolvers<T> => {
  const resolvers: Partial<Resolvers<T>> = {};
  resolvers.promise = new Promise<T>((resolve, reject) => {
    resolvers.resolve = resolve;
    resolvers.reject = reject;
  });
  return resolvers as Resolvers<T>; // the executor has run
};

if (!('withResolvers' in Promise))
  Object.defineProperty(Promise, 'withResolvers', { value: withResolvers });
