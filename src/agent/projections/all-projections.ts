import { loom } from './loom.js';
import { minimal } from './minimal.js';
import { minimalHead } from './minimal-with-hook.js';
import type { Projection } from './projection.js';
import { sketch } from './sketch.js';
import { tools } from './tools-mode.js';

/** The projections to all seed systems that are agents. */
export const projections: readonly Projection[] = [minimal, minimalHead, loom, sketch, tools];

export const projectionNamed = (name: string): Projection | undefined =>
  projections.find((view) => view.name === name);
