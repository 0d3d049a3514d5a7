/** Source of time and timers. */
export type Clock = {
  /** Milliseconds since 1970. */
  now(): number;
  /** Calls back once after `delayMs`; the returned function cancels it. */
  after(delayMs: number, ring: () => void): () => void;
};
