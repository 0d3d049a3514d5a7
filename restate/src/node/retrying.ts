/** A node may be gone for long, and what it owes waits for it: the engine never gives up, and asks often. */
export const RETRYING = {
  retryPolicy: {
    initialInterval: 50,
    exponentiationFactor: 2,
    maxInterval: 2_000,
    maxAttempts: 1_000_000_000,
  },
} as const;
