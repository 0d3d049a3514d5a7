/** Writes the types of the published package. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/**
 * Imports of packages of the workspace, which users don't have, become paths. `file` is relative to
 * the folder of all.
 */
const withPaths = (file: string, text: string): string =>
  text.replace(
    /(['"])@pawl\/([^/'"]+)(?:\/([^'"]+))?\1/g,
    (_, quote: string, name: string, inside = 'index') => {
      const target = path.posix.relative(path.posix.dirname(file), `${name}/src/${inside}.js`);
      return `${quote}${target.startsWith('.') ? target : `./${target}`}${quote}`;
    },
  );

/**
 * Writes them below `folder`: those of packages/pawl/src/index.ts are pawl/src/index.d.ts. Throws
 * if there are none.
 */
export const emitDeclarations = (folder: string): void => {
  const compiler = path.join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const words = [
    compiler,
    '-p',
    path.join(root, 'packages/pawl/tsconfig.types.json'),
    '--outDir',
    folder,
  ];
  const { status, stdout } = spawnSync(process.execPath, words, { cwd: root, encoding: 'utf8' });
  if (status !== 0) throw new Error(`the declarations can't be emitted:\n${stdout}`);
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.d.ts')) continue;
    const text = readFileSync(path.join(folder, file), 'utf8');
    const portable = withPaths(file, text);
    if (portable !== text) writeFileSync(path.join(folder, file), portable);
  }
};

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href)
  emitDeclarations(path.join(root, 'packages/pawl/dist/types'));
