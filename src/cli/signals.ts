/** Two interrupts within this time end the program at once. */
const TWICE_MS = 2_000;

export type SignalWishes = {
  /** The first SIGINT. */
  interrupt(): void;
  /** The second within two seconds. */
  interruptAgain(): void;
  /** SIGTERM, or the terminal is gone. */
  terminate(): void;
};

/** Listens until the returned function is called. */
export const listenToSignals = (wishes: SignalWishes): (() => void) => {
  let lastAt = Number.NEGATIVE_INFINITY;
  const onInterrupt = (): void => {
    const again = Date.now() - lastAt < TWICE_MS;
    lastAt = Date.now();
    if (again) wishes.interruptAgain();
    else wishes.interrupt();
  };
  const onEnd = (): void => wishes.terminate();
  process.on('SIGINT', onInterrupt);
  process.on('SIGTERM', onEnd);
  process.on('SIGHUP', onEnd);
  return () => {
    process.off('SIGINT', onInterrupt);
    process.off('SIGTERM', onEnd);
    process.off('SIGHUP', onEnd);
  };
};
