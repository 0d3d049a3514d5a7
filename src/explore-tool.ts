import * as v from 'valibot';
import type { CallFacts } from './agent/call.js';
import type { Usage } from './agent/usage.js';
import type { Asker, AskRun } from './ask-api.js';
import type { JournalStore, Tool, ToolContext, ToolOutcome } from './needs.js';
import type { AskTypes } from './needs-recursive.js';
import { ROOT } from './recursive/ids.js';
import type { Outcome } from './recursive/state.js';
import { spentBy, type Tree } from './recursive/tree-state.js';
import { attempt } from './runtime/wall.js';
import { findAllowed, judgePath } from './tools/paths.js';
import { defineTool } from './tools/schema.js';

/**
 * Code mode as a tool of the agent, for inputs that do not fit into its window.
 *
 * 1. A run has a journal of its own. A call that is made again (after a crash the runtime does so by itself) goes on
 *    with the run of the same question about the same files where it was: what was paid for is not asked again.
 * 2. It spends at most what the session has left, and what it spent is said in its outcome, however it ended.
 */

const DEADLINE_MS = 30 * 60_000;

const schema = v.strictObject({
  paths: v.pipe(
    v.array(v.pipe(v.string(), v.minLength(1, 'must not be empty'))),
    v.minLength(1, 'names no file'),
    v.description('Text files, 100 MB together at most.'),
  ),
  question: v.pipe(
    v.string(),
    v.minLength(1, 'must not be empty'),
    v.description('What to find out, in full.'),
  ),
});
type Input = v.InferOutput<typeof schema>;

type Paths = { readonly kind: 'ok'; readonly facts: CallFacts };

const judgePaths = async ({ paths, question }: Input, workspace: string) => {
  const real: string[] = [];
  for (const path of paths) {
    const judged = await judgePath(path, workspace, 'paths');
    if (judged.kind === 'invalid') return judged;
    real.push(...judged.facts.paths);
  }
  const shape = `${question} ${real.join(' ')}`;
  return { kind: 'ok', facts: { argv: [], paths: real, hosts: [], shape } } satisfies Paths;
};

/** What the tool works with; asked for when it is first used. */
export type ExploreNeeds = {
  readonly asker: Asker;
  /** Those of the asker, to find what a call before this one has begun. */
  readonly journals: JournalStore<AskTypes>;
};

/** The id of the unfinished run of the same question about the same files, or null (rule 1). */
const findBegun = async (
  { journals }: ExploreNeeds,
  question: string,
  files: readonly string[],
): Promise<string | null> => {
  for await (const { sessionId } of journals.list()) {
    const peeked = await attempt(() => journals.peek(sessionId));
    // one that can't be read is not gone on with
    if (peeked.kind === 'fault') continue;
    const { state, header } = peeked.value;
    const { settings } = header;
    const asksTheSame =
      settings.question === question &&
      settings.files.length === files.length &&
      settings.files.every((file, index) => file.path === files[index]);
    if (asksTheSame && state.name !== 'Ended') return sessionId;
  }
  return null;
};

const begin = async (needs: ExploreNeeds, { question }: Input, context: ToolContext): Promise<AskRun> => {
  const files = context.paths;
  const begun = await findBegun(needs, question, files);
  if (begun !== null) {
    const resumed = await attempt(() => needs.asker.resume(begun));
    // in use by another program, or its files have changed: a fresh run is right, and loses nothing
    if (resumed.kind === 'done') return resumed.value;
  }
  const { usd, tokens } = context.left();
  return needs.asker.ask({
    question,
    contexts: files.map((path) => ({ path })),
    workspace: context.workspace,
    settings: { limits: { usd: usd ?? 0, tokens: tokens ?? 0, timeMs: 0 } },
  });
};

const usageOf = (tree: Tree): Usage => {
  const { unpriced, costUsd, ...tokens } = spentBy(tree);
  return { ...tokens, costUsd: unpriced > 0 && costUsd === 0 ? null : costUsd };
};

const withPartial = (sentence: string, partial: string): string =>
  partial.trim() === '' ? sentence : `${sentence}\nWhat it had so far:\n${partial}`;

const outcomeOf = (outcome: Outcome, usage: Usage): ToolOutcome => {
  switch (outcome.status) {
    case 'answered':
      return { status: 'ok', text: outcome.answer, usage };
    case 'stopped':
      return {
        status: 'failed',
        text: withPartial(`the run was stopped: ${outcome.message}`, outcome.partial),
        usage,
      };
    case 'failed':
      return { status: 'failed', text: withPartial(outcome.message, outcome.partial), usage };
    case 'cancelled':
      return { status: 'cancelled', text: withPartial('the run was cancelled', outcome.partial), usage };
    default:
      return outcome satisfies never;
  }
};

/** Says live how far it is. */
const tell = (run: AskRun, context: ToolContext): (() => void) => {
  let told = '';
  return run.watch(({ state }) => {
    const root = state.nodes[ROOT]?.run;
    if (root === undefined) return;
    const usd = spentBy(state).costUsd;
    const line = `iteration ${root.iterations + 1}, ${state.subcalls} sub-calls, $${usd.toFixed(4)}\n`;
    if (line !== told) context.progress(line);
    told = line;
  });
};

const explore = async (needs: ExploreNeeds, input: Input, context: ToolContext): Promise<ToolOutcome> => {
  for (const path of input.paths) {
    const allowed = await findAllowed(path, context);
    if (allowed.kind === 'elsewhere') return { status: 'failed', text: allowed.why };
  }
  const run = await begin(needs, input, context);
  const unwatch = tell(run, context);
  const cancel = (): void => void attempt(() => run.cancel());
  context.signal.addEventListener('abort', cancel, { once: true });
  if (context.signal.aborted) cancel();
  const ended = await attempt(() => run.outcome);
  unwatch();
  context.signal.removeEventListener('abort', cancel);
  const usage = usageOf(run.state());
  await attempt(() => run.close());
  if (ended.kind === 'fault') return { status: 'failed', text: ended.fault.message, usage };
  const outcome = outcomeOf(ended.value, usage);
  return outcome.status === 'cancelled' && context.signal.reason === 'timedOut'
    ? { ...outcome, status: 'timedOut' }
    : outcome;
};

/** A tool that answers a question about files of any size by programs and sub-models, and comes back with the answer. */
export const createExploreTool = (load: () => Promise<ExploreNeeds>): Tool =>
  defineTool({
    name: 'explore',
    description:
      'Answers a question about text files that are too large to read: another model looks at them by programs and sub-models, and only its answer comes back. It costs money and minutes: use read and search where they suffice.',
    schema,
    traits: { effect: 'pure', parallelSafe: true, mutating: false, deadlineMs: DEADLINE_MS, spends: 'yes' },
    judge: judgePaths,
    run: async (input, context) => explore(await load(), input, context),
  });
