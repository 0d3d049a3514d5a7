/**
 * The house rules that no compiler checks, as a test: import direction and circles, purity, names,
 * sizes, one of each, no clock of the wall, nothing of one machine. Run by `npm test`; prints each
 * fault as file:line.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { nameFaults, typeNameFaults, vagueWordFaults } from './tidy/names.js';
import { oneOfEachFaults } from './tidy/one-of-each.js';
import { outputFaults } from './tidy/output.js';
import { processFaults } from './tidy/processes.js';
import { purityFaults } from './tidy/purity.js';
import { shapeFaults } from './tidy/shape.js';
import { type Fault, parse } from './tidy/source.js';
import { codeInStringFaults, fileNameFaults, textFaults } from './tidy/texts.js';
import { wallClockFaults } from './tidy/wall-clock.js';
import { isPackageSource, isTest, readManifest, testWallFaults, wallFaults } from './tidy/walls.js';

/**
 * Files that git tracks or would track, relative to `root`; null where it can't tell: an archive
 * has no `.git`.
 */
const filesOfGit = (root: string): readonly string[] | null => {
  // An archive within somebody's work tree is none of that tree's files.
  if (!existsSync(path.join(root, '.git'))) return null;
  const words = ['-C', root, 'ls-files', '-z', '--cached', '--others', '--exclude-standard'];
  const { status, stdout } = spawnSync('git', words, { encoding: 'utf8', maxBuffer: 1 << 26 });
  return status === 0 ? stdout.split('\0') : null;
};

/** The lines of .gitignore that are used here: names with `*`, and folders. */
const ignoredNames = (root: string): readonly RegExp[] => {
  const file = path.join(root, '.gitignore');
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
  return ['.git', 'node_modules', ...lines]
    .map((line) => line.trim().replace(/\/$/, ''))
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((name) => new RegExp(`^${name.replaceAll('.', '\\.').replaceAll('*', '.*')}$`));
};

/** All files below `root` but the ignored ones. */
const filesOfFolder = (root: string): readonly string[] => {
  const ignored = ignoredNames(root);
  const visit = (folder: string): readonly string[] =>
    readdirSync(path.join(root, folder), { withFileTypes: true })
      .filter(({ name }) => !ignored.some((pattern) => pattern.test(name)))
      .flatMap((entry) => {
        const file = path.posix.join(folder, entry.name);
        return entry.isDirectory() ? visit(file) : [file];
      });
  return visit('');
};

/** Files of the project, relative to `root`. */
const filesOf = (root: string): readonly string[] =>
  (filesOfGit(root) ?? filesOfFolder(root)).filter(
    (file) =>
      file !== '' && existsSync(path.join(root, file)) && statSync(path.join(root, file)).isFile(),
  );

const isBinary = (text: string): boolean => text.slice(0, 8000).includes('\0');

/** Our own code. The demo's sample project is a stranger's: it is meant to be imperfect. */
const isOurs = (file: string): boolean =>
  /^(packages|test|scripts|examples|bench)\/.*\.ts$/.test(file);

/** The package of the engine: its sizes and its types are looked at. */
const isOfEnginePackage = (file: string): boolean => /^restate\/(src|scripts)\/.*\.ts$/.test(file);

/** All faults under `root`, in the order of files. Throws where a file does not parse. */
export const tidy = (root: string): readonly Fault[] => {
  const texts = filesOf(root)
    .map((file) => ({ file, text: readFileSync(path.join(root, file), 'utf8') }))
    .filter(({ text }) => !isBinary(text));
  const sources = texts
    .filter(({ file }) => isOurs(file))
    .map(({ file, text }) => parse(file, text));
  const inEnginePackage = texts
    .filter(({ file }) => isOfEnginePackage(file))
    .map(({ file, text }) => parse(file, text));
  const files = new Set(texts.map(({ file }) => file));
  const names = new Set(texts.map(({ file }) => path.posix.basename(file)));
  const inSrc = sources.filter(({ file }) => isPackageSource(file));
  const inTests = sources.filter(({ file }) => isTest(file));
  const manifests = new Map(
    texts.flatMap(({ file, text }) => {
      const folder = /^packages\/([^/]+)\/package\.json$/.exec(file)?.[1];
      return folder === undefined ? [] : [[folder, readManifest(text)] as const];
    }),
  );
  const faults = [
    ...texts.flatMap(({ file, text }) => textFaults(file, text)),
    ...sources.flatMap(({ file, text }) =>
      codeInStringFaults(file, text, (imported) => files.has(imported)),
    ),
    ...sources.flatMap((source) => fileNameFaults(source, names)),
    ...wallFaults(inSrc, manifests),
    ...testWallFaults(inTests, manifests),
    ...inSrc.flatMap(purityFaults),
    ...inSrc.flatMap(oneOfEachFaults),
    ...inSrc.flatMap(outputFaults),
    ...inSrc.flatMap(processFaults),
    ...inSrc.flatMap(wallClockFaults),
    ...sources.flatMap(nameFaults),
    ...typeNameFaults(inSrc),
    ...vagueWordFaults(inSrc),
    ...typeNameFaults(inEnginePackage),
    ...[...sources, ...inEnginePackage].flatMap(shapeFaults),
  ];
  return faults.sort((one, other) =>
    one.file === other.file ? one.line - other.line : one.file < other.file ? -1 : 1,
  );
};

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const root = fileURLToPath(new URL('..', import.meta.url));
  const faults = tidy(root);
  for (const { file, line, text } of faults) console.error(`${file}:${line}: ${text}`);
  console.log(`tidy: ${faults.length} faults`);
  process.exitCode = faults.length > 0 ? 1 : 0;
}
