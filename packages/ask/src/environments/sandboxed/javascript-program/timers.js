/**
 * Timers for cells (programs of the model): they run while a cell waits for them, and never between cells. They replace
 * those of `guest`, the global object of the cells.
 */
(guest) => {
  const SLEEP_MS = 20;
  const now = () => Date.now();
  const nothing = new Int32Array(new SharedArrayBuffer(4));
  /** In the order in which they are due. */
  let waiting = [];
  let last = 0;

  const insert = (timer) => {
    const after = waiting.findIndex(({ dueAtMs }) => dueAtMs > timer.dueAtMs);
    waiting.splice(after < 0 ? waiting.length : after, 0, timer);
  };
  const add = (call, delayMs, everyMs, words) => {
    if (typeof call !== 'function') throw new guest.TypeError('a timer needs a function');
    last += 1;
    insert({ id: last, call, words, everyMs, dueAtMs: now() + delayMs });
    return last;
  };
  const remove = (id) => {
    waiting = waiting.filter((timer) => timer.id !== id);
  };
  const delayOf = (value) => Math.max(0, Number(value) || 0);

  guest.setTimeout = (call, delayMs, ...words) => add(call, delayOf(delayMs), null, words);
  guest.setImmediate = (call, ...words) => add(call, 0, null, words);
  guest.setInterval = (call, delayMs, ...words) => {
    const everyMs = Math.max(1, delayOf(delayMs));
    return add(call, everyMs, everyMs, words);
  };
  guest.clearTimeout = guest.clearInterval = guest.clearImmediate = remove;

  /** Sleeps in pieces, since SIGINT is noticed only between them. */
  const sleepUntil = (dueAtMs) => {
    for (let left = dueAtMs - now(); left > 0; left = dueAtMs - now()) {
      Atomics.wait(nothing, 0, 0, Math.min(SLEEP_MS, left));
    }
  };
  const fire = (timer) => {
    sleepUntil(timer.dueAtMs);
    remove(timer.id);
    if (timer.everyMs !== null) insert({ ...timer, dueAtMs: now() + timer.everyMs });
    const { call, words } = timer;
    call(...words);
  };
  return {
    /** A function that waits for the next timer and calls it; null if there is none. */
    next() {
      const [timer] = waiting;
      return timer === undefined ? null : () => fire(timer);
    },
    clear() {
      waiting = [];
    },
    sleepForever: () => sleepUntil(Infinity),
    sleep: (durationMs) => sleepUntil(now() + durationMs),
  };
};
