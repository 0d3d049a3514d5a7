import type { Fault } from './fault.js';
import { walks } from './fault.js';
export const faults: readonly Fault[] = [
  { name: 'a retry too many', file: 'src/agent/moves/retry.ts', edits: [{ from: 'attempt <= settings.maxRetries &&', to: 'attempt <= settings.maxRetries + 1 &&' }], why: 'x', caughtBy: walks },
];
