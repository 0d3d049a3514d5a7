/**
 * Copies the documents that users get into packages/pawl: npm packs nothing from outside a
 * package's folder.
 */
import { cpSync, rmSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

const PAPERS = ['README.md', 'LICENSE', 'CHANGELOG.md', 'SECURITY.md', 'THIRD-PARTY.md', 'docs'];

for (const name of PAPERS) {
  const copy = path.join(root, 'packages/pawl', name);
  rmSync(copy, { recursive: true, force: true });
  cpSync(path.join(root, name), copy, { recursive: true });
}
