import * as v from 'valibot';
import type { Tool, ToolContext, ToolOutcome } from '../needs.js';
import { carryOut, failed, staleness } from './change.js';
import { ABSENT, decodeFile, encodeText, hashNow, type LoadedFile, loadFile } from './file-text.js';
import { endingsOf, withEnding } from './line-endings.js';
import { judgePath, realPathOf, showPath } from './paths.js';
import { defineTool } from './schema.js';

const schema = v.strictObject({
  path: v.pipe(v.string(), v.minLength(1, 'must not be empty')),
  content: v.pipe(v.string(), v.description('The whole new content.')),
});
type Input = v.InferOutput<typeof schema>;

const countLines = (text: string): string => {
  const count = text === '' ? 0 : text.split('\n').length - (text.endsWith('\n') ? 1 : 0);
  return count === 1 ? '1 line' : `${count} lines`;
};

const create = (real: string, shown: string, content: string, context: ToolContext): Promise<ToolOutcome> =>
  carryOut(
    {
      real,
      expected: ABSENT,
      before: null,
      after: content,
      bytes: Buffer.from(content),
      text: `Created ${shown} (${countLines(content)}).`,
    },
    context,
  );

type Replacing = {
  readonly real: string;
  readonly shown: string;
  readonly content: string;
  readonly loaded: Extract<LoadedFile, { kind: 'file' }>;
};

/** The new content with what the model was not shown of the old: byte order mark and Windows line endings. */
const replace = async (
  { real, shown, content, loaded }: Replacing,
  context: ToolContext,
): Promise<ToolOutcome> => {
  const decoded = decodeFile(loaded.bytes);
  const common = { real, expected: loaded.sha256, text: `Replaced ${shown} (${countLines(content)}).` };
  if (decoded.kind === 'binary') {
    return carryOut({ ...common, before: '', after: content, bytes: Buffer.from(content) }, context);
  }
  const { text: before, encoding } = decoded;
  if (encoding === 'utf16le' || encoding === 'utf16be') {
    return failed(
      `${shown} is UTF-16 and would become UTF-8. Convert it with a shell command first. Nothing was changed.`,
    );
  }
  const keepsEndings = endingsOf(before) === '\r\n' && !content.includes('\r');
  const after = keepsEndings ? withEnding(content, '\r\n') : content;
  const bytes = encodeText(
    after,
    encoding === 'utf8-bom' && !content.startsWith('\ufeff') ? 'utf8-bom' : 'utf8',
  );
  const text = keepsEndings ? `${common.text} Its CRLF line endings are kept.` : common.text;
  return carryOut({ ...common, before, after, bytes, text }, context);
};

const write = async ({ path, content }: Input, context: ToolContext): Promise<ToolOutcome> => {
  const real = await realPathOf(path, context.workspace);
  const shown = showPath(real, context.workspace);
  const loaded = await loadFile(real);
  switch (loaded.kind) {
    case 'absent':
      return create(real, shown, content, context);
    case 'folder':
      return failed(`${shown} is a folder. Nothing was changed.`);
    case 'unreadable':
      return failed(`${shown} can't be replaced: ${loaded.why}. Nothing was changed.`);
    case 'file': {
      const stale = staleness(real, loaded.sha256, shown, context);
      if (stale !== null) return stale;
      return replace({ real, shown, content, loaded }, context);
    }
    default:
      return loaded satisfies never;
  }
};

export const writeTool: Tool = defineTool({
  name: 'write',
  description:
    'Creates a file with its folders, or replaces a whole file that was read before. To change a part of a file, edit it instead.',
  schema,
  traits: { effect: 'probeable', parallelSafe: false, mutating: true, deadlineMs: 30_000 },
  judge: (input, workspace) => judgePath(input.path, workspace),
  before: async (input, context) => hashNow(await realPathOf(input.path, context.workspace)),
  run: write,
});
