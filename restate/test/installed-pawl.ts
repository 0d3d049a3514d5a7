import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** Pawl and the package of the engine, installed beside each other as `npm install -g` does. */

export const restateFolder = fileURLToPath(new URL('..', import.meta.url));
export const mainFolder = path.join(restateFolder, '../packages/pawl');

/** Puts the package into a folder of packages, built as in a fresh clone; its own packages are linked. */
const installRestate = (packages: string): void => {
  rmSync(path.join(mainFolder, 'dist', 'types'), { recursive: true, force: true });
  execFileSync('npm', ['run', 'build'], {
    cwd: restateFolder,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const folder = path.join(packages, '@pawl', 'restate');
  for (const name of ['dist', 'package.json'])
    cpSync(path.join(restateFolder, name), path.join(folder, name), { recursive: true });
  for (const name of ['@restatedev', 'aws4fetch'])
    symlinkSync(path.join(restateFolder, 'node_modules', name), path.join(packages, name));
};

/** Returns the path of the program. It runs what `npm run build` made of the main package. */
export const installPawl = (folder: string): string => {
  const packages = path.join(folder, 'lib', 'node_modules');
  const own = path.join(packages, 'pawl');
  mkdirSync(own, { recursive: true });
  for (const name of ['bin', 'dist', 'package.json'])
    cpSync(path.join(mainFolder, name), path.join(own, name), { recursive: true });
  installRestate(packages);
  return path.join(own, 'bin', 'pawl.js');
};

export const versionIn = (folder: string): string => {
  const { version } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
  return String(version);
};
