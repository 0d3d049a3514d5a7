import { projectionNamed, projections } from '../../agent/projections/all-projections.js';
import type { Projection } from '../../agent/projections/projection.js';
import { usageStop } from '../flags.js';

/** The view that `--view` names. */
export const readView = (name: string): Projection => {
  const view = projectionNamed(name);
  if (view !== undefined) return view;
  throw usageStop(`--view needs one of ${projections.map((one) => one.name).join(', ')}, not '${name}'.`);
};
