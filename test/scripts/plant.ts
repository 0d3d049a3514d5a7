import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { tidy } from '../../scripts/tidy.js';
import { removeFolderSync } from '../temporary-folder.js';

/** A rule of the house: given these files, then these faults, as `file:line text`; the text may be its beginning. */
export type Row = {
  readonly title: string;
  readonly given: Readonly<Record<string, string>>;
  readonly then: readonly string[];
};

/** Packages that may import some others. A row may give its own. */
const MANIFESTS: Row['given'] = {
  'packages/machine/package.json': '{ "name": "@pawl/machine" }',
  'packages/agent/package.json':
    '{ "name": "@pawl/agent", "dependencies": { "@pawl/machine": "*", "valibot": "1.5.0" } }',
  'packages/pawl/package.json': '{ "name": "pawl", "devDependencies": { "@pawl/agent": "*" } }',
};

/** Faults of a work tree with just these files and manifests of packages; as an archive it lies in a work tree that ignores it. */
export const faultsOf = (
  files: Row['given'],
  as: 'work tree' | 'archive' = 'work tree',
): readonly string[] => {
  const scratch = mkdtempSync(path.join(tmpdir(), 'pawl-tidy-'));
  const root = path.join(scratch, 'pawl');
  try {
    mkdirSync(root);
    execFileSync('git', ['init', '--quiet', as === 'archive' ? scratch : root]);
    if (as === 'archive') writeFileSync(path.join(scratch, '.gitignore'), 'pawl/\n');
    for (const [file, text] of Object.entries({ ...MANIFESTS, ...files })) {
      mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
      writeFileSync(path.join(root, file), text);
    }
    return tidy(root).map(({ file, line, text }) => `${file}:${line} ${text}`);
  } finally {
    removeFolderSync(scratch);
  }
};

const isOfSmallFile = (fault: string): boolean => fault.includes(' a small file that only ');

/** One test a row. The files of most rows are small: that fault is looked at in `small files` alone. */
export const testRows = (group: string, rows: readonly Row[]): void => {
  describe(`tidy: ${group}`, () => {
    for (const { title, given, then } of rows) {
      it(title, () => {
        const found = faultsOf(given).filter(
          (fault) => isOfSmallFile(fault) === (group === 'small files'),
        );
        const expected = then.map((start, index) =>
          found[index]?.startsWith(start) ? found[index] : start,
        );
        assert.deepEqual(found, expected);
      });
    }
  });
};
