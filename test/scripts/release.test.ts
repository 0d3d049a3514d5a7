import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type Release, releaseFaults } from '../../scripts/release/faults.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

const MANIFEST = { name: 'sample', version: '1.2.3', repository: 'github:somebody/sample' };
const CHANGELOG =
  '# Changelog\n\n## Unreleased\n\n## 1.2.3 - 2026-11-23\n\n### Added\n\n- A thing.\n\n## 1.2.2\n\n- x\n';
const good: Release = {
  manifest: JSON.stringify(MANIFEST),
  changelog: CHANGELOG,
  tag: 'v1.2.3',
  changes: '',
};
const withManifest = (part: object): Partial<Release> => ({
  manifest: JSON.stringify({ ...MANIFEST, ...part }),
});

const rows: readonly {
  readonly title: string;
  readonly part: Partial<Release>;
  readonly fault: RegExp | null;
}[] = [
  { title: 'all is well', part: {}, fault: null },
  { title: 'there is no tag yet', part: { tag: null }, fault: null },
  {
    title: 'another tag',
    part: { tag: 'v1.2.4' },
    fault: /^the tag is v1\.2\.4, package\.json says 1\.2\.3$/,
  },
  {
    title: 'no version',
    part: { ...withManifest({ version: 'next' }), tag: 'vnext' },
    fault: /'next' is no version/,
  },
  {
    title: 'no repository',
    part: withManifest({ repository: undefined }),
    fault: /names no repository/,
  },
  { title: 'private', part: withManifest({ private: true }), fault: /is private/ },
  {
    title: 'no notes',
    part: { changelog: CHANGELOG.replace('## 1.2.3', '## 1.2.1') },
    fault: /nothing stands under '## 1\.2\.3'/,
  },
  {
    title: 'no date',
    part: { changelog: CHANGELOG.replace('1.2.3 - 2026-11-23', '1.2.3 (unreleased)') },
    fault: /has no date/,
  },
  {
    title: 'notes that were not moved',
    part: { changelog: CHANGELOG.replace('Unreleased\n', 'Unreleased\n\n- y\n') },
    fault: /move what stands under '## Unreleased'/,
  },
  {
    title: 'a tree that is not clean',
    part: { changes: ' M src/a.ts\n' },
    fault: /^uncommitted changes:\n M src\/a\.ts$/,
  },
];

describe('a release', () => {
  for (const { title, part, fault } of rows) {
    it(`${fault === null ? 'passes' : 'is refused'}: ${title}`, () => {
      const faults = releaseFaults({ ...good, ...part });
      if (fault === null) assert.deepEqual(faults, []);
      else assert.match(faults.join('\n'), fault);
    });
  }

  it('without --publish looks at the package and publishes nothing', () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'pawl-release-'));
    try {
      mkdirSync(path.join(folder, 'scripts'));
      mkdirSync(path.join(folder, 'dist/package'), { recursive: true });
      writeFileSync(path.join(folder, 'package.json'), '{ "type": "module" }');
      cpSync(path.join(root, 'scripts', 'release.ts'), path.join(folder, 'scripts', 'release.ts'));
      cpSync(path.join(root, 'scripts', 'release'), path.join(folder, 'scripts', 'release'), {
        recursive: true,
      });
      symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'));
      const write = (manifest: object): void =>
        writeFileSync(
          path.join(folder, 'dist/package/package.json'),
          JSON.stringify({ ...manifest, type: 'module' }),
        );
      writeFileSync(path.join(folder, 'CHANGELOG.md'), CHANGELOG);
      const release = (...words: readonly string[]) =>
        spawnSync(process.execPath, ['--import', 'tsx', 'scripts/release.ts', ...words], {
          cwd: folder,
          encoding: 'utf8',
        });
      write(MANIFEST);
      const fine = release('--tag', 'v1.2.3');
      assert.equal(fine.status, 0, fine.stderr);
      assert.match(fine.stderr, /package\.json[\s\S]*total files: +\d/);
      assert.match(fine.stdout, /✔ it can be published/);
      write({ ...MANIFEST, repository: undefined });
      const refused = release('--tag', 'v9.9.9', '--publish');
      assert.equal(refused.status, 1);
      assert.match(refused.stderr, /names no repository[\s\S]*✖ the tag is v9\.9\.9/);
      assert.doesNotMatch(refused.stdout, /can be published/);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
