import type { Ending, Listening } from './listen.js';

/** The model calls of one session that are listened to, by the ids that they are reported under. */
export class Hearing {
  readonly #open = new Map<string, Listening>();
  readonly #held = new Set<Promise<void>>();

  /** How the call ends; then its id is free again. */
  async follow(id: string, listening: Listening): Promise<Ending> {
    this.hold(listening.silent);
    this.#open.set(id, listening);
    const ending = await listening.ended;
    if (this.#open.get(id) === listening) this.#open.delete(id);
    return ending;
  }

  /** Has `stopAll` wait for work that never rejects. */
  hold(work: Promise<void>): void {
    const held: Promise<void> = work.then(() => void this.#held.delete(held));
    this.#held.add(held);
  }

  abort(id: string): void {
    this.#open.get(id)?.abort();
  }

  /** Aborts every call; resolves when the last has said what it cost, and all of it is posted. */
  async stopAll(): Promise<void> {
    for (const listening of this.#open.values()) listening.abort();
    await Promise.all(this.#held);
  }
}
