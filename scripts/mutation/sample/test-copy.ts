/**
 * A copy of the tree with mutants in it (changes in single places of the sources), built, and its
 * tests compiled. Switches in the sources say which mutant is on (instrument.ts).
 */

import { spawnSync } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import type { File } from '@stryker-mutator/instrumenter';
import { type CompiledTests, compileTests } from '../../test-runner/compile.js';
import { ACTIVE, REACHED, SWITCH_MODULE, switchModule } from './instrument.js';
import { runInSandbox, type SandboxedRun } from './run-in-sandbox.js';

/** A copy of the tree with mutants in it, built, and its tests compiled. */
export type TestCopy = {
  /** Runs a test file with this mutant, '' for none. */
  readonly run: (
    file: string,
    mutant: string,
    timeMaxMs: number,
    endsAt: (name: string) => boolean,
  ) => Promise<SandboxedRun>;
  /** Runs a test file without a mutant. Gives the mutants whose places it reached, too. */
  readonly reach: (
    file: string,
    timeMaxMs: number,
  ) => Promise<{ readonly ran: SandboxedRun; readonly reached: ReadonlySet<string> }>;
  readonly remove: () => void;
};

const NOT_COPIED = new Set(['.git', '.stryker', 'node_modules', 'dist', '.pawl']);

const copyTree = (root: string, tree: string): void => {
  rmSync(tree, { recursive: true, force: true });
  mkdirSync(tree, { recursive: true });
  for (const name of readdirSync(root))
    if (!NOT_COPIED.has(name))
      cpSync(path.join(root, name), path.join(tree, name), {
        recursive: true,
        verbatimSymlinks: true,
        filter: (file) => !NOT_COPIED.has(path.basename(file)),
      });
  symlinkSync(path.join(root, 'node_modules'), path.join(tree, 'node_modules'));
};

const bundle = (tree: string): void => {
  const words = ['--import', 'tsx', 'scripts/bundle.ts'];
  const { status, stderr } = spawnSync(process.execPath, words, { cwd: tree, encoding: 'utf8' });
  if (status !== 0) throw new Error(`the copy with mutants can't be built: ${stderr}`);
};

export const openTestCopy = async (
  root: string,
  sources: readonly File[],
  testFiles: readonly string[],
): Promise<TestCopy> => {
  const [tree, stateFolder] = ['tree', 'state'].map((name) =>
    path.join(root, '.stryker', 'sample', name),
  ) as [string, string];
  copyTree(root, tree);
  mkdirSync(stateFolder, { recursive: true });
  writeFileSync(path.join(tree, SWITCH_MODULE), switchModule(stateFolder));
  for (const { name, content } of sources) writeFileSync(path.join(tree, name), content);
  writeFileSync(path.join(stateFolder, ACTIVE), '');
  bundle(tree);
  const compiled: CompiledTests = await compileTests(tree, testFiles);
  const run: TestCopy['run'] = (file, mutant, timeMaxMs, endsAt) => {
    writeFileSync(path.join(stateFolder, ACTIVE), mutant);
    return runInSandbox({
      tree,
      stateFolder,
      program: compiled.programOf(file),
      timeMaxMs,
      endsAt,
    });
  };
  return {
    run,
    reach: async (file, timeMaxMs) => {
      const list = path.join(stateFolder, REACHED);
      writeFileSync(list, '');
      const ran = await run(file, '', timeMaxMs, () => false);
      return {
        ran,
        reached: new Set(
          readFileSync(list, 'utf8')
            .split('\n')
            .filter((id) => id !== ''),
        ),
      };
    },
    remove: () => {
      compiled.remove();
      rmSync(path.join(root, '.stryker', 'sample'), { recursive: true, force: true });
    },
  };
};
