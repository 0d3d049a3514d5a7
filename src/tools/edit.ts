import * as v from 'valibot';
import type { Tool } from '../needs.js';
import { changeFile, hashesOf, refused, type Work, type Worked } from './change.js';
import { decodeFile, encodeText, type LoadedFile } from './file-text.js';
import { findPlaces, fitEndings, type Place, type Strictness } from './match.js';
import { judgePath } from './paths.js';
import { defineTool } from './schema.js';

/**
 * Several replacements in one file.
 *
 * 1. All or nothing: if one does not fit, the file stays as it is.
 * 2. Every oldText is looked for in the file as it was before the call; replacements never overlap.
 */

const editSchema = v.strictObject({
  oldText: v.pipe(
    v.string(),
    v.minLength(1, 'must not be empty'),
    v.description('Exact text, unique in the file.'),
  ),
  newText: v.string(),
  replaceAll: v.exactOptional(
    v.pipe(v.boolean(), v.description('Every occurrence instead of a unique one.')),
  ),
});
const schema = v.strictObject({
  path: v.pipe(v.string(), v.minLength(1, 'must not be empty')),
  edits: v.pipe(v.array(editSchema), v.minLength(1, 'must have at least one edit')),
});
type Edit = v.InferOutput<typeof editSchema>;
type Input = v.InferOutput<typeof schema>;

type Replacement = Place & { readonly text: string; readonly index: number };
type Planned =
  | {
      readonly kind: 'planned';
      readonly replacements: readonly Replacement[];
      readonly remarks: readonly string[];
    }
  | { readonly kind: 'refused'; readonly why: string };

const remarkOf = (index: number, strictness: Strictness, converted: boolean): readonly string[] => {
  const endings = converted ? [`edits[${index}].newText got the line endings of the file.`] : [];
  switch (strictness) {
    case 'exact':
      return endings;
    case 'lineEndings':
      return [`edits[${index}] matched with other line endings; those of the file are kept.`];
    case 'trailingSpace':
      return [`edits[${index}] matched whole lines that differ in white space at their ends.`, ...endings];
    default:
      return strictness satisfies never;
  }
};

const planEdit = (text: string, edit: Edit, index: number): Planned => {
  const found = findPlaces(text, edit.oldText, edit.replaceAll ?? false);
  switch (found.kind) {
    case 'missing':
      return {
        kind: 'refused',
        why: `edits[${index}].oldText is not in the file. Read the file and copy the text exactly.`,
      };
    case 'ambiguous':
      return {
        kind: 'refused',
        why: `edits[${index}].oldText is in the file more than once (lines ${found.lines.join(', ')}). Add lines around it until it is unique, or set replaceAll.`,
      };
    case 'found': {
      const replacements = found.places.map((place) => ({
        ...place,
        text: fitEndings(text, edit.newText, place),
        index,
      }));
      const converted = replacements.some((replacement) => replacement.text !== edit.newText);
      return { kind: 'planned', replacements, remarks: remarkOf(index, found.strictness, converted) };
    }
    default:
      return found satisfies never;
  }
};

/** Every replacement in the order of the file, or why not. */
const plan = (text: string, edits: readonly Edit[]): Planned => {
  const replacements: Replacement[] = [];
  const remarks: string[] = [];
  for (const [index, edit] of edits.entries()) {
    const planned = planEdit(text, edit, index);
    if (planned.kind === 'refused') return planned;
    replacements.push(...planned.replacements);
    remarks.push(...planned.remarks);
  }
  replacements.sort((a, b) => a.start - b.start);
  for (const [index, next] of replacements.entries()) {
    const previous = replacements[index - 1];
    if (previous !== undefined && next.start < previous.end) {
      return {
        kind: 'refused',
        why: `edits[${previous.index}] and edits[${next.index}] overlap. Make them one edit.`,
      };
    }
  }
  return { kind: 'planned', replacements, remarks };
};

const apply = (text: string, replacements: readonly Replacement[]): string => {
  let after = '';
  let at = 0;
  for (const { start, end, text: replacement } of replacements) {
    after += text.slice(at, start) + replacement;
    at = end;
  }
  return after + text.slice(at);
};

type LoadedBytes = Extract<LoadedFile, { kind: 'file' }>;

const editText = (input: Input, { bytes, sha256 }: LoadedBytes, real: string, shown: string): Worked => {
  const decoded = decodeFile(bytes);
  if (decoded.kind === 'binary')
    return refused(`${shown} is a binary file and can't be edited. Nothing was changed.`);
  const { text, encoding } = decoded;
  if (encoding !== 'utf8' && encoding !== 'utf8-bom') {
    const what = encoding === 'unknown' ? 'not valid UTF-8' : 'UTF-16';
    return refused(
      `${shown} is ${what} and can't be edited without damage. Convert it with a shell command first. Nothing was changed.`,
    );
  }
  const planned = plan(text, input.edits);
  if (planned.kind === 'refused') return refused(`${planned.why} Nothing was changed.`);
  const after = apply(text, planned.replacements);
  if (after === text) return refused(`The edits leave ${shown} as it is. Nothing was changed.`);
  const count = planned.replacements.length;
  const summary = `Edited ${shown}: ${count} replacement${count === 1 ? '' : 's'}.`;
  return {
    kind: 'change',
    change: {
      real,
      expected: sha256,
      before: text,
      after,
      bytes: encodeText(after, encoding),
      text: [summary, ...planned.remarks].join('\n'),
    },
  };
};

const workOf =
  (input: Input): Work =>
  (loaded, real, shown) => {
    switch (loaded.kind) {
      case 'absent':
        return refused(`${shown} does not exist. To create a file, write it.`);
      case 'folder':
        return refused(`${shown} is a folder.`);
      case 'unreadable':
        return refused(`${shown} can't be edited: ${loaded.why}. Nothing was changed.`);
      case 'file':
        return editText(input, loaded, real, shown);
      default:
        return loaded satisfies never;
    }
  };

export const editTool: Tool = defineTool({
  name: 'edit',
  description:
    'Replaces text in a file that was read before. All edits are matched against the file as it is now and applied together, or none. Give oldText without the line numbers that read shows.',
  schema,
  traits: { effect: 'probeable', parallelSafe: false, mutating: true, deadlineMs: 30_000 },
  async judge(input, workspace) {
    const same = input.edits.findIndex((edit) => edit.oldText === edit.newText);
    if (same >= 0) return { kind: 'invalid', field: `edits[${same}].newText`, why: 'is the same as oldText' };
    return judgePath(input.path, workspace);
  },
  before: (input, context) => hashesOf(input.path, workOf(input), context),
  run: (input, context) => changeFile(input.path, workOf(input), context),
});
