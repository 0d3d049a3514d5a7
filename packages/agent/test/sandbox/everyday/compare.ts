import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** What is compared of a command that ran in two copies of a project: output, end, and the files that it left. */

/** Times, hashes and numbers of processes differ between two runs of anything. */
const NOISE: readonly (readonly [RegExp, string])[] = [
  [/\b[0-9a-f]{7,40}\b/g, 'HASH'],
  [/\[(exit code \d+), [\d.]+ s\]/g, '[$1]'],
  [/duration_ms:? [\d.]+/g, 'duration_ms'],
  [/\(\d+(\.\d+)?ms\)|\b\d+(\.\d+)?\s?(ms|s)\b/g, 'TIME'],
  [/\b\d{4}-\d\d-\d\d[T_ ]\d\d[:_]\d\d[:_\d.]*Z?/g, 'DATE'],
  [/^\s*(Date|From HASH).*$/gm, '$1'],
  [/\(node:\d+\)/g, '(node)'],
  [/\b(line|pid) \d{3,}\b/g, '$1'],
  [/^\[\d+\] \d+$/gm, '[job]'],
];

/** Output without what differs anyway; `folders` are the places that stand for the workspace. */
export const withoutNoise = (text: string, folders: readonly string[]): string => {
  const placed = folders.reduce((all, folder) => all.replaceAll(folder, 'WORKSPACE'), text);
  return NOISE.reduce((all, [pattern, by]) => all.replace(pattern, by), placed);
};

const isText = (bytes: Buffer): boolean => !bytes.includes(0);

/** Every file but those of git: its kind, mode and, of text, its content. */
export const filesOf = (folder: string, below = ''): readonly string[] =>
  readdirSync(path.join(folder, below), { withFileTypes: true })
    .toSorted((one, other) => (one.name < other.name ? -1 : 1))
    .flatMap((entry) => {
      const name = path.join(below, entry.name);
      if (entry.name === '.git') return [name];
      if (entry.isDirectory()) return [`${name}/`, ...filesOf(folder, name)];
      const mode = (lstatSync(path.join(folder, name)).mode & 0o777).toString(8);
      if (!entry.isFile()) return [`${name} link`];
      const bytes = readFileSync(path.join(folder, name));
      return [
        `${name} ${mode} ${isText(bytes) ? withoutNoise(bytes.toString('utf8'), [folder]) : 'bytes'}`,
      ];
    });
