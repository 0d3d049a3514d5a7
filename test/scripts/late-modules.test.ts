import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { AT_ONCE, LATE_INSIDE, LATE_PACKAGES } from '../../scripts/late-modules.js';

const SOURCES = fileURLToPath(new URL('../../packages/', import.meta.url));

/** Packages of which a source imports values; those that `import()` loads don't count. */
const importedBy = (source: string): readonly string[] =>
  [...source.matchAll(/^import (?!type )(?:\{([^}]*)\}|[^;{]*?)\s*from '([^.'][^']*)'/gm)]
    .filter(
      ([, names]) =>
        names === undefined || names.split(',').some((one) => !/^\s*(type |$)/.test(one)),
    )
    .map(([, , name = '']) => name)
    .filter((name) => !name.startsWith('node:') && !name.startsWith('@pawl/'));

test('a package whose values a source imports is named: it runs at once, or late', () => {
  const found = new Set(
    readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
      // a worker is a program of its own
      .filter((file) => /^[^/]+\/src\/.*\.ts$/.test(file) && !file.includes('quickjs-'))
      .flatMap((file) => importedBy(readFileSync(path.join(SOURCES, file), 'utf8'))),
  );
  assert.ok(found.has('valibot') && found.has('@agentclientprotocol/sdk'), [...found].join(' '));
  const named = new Set([...AT_ONCE, ...LATE_INSIDE, ...LATE_PACKAGES]);
  assert.deepEqual(
    [...found].filter((name) => !named.has(name)),
    [],
    'it would run at each start: import it with import(), or name it in scripts/late-modules.ts',
  );
});
