/**
 * Starts the worker from its TypeScript source, for tests and development: tsx, which loads
 * TypeScript, must be registered in each thread.
 */
import { register } from 'tsx/esm/api';

register();
await import('./quickjs-worker.ts');
