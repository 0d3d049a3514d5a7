import type { HookContext, HookReport, Hooks } from '../needs-hooks.js';
import { commitTouched } from './auto-commit.js';
import { createCommitWatch } from './commits.js';
import { committedContent } from './committed.js';
import type { Earlier } from './earlier-content.js';
import { Autoformatters } from './formatters.js';
import type { Environment } from './git-config.js';
import { ProgramFailure } from './program.js';

/** What happens after tools in the agent's own sessions: new commits are looked for, files formatted, changes committed. */

/** A look at a repository takes milliseconds; a formatter may take seconds a file, and a model writes the message. */
const DEADLINES_MS = {
  CheckingGitCommits: 10_000,
  RunningAutoformatters: 60_000,
  AutoCommitting: 60_000,
} as const;

export type HooksNeeds = {
  /** The program's own. */
  readonly environment: Environment;
  /** How long one run of a formatter may take, if not the usual time. */
  readonly formatterMs?: number;
};

/** The hooks of one session. */
export const createHooks = ({ environment, formatterMs }: HooksNeeds): Hooks => {
  const watch = createCommitWatch({ environment });
  const committed = async (file: string, context: HookContext): Promise<Earlier> => {
    const { workspace, signal } = context;
    try {
      return await committedContent(file, watch.began(), context, watch.place(workspace, signal));
    } catch (error) {
      if (!(error instanceof ProgramFailure) || error.kind === 'stopped') throw error;
      return { kind: 'unknown' }; // the file is left alone; a fault of git is told by the phase that looks for commits
    }
  };
  const formatters = new Autoformatters({
    ...{ environment, committed },
    ...(formatterMs === undefined ? {} : { runMs: formatterMs }),
  });
  const format = async (context: HookContext): Promise<HookReport> => {
    try {
      return await formatters.run(context);
    } finally {
      formatters.forget();
    }
  };
  return {
    deadlinesMs: DEADLINES_MS,
    before: async (call, workspace) => {
      await Promise.all([watch.before(call, workspace), formatters.before(call)]);
    },
    run: (phase, context) => {
      switch (phase) {
        case 'CheckingGitCommits':
          if (context.settings.formatter === 'off') formatters.forget();
          return watch.check(context);
        case 'RunningAutoformatters':
          return format(context);
        case 'AutoCommitting':
          // the report before this one is the formatters', if they ran
          return commitTouched(watch, context, context.reports[1]?.changedFiles ?? []);
        default:
          return phase satisfies never;
      }
    },
  };
};
