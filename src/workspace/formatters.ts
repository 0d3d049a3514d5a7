import type { JudgedCall } from '../agent/call.js';
import type { HookContext, HookReport } from '../needs-hooks.js';
import { createCommandEnvironment } from '../tools/environment.js';
import { type Earlier, EarlierContent } from './earlier-content.js';
import { Formatting } from './format-file.js';
import { FormatterChoice, isForeign, isFormattable } from './formatter-choice.js';
import { type FileOutcome, reportOf } from './formatter-report.js';
import type { FormatterWorld } from './formatter-run.js';
import type { Environment } from './git-config.js';
import { settleAll } from './program.js';
import { plural } from './words.js';

/**
 * RunningAutoformatters: the formatters that a repository uses, on the files that the batch changed.
 *
 * 1. What is formatted, and how, is said in format-file.ts. The model is told what has changed, so that its next edit
 *    fits.
 * 2. It fails open: a file that can't be formatted stays as the agent wrote it. A formatter that hangs or breaks is not
 *    asked again in this session, and that is told once.
 */

/** One run of a formatter over one file. */
const RUN_MS = 20_000;
/** More are not an edit any more but a rewrite by some program. */
const FILES_MAX = 100;
const AT_ONCE = 3;

export type FormatterNeeds = {
  /** The program's own. */
  readonly environment: Environment;
  /** What a file held when the batch began, as far as the repository can tell. */
  committed(file: string, context: HookContext): Promise<Earlier>;
  readonly runMs?: number;
};

export class Autoformatters {
  readonly #needs: FormatterNeeds;
  readonly #earlier = new EarlierContent();
  readonly #environmentOf: ReturnType<typeof createCommandEnvironment>;
  /** By the path of the program. */
  readonly #broken = new Set<string>();
  readonly #told = new Set<string>();

  constructor(needs: FormatterNeeds) {
    this.#needs = needs;
    this.#environmentOf = createCommandEnvironment(needs.environment);
  }

  /** Remembers the files that a call names, as they are. */
  before(call: JudgedCall): Promise<void> {
    return this.#earlier.keep(call);
  }

  /** Forgets what was remembered of a batch. */
  forget(): void {
    this.#earlier.clear();
  }

  /** The phase. Rejects only when `context.signal` is aborted. */
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
    const work = new Formatting(context, choice, this.#world(context), this.#broken);
    const outcomes: FileOutcome[] = [];
    for (let at = 0; at < files.length; at += AT_ONCE) {
      const wave = files.slice(at, at + AT_ONCE);
      const formatted = wave.map((file) => work.format(file, () => this.#earlierOf(file, context)));
      outcomes.push(...(await settleAll(formatted)));
    }
    return reportOf(outcomes, this.#news(work.faults), last?.dirty ?? false);
  }

  /** As a call that names the file found it; of other files, what the repository knows. */
  async #earlierOf(file: string, context: HookContext): Promise<Earlier> {
    const named = this.#earlier.of(file, context.calls);
    return named.kind === 'unknown' ? this.#needs.committed(file, context) : named;
  }

  /** What the user has not been told in this session. */
  #news(texts: readonly string[]): readonly string[] {
    return texts.filter((text) => {
      const isNew = !this.#told.has(text);
      this.#told.add(text);
      return isNew;
    });
  }

  #world({ workspace, signal }: HookContext): FormatterWorld {
    const variables = Object.entries({
      ...this.#environmentOf(workspace, '', 'formatter'),
      // tools that fetch another version of themselves are told not to
      RUSTUP_AUTO_INSTALL: '0',
      GOTOOLCHAIN: 'local',
    }).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]));
    return {
      environment: Object.fromEntries(variables),
      runMs: this.#needs.runMs ?? RUN_MS,
      signal,
    };
  }
}
