import type { Projection } from './projection.js';
import { loom } from './seed-loom.js';
import { minimal } from './seed-minimal.js';
import { minimalHead } from './seed-minimal-with-hook.js';
import { sketch } from './seed-sketch.js';
import { tools } from './seed-tools-mode.js';

/** The projections to all seed systems that are agents. */
export const projections: readonly Projection[] = [minimal, minimalHead, loom, sketch, tools];

export const projectionNamed = (name: string): Projection | undefined =>
  projections.find((view) => view.name === name);
