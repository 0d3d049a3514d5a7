/**
 * `npm run release`: says whether this tree can be published, and lists the content of the package.
 * Publishes nothing. `npm run release -- --tag v1.2.3 --publish`: publishes a tag; the release
 * workflow runs it after all tests. npm adds a signed statement of where the package was built
 * (provenance).
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { releaseFaults } from './release/faults.js';

const { values } = parseArgs({
  options: { tag: { type: 'string' }, publish: { type: 'boolean', default: false } },
});

/** What is published; `npm run pack` has made it. */
const PACKAGE = 'dist/package';

const npm = (...words: readonly string[]): number =>
  spawnSync('npm', words, { cwd: PACKAGE, stdio: 'inherit' }).status ?? 1;

/** Changed files, one a line. An archive of the sources has no repository to look at. */
const changes = (): string =>
  existsSync('.git') ? execFileSync('git', ['status', '--porcelain'], { encoding: 'utf8' }) : '';

const faults = releaseFaults({
  manifest: readFileSync(`${PACKAGE}/package.json`, 'utf8'),
  changelog: readFileSync('CHANGELOG.md', 'utf8'),
  tag: values.tag ?? null,
  changes: changes(),
});

const packed = npm('pack', '--dry-run', '--ignore-scripts');
for (const fault of faults) console.error(`✖ ${fault}`);
if (faults.length > 0 || packed !== 0) process.exitCode = 1;
else if (values.publish) process.exitCode = npm('publish', '--provenance', '--access', 'public');
else console.log('✔ it can be published: push the tag, the release workflow does the rest');
