import { exitCodes } from './exit-codes.js';

/** Two interrupts within this time end the program at once. */
const TWICE_MS = 2_000;

export type SignalHandlers = {
  /** The first SIGINT. */
  interrupt(): void;
  /** A second SIGINT within two seconds. */
  interruptAgain(): void;
  /** SIGTERM, SIGQUIT, or SIGHUP (the terminal was closed). */
  terminate(): void;
};

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;

const exitAtOnce = (signal: NodeJS.Signals): void =>
  process.exit(signal === 'SIGINT' ? exitCodes.interrupted : exitCodes.terminated);

/** Signals end the program at once until `listenToSignals` takes over: no session is open before that. */
export const exitOnSignals = (): void => {
  for (const signal of SIGNALS) process.on(signal, exitAtOnce);
  // Without a listener Node opens a debugger at this signal, through which other local users could read keys.
  process.on('SIGUSR1', () => undefined);
};

/** Calls the handlers on signals until the returned function is called. */
export const listenToSignals = (handlers: SignalHandlers): (() => void) => {
  let lastAt = Number.NEGATIVE_INFINITY;
  const listen = (signal: NodeJS.Signals): void => {
    if (signal !== 'SIGINT') {
      handlers.terminate();
      return;
    }
    const again = performance.now() - lastAt < TWICE_MS;
    lastAt = performance.now();
    if (again) handlers.interruptAgain();
    else handlers.interrupt();
  };
  for (const signal of SIGNALS) process.off(signal, exitAtOnce).on(signal, listen);
  return () => {
    for (const signal of SIGNALS) process.off(signal, listen).on(signal, exitAtOnce);
  };
};
