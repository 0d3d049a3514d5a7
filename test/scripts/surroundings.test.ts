import '../own-process.js';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { buildProgram } from '../../packages/pawl/src/commands/command-line.js';
import { describeProgram } from '../../packages/pawl/src/commands/shell-completion.js';
import { settings } from '../../packages/pawl/src/settings/setting-table.js';
import { configurationPage, fillConfigurationPage } from '../../scripts/configuration-page.js';
import { manualText } from '../../scripts/manual-page.js';
import { fillModelsPage, modelsPage } from '../../scripts/models-page.js';

const read = (file: string): string =>
  readFileSync(fileURLToPath(new URL(`../../${file}`, import.meta.url)), 'utf8');

test('the table of docs/set-up/configuration.md is that of the settings (npm run update writes it)', () => {
  const page = read(configurationPage);
  assert.equal(page, fillConfigurationPage(page));
});

test('the table of docs/set-up/models.md is that of the providers (npm run update writes it)', () => {
  const page = read(modelsPage);
  assert.equal(page, fillModelsPage(page));
});

test('every command, flag and variable is in the man page', () => {
  const text = manualText().replaceAll('\\-', '-');
  const program = describeProgram(buildProgram(() => undefined));
  for (const command of program.commands) {
    assert.match(text, new RegExp(`^\\.SS ${command.name}`, 'm'));
    for (const { written } of command.flags)
      assert.ok(text.includes(`.B ${written}`), `${command.name} ${written}`);
  }
  for (const { written } of program.flags) assert.ok(text.includes(`.B ${written}`), written);
  for (const { variable } of settings) assert.ok(text.includes(variable), variable);
});

test('no line of the man page is an order that nobody meant', () => {
  const orders = /^\.(\\"|TH|SH|SS|TP|B|br)( |$)/;
  const wrong = manualText()
    .split('\n')
    .filter((line) => (/^[.']/.test(line) && !orders.test(line)) || /[^\x20-\x7e]/.test(line));
  assert.deepEqual(wrong, []);
});
