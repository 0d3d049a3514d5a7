/** Spans to send when the program ends. Loaded at each start, so it does not load the exporter. */

/** An exit waits no longer than this for a collector, however many sessions it had. */
export const FLUSH_MS = 2_000;

const flushes = new Set<() => Promise<void>>();

/** Calls `flush` before the program ends. */
export const flushAtEnd = (flush: () => Promise<void>): void => void flushes.add(flush);

/** Sends what is left, within the deadline; what is not sent by then is dropped. Never rejects. */
export const flushSpans = async (): Promise<void> => {
  if (flushes.size === 0) return;
  const all = Promise.allSettled([...flushes].map((flush) => flush()));
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, FLUSH_MS);
  });
  await Promise.race([all, deadline]);
  clearTimeout(timer);
};
