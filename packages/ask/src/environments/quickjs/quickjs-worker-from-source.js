/** The worker straight from its TypeScript, for tests and development: what tsx does for a program it does not for a thread. */
import { register } from 'tsx/esm/api';

register();
await import('./quickjs-worker.ts');
