/**
 * The hooks after tools: report new commits, format files, commit changes. Joins commit-watch.ts,
 * format-files.ts and auto-commit.ts, which do the work. Which files the calls changed is known
 * from the checkpoints of the session.
 *
 * Each hook serves one phase: a state that the machine passes through after a batch of tool calls.
 * session/after-tool-hooks.ts runs a phase when the machine asks for it, and journals its end.
 */

import { createSessionSandbox, type SessionSandbox } from '../command/session-sandbox.js';
import type { Settings } from '../machine/settings.js';
import type { ProcessEnvironment } from '../platform/environment.js';
import { isFolder } from '../platform/files.js';
import { ProgramFailure } from '../platform/run-program.js';
import type { JudgedCall } from '../policy/judged-call.js';
import type { HookContext, HookReport, Hooks } from '../ports/hooks.js';
import { AutoCommitter, wasCommitted } from './auto-commit.js';
import type { Observation, WorkspaceObserver } from './checkpoints/own-changes.js';
import { CommitWatch, QUIET } from './commit-watch.js';
import type { Autoformatters, EarlierContent, FormatterOptions } from './format-files.js';
import { FormatterReach, filesToFormat, isDirtyBefore } from './formatters.js';

export type HooksOptions = {
  /** Pawl's environment. */
  readonly environment: ProcessEnvironment;
  /** The checkpoints of the session; null: it keeps none. */
  readonly observer: WorkspaceObserver | null;
  /** The sandbox for formatters. Default: a separate one. */
  readonly sandbox?: SessionSandbox;
  /** Time limit for one run of a formatter, in ms. */
  readonly formatterMs?: number;
  /** The file system's time, in ms since 1970. */
  readonly now?: () => number;
};

/** Formats files, with code that is loaded with the first file that a formatter may know. */
const lateFormatters = (options: FormatterOptions) => {
  let formatters: Autoformatters | null = null;
  return async (context: HookContext): Promise<HookReport> => {
    const files = filesToFormat(context);
    if (files.length === 0) return { ...QUIET, dirty: isDirtyBefore(context) };
    const { Autoformatters: Phase } = await import('./format-files.js');
    formatters ??= new Phase(options);
    return formatters.run(context, files);
  };
};

/** The hooks of one session, but for their deadlines (`createLateHooks`). */
export const createHooks = (options: HooksOptions): Omit<Hooks, 'deadlinesMs'> => {
  const { environment, formatterMs, now, observer, sandbox } = options;
  // whether a formatter may apply to what a command changes: only then the workspace is looked at
  const reach = new FormatterReach(now);
  const watch = new CommitWatch(environment, now);
  let committer: AutoCommitter | null = null; // made when it is needed: most sessions have none
  /** A call of this batch changed files that it does not name, and a phase has to know them. */
  let needsFiles = false;
  /** What the calls of the batch changed; null: not looked at yet. */
  let seen: Observation | null = null;
  let isReported = false;
  /** The working tree before formatters run. */
  let tree = {};
  const mustLook = async (call: JudgedCall, settings: Settings): Promise<boolean> => {
    if (settings.autoCommit === 'on') return true;
    if (settings.formatter === 'off' || !call.facts.paths.some(isFolder)) return false;
    try {
      return await reach.isReached(watch.place(settings.workspace, AbortSignal.timeout(10_000)));
    } catch (error) {
      if (error instanceof ProgramFailure) return false; // the phase reports the failure of git
      throw error;
    }
  };
  const before = async (file: string, context: HookContext): Promise<EarlierContent> => {
    seen ??= (await observer?.observe()) ?? null;
    const state = seen?.recent.get(file);
    if (seen === null || state === undefined) return 'unknown';
    const { workspace, signal } = context;
    try {
      // what the user had not committed is not formatted
      const place = watch.place(workspace, signal);
      if (!(await wasCommitted(place, file, state, seen.content, tree))) return 'unknown';
    } catch (error) {
      if (!(error instanceof ProgramFailure) || error.kind === 'stopped') throw error;
      return 'unknown'; // the phase CheckingGitCommits reports the failure of git
    }
    if (state.kind === 'absent') return 'absent';
    return (state.kind === 'file' ? await seen.content(state.sha256) : null) ?? 'unknown';
  };
  const format = lateFormatters({
    environment,
    before,
    sandbox: sandbox ?? createSessionSandbox({ environment }),
    ...(formatterMs === undefined ? {} : { runMs: formatterMs }),
  });
  return {
    before: async (call, settings) => {
      if (isReported) observer?.reported();
      isReported = false;
      seen = null;
      // signs of formatters are searched beside these files, too
      reach.remember(call.facts.paths);
      await watch.before(call, settings);
      if (!(await mustLook(call, settings))) return;
      needsFiles = true;
      await observer?.lookBefore(call);
    },
    after: (call, settings) => watch.after(call, settings),
    // null: `run` is needed
    runNow: (phase, context) => {
      const report = phase === 'CheckingGitCommits' && !needsFiles ? watch.checkNow(context) : null;
      isReported ||= report !== null;
      return report;
    },
    run: async (phase, context) => {
      switch (phase) {
        case 'CheckingGitCommits':
          seen = needsFiles ? ((await observer?.observe()) ?? null) : null;
          [needsFiles, isReported] = [false, true];
          return watch.check(context, [...(seen?.recent.keys() ?? [])].sort());
        case 'RunningAutoformatters':
          tree = {};
          return format(context);
        case 'AutoCommitting':
          committer ??= new AutoCommitter(watch, observer);
          return committer.run(context);
        default:
          return phase satisfies never;
      }
    },
  };
};
