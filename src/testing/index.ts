/** Public test support for agents: a scripted model, a fake clock, journals in memory. */
export { memoryJournals } from '../journal/memory-store.js';
export type { Script } from '../models/scripted/script.js';
export { type ScriptedOptions, scriptedModel } from '../models/scripted/scripted-model.js';
export { type FakeClock, fakeClock } from './clock.js';
export { simulate } from './lazy-simulation.js';
export type {
  SimulationFailure,
  SimulationOptions,
  SimulationReport,
} from './simulation/report-types.js';
