import { exitCodes } from './exit-codes.js';

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

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

const exitAtOnce = (signal: NodeJS.Signals): void =>
  process.exit(signal === 'SIGINT' ? exitCodes.interrupted : exitCodes.terminated);

/** While nobody listens nothing is open that would have to be settled. */
export const exitOnSignals = (): void => {
  for (const signal of SIGNALS) process.on(signal, exitAtOnce);
};

/** Listens until the returned function is called. */
export const listenToSignals = (wishes: SignalWishes): (() => void) => {
  let lastAt = Number.NEGATIVE_INFINITY;
  const listen = (signal: NodeJS.Signals): void => {
    if (signal !== 'SIGINT') {
      wishes.terminate();
      return;
    }
    const again = Date.now() - lastAt < TWICE_MS;
    lastAt = Date.now();
    if (again) wishes.interruptAgain();
    else wishes.interrupt();
  };
  for (const signal of SIGNALS) process.off(signal, exitAtOnce).on(signal, listen);
  return () => {
    for (const signal of SIGNALS) process.off(signal, listen).on(signal, exitAtOnce);
  };
};
