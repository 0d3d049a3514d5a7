import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { projections } from '../../packages/verify/src/projections/all-projections.js';
import { cutOut } from '../../scripts/diagram.js';
import { fillSeedPage, seedPage } from '../../scripts/seed-pages.js';

/** The pages of the seed systems show what the views hold. */

const fileOf = (name: string): URL => new URL(`../../${name}`, import.meta.url);
const written = projections.filter((view) => existsSync(fileOf(seedPage(view))));

test('the three agents and the later program of 000 have a page, and the page of the machine leads there', () => {
  const names = written.map(({ name }) => name);
  for (const name of ['minimal', 'minimal-head', 'loom', 'sketch'] as const)
    assert.ok(names.includes(name), name);
  const machine = readFileSync(fileOf('docs/design/machine.md'), 'utf8');
  for (const file of readdirSync(fileOf('docs/seeds')))
    assert.ok(machine.includes(`(../seeds/${file})`), file);
});

for (const view of written) {
  test(`${seedPage(view)} is up to date (if not: npm run update)`, () => {
    const page = readFileSync(fileOf(seedPage(view)), 'utf8');
    assert.equal(page, fillSeedPage(page, view));
    for (const name of [
      ...Object.keys(view.states),
      ...Object.keys(view.events),
      ...Object.keys(view.actions),
    ]) {
      assert.ok(cutOut(page, 'words')?.includes(`| ${name} |`), name);
    }
    for (const why of Object.values(view.unreached))
      assert.ok(cutOut(page, 'table')?.includes(why), why);
    const [, differences = ''] = page.split('## What differs, and why\n');
    assert.ok(differences.length > 300, 'nothing is said about differences');
  });
}

test('a page without a place for it is refused', () => {
  const [view] = projections;
  assert.ok(view !== undefined);
  assert.throws(() => fillSeedPage('text', view), /no place for the diagram/);
});
