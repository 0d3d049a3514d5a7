import { createSessionSandbox, type SessionSandbox } from '../command/sandbox/session/session-sandbox.js';
import type { ProcessEnvironment } from '../platform/base/process-environment-type.js';
import type { HookContext, HookReport, Hooks } from '../ports/after-tool-hooks.js';
import { commitTouched } from './commits/auto-commit.js';
import { committedContent } from './commits/content-from-commits.js';
import { createCommitWatch } from './commits/create-commit-watch.js';
import { settleAbandoned } from './commits/settle-commit.js';
import type { ContentBefore } from './formatters/content-before-calls.js';
import { Autoformatters } from './formatters/run-autoformatters.js';
import { FormatterReach } from './formatters/snapshot-need.js';
import { type GitPlace, useRepository } from './git/git.js';
import { DEADLINES_MS } from './phase-deadlines.js';
import { ProgramFailure } from './run-program.js';

/** The hooks after tools: report new commits, format files, commit changes. */

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
