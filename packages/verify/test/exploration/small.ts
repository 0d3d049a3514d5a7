import {
  type Bounds,
  type Configuration,
  defaultBounds,
} from '../../src/exploration/configuration.js';
import { createConfigurations } from '../../src/exploration/configurations.js';

/** Every kind of thing, and as little as can be of each: explored in a moment. */
export const smallBounds: Bounds = { ...defaultBounds, reads: 1, retries: 1, followUps: 0 };

export const configurationNamed = (name: string, bounds: Bounds = smallBounds): Configuration => {
  const found = createConfigurations(bounds).find((one) => one.name === name);
  if (found === undefined) throw new Error(`there is no configuration '${name}'`);
  return found;
};
