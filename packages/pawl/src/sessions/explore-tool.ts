/**
 * The tool `explore`: the agent's way to ask about files that are too large to read, as `pawl ask`
 * does. Its implementation is loaded with the first call.
 */

import type { CallFacts } from '@pawl/agent/policy/judged-call';
import type { Model } from '@pawl/agent/ports/model';
import type { Tool } from '@pawl/agent/ports/tool';
import { defineTool } from '@pawl/agent/tools/define-tool';
import { judgePath } from '@pawl/agent/tools/files';
import type { ExploreInput, ExploreNeeds } from '@pawl/ask/explore';
import * as v from 'valibot';

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
/** The facts of a call from which permissions are decided. */
type Paths = { readonly kind: 'ok'; readonly facts: CallFacts };

const judgePaths = async ({ paths, question }: ExploreInput, workspace: string) => {
  const real: string[] = [];
  for (const path of paths) {
    const judged = await judgePath(path, workspace, { field: 'paths' });
    if (judged.kind === 'invalid') return judged;
    real.push(...judged.facts.paths);
  }
  // identifies the call: a permission for it holds for the same question and files
  const shape = `${question} ${real.join(' ')}`;
  return { kind: 'ok', facts: { argv: [], paths: real, hosts: [], shape } } satisfies Paths;
};

/** The tool with its dependencies, which `load` provides at the first call. */
export const createExploreTool = (load: () => Promise<ExploreNeeds>): Tool =>
  defineTool({
    name: 'explore',
    description:
      'Answers a question about text files that are too large to read: another model looks ' +
      'at them by programs and sub-models, and only its answer comes back. It costs money ' +
      'and minutes: use read and search where they suffice.',
    schema,
    traits: {
      effect: 'pure',
      parallelSafe: true,
      mutating: false,
      deadlineMs: DEADLINE_MS,
      spends: 'yes',
    },
    judge: judgePaths,
    title: ({ question }) => question,
    run: async (input, context) => {
      const [{ explore }, needs] = await Promise.all([import('@pawl/ask/explore'), load()]);
      return explore(needs, input, context);
    },
  });

/**
 * The tool with the session's model and secrets. Its runs are stored beside the sessions in
 * `folder`.
 */
export const exploreTool = (
  model: Model,
  folder: string,
  secrets: Readonly<Record<string, string>>,
): Tool =>
  createExploreTool(async () => {
    const [{ createAsker }, { fileAskJournals }] = await Promise.all([
      import('@pawl/ask/create-asker'),
      import('@pawl/ask/journaled-ask-machine'),
    ]);
    const journals = fileAskJournals({ folder });
    return { journals, asker: createAsker({ model, journals, secrets }) };
  });
