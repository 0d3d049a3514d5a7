/** What the simulated models cost. */

import type { Prices } from '@pawl/agent/machine/settings';

export const PRICES: Prices = { input: 1, output: 10, cacheRead: 0.1, cacheWrite: 1.25 };
/** Of a model that takes over. */
export const DEAR_PRICES: Prices = { input: 4, output: 40, cacheRead: 0.4, cacheWrite: 5 };
