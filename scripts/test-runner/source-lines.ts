/**
 * Stacks of compiled files name the lines of their sources. Node can do so itself
 * (--enable-source-maps), but then it reads the source map of every module that it loads, in every
 * process; only failures need one.
 */

import { existsSync, readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import path from 'node:path';

/**
 * A place in a compiled file: an address in stacks, a path from the working directory in node's own
 * words.
 */
const PLACE = /(?:file:\/\/)?([^\s()"':]+\.mjs):(\d+):(\d+)/g;

/**
 * Replaces places in compiled files, which have a source map beside them, by those in their
 * sources. `root` is where they ran.
 */
export const nameSources = (root: string, text: string): string => {
  const maps = new Map<string, SourceMap | null>();
  const mapOf = (file: string): SourceMap | null => {
    const known = maps.get(file);
    if (known !== undefined) return known;
    const map = existsSync(`${file}.map`)
      ? new SourceMap(JSON.parse(readFileSync(`${file}.map`, 'utf8')))
      : null;
    maps.set(file, map);
    return map;
  };
  return text.replace(PLACE, (place, name: string, line: string, column: string) => {
    const file = path.resolve(root, name);
    const entry = mapOf(file)?.findEntry(Number(line) - 1, Number(column) - 1);
    if (entry === undefined || !('originalSource' in entry)) return place;
    const source = path.resolve(path.dirname(file), entry.originalSource);
    return `${source}:${entry.originalLine + 1}:${entry.originalColumn + 1}`;
  });
};
