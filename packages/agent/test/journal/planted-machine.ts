import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';
import { replaceSource } from '../../../../scripts/plant/fault.js';
import { workspacePackages } from '../../../../scripts/workspace-packages.js';
import type { fileJournals } from '../../src/journal/file-store.js';
import type { exportSession, importSession, verifyStored } from '../../src/journal/transfer.js';
import { MACHINE_VERSION } from '../../src/machine/machine.js';
import type { scriptedModel } from '../../src/models/scripted-model.js';
import type { openSession } from '../../src/session/create-agent.js';

/** Another version of Pawl: this one with edits in its machine, compiled and loaded beside it. */

/** `file` is below packages/. `from` stands in it once. */
export type Edit = { readonly file: string; readonly from: string; readonly to: string };

/** The parts of a Pawl that keep and resume sessions. */
export type Pawl = {
  readonly openSession: typeof openSession;
  readonly fileJournals: typeof fileJournals;
  readonly exportSession: typeof exportSession;
  readonly importSession: typeof importSession;
  readonly verifyStored: typeof verifyStored;
  readonly scriptedModel: typeof scriptedModel;
};

const root = fileURLToPath(new URL('../../../..', import.meta.url));

const edited = (file: string, edits: readonly Edit[]): string =>
  edits
    .filter((edit) => path.join(root, 'packages', edit.file) === file)
    .reduce(
      (text, { from, to }) => replaceSource(text, [[from, to]], file),
      readFileSync(file, 'utf8'),
    );

/**
 * Puts the edits into what is compiled.
 *
 * @public for the tests of restate/, which is no workspace.
 */
export const plant = (edits: readonly Edit[]): Plugin => ({
  name: 'plant',
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]packages[\\/].*\.ts$/ }, ({ path: file }) => {
      const url = JSON.stringify(pathToFileURL(file).href);
      const text = edited(file, edits);
      const address = text.includes('import.meta')
        ? `const sourceUrl = ${url}, sourceFolder = ${JSON.stringify(path.dirname(file))};`
        : '';
      return { contents: `${address}${text}`, loader: 'ts' };
    });
  },
});

/** Compiles the Pawl with these edits. `version`: how many versions its machine is ahead of this one. */
export const otherPawl = async (ahead: number, edits: readonly Edit[]): Promise<Pawl> => {
  const raise: Edit = {
    file: 'agent/src/machine/machine.ts',
    from: `MACHINE_VERSION = ${MACHINE_VERSION}`,
    to: `MACHINE_VERSION = ${MACHINE_VERSION + ahead}`,
  };
  const { outputFiles } = await build({
    absWorkingDir: root,
    stdin: {
      contents: `
        export { openSession } from './packages/agent/src/session/create-agent.ts';
        export { fileJournals } from './packages/agent/src/journal/file-store.ts';
        export { exportSession } from './packages/agent/src/journal/transfer.ts';
        export { importSession } from './packages/agent/src/journal/transfer.ts';
        export { verifyStored } from './packages/agent/src/journal/transfer.ts';
        export { scriptedModel } from './packages/agent/src/models/scripted-model.ts';
      `,
      resolveDir: root,
    },
    bundle: true,
    write: false,
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    packages: 'external',
    keepNames: true,
    define: { 'import.meta.url': 'sourceUrl', 'import.meta.dirname': 'sourceFolder' },
    plugins: [workspacePackages(root), plant([raise, ...edits])],
    logLevel: 'silent',
  });
  const module = { exports: {} };
  const run = new Function('module', 'exports', 'require', outputFiles[0]?.text ?? '');
  run(module, module.exports, createRequire(path.join(root, 'package.json')));
  return module.exports as Pawl; // the entry exports exactly this
};
