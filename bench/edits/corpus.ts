/**
 * Correct edits of blocks of lines in real packages, drawn at random. The mistakes of models are
 * made in them afterwards (mistakes.ts).
 */

import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Random } from './random.js';

export type TrueEdit = {
  readonly file: string;
  readonly text: string;
  /** Lines of the block as they are, and as they are to be. */
  readonly oldLines: readonly string[];
  readonly newLines: readonly string[];
  /** Index of the block's first line, from 0. */
  readonly first: number;
  /** The line break behind each line of the file. */
  readonly ending: '\n' | '\r\n';
  /** The file with the block replaced. */
  readonly wanted: string;
};

const PACKAGES = fileURLToPath(new URL('../../node_modules/', import.meta.url));
/** Dependencies with sources that people wrote: JavaScript, TypeScript, Markdown, JSON. */
const NAMES = [
  ...[
    'commander',
    'diff',
    'valibot',
    'turndown',
    'smol-toml',
    'picomatch',
    'knip',
    'zod',
    'publint',
    'tsx',
  ],
  ...['arktype', 'acorn', '@ai-sdk/openai', '@ai-sdk/google', '@stryker-mutator/core'],
];
const KINDS = /\.(?:[cm]?[jt]s|md|json|css)$/;
const [BYTES_MIN, BYTES_MAX] = [1_000, 150_000];
const LINE_CHARACTERS_MAX = 200;
/** Maximum number of files per package, so that large packages don't dominate. */
const FILES_MAX = 40;

const filesBelow = (folder: string): readonly string[] =>
  readdirSync(folder, { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const place = path.join(folder, entry.name);
      if (entry.isDirectory()) return entry.name === 'node_modules' ? [] : filesBelow(place);
      if (!entry.isFile() || !KINDS.test(entry.name)) return [];
      const { size } = statSync(place);
      return size >= BYTES_MIN && size <= BYTES_MAX ? [place] : [];
    });

const spread = <Item>(items: readonly Item[], most: number): readonly Item[] =>
  items.filter(
    (_, index) =>
      Math.floor((index * most) / items.length) !== Math.floor(((index - 1) * most) / items.length),
  );

/** The files that edits are made of, as text, in the same order everywhere. */
export const corpusFiles = (): readonly string[] =>
  NAMES.flatMap((name) => spread(filesBelow(path.join(PACKAGES, name)), FILES_MAX)).filter((file) =>
    readFileSync(file, 'utf8')
      .split('\n')
      .every((line) => line.length <= LINE_CHARACTERS_MAX),
  );

const IDENTIFIER = /[A-Za-z_]{3,}/g;
const FRESH = ['renamed', 'replacement', 'altered', 'updated', 'otherName'];

const getIndent = (line: string): string => /^[ \t]*/.exec(line)?.[0] ?? '';

/** The block with one thing changed, as people change code. */
const change = (lines: readonly string[], at: number, random: Random): readonly string[] => {
  const line = lines[at] ?? '';
  const words = [...line.matchAll(IDENTIFIER)];
  const kind = random.below(4);
  if (kind === 0)
    return [
      ...lines.slice(0, at + 1),
      `${getIndent(line)}added${random.below(1_000)}();`,
      ...lines.slice(at + 1),
    ];
  if (kind === 1 && lines.length > 2) return [...lines.slice(0, at), ...lines.slice(at + 1)];
  if (words.length === 0) return [...lines.slice(0, at), `${line} changed`, ...lines.slice(at + 1)];
  const word = random.pick(words);
  const fresh = `${random.pick(FRESH)}${random.below(100)}`;
  const changed = line.slice(0, word.index) + fresh + line.slice(word.index + word[0].length);
  return [...lines.slice(0, at), changed, ...lines.slice(at + 1)];
};

const occursOnce = (text: string, sought: string): boolean => {
  const first = text.indexOf(sought);
  return first >= 0 && text.indexOf(sought, first + 1) < 0;
};

/**
 * An edit of a block that stands once in its file; null where the dice fell badly. `lines`: how
 * many the block has.
 */
export const drawEdit = (
  files: readonly string[],
  lines: readonly [number, number],
  random: Random,
): TrueEdit | null => {
  const file = random.pick(files);
  const text = readFileSync(file, 'utf8').replace(/^\ufeff/, '');
  const ending = text.includes('\r\n') ? '\r\n' : '\n';
  const all = text.split(ending);
  const count = lines[0] + random.below(lines[1] - lines[0] + 1);
  if (all.length <= count) return null;
  const first = random.below(all.length - count);
  const oldLines = all.slice(first, first + count);
  const [head = '', tail = ''] = [oldLines[0], oldLines.at(-1)];
  if (head.trim() === '' || tail.trim() === '' || !occursOnce(text, oldLines.join(ending)))
    return null;
  const filled = oldLines.flatMap((line, index) => (line.trim().length > 2 ? [index] : []));
  if (filled.length === 0) return null;
  const newLines = change(oldLines, random.pick(filled), random);
  const wanted = [...all.slice(0, first), ...newLines, ...all.slice(first + count)].join(ending);
  return { file: path.relative(PACKAGES, file), text, oldLines, newLines, first, ending, wanted };
};
