/**
 * Put in place of the global `Headers` in the bundle: touching that one loads Node's whole fetch,
 * which we do not use.
 */
export { LeanHeaders as Headers } from '../packages/agent/src/platform/web-streams.js';
