/**
 * `npm run release`: says whether this tree can be published, and lists the content of the package.
 * Publishes nothing. `npm run release -- --tag v1.2.3 --publish`: publishes a tag; the release
 * workflow runs it after all tests. npm adds a signed statement of where the package was built
 * (provenance).
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { describePackage, releaseFaults } from './release/faults.js';

const { values } = parseArgs({
  options: { tag: { type: 'string' }, publish: { type: 'boolean', default: false } },
});

/** What is published; `npm run pack` has made it. */
const PACKAGE = 'dist/package';

const run = (program: string, words: readonly string[], cwd = '.'): string => {
  const { status, stdout, stderr } = spawnSync(program, words, {
    cwd,
    encoding: 'utf8',
    maxBuffer: 1 << 26,
  });
  if (status !== 0) throw new Error(`${program} ${words.join(' ')} failed:\n${stderr}`);
  return stdout;
};

const faults = releaseFaults({
  manifest: readFileSync(`${PACKAGE}/package.json`, 'utf8'),
  changelog: readFileSync('CHANGELOG.md', 'utf8'),
  tag: values.tag ?? null,
  // An archive of the sources has no repository to look at.
  changes: existsSync('.git') ? run('git', ['status', '--porcelain']) : '',
});

console.log(
  describePackage(run('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], PACKAGE)),
);
for (const fault of faults) console.error(`✖ ${fault}`);
if (faults.length > 0) process.exitCode = 1;
else if (values.publish) {
  const { status } = spawnSync('npm', ['publish', '--provenance', '--access', 'public'], {
    cwd: PACKAGE,
    stdio: 'inherit',
  });
  process.exitCode = status ?? 1;
} else console.log('✔ it can be published: push the tag, the release workflow does the rest');
