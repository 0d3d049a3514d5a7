/**
 * `npm run update`: rewrites everything that is generated. The diff is the review.
 * The diagram in README.md and docs/machine.md, the pages of docs/seeds, THIRD-PARTY.md, docs/json-stream.schema.json,
 * the table of docs/configuration.md, man/pawl.1, docs/reference;
 * golden traces, the worlds of the exploration, and what the examples print (their tests write them when UPDATE=1).
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { agent } from '../src/agent/machine.js';
import { views } from '../src/agent/views/views.js';
import { markdownTable, mermaid } from '../src/kernel/describe.js';
import { bundle } from './bundle.js';
import { codeModePage, fillCodeModePage } from './code-mode-page.js';
import { configurationPage, fillConfigurationPage } from './configuration-page.js';
import { emptyMachineDocument, fenced, splice } from './diagram.js';
import { schemaText } from './json-schema.js';
import { manualPage, manualText } from './manual-page.js';
import { referencePages } from './reference.js';
import { fillSeedPage, seedPage } from './seed-pages.js';

const root = path.join(fileURLToPath(import.meta.url), '../..');
const inRoot = (file: string): string => path.join(root, file);

const rewrite = (file: string, fresh: string): void => {
  const changed = !existsSync(inRoot(file)) || readFileSync(inRoot(file), 'utf8') !== fresh;
  if (changed) writeFileSync(inRoot(file), fresh);
  console.log(`${file}: ${changed ? 'rewritten' : 'unchanged'}`);
};

const updateDiagrams = (): void => {
  const diagram = fenced(mermaid(agent));
  const document = existsSync(inRoot('docs/machine.md'))
    ? readFileSync(inRoot('docs/machine.md'), 'utf8')
    : emptyMachineDocument;
  rewrite('docs/machine.md', splice(splice(document, 'diagram', diagram), 'table', markdownTable(agent)));
  rewrite('README.md', splice(readFileSync(inRoot('README.md'), 'utf8'), 'diagram', diagram));
};

const updateSeedPages = (): void => {
  for (const view of views) {
    const file = seedPage(view);
    if (existsSync(inRoot(file))) rewrite(file, fillSeedPage(readFileSync(inRoot(file), 'utf8'), view));
  }
  rewrite(codeModePage, fillCodeModePage(readFileSync(inRoot(codeModePage), 'utf8')));
};

/** False when a trace or an example did not come to its end: it is not written then, and its test says why. */
const updateByTests = (): boolean => {
  const files = readdirSync(inRoot('test'), { recursive: true, encoding: 'utf8' })
    .filter((file) => /(^|\/)(traces?|worlds|examples)\.test\.ts$/.test(file))
    .map((file) => inRoot(path.join('test', file)));
  const words = ['--import', 'tsx', '--test', ...files];
  const environment = { ...process.env, UPDATE: '1' };
  return spawnSync(process.execPath, words, { cwd: root, env: environment, stdio: 'inherit' }).status === 0;
};

console.log((await bundle(root)).join('\n'));
updateDiagrams();
updateSeedPages();
rewrite('docs/json-stream.schema.json', schemaText());
rewrite(configurationPage, fillConfigurationPage(readFileSync(inRoot(configurationPage), 'utf8')));
rewrite(manualPage, manualText());
for (const [page, text] of referencePages()) rewrite(page, text);
process.exitCode = updateByTests() ? 0 : 1;
