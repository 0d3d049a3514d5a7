import { exploration } from './survivors/exploration.js';
import { kernel } from './survivors/kernel.js';
import { moves } from './survivors/moves.js';
import { rules } from './survivors/rules.js';
import { samples } from './survivors/samples.js';
import type { Survivor } from './survivors/survivor.js';
import { views } from './survivors/views.js';

/** Mutants (changes in single places of the sources) that no test catches, each with its reason. */
export const survivors: readonly Survivor[] = [
  ...kernel,
  ...rules,
  ...moves,
  ...views,
  ...exploration,
];

/** Those of the random samples, which are taken of the folders beyond the machine. */
export const sampledSurvivors: readonly Survivor[] = samples;
