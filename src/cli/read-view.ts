import type { View } from '../agent/views/view.js';
import { viewNamed, views } from '../agent/views/views.js';
import { usageStop } from './flags.js';

/** The view that `--view` names. */
export const readView = (name: string): View => {
  const view = viewNamed(name);
  if (view !== undefined) return view;
  throw usageStop(`--view is one of ${views.map((one) => one.name).join(', ')}, not '${name}'.`);
};
