/** A Jupyter notebook as text: its cells, with outputs cut and pictures left out. */

import { stripVTControlCharacters } from 'node:util';
import type { Json, JsonObject } from '@pawl/machine/kernel/shape';
import { firstCharacters, plural } from '../platform/text.js';
import { isJsonObject, type JsonLimits, parseBounded } from '../platform/untrusted-input.js';

/** What is shown of one output. */
const OUTPUT_CHARACTERS_MAX = 1_000;
const LIMITS: JsonLimits = { depthMax: 100, charactersMax: 64 * 1024 * 1024 };

const HOW_TO_CHANGE =
  'the numbers count its lines. To change it, edit a part of one line, as the JSON of the file has ' +
  'it, or change cells by a program in bash';

/** Texts of a notebook are a string, or a list of lines with their breaks. */
const joinText = (text: Json | undefined): string =>
  Array.isArray(text)
    ? text.filter((line) => typeof line === 'string').join('')
    : typeof text === 'string'
      ? text
      : '';

const listOf = (value: Json | undefined): readonly JsonObject[] =>
  Array.isArray(value) ? value.filter(isJsonObject) : [];

/** A stream has `text`, an error its `traceback`, a result `data` by media type. */
const outputText = ({ text, traceback, ename, evalue, data }: JsonObject): string => {
  const byType = isJsonObject(data) ? data : {};
  const trace = listLines(traceback) || `${joinText(ename)}: ${joinText(evalue)}`;
  const words = ename === undefined ? joinText(text ?? byType['text/plain']) : trace;
  const shown = stripVTControlCharacters(words).trimEnd();
  const rest = shown.length - OUTPUT_CHARACTERS_MAX;
  const others = Object.keys(byType).filter((type) => type !== 'text/plain');
  return [
    rest > 0
      ? `${firstCharacters(shown, OUTPUT_CHARACTERS_MAX)}\n[${rest} more characters of output]`
      : shown,
    ...(others.length === 0 ? [] : [`[left out: ${others.join(', ')}]`]),
  ]
    .filter(Boolean)
    .join('\n');
};

/** The lines of a traceback have no breaks. */
const listLines = (lines: Json | undefined): string =>
  Array.isArray(lines) ? lines.filter((line) => typeof line === 'string').join('\n') : '';

const cellText = (cell: JsonObject, index: number): string => {
  const outputs = listOf(cell.outputs).map(outputText).filter(Boolean);
  return [
    `--- cell ${index + 1}, ${joinText(cell.cell_type) || 'of no type'} ---`,
    joinText(cell.source).trimEnd(),
    ...outputs.map((output) => `--- output ---\n${output}`),
  ].join('\n');
};

/** The cells of a notebook, below a remark about them; null if the text is none. */
export const notebookText = (
  json: string,
): { readonly text: string; readonly remark: string } | null => {
  const parsed = parseBounded(json, LIMITS);
  if (parsed.kind !== 'ok') return null;
  const notebook = parsed.value as Json; // the value comes from JSON.parse
  if (!isJsonObject(notebook) || !Array.isArray(notebook.cells)) return null;
  const cells = listOf(notebook.cells);
  return {
    text: cells.map(cellText).join('\n\n'),
    remark: `[a notebook, ${plural(cells.length, 'cell')} as text; ${HOW_TO_CHANGE}]`,
  };
};
