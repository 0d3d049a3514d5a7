/** Public: what tests of agents need. A model that answers from a script, a clock that stands still, journals in memory. */
export { memoryJournals } from '../journal/memory.js';
export type { Script } from '../models/script.js';
export { type ScriptedOptions, scriptedModel } from '../models/scripted.js';
export { type FakeClock, fakeClock } from './clock.js';
