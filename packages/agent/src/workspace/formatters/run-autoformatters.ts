import type { SessionSandbox } from '../../command/sandbox/session/session-sandbox.js';
import { createCommandVariables } from '../../command/shell/per-command-variables.js';
import type { JudgedCall } from '../../machine/call.js';
import { plural } from '../../platform/base/plural.js';
import type { ProcessEnvironment } from '../../platform/base/process-environment-type.js';
import { levelOfCall } from '../../policy/call-sandbox-level.js';
import type { HookContext, HookReport } from '../../ports/after-tool-hooks.js';
import { settleAll } from '../run-program.js';
import { type ContentBefore, EarlierContent } from './content-before-calls.js';
import { BatchFormatter } from './format-file.js';
import { FormatterChoice, isForeign, isFormattable } from './formatter-choice.js';
import { type FileOutcome, reportOf } from './formatter-report.js';
import type { FormatterRuntime } from './run-formatter.js';

/**
 * The phase RunningAutoformatters: runs the repository's formatters on the files that the batch changed.
 *
 * 1. format-file.ts says what is formatted, and how. The model is told what has changed, so that its next edit matches.
 * 2. It fails open: a file that can't be formatted stays as the agent wrote it. A formatter that hangs or fails is not
 *    used again in this session, which is reported once.
 */

/** Time limit for one file, in ms. */
const RUN_MS = 20_000;
/** Maximum number of files. More changes come from a program, not from edits. */
const FILES_MAX = 100;
const AT_ONCE = 3;

export type FormatterNeeds = {
  /** Pawl's own environment. */
  readonly environment: ProcessEnvironment;
  /** The content of a file when the batch began, as far as the repository knows it. */
  committed(file: string, context: HookContext): Promise<ContentBefore>;
  readonly runMs?: number;
  /** The sandbox for formatters: read-only workspace, no network. */
  readonly sandbox: SessionSandbox;
};

export class Autoformatters {
  readonly #needs: FormatterNeeds;
  readonly #earlier = new EarlierContent();
  readonly #variablesOf: ReturnType<typeof createCommandVariables>;
  /** Paths of programs that are no longer used. */
  readonly #broken = new Set<string>();
  readonly #told = new Set<string>();

  constructor(needs: FormatterNeeds) {
    this.#needs = needs;
    this.#variablesOf = createCommandVariables(needs.environment);
  }

  /** Remembers the current content of files that a call names. */
  before(call: JudgedCall): Promise<void> {
    return this.#earlier.keep(call);
  }

  /** Counts the call to the next batch, since its own gets no report. */
  after(call: JudgedCall): void {
    this.#earlier.carryOver(call);
  }

  /** Forgets the content remembered for a batch. */
  forget(): void {
    this.#earlier.clear();
  }

  /** Runs the phase. Rejects only if `context.signal` is aborted. */
  async run(context: HookContext): Promise<HookReport> {
    const { workspace, reports, calls } = context;
    const last = reports.at(-1);
    const changed = last?.changedFiles ?? calls.flatMap(({ facts }) => facts.paths);
    const files = [...new Set(changed)].filter((file) => isFormattable(file) && !isForeign(file, workspace));
    if (files.length > FILES_MAX) {
      const why = `${plural(files.length, 'file')} changed at once: too many for the formatters, none was formatted`;
      return reportOf([], this.#news([why]), last?.dirty ?? false);
    }
    const choice = new FormatterChoice(workspace, this.#needs.environment);
    const work = new BatchFormatter(context, choice, await this.#world(context), this.#broken);
    const outcomes: FileOutcome[] = [];
    for (let at = 0; at < files.length; at += AT_ONCE) {
      const wave = files.slice(at, at + AT_ONCE);
      const formatted = wave.map((file) => work.format(file, () => this.#earlierOf(file, context)));
      outcomes.push(...(await settleAll(formatted)));
    }
    return reportOf(outcomes, this.#news(work.faults), last?.dirty ?? false);
  }

  /** The content before a call that names the file; for other files, the committed content. */
  async #earlierOf(file: string, context: HookContext): Promise<ContentBefore> {
    const named = this.#earlier.of(file, context.calls);
    return named.kind === 'unknown' ? this.#needs.committed(file, context) : named;
  }

  /** Texts that the user has not seen in this session. */
  #news(texts: readonly string[]): readonly string[] {
    return texts.filter((text) => {
      const isNew = !this.#told.has(text);
      this.#told.add(text);
      return isNew;
    });
  }

  async #world({ workspace, signal, settings }: HookContext): Promise<FormatterRuntime> {
    const variables = Object.entries({
      ...this.#variablesOf(workspace, '', 'formatter'),
      // forbid tools to download other versions of themselves
      RUSTUP_AUTO_INSTALL: '0',
      GOTOOLCHAIN: 'local',
    }).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]));
    return {
      environment: Object.fromEntries(variables),
      sandbox: await this.#needs.sandbox.of(workspace),
      level: levelOfCall(settings.sandbox, undefined) === 'off' ? 'off' : 'read-only',
      runMs: this.#needs.runMs ?? RUN_MS,
      signal,
    };
  }
}
