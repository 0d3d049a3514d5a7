import '../own-process.js';
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { defaultCodeSettings } from '../../packages/ask/src/run/settings.js';
import { buildProgram } from '../../packages/pawl/src/commands/command-line.js';
import { describeProgram } from '../../packages/pawl/src/commands/shell-completion.js';
import { settings } from '../../packages/pawl/src/settings/setting-table.js';
import { projections } from '../../packages/verify/src/projections/all-projections.js';
import { codeModePage, fillCodeModePage } from '../../scripts/code-mode-page.js';
import { configurationPage, fillConfigurationPage } from '../../scripts/configuration-page.js';
import { cutOut, fillMachinePage, machinePage, splice } from '../../scripts/diagram.js';
import { MACHINE_SHAPES, machineShapesText } from '../../scripts/machine-shapes.js';
import { manualText } from '../../scripts/manual-page.js';
import { fillModelsPage, modelsPage } from '../../scripts/models-page.js';
import { fillSeedPage, seedPage } from '../../scripts/seed-pages.js';

/** What `npm run update` and `npm run pack` write from the sources. */

const fileOf = (name: string): URL => new URL(`../../${name}`, import.meta.url);
const textOf = (name: string): string => readFileSync(fileOf(name), 'utf8');
const seedViews = projections.filter((view) => existsSync(fileOf(seedPage(view))));

const generated: readonly (readonly [file: string, fill: (text: string) => string])[] = [
  [machinePage, fillMachinePage],
  [MACHINE_SHAPES, machineShapesText],
  [codeModePage, fillCodeModePage],
  [configurationPage, fillConfigurationPage],
  [modelsPage, fillModelsPage],
  ...seedViews.map((view) => [seedPage(view), (text: string) => fillSeedPage(text, view)] as const),
];
for (const [file, fill] of generated)
  test(`${file} is up to date (if not: npm run update)`, () => {
    const text = textOf(file);
    assert.equal(text, fill(text));
  });

test('a part is put between its markers and the rest left alone; a document without a place is refused', () => {
  const document = 'before\n<!-- diagram:begin -->\nold\n<!-- diagram:end -->\nafter\n';
  const spliced = splice(document, 'diagram', 'new\n');
  assert.equal(spliced, document.replace('old', 'new'));
  assert.equal(splice(spliced, 'diagram', 'new'), spliced);
  assert.throws(
    () => splice('text', 'diagram', 'new'),
    /add <!-- diagram:begin --> and <!-- diagram:end -->/,
  );
});

test('the chart of code mode is the seed’s own: five states, eight arrows; each parity flag has its row', () => {
  const page = textOf(codeModePage);
  const arrows = (cutOut(page, 'diagram') ?? '').match(/^.* --> (?!\[\*\]).*$/gm) ?? [];
  assert.equal(arrows.filter((line) => !line.includes('[*]')).length, 7, 'one has two names');
  assert.equal(cutOut(page, 'words')?.match(/^\| [A-Z_]+ \|/gm)?.length, 8);
  for (const flag of Object.keys(defaultCodeSettings.parity))
    assert.ok(page.includes(`| \`${flag}\` |`), flag);
});

test('the three agents and the later program of 000 have a page, and the page of the machine leads there', () => {
  const names = seedViews.map(({ name }) => name);
  for (const name of ['minimal', 'minimal-head', 'loom', 'sketch'] as const)
    assert.ok(names.includes(name), name);
  const machine = textOf(machinePage);
  for (const file of readdirSync(fileOf('docs/seeds')))
    assert.ok(machine.includes(`(../seeds/${file})`), file);
  for (const view of seedViews) {
    const [, differences = ''] = textOf(seedPage(view)).split('## What differs, and why\n');
    assert.ok(differences.length > 300, `${view.name}: nothing is said about differences`);
  }
});

test('every command, flag and variable is in the man page, and no line is an order that nobody meant', () => {
  const text = manualText().replaceAll('\\-', '-');
  const program = describeProgram(buildProgram(() => undefined));
  for (const command of program.commands) {
    assert.match(text, new RegExp(`^\\.SS ${command.name}`, 'm'));
    for (const { written } of command.flags)
      assert.ok(text.includes(`.B ${written}`), `${command.name} ${written}`);
  }
  for (const { written } of program.flags) assert.ok(text.includes(`.B ${written}`), written);
  for (const { variable } of settings) assert.ok(text.includes(variable), variable);
  const orders = /^\.(\\"|TH|SH|SS|TP|B|br)( |$)/;
  const wrong = manualText()
    .split('\n')
    .filter((line) => (/^[.']/.test(line) && !orders.test(line)) || /[^\x20-\x7e]/.test(line));
  assert.deepEqual(wrong, []);
});
