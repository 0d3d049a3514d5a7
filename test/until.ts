/**
 * Waits for what a program does, however busy the machine is: time in which some process waited for
 * a core does not count, for it may have been the one that is watched.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const PATIENCE_MS = 30_000;
/** Nothing is waited for longer than this, on any machine. */
const BUSY_MAX_MS = 600_000;

/** How long some process has waited for a core since the start of the machine, in ms; 0 if unknown. */
const stalledMs = (): number => {
  try {
    const total = /^some .*total=(\d+)/.exec(readFileSync('/proc/pressure/cpu', 'latin1'))?.[1];
    return Number(total ?? 0) / 1_000;
  } catch {
    return 0; // no Linux, or a kernel that does not count it
  }
};

/** Begins a wait; the function that it gives tells whether the wait is over. */
export const startPatience = (patienceMs = PATIENCE_MS): (() => boolean) => {
  const startedAtMs = performance.now();
  const stalledBeforeMs = stalledMs();
  return () => {
    const elapsedMs = performance.now() - startedAtMs;
    if (elapsedMs <= patienceMs) return false;
    return elapsedMs > BUSY_MAX_MS || elapsedMs - (stalledMs() - stalledBeforeMs) > patienceMs;
  };
};

type Found<T> = T | undefined | false;

/** Polls until `look` finds something, less often the longer it takes; fails with `what`. */
export const until = async <T>(
  what: string | (() => string),
  look: () => Found<T> | Promise<Found<T>>,
): Promise<T> => {
  const isOver = startPatience();
  for (let pauseMs = 10; ; pauseMs = Math.min(pauseMs * 1.2, 100)) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (isOver()) assert.fail(`waited in vain: ${typeof what === 'string' ? what : what()}`);
    await sleep(pauseMs);
  }
};
