import type { Fault } from './fault.js';
import { faultsAfterTools } from './faults-after-tools.js';
import { faultsInCalls } from './faults-calls.js';
import { faultsInMoney } from './faults-money.js';
import { faultsInStops } from './faults-stops.js';
import { faultsInTools } from './faults-tools.js';
import { faultsInTurns } from './faults-turns.js';

/** Every fault that is planted, each with what has to catch it. */
export const faults: readonly Fault[] = [
  ...faultsInCalls,
  ...faultsInTools,
  ...faultsInTurns,
  ...faultsInStops,
  ...faultsAfterTools,
  ...faultsInMoney,
];
