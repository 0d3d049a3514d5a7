/**
 * The tool `write`: creates a file, or replaces one that the model has read before. file-change.ts
 * checks that and writes.
 */

import * as v from 'valibot';
import { plural } from '../platform/text.js';
import type { Tool } from '../ports/tool.js';
import { defineTool, FILE_NAMES } from './define-tool.js';
import { findForeignText } from './edit/edit-readings.js';
import { findEndings, withEnding } from './edit/lines.js';
import {
  changeFile,
  hashChange,
  type PlanChange,
  type PlannedChange,
  previewChange,
  refuseChange,
} from './file-change.js';
import { ABSENT, encodeText, exactText, judgePath, type LoadedFile } from './files.js';

const schema = v.strictObject({
  path: v.pipe(v.string(), v.minLength(1, 'must not be empty')),
  content: v.pipe(v.string(), v.description('The whole new content.')),
});
type Input = v.InferOutput<typeof schema>;

const countLines = (text: string): string => {
  const count = text === '' ? 0 : text.split('\n').length - (text.endsWith('\n') ? 1 : 0);
  return plural(count, 'line');
};

const create = (real: string, shown: string, content: string): PlannedChange => ({
  kind: 'change',
  change: {
    real,
    expected: ABSENT,
    before: null,
    after: content,
    bytes: Buffer.from(content),
    text: `Created ${shown} (${countLines(content)}).`,
  },
});

type Replacing = {
  readonly real: string;
  readonly shown: string;
  readonly content: string;
  readonly loaded: Extract<LoadedFile, { kind: 'file' }>;
};

/**
 * Keeps what the model did not see in the old file: its byte order mark and Windows line endings.
 */
const replace = ({ real, shown, content, loaded }: Replacing): PlannedChange => {
  const exact = exactText(loaded.bytes, shown);
  if (exact.kind === 'refused') return exact;
  const { text: before, encoding } = exact;
  const common = {
    real,
    expected: loaded.sha256,
    text: `Replaced ${shown} (${countLines(content)}).`,
  };
  const keepsEndings = findEndings(before) === '\r\n' && !content.includes('\r');
  const after = keepsEndings ? withEnding(content, '\r\n') : content;
  const bytes = encodeText(
    after,
    encoding === 'utf8-bom' && !content.startsWith('\ufeff') ? 'utf8-bom' : 'utf8',
  );
  const text = keepsEndings ? `${common.text} Its CRLF line endings are kept.` : common.text;
  return { kind: 'change', change: { ...common, before, after, bytes, text } };
};

const planWrite = ({ content }: Input): PlanChange => ({
  plan(loaded, real, shown) {
    const before = loaded.kind === 'file' ? loaded.bytes.toString('utf8') : '';
    const fault = content === before ? null : findForeignText(before, content);
    if (fault !== null) return refuseChange(`content ${fault}. Nothing was changed.`);
    switch (loaded.kind) {
      case 'absent':
        return create(real, shown, content);
      case 'folder':
        return refuseChange(`${shown} is a folder. Nothing was changed.`);
      case 'unreadable':
        return refuseChange(`${shown} can't be replaced: ${loaded.why}. Nothing was changed.`);
      case 'file':
        return replace({ real, shown, content, loaded });
      default:
        return loaded satisfies never;
    }
  },
});

export const writeTool: Tool = defineTool({
  name: 'write',
  description:
    'Creates a file with its folders, or replaces a whole file that was read before. To ' +
    'change a part of a file, edit it instead.',
  schema,
  aliases: { ...FILE_NAMES, content: ['contents', 'file_text', 'text'] },
  // fields of other agents: `same` values are ignored, `instead` is the advice for others
  foreign: {
    command: { same: ['create'], instead: 'a text in a file is changed by edit' },
    overwrite: { same: [true], instead: 'write replaces the whole file: look whether it is there' },
    append: { same: [false], instead: 'write replaces the whole file: use edit for a part of it' },
    encoding: { same: ['utf8', 'utf-8'], instead: 'text is written as UTF-8' },
    code_edit: { instead: 'use edit for a part of a file, or give the whole text as content' },
  },
  traits: {
    effect: 'probeable', // after a crash the file itself shows whether it was changed
    parallelSafe: false,
    mutating: true,
    deadlineMs: 30_000,
    group: 'fileChanges',
  },
  judge: (input, workspace) => judgePath(input.path, workspace, { match: 'exact' }),
  title: ({ path }, [shown = path]) => shown,
  preview: (input, context) => previewChange(input.path, planWrite(input), context),
  before: (input, context) => hashChange(input.path, planWrite(input), context),
  run: (input, context) => changeFile(input.path, planWrite(input), context),
});
