/** The hooks after tools: report new commits, format files, commit changes. */

import { createSessionSandbox, type SessionSandbox } from '../command/session-sandbox.js';
import type { ProcessEnvironment } from '../platform/environment.js';
import { ProgramFailure } from '../platform/run-program.js';
import type { HookContext, HookReport, Hooks } from '../ports/hooks.js';
import { commitTouched } from './auto-commit.js';
import { createCommitWatch } from './commit-watch.js';
import { Autoformatters, type ContentBefore, committedContent } from './format-files.js';
import { FormatterReach } from './formatter-choice.js';
import { type GitPlace, useRepository } from './git.js';
import { settleAbandoned } from './make-commit.js';
import { DEADLINES_MS } from './phase-deadlines.js';

const RECOVERY_MS = 30_000;

export type HooksNeeds = {
  /** Pawl's own environment. */
  readonly environment: ProcessEnvironment;
  /** The sandbox for formatters. Default: a separate one. */
  readonly sandbox?: SessionSandbox;
  /** File in which auto-commit records what a killed session knew. Without it nothing is recorded. */
  readonly recordFile?: string;
  /** Time limit for one run of a formatter, in ms. */
  readonly formatterMs?: number;
};

const recover = async (place: GitPlace): Promise<string> =>
  ((await useRepository(place, settleAbandoned)) ?? []).join('\n');

/** The hooks of one session. */
export const createHooks = ({ environment, formatterMs, recordFile, sandbox }: HooksNeeds): Hooks => {
  const reach = new FormatterReach();
  const watch = createCommitWatch({
    environment,
    isFormatted: (place) => reach.isReached(place),
    ...(recordFile === undefined ? {} : { recordFile }),
  });
  const committed = async (file: string, context: HookContext): Promise<ContentBefore> => {
    const { workspace, signal } = context;
    try {
      const place = watch.place(workspace, signal);
      return await committedContent(file, watch.snapshotBefore(file), context, place);
    } catch (error) {
      if (!(error instanceof ProgramFailure) || error.kind === 'stopped') throw error;
      return { kind: 'unknown' }; // the file is left alone; the phase CheckingGitCommits reports the git failure
    }
  };
  const formatters = new Autoformatters({
    environment,
    committed,
    sandbox: sandbox ?? createSessionSandbox({ environment }),
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
    before: async (call, settings) => {
      const kept = settings.formatter === 'off' ? Promise.resolve() : formatters.before(call);
      reach.name(call.facts.paths);
      await Promise.all([watch.before(call, settings), kept]);
    },
    after: (call, settings) => {
      formatters.after(call);
      return watch.after(call, settings);
    },
    recover: (workspace) => recover(watch.place(workspace, AbortSignal.timeout(RECOVERY_MS))),
    runNow: (phase, context) => {
      if (phase !== 'CheckingGitCommits') return null;
      const report = watch.checkNow(context);
      if (report !== null && context.settings.formatter === 'off') formatters.forget();
      return report;
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
