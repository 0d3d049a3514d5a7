import type { Entry, Event } from 'pawl/engine';
import type { ShownText } from '../session/session-records.js';

/**
 * The way of what is not kept: text as it streams, output of running commands, and word that there are new entries. What
 * is lost here is read from the engine later, so nothing depends on it.
 */
export type LiveMessage =
  | { readonly kind: 'delta'; readonly event: Event }
  | { readonly kind: 'entries'; readonly entries: readonly Entry[] };

export type SeeLive = (message: LiveMessage) => void;

/** Finds the text of a reply that streams on this node; null if it does not. */
export type FindShown = (sessionId: string, requestId: string) => ShownText | null;

export type LiveChannel = {
  publish(sessionId: string, message: LiveMessage): void;
  /** The returned function ends it. */
  subscribe(sessionId: string, see: SeeLive): () => void;
  /** Asks all nodes for the text of a reply. Null: no node that answers makes it. */
  shownText(sessionId: string, requestId: string): Promise<ShownText | null>;
  /** Answers such questions with what is found here. */
  answer(find: FindShown): void;
  close(): Promise<void>;
};

/** The subscribers of one process. */
export class Subscribers {
  readonly #bySession = new Map<string, Set<SeeLive>>();

  add(sessionId: string, see: SeeLive): () => void {
    const all = this.#bySession.get(sessionId) ?? new Set();
    this.#bySession.set(sessionId, all);
    all.add(see);
    return () => {
      all.delete(see);
      if (all.size === 0) this.#bySession.delete(sessionId);
    };
  }

  tell(sessionId: string, message: LiveMessage): void {
    for (const see of this.#bySession.get(sessionId) ?? []) see(message);
  }
}

/** For nodes and users in one process. */
export const localLive = (): LiveChannel => {
  const subscribers = new Subscribers();
  const finders: FindShown[] = [];
  return {
    publish: (sessionId, message) => subscribers.tell(sessionId, message),
    subscribe: (sessionId, see) => subscribers.add(sessionId, see),
    shownText: async (sessionId, requestId) => {
      for (const find of finders) {
        const shown = find(sessionId, requestId);
        if (shown !== null) return shown;
      }
      return null;
    },
    answer: (find) => void finders.push(find),
    close: async () => undefined,
  };
};
