import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { defaultCodeSettings } from '../../packages/ask/src/run/settings.js';
import { codeModePage, fillCodeModePage } from '../../scripts/code-mode-page.js';
import { cutOut } from '../../scripts/diagram.js';

const page = readFileSync(new URL(`../../${codeModePage}`, import.meta.url), 'utf8');

test(`${codeModePage} shows the table (if not: npm run update)`, () => {
  assert.equal(fillCodeModePage(page), page);
});

test('its chart is the seed’s own: five states, eight arrows', () => {
  const arrows = (cutOut(page, 'diagram') ?? '')
    .split('\n')
    .filter((line) => / --> (?!\[\*\])/.test(line));
  assert.equal(
    arrows.filter((line) => !line.includes('[*]')).length,
    7,
    'EXECUTING to DONE has two names',
  );
  assert.equal(cutOut(page, 'words')?.match(/^\| [A-Z_]+ \|/gm)?.length, 8);
});

test('each parity flag has its row', () => {
  for (const flag of Object.keys(defaultCodeSettings.parity))
    assert.ok(page.includes(`| \`${flag}\` |`), flag);
});
