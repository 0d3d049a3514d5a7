/** Public test support for agents: a scripted model, a fake clock, journals in memory. */
export { memoryJournals } from '@pawl/agent/journal/memory-store';
export type { Script } from '@pawl/agent/models/scripted/script';
export { type ScriptedOptions, scriptedModel } from '@pawl/agent/models/scripted/scripted-model';
export { simulate } from '@pawl/verify/lazy-simulation';
export type {
  SimulationFailure,
  SimulationOptions,
  SimulationReport,
} from '@pawl/verify/simulation/report-types';
export { type FakeClock, fakeClock } from './clock.js';
