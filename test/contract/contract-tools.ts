import type { CallTraits } from '../../packages/agent/src/policy/judged-call.js';
import type { Hooks } from '../../packages/agent/src/ports/hooks.js';
import type { Tool, ToolContext, ToolOutcome } from '../../packages/agent/src/ports/tool.js';
import { askingTools } from '../../packages/agent/src/tools/ask-user.js';

/** Small tools and hooks of the contract's stories. They touch nothing outside of the process. */

const traits = (own: Partial<CallTraits> = {}): CallTraits => ({
  effect: 'pure',
  parallelSafe: true,
  mutating: false,
  deadlineMs: 60_000,
  ...own,
});
const CHANGES = traits({ effect: 'opaque', parallelSafe: false, mutating: true });

type Run = (text: string, context: ToolContext) => ToolOutcome | Promise<ToolOutcome>;

const tool = (name: string, own: CallTraits, run: Run): Tool => ({
  name,
  description: `The tool ${name} of the contract.`,
  inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
  traits: own,
  judge: (input, workspace) => {
    const { text = '' } = input;
    if (typeof text !== 'string')
      return { kind: 'invalid', field: 'text', why: 'must be a string' };
    const facts = { argv: [], paths: [workspace], hosts: [], shape: `${name} ${text}` };
    return { kind: 'ok', input, facts };
  },
  run: async ({ text }, context) => run(typeof text === 'string' ? text : '', context),
});

/** Reports its beginning, then works until it is told to end. */
const untilAborted: Run = (text, { signal, progress }) => {
  progress(`working ${text}`.trim());
  return new Promise((resolve) => {
    const end = (): void =>
      resolve({
        status: signal.reason === 'timedOut' ? 'timedOut' : 'cancelled',
        text: 'half done',
      });
    if (signal.aborted) end();
    else signal.addEventListener('abort', end, { once: true });
  });
};

export const contractTools: readonly Tool[] = [
  tool('echo', traits(), (text) => ({ status: 'ok', text })),
  tool('fail', traits(), (text) => ({ status: 'failed', text: `failed: ${text}` })),
  tool('throws', traits(), () => {
    throw new Error('a bug in the tool');
  }),
  tool('long', traits(), (text) => ({ status: 'ok', text: `${text}\n`.repeat(10_000) })),
  tool('change', CHANGES, (text) => ({ status: 'ok', text: `changed ${text}` })),
  tool('work', CHANGES, untilAborted),
  tool('watch', traits(), untilAborted),
  tool('brief', traits({ deadlineMs: 30 }), untilAborted),
  ...askingTools,
];

const QUIET = { commits: [], changedFiles: [], dirty: false, note: '', warning: '', proceed: true };

/** Hooks that find a commit and format a file, unless `failing` names their phase. */
export const contractHooks = (failing: 'RunningAutoformatters' | null = null): Hooks => ({
  deadlinesMs: { CheckingGitCommits: 5_000, RunningAutoformatters: 5_000, AutoCommitting: 5_000 },
  before: async () => undefined,
  after: async () => undefined,
  run: async (phase) => {
    if (phase === failing) throw new Error('the formatter is broken');
    if (phase === 'CheckingGitCommits')
      return {
        ...QUIET,
        commits: [{ hash: 'c0ffee', subject: 'a commit' }],
        note: 'A commit was made.',
      };
    return QUIET;
  },
});
