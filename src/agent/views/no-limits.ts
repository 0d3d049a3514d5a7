import { defaultSettings, type Limits } from '../settings.js';

/** The seeds know no limit but what is said of them. */
export const noLimits: Limits = { ...defaultSettings.limits, rounds: 0, truncation: 0 };
