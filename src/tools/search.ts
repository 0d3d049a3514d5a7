import { stat } from 'node:fs/promises';
import * as v from 'valibot';
import type { Tool, ToolContext, ToolOutcome } from '../needs.js';
import { failed } from './change.js';
import { findAllowed, judgePath } from './paths.js';
import { runRipgrep } from './ripgrep.js';
import { defineTool } from './schema.js';

const LINES_DEFAULT = 200;
const LINES_MAX = 2_000;
const SHOWN_BYTES = 28_000;
const COLUMNS_MAX = 400;

const whole = (most: number) =>
  v.pipe(
    v.number(),
    v.integer('must be a whole number'),
    v.minValue(0, 'must not be negative'),
    v.maxValue(most, `must be at most ${most}`),
  );

const schema = v.strictObject({
  pattern: v.pipe(
    v.string(),
    v.minLength(1, 'must not be empty'),
    v.description('Regular expression (ripgrep).'),
  ),
  path: v.exactOptional(
    v.pipe(
      v.string(),
      v.minLength(1, 'must not be empty'),
      v.description('File or folder; default: the workspace.'),
    ),
  ),
  glob: v.exactOptional(
    v.pipe(v.string(), v.minLength(1, 'must not be empty'), v.description('e.g. *.ts or !test/**')),
  ),
  ignoreCase: v.exactOptional(v.boolean()),
  context: v.exactOptional(v.pipe(whole(20), v.description('Lines around each match.'))),
  filesOnly: v.exactOptional(v.boolean()),
  limit: v.exactOptional(
    v.pipe(
      whole(LINES_MAX),
      v.minValue(1, 'must be at least 1'),
      v.description(`Lines shown, default ${LINES_DEFAULT}.`),
    ),
  ),
});
type Input = v.InferOutput<typeof schema>;

const flagsOf = (input: Input): readonly string[] => [
  '--no-heading',
  '--with-filename',
  '--sort=path',
  ...(input.filesOnly === true
    ? ['--files-with-matches']
    : [
        '--line-number',
        `--max-columns=${COLUMNS_MAX}`,
        '--max-columns-preview',
        `--context=${input.context ?? 0}`,
      ]),
  ...(input.ignoreCase === true ? ['--ignore-case'] : []),
  ...(input.glob === undefined ? [] : [`--glob=${input.glob}`]),
  `--regexp=${input.pattern}`,
];

type Searched = {
  readonly lines: readonly string[];
  /** Lines that would have followed were not waited for. */
  readonly more: boolean;
  readonly code: number | null;
  readonly error: string;
};

/** Searches until ripgrep ends, has filled `limit`, or is stopped. */
const runSearch = async (
  words: readonly string[],
  workspace: string,
  limit: number,
  signal: AbortSignal,
): Promise<Searched> => {
  const lines: string[] = [];
  let bytes = 0;
  const take = (line: string): 'more' | 'enough' => {
    bytes += Buffer.byteLength(line) + 1;
    if (lines.length >= limit || (bytes > SHOWN_BYTES && lines.length > 0)) return 'enough';
    lines.push(line);
    return 'more';
  };
  return { ...(await runRipgrep({ words, workspace, signal, take })), lines };
};

const describe = ({ lines, more, code, error }: Searched, signal: AbortSignal): ToolOutcome => {
  const found = lines.join('\n');
  if (signal.aborted) {
    const timedOut = signal.reason === 'timedOut';
    const note = timedOut ? '[timed out; there may be more]' : '[cancelled; there may be more]';
    return { status: timedOut ? 'timedOut' : 'cancelled', text: found === '' ? note : `${found}\n${note}` };
  }
  if (more)
    return {
      status: 'ok',
      text: `${found}\n[only the first ${lines.length} lines; narrow the search or raise limit]`,
    };
  if (code === 0) return { status: 'ok', text: found };
  if (code === 1) return { status: 'ok', text: 'No matches.' };
  if (lines.length > 0)
    return { status: 'ok', text: `${found}\n[not everything could be searched: ${error}]` };
  return failed(`The search failed: ${error || 'ripgrep ended without a message'}`);
};

const search = async (input: Input, context: ToolContext): Promise<ToolOutcome> => {
  const allowed = await findAllowed(input.path ?? '.', context);
  if (allowed.kind === 'elsewhere') return failed(allowed.why);
  const { real, shown } = allowed;
  const status = await stat(real).catch(() => null); // null: ripgrep says what is wrong with it
  if (status !== null && !status.isFile() && !status.isDirectory()) {
    return failed(`${shown} can't be searched: it is not a regular file.`); // a pipe would be waited for
  }
  const words = [...flagsOf(input), '--', shown];
  try {
    const limit = input.limit ?? LINES_DEFAULT;
    const searched = await runSearch(words, context.workspace, limit, context.signal);
    const outcome = describe(searched, context.signal);
    return { ...outcome, text: outcome.text.replace(/^\.\//gm, '') };
  } catch (error) {
    return failed(error instanceof Error ? error.message : String(error));
  }
};

export const searchTool: Tool = defineTool({
  name: 'search',
  description: 'Searches file contents with ripgrep; files that .gitignore names are left out.',
  schema,
  traits: { effect: 'pure', parallelSafe: true, mutating: false, deadlineMs: 30_000 },
  judge: (input, workspace) => judgePath(input.path ?? '.', workspace),
  run: search,
});
