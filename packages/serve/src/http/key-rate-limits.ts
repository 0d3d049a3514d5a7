import { ApiFault } from './api-fault.js';
import type { ServeKey } from './keys.js';

/** What the keys use at the moment. */

type Use = {
  /** Requests that may be sent now: the bucket is full with a minute's share. */
  tokens: number;
  at: number;
  /** Sessions that are being created. */
  creating: number;
  streams: number;
};

const MINUTE_MS = 60_000;

export class KeyUse {
  readonly #uses = new Map<string, Use>();
  readonly #now: () => number;

  /** `now`: a clock in milliseconds that is never set. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Counts a request. Returns the seconds to wait if there are too many. */
  countRequest(key: ServeKey): number {
    const use = this.#of(key);
    const perMs = key.limits.requestsPerMinute / MINUTE_MS;
    const now = this.#now();
    use.tokens = Math.min(key.limits.requestsPerMinute, use.tokens + (now - use.at) * perMs);
    use.at = now;
    if (use.tokens < 1) return Math.max(1, Math.ceil((1 - use.tokens) / perMs / 1_000));
    use.tokens -= 1;
    return 0;
  }

  /** Reserves a place for a session during `work`. `open`: the sessions of the key that are open. */
  async withPlace<T>(key: ServeKey, open: number, work: () => Promise<T>): Promise<T> {
    const use = this.#of(key);
    const { sessions } = key.limits;
    if (open + use.creating >= sessions)
      throw new ApiFault(
        'tooManySessions',
        `The key ${key.name} has ${sessions} sessions open, its limit. Close one: POST /v1/sessions/ID/close.`,
      );
    use.creating += 1;
    try {
      return await work();
    } finally {
      use.creating -= 1;
    }
  }

  /** Counts a stream until the returned function is called. */
  openStream(key: ServeKey): () => void {
    const use = this.#of(key);
    if (use.streams >= key.limits.streams)
      throw new ApiFault(
        'tooManyStreams',
        `The key ${key.name} reads ${key.limits.streams} streams, its limit. End one of them first.`,
      );
    use.streams += 1;
    let isOpen = true;
    return () => {
      if (isOpen) use.streams -= 1;
      isOpen = false;
    };
  }

  #of(key: ServeKey): Use {
    const use = this.#uses.get(key.name) ?? {
      tokens: key.limits.requestsPerMinute,
      at: this.#now(),
      creating: 0,
      streams: 0,
    };
    this.#uses.set(key.name, use);
    return use;
  }
}
