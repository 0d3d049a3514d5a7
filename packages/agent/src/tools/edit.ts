/**
 * The tool `edit`: several replacements in one file, all or none. `edit/plan-edits.ts` defines
 * where and how.
 */

import type { Json, JsonObject } from '@pawl/machine/kernel/shape';
import * as v from 'valibot';
import { hashBytes } from '../platform/files.js';
import { isJsonObject } from '../platform/untrusted-input.js';
import type { Tool } from '../ports/tool.js';
import {
  type Aliases,
  defineTool,
  FILE_NAMES,
  type ForeignFields,
  type InputFault,
  parseNested,
  readFields,
  type TranslatedInput,
  withoutFields,
} from './define-tool.js';
import { planEdits, type TextEdit } from './edit/plan-edits.js';
import {
  changeFile,
  hashChange,
  type PlanChange,
  type PlannedChange,
  previewChange,
  refuseChange,
  type StaleFile,
} from './file-change.js';
import {
  decodeFile,
  editableText,
  encodeText,
  exactText,
  judgePath,
  type LoadedFile,
} from './files.js';

const editSchema = v.strictObject({
  oldText: v.pipe(v.string(), v.description('Exact text, unique in the file.')),
  newText: v.string(),
  replaceAll: v.exactOptional(
    v.pipe(v.boolean(), v.description('Every occurrence instead of a unique one.')),
  ),
});
const schema = v.strictObject({
  path: v.pipe(v.string(), v.minLength(1, 'must not be empty')),
  edits: v.pipe(v.array(editSchema), v.minLength(1, 'must have at least one edit')),
});
type Input = v.InferOutput<typeof schema>;

// ---- Input in the form of other agents ----

const ALIASES: Aliases = {
  oldText: ['old_string', 'oldString', 'old_str', 'old_text'],
  newText: ['new_string', 'newString', 'new_str', 'new_text'],
  replaceAll: ['replace_all', 'allow_multiple'],
  ...FILE_NAMES,
};
/** Fields of a replacement that explain it. */
const IGNORED: readonly string[] = ['description', 'explanation'];
const AS_EDITS = 'give path, and edits: [{oldText, newText}] with the texts before and after';
const BESIDE_A_TEXT =
  'give as oldText a text beside the place, and as newText that text with the new one';
const FOREIGN: ForeignFields = {
  command: { instead: AS_EDITS },
  expected_replacements: { same: [1], instead: 'replaceAll: true replaces every occurrence' },
  insert_line: { instead: BESIDE_A_TEXT },
  insert_text: { instead: BESIDE_A_TEXT },
  input: { instead: AS_EDITS },
  patch: { instead: AS_EDITS },
  patchText: { instead: AS_EDITS },
  diff: { instead: AS_EDITS },
  startLine: { instead: AS_EDITS },
  endLine: { instead: AS_EDITS },
  start_line: { instead: AS_EDITS },
  end_line: { instead: AS_EDITS },
};

/** A value in our form, and what could not be read. */
type Reading<Value> = { readonly value: Value; readonly faults: readonly InputFault[] };

/** Reads one replacement. Faulty values go to the schema, which reports them. */
const readReplacement = (item: Json, prefix: string): Reading<Json> => {
  const fields = typeof item === 'string' ? parseNested(item) : item;
  if (!isJsonObject(fields)) return { value: item, faults: [] };
  const read = readFields(fields, editSchema, ALIASES, prefix);
  const { replaceAll, ...rest } = withoutFields(read.input, IGNORED);
  const isSet = replaceAll !== undefined && replaceAll !== null;
  return { value: isSet ? { ...rest, replaceAll } : rest, faults: read.faults };
};

/** Reads `edits`, which may be a text with JSON, or a single replacement. */
const readReplacements = (input: Json): Reading<Json> => {
  const value = typeof input === 'string' ? parseNested(input) : input;
  if (value === null && typeof input === 'string') {
    const why = 'is a string without valid JSON: give an array of {oldText, newText}';
    return { value: input, faults: [{ field: 'edits', why }] };
  }
  const list: Json = isJsonObject(value) ? [value] : value;
  if (!Array.isArray(list)) return { value: input, faults: [] };
  const read = list.map((item: Json, index) => readReplacement(item, `edits[${index}].`));
  return { value: read.map((one) => one.value), faults: read.flatMap((one) => one.faults) };
};

/** Moves a replacement that is not inside `edits` into `edits`. */
const gatherSingle = (input: JsonObject): Reading<JsonObject> => {
  const { oldText, newText, replaceAll, edits, ...rest } = input;
  const single = Object.entries({ oldText, newText, replaceAll }).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as const],
  );
  const [first] = single;
  if (first === undefined) return { value: input, faults: [] };
  const isEmpty =
    edits === undefined || edits === null || (Array.isArray(edits) && edits.length === 0);
  if (isEmpty) return { value: { ...rest, edits: [Object.fromEntries(single)] }, faults: [] };
  const why = 'stands beside edits: put every replacement into edits';
  return { value: { ...rest, edits }, faults: [{ field: first[0], why }] };
};

/** Some models name the file in every replacement: moves it beside `edits`. */
const liftPath = (
  inputPath: Json | undefined,
  value: Json,
): { path: Json | undefined; edits: Json; faults: readonly InputFault[] } => {
  let path = inputPath;
  const faults: InputFault[] = [];
  if (!Array.isArray(value)) return { path, edits: value, faults };
  const edits = value.map((edit: Json, index): Json => {
    if (!isJsonObject(edit) || edit.path === undefined) return edit;
    const { path: file, ...rest } = edit;
    path ??= file;
    if (path === file) return rest;
    const why = 'is another file: one call changes one file';
    faults.push({ field: `edits[${index}].path`, why });
    return rest;
  });
  return { path, edits, faults };
};

/** Translates an input to one path and its list of edits. */
const translate = (input: JsonObject): TranslatedInput => {
  // another vendor's text editor has a field `command`; only this value means an edit
  const named = input.command === 'str_replace' ? withoutFields(input, ['command']) : input;
  const gathered = gatherSingle(named);
  if (gathered.value.edits === undefined) return { input: gathered.value, faults: [] };
  const read = readReplacements(gathered.value.edits);
  const { path, edits, faults } = liftPath(gathered.value.path, read.value);
  return {
    input: { ...gathered.value, edits, ...(path === undefined ? {} : { path }) },
    faults: [...gathered.faults, ...read.faults, ...faults],
  };
};

// ---- The change ----

type LoadedBytes = Extract<LoadedFile, { kind: 'file' }>;

/** An edit without a byte order mark. The mark stays in the file and is not part of its text. */
const withoutMark = (edit: TextEdit): TextEdit =>
  edit.oldText.startsWith('\ufeff')
    ? { ...edit, oldText: edit.oldText.slice(1), newText: edit.newText.replace(/^\ufeff/, '') }
    : edit;

/** Plans the new bytes. `shown`: the path for people. */
const editText = (
  input: Input,
  { bytes, sha256 }: LoadedBytes,
  real: string,
  shown: string,
): PlannedChange => {
  const exact = exactText(bytes, shown);
  if (exact.kind === 'refused') return exact;
  const { text, encoding } = exact;
  const edits = encoding === 'utf8-bom' ? input.edits.map(withoutMark) : input.edits;
  const planned = planEdits(text, edits);
  if (planned.kind === 'refused') return refuseChange(`${planned.why}\nNothing was changed.`);
  const { text: after, count, remarks, places } = planned;
  if (after === text)
    return refuseChange(`The edits leave ${places} of ${shown} as they are. Nothing was changed.`);
  const summary = `Edited ${shown}: ${count} replacement${count === 1 ? '' : 's'}.`;
  return {
    kind: 'change',
    change: {
      real,
      expected: sha256,
      before: text,
      after,
      bytes: encodeText(after, encoding),
      text: [summary, ...remarks].join('\n'),
    },
  };
};

/**
 * Plans edits in a file that has changed since the model saw it. They must match in the text that
 * it saw, too, and their places must be the same lines in both.
 */
const rebaseEdits = async (
  input: Input,
  { loaded, real, shown, earlier }: StaleFile,
): Promise<PlannedChange> => {
  const { compareLines } = await import('./edit/changed-lines.js');
  const decoded = decodeFile(loaded.bytes);
  const now = editableText(decoded);
  const edits = input.edits.map(withoutMark);
  const lines = now === undefined ? null : compareLines(earlier, now);
  const where = lines === null || lines.places === '' ? '' : ` (${lines.places})`;
  const refused = refuseChange(
    `${shown} has changed since it was last read${where}. Read it again and adapt. Nothing was ` +
      'changed.',
  );
  if (now === undefined || lines === null) return refused;
  const before = planEdits(earlier, edits);
  const planned = planEdits(now, edits);
  if (before.kind === 'refused' || planned.kind === 'refused') return refused;
  if (!lines.areSame(before.spans, planned.spans)) return refused;
  // plans the same edits once more, with the bytes and the result text
  const change = editText(input, loaded, real, shown);
  if (change.kind === 'refused') return change;
  const remark =
    `${shown} has changed since it was last read${where}, but not at the place of this edit. ` +
    'Read it again before you rely on the rest.';
  const encoding = decoded.kind === 'text' && decoded.encoding === 'utf8-bom' ? 'utf8-bom' : 'utf8';
  const sha256 = hashBytes(encodeText(before.text, encoding));
  const known = { sha256, text: before.text, earlier };
  return {
    kind: 'change',
    change: { ...change.change, text: `${change.change.text}\n${remark}`, known },
  };
};

// ---- The tool ----

const planInput = (input: Input): PlanChange => ({
  rebase: (file) => rebaseEdits(input, file),
  plan(loaded, real, shown) {
    switch (loaded.kind) {
      case 'absent':
        return refuseChange(`${shown} does not exist. To create a file, write it.`);
      case 'folder':
        return refuseChange(`${shown} is a folder.`);
      case 'unreadable':
        return refuseChange(`${shown} can't be edited: ${loaded.why}. Nothing was changed.`);
      case 'file':
        return editText(input, loaded, real, shown);
      default:
        return loaded satisfies never;
    }
  },
});

export const editTool: Tool = defineTool({
  name: 'edit',
  description:
    'Replaces text in a file that was read before. All edits are matched against the file as ' +
    'it is now and applied together, or none. Give oldText without the line numbers that ' +
    'read shows.',
  schema,
  aliases: ALIASES,
  foreign: FOREIGN,
  translate,
  traits: {
    effect: 'probeable', // after a crash the file itself shows whether it was changed
    parallelSafe: false,
    mutating: true,
    deadlineMs: 30_000,
    group: 'fileChanges',
  },
  async judge(input, workspace) {
    const same = input.edits.findIndex((edit) => edit.oldText === edit.newText);
    if (same >= 0)
      return { kind: 'invalid', field: `edits[${same}].newText`, why: 'is the same as oldText' };
    return judgePath(input.path, workspace);
  },
  title: ({ path }, [shown = path]) => shown,
  preview: (input, context) => previewChange(input.path, planInput(input), context),
  before: (input, context) => hashChange(input.path, planInput(input), context),
  run: (input, context) => changeFile(input.path, planInput(input), context),
});
