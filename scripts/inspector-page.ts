/**
 * Builds the inspector's page: one file of HTML with its own script and style, which its policy
 * names by their hashes.
 */

import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { build } from 'esbuild';
import { machineRules } from './machine-rules.js';
import { workspacePackages } from './workspace-packages.js';

const FOLDER = 'packages/inspector/src/page';
export const PAGE_FILE = 'packages/pawl/dist/inspector.html';

const hashOf = (text: string): string =>
  `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

/** The rules without the names of their tests: the page shows only their words. */
const rulesInPage = (root: string): string =>
  JSON.stringify(machineRules(root).map(({ tests, ...rule }) => rule)).replaceAll('<', '\\u003c');

const bundled = async (root: string, entry: string): Promise<string> => {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: [path.join(FOLDER, entry)],
    outdir: 'dist',
    bundle: true,
    minify: true,
    // Names of functions are the names of guards and moves in the chart.
    keepNames: true,
    platform: 'browser',
    format: 'iife',
    target: 'es2022',
    charset: 'utf8',
    legalComments: 'none',
    write: false,
    logLevel: 'silent',
    tsconfigRaw: {},
    plugins: [workspacePackages(root)],
  });
  // Nothing in a script may look like its end.
  return (outputFiles[0]?.text ?? '').trim().replaceAll('</', '<\\/');
};

const policyFor = (script: string, style: string): string =>
  [
    "default-src 'none'",
    `script-src ${hashOf(script)}`,
    `style-src ${hashOf(style)}`,
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');

/** The page, where there is one under `root`. */
export const inspectorPage = async (
  root: string,
): Promise<readonly { readonly path: string; readonly contents: Uint8Array }[]> => {
  if (!existsSync(path.join(root, FOLDER))) return [];
  const [script, style] = await Promise.all([bundled(root, 'main.ts'), bundled(root, 'style.css')]);
  const rules = rulesInPage(root);
  const parts = { policy: policyFor(script, style), style, rules, script };
  const html = Object.entries(parts).reduce(
    (text, [name, part]) => {
      const place = `{${name}}`;
      if (!text.includes(place))
        throw new Error(`${FOLDER}/page.html has no place for its ${name}: ${place}`);
      return text.replace(place, () => part);
    },
    readFileSync(path.join(root, FOLDER, 'page.html'), 'utf8'),
  );
  return [{ path: path.join(root, PAGE_FILE), contents: Buffer.from(html) }];
};
