/**
 * Rules about texts of any kind, and about the files that comments and strings name.
 */

import type { Fault, Source } from './source.js';

/** Texts that belong to one machine only, such as absolute paths. */
const PLACES: readonly { readonly found: RegExp; readonly text: string }[] = [
  {
    found: /https?:\/\/registry\./,
    text: 'names a registry host: packages are named, not addressed',
  },
  {
    found: /(?:^|[\s'"`(=:[])\/(?:root|work|home\/\w+|Users\/\w+)\//,
    text: 'names a folder of one machine',
  },
  { found: /\.\.\/shared\b/, text: 'names a folder outside the repository' },
  {
    found: /"resolved":\s*"http/,
    text: 'a lock file without download addresses: npm install with the .npmrc here',
  },
];

/** Files that are only read when they are short. */
const LENGTHS: readonly { readonly file: RegExp; readonly linesMax: number }[] = [
  { file: /^README\.md$/, linesMax: 120 },
  { file: /^AGENTS\.md$/, linesMax: 80 },
  { file: /^examples\/.*\.ts$/, linesMax: 46 },
  // Read from top to bottom: docs/decisions/0001-one-table.md.
  { file: /^packages\/agent\/src\/machine\/table\.ts$/, linesMax: 525 },
  { file: /^docs\/decisions\/\d{4}-[a-z0-9-]+\.md$/, linesMax: 60 },
];

/** Any tracked text: nothing of one machine, documents that stay short. */
export const textFaults = (file: string, text: string): readonly Fault[] => {
  const lines = text.replace(/\n$/, '').split('\n');
  const faults = lines.flatMap((content, index) =>
    PLACES.filter(({ found }) => found.test(content)).map((place) => ({
      file,
      line: index + 1,
      text: place.text,
    })),
  );
  const limit = LENGTHS.find((one) => one.file.test(file));
  if (limit && lines.length > limit.linesMax) {
    faults.push({
      file,
      line: limit.linesMax + 1,
      text: `${lines.length} lines, at most ${limit.linesMax}`,
    });
  }
  return faults;
};

/**
 * A name of several words, as our source files have: a name of one word may be of somebody else's
 * file.
 */
const SOURCE_NAME = /(?<![\w./-])[a-z\d]+(?:-[a-z\d]+)+\.ts\b/g;

/** A comment that sends its reader to a source file names one that is there. */
export const fileNameFaults = (
  { file, comments, lineOf }: Source,
  names: ReadonlySet<string>,
): readonly Fault[] =>
  comments.flatMap(({ value, start }) =>
    [...value.matchAll(SOURCE_NAME)]
      .map(([name]) => name)
      .filter((name) => !names.has(name))
      .map((name) => ({
        file,
        line: lineOf(start),
        text: `a comment names ${name}: there is no such file`,
      })),
  );
