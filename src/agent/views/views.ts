import { loom } from './loom.js';
import { minimal } from './minimal.js';
import { minimalHead } from './minimal-head.js';
import { sketch } from './sketch.js';
import { tools } from './tools.js';
import type { View } from './view.js';

/** Every seed system that is an agent, as a view of our machine. */
export const views: readonly View[] = [minimal, minimalHead, loom, sketch, tools];

export const viewNamed = (name: string): View | undefined => views.find((view) => view.name === name);
