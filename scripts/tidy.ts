/**
 * The house rules that neither the compiler nor Biome checks: walls and circles, one of each, what
 * may be printed, words that code must not use, nothing of one machine. `npm test` runs it; it
 * prints each fault as file:line. biome.json has the other rules.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import {
  castFaults,
  commentFaults,
  typeNameFaults,
  vagueWordFaults,
  wordFaults,
} from './tidy/code.js';
import { outputFaults } from './tidy/output.js';
import { type Fault, parse } from './tidy/source.js';
import { fileNameFaults, textFaults } from './tidy/texts.js';
import { toolNameFaults } from './tidy/tool-names.js';
import {
  circleFaults,
  exportFaults,
  importFaults,
  isPackageSource,
  readManifest,
  smallFileFaults,
} from './tidy/walls.js';

/**
 * Files that git tracks or would track. An archive has no `.git`: there all files but installed and
 * built ones. (An archive within somebody's work tree is none of that tree's files.)
 */
const listFiles = (root: string): readonly string[] => {
  const words = ['-C', root, 'ls-files', '-z', '--cached', '--others', '--exclude-standard'];
  const files = existsSync(path.join(root, '.git'))
    ? spawnSync('git', words, { encoding: 'utf8', maxBuffer: 1 << 26 }).stdout.split('\0')
    : readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
        (file) => !/(^|\/)(node_modules|dist)\//.test(file),
      );
  return files.filter((file) =>
    statSync(path.join(root, file), { throwIfNoEntry: false })?.isFile(),
  );
};

/** Texts of the project by file, relative to `root`. */
const readTexts = (root: string): ReadonlyMap<string, string> =>
  new Map(
    listFiles(root)
      .map((file) => [file, readFileSync(path.join(root, file), 'utf8')] as const)
      .filter(([, text]) => !text.slice(0, 8000).includes('\0')),
  );

/** Our own code. The demo's sample project is a stranger's: it is meant to be imperfect. */
const OURS = /^(packages|test|scripts|examples|bench|restate\/src|restate\/scripts)\/.*\.ts$/;

/** All faults of these texts, in the order of files. Throws where one does not parse. */
export const tidy = (texts: ReadonlyMap<string, string>): readonly Fault[] => {
  const all = [...texts].filter(([file]) => OURS.test(file)).map((entry) => parse(...entry));
  const [sources, inEngine] = [false, true].map((isOfEngine) =>
    all.filter(({ file }) => file.startsWith('restate/') === isOfEngine),
  ) as [typeof all, typeof all]; // of two values
  const inPackages = sources.filter(({ file }) => isPackageSource(file));
  const names = new Set([...texts.keys()].map((file) => path.posix.basename(file)));
  const manifests = new Map(
    [...texts].flatMap(([file, text]) => {
      const folder = /^packages\/([^/]+)\/package\.json$/.exec(file)?.[1];
      return folder === undefined ? [] : [[folder, readManifest(text)] as const];
    }),
  );
  const faults = [
    ...[...texts].flatMap(([file, text]) => textFaults(file, text)),
    ...sources.flatMap((source) => fileNameFaults(source, names)),
    ...sources.flatMap((source) => importFaults(source, manifests)),
    ...exportFaults(all, manifests),
    ...circleFaults(inPackages, manifests),
    ...smallFileFaults(inPackages, manifests),
    ...inPackages.flatMap(toolNameFaults),
    ...inPackages.flatMap(outputFaults),
    ...inPackages.flatMap(castFaults),
    ...sources.flatMap(wordFaults),
    ...all.flatMap(commentFaults),
    ...typeNameFaults(inPackages),
    ...typeNameFaults(inEngine),
    ...vagueWordFaults(inPackages),
  ];
  return faults.sort((one, other) =>
    one.file === other.file ? one.line - other.line : one.file < other.file ? -1 : 1,
  );
};

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const faults = tidy(readTexts(fileURLToPath(new URL('..', import.meta.url))));
  for (const { file, line, text } of faults) console.error(`${file}:${line}: ${text}`);
  console.log(`tidy: ${faults.length} faults`);
  process.exitCode = faults.length > 0 ? 1 : 0;
}
