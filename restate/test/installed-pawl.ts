import { cpSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

/** Pawl and the package of the engine, installed beside each other as `npm install -g` does. */

export const restateFolder = fileURLToPath(new URL('..', import.meta.url));
export const mainFolder = path.join(restateFolder, '../packages/pawl');

/** Puts the package into a folder of packages; its own packages are linked. */
const installRestate = async (packages: string): Promise<void> => {
  const folder = path.join(packages, '@pawl', 'restate');
  mkdirSync(path.join(folder, 'dist'), { recursive: true });
  cpSync(path.join(restateFolder, 'package.json'), path.join(folder, 'package.json'));
  for (const scope of ['@restatedev', '@aws-sdk'])
    symlinkSync(path.join(restateFolder, 'node_modules', scope), path.join(packages, scope));
  await build({
    entryPoints: [path.join(restateFolder, 'src', 'index.ts')],
    outfile: path.join(folder, 'dist', 'index.js'),
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    external: ['pawl/engine', '@restatedev/*', '@aws-sdk/*'],
    logLevel: 'error',
  });
};

/** Returns the path of the program. It runs what `npm run build` made of the main package. */
export const installPawl = async (folder: string): Promise<string> => {
  const packages = path.join(folder, 'lib', 'node_modules');
  const own = path.join(packages, 'pawl');
  mkdirSync(own, { recursive: true });
  for (const name of ['bin', 'dist', 'package.json'])
    cpSync(path.join(mainFolder, name), path.join(own, name), { recursive: true });
  await installRestate(packages);
  return path.join(own, 'bin', 'pawl.js');
};

export const versionIn = (folder: string): string => {
  const { version } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
  return String(version);
};
