import type { SimulationOptions, SimulationReport } from './simulation/report-types.js';

/**
 * Runs sessions of the real runtime and journal on a simulated computer: their disk, processes, clock, model, tools and
 * user follow from the seed, with many more faults and crashes than in life. Every step is checked; the first session
 * that breaks a promise ends the run. Until it resolves, the process has simulated files below `/@pawl/`, simulated local
 * sockets and clocks: run nothing else beside it.
 */
export const simulate = async (options: SimulationOptions): Promise<SimulationReport> => {
  const { simulate: run } = await import('./simulation/simulate.js');
  return run(options);
};
