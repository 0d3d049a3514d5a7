/**
 * Puts together what is published: dist/package, from packages/pawl with its builds
 * (scripts/bundle.ts, scripts/declarations.ts), the documents, and the documents that are made from
 * the sources. None of these is in the repository. `npm run pack` does all three.
 */
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { schemaText } from './json-schema.js';
import { manualText } from './manual-page.js';
import { referencePages } from './reference.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const source = path.join(root, 'packages/pawl');
const target = path.join(root, 'dist/package');

const OF_THE_PACKAGE = ['bin', 'demo', 'dist', 'THIRD-PARTY.md'];
const OF_THE_REPOSITORY = ['README.md', 'LICENSE', 'CHANGELOG.md', 'SECURITY.md', 'docs'];

/** The manifest without what serves the workspace: `private` keeps npm from publishing that. */
const publishedManifest = (): string => {
  const { private: _, ...manifest } = JSON.parse(
    readFileSync(path.join(source, 'package.json'), 'utf8'),
  );
  return `${JSON.stringify(manifest, null, 2)}\n`;
};

const write = (name: string, text: string): void => {
  const file = path.join(target, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
};

const types = path.join(source, 'dist/types');
if (!existsSync(types)) throw new Error('the types are not built: npm run pack builds them');
rmSync(target, { recursive: true, force: true });
for (const [folder, names] of [
  [source, OF_THE_PACKAGE],
  [root, OF_THE_REPOSITORY],
] as const)
  for (const name of names)
    cpSync(path.join(folder, name), path.join(target, name), { recursive: true });
write('package.json', publishedManifest());
write('man/pawl.1', manualText());
write('docs/json-stream.schema.json', schemaText());
for (const [page, text] of referencePages(types)) write(page, text);
