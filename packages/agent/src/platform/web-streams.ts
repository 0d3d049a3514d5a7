/**
 * Streams that are read by one reader, piece by piece, in place of the platform's web streams,
 * which cost more than anything else between the socket and the reply: each of the six that a
 * package puts in a row makes several promises for a piece, and loading them is part of every
 * start.
 *
 * 1. A stream is pulled: a source or a transform is asked for more only when its queue is empty and
 *    somebody waits.
 * 2. What is queued when a stream fails is still read first.
 * 3. They do what our packages use: `getReader`, `pipeThrough`, `tee`, `cancel`. No byte streams,
 *    no strategies.
 *
 * "Lean": like the platform's type of that name, with only the parts that Pawl uses. From top to
 * bottom: `LeanReadable`, `LeanTransform`, decoding of text, and the headers of a request.
 */

export type LeanController<T> = {
  enqueue(piece: T): void;
  close(): void;
  error(reason: unknown): void;
};

type LeanSource<T> = {
  start?(controller: LeanController<T>): unknown;
  /** Called when somebody waits; it enqueues, closes or fails, now or later. */
  pull?(controller: LeanController<T>): unknown;
  cancel?(reason?: unknown): unknown;
};

type LeanResult<T> =
  | { readonly done: false; readonly value: T }
  | { readonly done: true; readonly value: undefined };

type LeanReader<T> = {
  read(): Promise<LeanResult<T>>;
  cancel(reason?: unknown): Promise<void>;
  releaseLock(): void;
};

type Waiting<T> = { resolve(result: LeanResult<T>): void; reject(reason: unknown): void };

const END = { done: true, value: undefined } as const;

export class LeanReadable<T> {
  readonly #source: LeanSource<T>;
  readonly #controller: LeanController<T>;
  #queue: T[] = [];
  /** Where the queue begins: pieces before it were read. */
  #first = 0;
  #waiting: Waiting<T>[] = [];
  #state: 'open' | 'closed' | 'failed' = 'open';
  #reason: unknown = undefined;
  #pulling = false;

  constructor(source: LeanSource<T> = {}) {
    this.#source = source;
    this.#controller = {
      enqueue: (piece) => this.#enqueue(piece),
      close: () => this.#close(),
      error: (reason) => this.#fail(reason),
    };
    source.start?.(this.#controller);
  }

  getReader(): LeanReader<T> {
    return {
      read: () => this.read(),
      cancel: (reason) => this.cancel(reason),
      releaseLock: () => undefined, // there is no lock, since there is only one reader
    };
  }

  read(): Promise<LeanResult<T>> {
    return new Promise((resolve, reject) => {
      const piece = this.takeNow();
      if (piece !== null) return resolve(piece);
      this.#waiting.push({ resolve, reject });
      this.#pull();
    });
  }

  /**
   * The next piece or the end if it is there already, else null. Throws the reason of a stream that
   * failed.
   */
  takeNow(): LeanResult<T> | null {
    if (this.#first < this.#queue.length) {
      const value = this.#queue[this.#first++] as T; // in bounds
      if (this.#first === this.#queue.length) {
        this.#queue = [];
        this.#first = 0;
      }
      return { done: false, value };
    }
    if (this.#state === 'failed') throw this.#reason;
    return this.#state === 'closed' ? END : null;
  }

  async cancel(reason?: unknown): Promise<void> {
    if (this.#state !== 'open') return;
    this.#queue = [];
    this.#first = 0;
    this.#close();
    await this.#source.cancel?.(reason);
  }

  pipeThrough<U>(transform: LeanTransform<T, U>): LeanReadable<U> {
    return transform.readFrom(this);
  }

  /** Two streams of the same pieces. The one that asks first reads a piece for both. */
  tee(): [LeanReadable<T>, LeanReadable<T>] {
    let reading: Promise<void> | null = null;
    const controllers = new Set<LeanController<T>>();
    const readOn = async (): Promise<void> => {
      try {
        const result = await this.read();
        for (const controller of controllers) {
          if (result.done) controller.close();
          else controller.enqueue(result.value);
        }
      } catch (reason) {
        for (const controller of controllers) controller.error(reason);
      }
      reading = null;
    };
    const branch = (): LeanReadable<T> => {
      let branchController: LeanController<T>;
      return new LeanReadable<T>({
        start(controller) {
          branchController = controller;
          controllers.add(controller);
        },
        pull: () => {
          reading ??= readOn();
          return reading;
        },
        cancel: (reason) => {
          controllers.delete(branchController);
          return controllers.size === 0 ? this.cancel(reason) : undefined;
        },
      });
    };
    return [branch(), branch()];
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    try {
      for (;;) {
        const result = await this.read();
        if (result.done) return;
        yield result.value;
      }
    } finally {
      await this.cancel();
    }
  }

  /** One pull at a time; what it brings may call for another. */
  #pull(): void {
    if (this.#pulling || this.#state !== 'open') return;
    this.#pulling = true;
    const pulled = this.#callPull();
    if (!(pulled instanceof Promise)) {
      this.#pulling = false;
      return;
    }
    pulled.then(
      () => this.#pullAgain(),
      (reason: unknown) => {
        this.#pulling = false;
        this.#fail(reason);
      },
    );
  }

  #callPull(): unknown {
    try {
      return this.#source.pull?.(this.#controller);
    } catch (reason) {
      this.#fail(reason);
      return undefined;
    }
  }

  #pullAgain(): void {
    this.#pulling = false;
    if (this.#waiting.length > 0) this.#pull();
  }

  #enqueue(piece: T): void {
    if (this.#state !== 'open') return;
    const waiting = this.#waiting.shift();
    if (waiting === undefined) this.#queue.push(piece);
    else waiting.resolve({ done: false, value: piece });
  }

  #close(): void {
    if (this.#state !== 'open') return;
    this.#state = 'closed';
    for (const { resolve } of this.#waiting) resolve(END);
    this.#waiting = [];
  }

  /** Fails for readers that wait; what is queued is still read first. */
  #fail(reason: unknown): void {
    if (this.#state !== 'open') return;
    this.#state = 'failed';
    this.#reason = reason;
    for (const { reject } of this.#waiting) reject(reason);
    this.#waiting = [];
  }
}

type LeanTransformer<T, U> = {
  start?(controller: LeanTransformController<U>): unknown;
  transform?(piece: T, controller: LeanTransformController<U>): unknown;
  flush?(controller: LeanTransformController<U>): unknown;
};

type LeanTransformController<U> = Omit<LeanController<U>, 'close'> & { terminate(): void };

export class LeanTransform<T, U> {
  readonly #transformer: LeanTransformer<T, U>;
  /** Something came of the piece that was read last. */
  #hasOutput = false;

  constructor(transformer: LeanTransformer<T, U> = {}) {
    this.#transformer = transformer;
  }

  readFrom(upstream: LeanReadable<T>): LeanReadable<U> {
    const { transform, flush } = this.#transformer;
    let out: LeanTransformController<U>;
    const noteOutput = (): void => {
      this.#hasOutput = true;
    };
    /** Reads until something comes of it. */
    const pull = async (controller: LeanController<U>): Promise<void> => {
      this.#hasOutput = false;
      while (!this.#hasOutput) {
        const result = upstream.takeNow() ?? (await upstream.read());
        if (result.done) {
          await flush?.call(this.#transformer, out);
          return controller.close();
        }
        const transformed = transform?.call(this.#transformer, result.value, out);
        if (transformed instanceof Promise) await transformed;
      }
    };
    return new LeanReadable<U>({
      start: (controller) => {
        out = {
          enqueue(piece) {
            noteOutput();
            controller.enqueue(piece);
          },
          error(reason) {
            noteOutput();
            controller.error(reason);
          },
          terminate() {
            noteOutput();
            controller.close();
          },
        };
        this.#transformer.start?.(out);
      },
      pull,
      cancel: (reason) => upstream.cancel(reason),
    });
  }
}

export class LeanTextDecoder extends LeanTransform<Uint8Array, string> {
  constructor() {
    const decoder = new TextDecoder();
    super({
      transform(bytes, controller) {
        const text = decoder.decode(bytes, { stream: true });
        if (text !== '') controller.enqueue(text);
      },
      flush(controller) {
        const text = decoder.decode();
        if (text !== '') controller.enqueue(text);
      },
    });
  }
}

type Pairs = Iterable<readonly [string, string]> | Readonly<Record<string, string | undefined>>;

const isIterable = (pairs: Pairs): pairs is Iterable<readonly [string, string]> =>
  Symbol.iterator in pairs;

/**
 * Headers without Node's own: touching the global `Headers` loads undici, 35-45 ms of a start.
 *
 * Names are kept in lower case, values as given; a value that is undefined leaves its header out.
 */
export class LeanHeaders implements Iterable<[string, string]> {
  readonly #values = new Map<string, string>();

  constructor(pairs: Pairs = {}) {
    for (const [name, value] of isIterable(pairs) ? pairs : Object.entries(pairs)) {
      if (value !== undefined) this.set(name, value);
    }
  }

  get(name: string): string | null {
    return this.#values.get(name.toLowerCase()) ?? null;
  }

  set(name: string, value: string): void {
    this.#values.set(name.toLowerCase(), value);
  }

  has(name: string): boolean {
    return this.#values.has(name.toLowerCase());
  }

  delete(name: string): void {
    this.#values.delete(name.toLowerCase());
  }

  forEach(visit: (value: string, name: string) => void): void {
    for (const [name, value] of this.#values) visit(value, name);
  }

  entries(): IterableIterator<[string, string]> {
    return this.#values.entries();
  }

  [Symbol.iterator](): IterableIterator<[string, string]> {
    return this.#values.entries();
  }
}
