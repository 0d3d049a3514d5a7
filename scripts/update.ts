/**
 * `npm run update`: rewrites everything that is generated. The diff is the review. The charts of
 * the inspector and the pictures in docs/pictures, the diagram in docs/design/machine.md, the pages of
 * docs/seeds, the tables of docs/set-up/configuration.md and docs/set-up/models.md; golden traces, the worlds of
 * the exploration, and what the examples print (their tests write them when UPDATE=1). What only the
 * package holds is made by `npm run pack`.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { agent } from '../packages/agent/src/machine/machine.js';
import { projections } from '../packages/verify/src/projections/all-projections.js';
import { bundle } from './bundle.js';
import { codeModePage, fillCodeModePage } from './code-mode-page.js';
import { configurationPage, fillConfigurationPage } from './configuration-page.js';
import { fillMachinePage, machinePage } from './diagram.js';
import { MACHINE_SHAPES, machineShapesText } from './machine-shapes.js';
import { fillModelsPage, modelsPage } from './models-page.js';
import { chartsText, layOutAll } from './pictures/charts.js';
import { machinePictures } from './pictures/machine.js';
import { readmePicture } from './pictures/session.js';
import { fillSeedPage, seedPage } from './seed-pages.js';
import { allTests } from './test-runner/choose.js';

const root = path.join(fileURLToPath(import.meta.url), '../..');
const inRoot = (file: string): string => path.join(root, file);

const rewrite = (file: string, fresh: string): void => {
  const changed = !existsSync(inRoot(file)) || readFileSync(inRoot(file), 'utf8') !== fresh;
  if (changed) writeFileSync(inRoot(file), fresh);
  console.log(`${file}: ${changed ? 'rewritten' : 'unchanged'}`);
};

const refill = (file: string, fill: (text: string) => string): void =>
  rewrite(file, fill(readFileSync(inRoot(file), 'utf8')));

const updatePictures = async (): Promise<void> => {
  mkdirSync(inRoot('docs/pictures'), { recursive: true });
  const charts = await layOutAll(agent);
  rewrite('packages/inspector/src/charts/charts.json', chartsText(charts));
  if (charts.resting === undefined)
    throw new Error('the chart of the resting states was not laid out');
  const pictures = machinePictures(agent, charts.resting);
  for (const theme of ['dark', 'light'] as const) {
    rewrite(`docs/pictures/machine-${theme}.svg`, pictures[theme]);
    const recorded = readFileSync(inRoot(`docs/pictures/session-${theme}.cast`), 'utf8');
    rewrite(`docs/pictures/session-${theme}.svg`, await readmePicture(recorded, theme));
  }
};

const updateSeedPages = (): void => {
  for (const view of projections) {
    const file = seedPage(view);
    if (existsSync(inRoot(file))) refill(file, (text) => fillSeedPage(text, view));
  }
  refill(codeModePage, fillCodeModePage);
};

/**
 * False when a trace or an example did not come to its end: it is not written then, and its test
 * says why.
 */
const updateByTests = (): boolean => {
  const files = allTests(root, false)
    .filter((file) => /\/(traces?|worlds|examples)\.test\.ts$/.test(file))
    .map(inRoot);
  const words = ['--import', 'tsx', '--test', ...files];
  const environment = { ...process.env, UPDATE: '1' };
  return (
    spawnSync(process.execPath, words, { cwd: root, env: environment, stdio: 'inherit' }).status ===
    0
  );
};

console.log((await bundle(root)).join('\n'));
rewrite(MACHINE_SHAPES, machineShapesText());
refill(machinePage, fillMachinePage);
await updatePictures();
updateSeedPages();
refill(configurationPage, fillConfigurationPage);
refill(modelsPage, fillModelsPage);
process.exitCode = updateByTests() ? 0 : 1;
