/**
 * The hooks after tools: report new commits, format files, commit changes. Joins commit-watch.ts,
 * format-files.ts and auto-commit.ts, which do the work.
 *
 * Each hook serves one phase: a state that the machine passes through after a batch of tool calls.
 * session/after-tool-hooks.ts runs a phase when the machine asks for it, and journals its end.
 */

import { createSessionSandbox, type SessionSandbox } from '../command/session-sandbox.js';
import type { ProcessEnvironment } from '../platform/environment.js';
import { ProgramFailure } from '../platform/run-program.js';
import type { HookContext, Hooks } from '../ports/hooks.js';
import { commitTouched } from './auto-commit.js';
import { CommitWatch, type OtherWriters } from './commit-watch.js';
import {
  Autoformatters,
  type EarlierContent,
  FormatterReach,
  readCommittedContent,
} from './format-files.js';

export type HooksOptions = {
  /** Pawl's environment. */
  readonly environment: ProcessEnvironment;
  /** The sandbox for formatters. Default: a separate one. */
  readonly sandbox?: SessionSandbox;
  /**
   * File in which auto-commit records what a killed session knew. Without it nothing is recorded.
   */
  readonly recordFile?: string;
  /** Who else may have changed files. Absent: nobody but the calls. */
  readonly others?: OtherWriters;
  /** Time limit for one run of a formatter, in ms. */
  readonly formatterMs?: number;
};

/** The hooks of one session, but for their deadlines (late-hooks.ts). */
export const createHooks = (options: HooksOptions): Omit<Hooks, 'deadlinesMs'> => {
  const { environment, formatterMs, others, recordFile, sandbox } = options;
  // Whether a formatter may apply to what a command changes: only then does the commit watch look
  // at the whole tree before the command.
  const reach = new FormatterReach();
  const watch = new CommitWatch({
    environment,
    isFormatted: (place) => reach.isReached(place),
    ...(others === undefined ? {} : { others }),
    ...(recordFile === undefined ? {} : { recordFile }),
  });
  /** The committed content of a file. One that was not formatted before the batch stays so. */
  const committed = async (file: string, context: HookContext): Promise<EarlierContent> => {
    const { workspace, signal } = context;
    try {
      const place = watch.place(workspace, signal);
      return await readCommittedContent(file, watch.snapshotBefore(file), context, place);
    } catch (error) {
      if (!(error instanceof ProgramFailure) || error.kind === 'stopped') throw error;
      // the file is not formatted; the phase CheckingGitCommits reports the failure of git
      return 'unknown';
    }
  };
  const formatters = new Autoformatters({
    environment,
    committed,
    sandbox: sandbox ?? createSessionSandbox({ environment }),
    ...(formatterMs === undefined ? {} : { runMs: formatterMs }),
  });
  return {
    before: (call, settings) => {
      // signs of formatters are searched beside these files, too
      reach.remember(call.facts.paths);
      return watch.before(call, settings);
    },
    after: (call, settings) => watch.after(call, settings),
    // null: `run` is needed
    runNow: (phase, context) => (phase === 'CheckingGitCommits' ? watch.checkNow(context) : null),
    run: (phase, context) => {
      switch (phase) {
        case 'CheckingGitCommits':
          return watch.check(context);
        case 'RunningAutoformatters':
          return formatters.run(context);
        case 'AutoCommitting':
          // formatters run only after CheckingGitCommits has reported: theirs is the second report
          return commitTouched(watch, context, context.reports[1]?.changedFiles ?? []);
        default:
          return phase satisfies never;
      }
    },
  };
};
