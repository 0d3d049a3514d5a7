import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { agent } from '@pawl/agent/machine/machine';
import { defaultSettings, type Settings } from '@pawl/agent/machine/settings';
import { explore } from '@pawl/machine/explorer/explore';
import { chooseRows } from '../../../../test/tier.js';
import {
  type Bounds,
  type Configuration,
  defaultBounds,
} from '../../src/exploration/configuration.js';
import { createConfigurations } from '../../src/exploration/configurations.js';
import { createModel, createSettings } from '../../src/exploration/exploration-model.js';
import type { ExplorationNode } from '../../src/exploration/exploration-node.js';
import { eventLine } from '../../src/exploration/write-trace.js';
import { projections } from '../../src/projections/all-projections.js';

/**
 * What happens in the world of each configuration, as a text: its settings, every kind of event that comes within the
 * first states and who brings it, and how many different states that makes. Something that the world forgets to do, or a
 * difference that the key forgets, is a smaller world and not a fault: here it shows. `UPDATE=1` writes the texts anew.
 */

const isUpdate = (process.env.UPDATE ?? '') !== '';
const none: Bounds = {
  ...defaultBounds,
  steers: 0,
  followUps: 0,
  approvals: 0,
  compactions: 0,
  rewinds: 0,
  cancels: 0,
  shutdowns: 0,
  crashes: 0,
  late: 0,
  duplicates: 0,
  budgetStops: 0,
};
/** `statesMax`: those next to the start; they may lead to many more. */
const worlds: readonly {
  readonly title: string;
  readonly bounds: Bounds;
  readonly statesMax: number;
}[] = [
  { title: 'default', bounds: defaultBounds, statesMax: 120 },
  {
    title: 'small',
    bounds: { ...defaultBounds, reads: 1, retries: 1, followUps: 0 },
    statesMax: 60,
  },
  { title: 'bare', bounds: none, statesMax: 120 },
];

/** The product's own, by name. */
const usual: Readonly<Record<string, unknown>> = defaultSettings;
const isUsual = (name: string, value: unknown): boolean =>
  JSON.stringify(value) === JSON.stringify(usual[name]);

const differing = (settings: Settings): string =>
  JSON.stringify(
    Object.fromEntries(Object.entries(settings).filter(([name, value]) => !isUsual(name, value))),
  );

const describeWorld = (configuration: Configuration, statesMax: number): readonly string[] => {
  const { model } = createModel(configuration, agent, projections);
  const lines = new Map<string, number>();
  const labels = (node: ExplorationNode) => {
    const found = model.labels(node);
    for (const { by, event, costly } of found) {
      const line = `${by} ${eventLine(event, node.now)}${costly ? ' (costly)' : ''}`;
      lines.set(line, (lines.get(line) ?? 0) + 1);
    }
    return found;
  };
  const { states, steps, depth, violation } = explore({ ...model, labels }, { statesMax });
  assert.equal(violation, null);
  return [
    `settings ${differing(createSettings(configuration))}`,
    `${states} states, ${steps} steps, ${depth} deep`,
    ...[...lines].map(([line, times]) => `${times} × ${line}`).sort(),
  ];
};

for (const { title, bounds, statesMax } of worlds) {
  const all = createConfigurations(bounds);
  for (const configuration of isUpdate ? all : chooseRows(all, () => title, 8)) {
    const { name, about } = configuration;
    test(`the ${title} world of '${name}'`, () => {
      const place = new URL(`worlds/${name.replaceAll(/\W+/g, '-')}.${title}.txt`, import.meta.url);
      const text = `# ${name}: ${about}\n${describeWorld(configuration, statesMax).join('\n')}\n`;
      if (isUpdate) writeFileSync(place, text);
      else
        assert.equal(
          text,
          readFileSync(place, 'utf8'),
          'if this is what you meant: UPDATE=1, and read the diff',
        );
    });
  }
}
