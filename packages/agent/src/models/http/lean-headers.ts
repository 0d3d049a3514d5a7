type Pairs = Iterable<readonly [string, string]> | Readonly<Record<string, string | undefined>>;

const isIterable = (pairs: Pairs): pairs is Iterable<readonly [string, string]> => Symbol.iterator in pairs;

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
