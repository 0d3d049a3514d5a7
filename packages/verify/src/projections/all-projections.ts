/**
 * The list of projections. Each tells our steps as steps of another published agent (a seed). Below
 * it are the profiles: settings that make our machine behave like one of them.
 */

import type { Settings } from '@pawl/agent/machine/settings';
import type { Projection } from './projection.js';
import { loom } from './seed-loom.js';
import { minimal, minimalHead } from './seed-minimal.js';
import { sketch } from './seed-sketch.js';
import { tools } from './seed-tools-mode.js';

/** The projections to all seed systems that are agents. */
export const projections: readonly Projection[] = [minimal, minimalHead, loom, sketch, tools];

export const projectionNamed = (name: string): Projection | undefined =>
  projections.find((view) => view.name === name);

// ---- Profiles: named settings for `--profile` ----

export type ProfileName = 'minimal' | 'loom' | 'sketch' | 'tools' | 'full';

export const profiles: Readonly<Record<ProfileName, Partial<Settings>>> = {
  minimal: minimal.settings,
  loom: loom.settings,
  sketch: sketch.settings,
  tools: tools.settings,
  /** Everything that the machine can do after tools. */
  full: { hooks: 'mutating', formatter: 'onChanges', autoCommit: 'on' },
};
