import { projectionNamed, projections } from '@pawl/verify/projections/all-projections';
import type { Projection } from '@pawl/verify/projections/projection';
import { usageStop } from '../../flags.js';

/** The view that `--view` names. */
export const readView = (name: string): Projection => {
  const view = projectionNamed(name);
  if (view !== undefined) return view;
  throw usageStop(`--view needs one of ${projections.map((one) => one.name).join(', ')}, not '${name}'.`);
};
