/**
 * What runs need from outside: environments for the model's programs (cells). And the types of
 * their journal. Types only.
 */

import type { TreeAction } from './run/action.js';
import type { CellReport } from './run/cell-types.js';
import type { TreeEvent } from './run/event.js';
import type { CodeSettings, Language } from './run/settings.js';
import type { Tree } from './tree/tree-state.js';

export type EnvironmentName = 'quickjs' | 'python';

/** A name in a setting, a flag or a journal. `javascript` is a former name of `quickjs`. */
export type WrittenEnvironment = EnvironmentName | 'javascript';

/** A cell's call to models; `prompts` has one prompt per slot. */
export type Subcall = {
  /** `llm`: one plain call per prompt. `rlm`: a child run per prompt. */
  readonly kind: 'llm' | 'rlm';
  /** Number of the call within its cell, from 1. */
  readonly ordinal: number;
  readonly prompts: readonly string[];
  /** The model that the code names; missing for the default sub-model. */
  readonly model?: string;
};

/**
 * Answers a sub-call with one text per prompt, in prompt order; a failed slot holds a text that
 * begins `Error: `.
 */
export type SubcallAnswerer = (subcall: Subcall) => Promise<readonly string[]>;

export type Cell = {
  readonly cellId: string;
  readonly code: string;
  /** Time limit for the cell's work; waiting for sub-calls does not count. */
  readonly deadlineMs: number;
  readonly signal: AbortSignal;
};

/** A process or worker with variables that persist from cell to cell. Runs one cell at a time. */
export type Environment = {
  /**
   * A failure of the code is part of the report. Rejects only if the environment itself is broken.
   */
  run(cell: Cell, answer: SubcallAnswerer): Promise<CellReport>;
  /**
   * The value of a variable as text (a string without quotes), for an answer that names a variable
   * (FINAL_VAR); null if there is no such variable.
   */
  read(name: string): Promise<string | null>;
  /** Ends the environment and its process. Never rejects. */
  close(): Promise<void>;
};

export type EnvironmentOptions = {
  /**
   * Real paths of the inputs, UTF-8 text files. `context` is the text of a single input, or a list
   * of texts.
   */
  readonly contexts: readonly string[];
  /** Unique names of the inputs, in the same order. The variable `names` maps each to its text. */
  readonly names: readonly string[];
  /** Maximum characters of output in a report. */
  readonly outputMax: number;
  /** Bytes that the code may allocate, in addition to the contexts. */
  readonly memoryMax: number;
};

export type EnvironmentKind = {
  readonly name: EnvironmentName;
  readonly language: Language;
  /** Null if the environment works on this machine; otherwise the reason and a remedy. */
  probe(): Promise<string | null>;
  start(options: EnvironmentOptions): Promise<Environment>;
};

// ---- Journal ----

/**
 * An input as it was when the run began. Files are not copied, so a resume requires them unchanged.
 */
export type InputFile = {
  /** Real absolute path; null for a text from memory, which is a blob of the journal. */
  readonly path: string | null;
  readonly bytes: number;
  readonly sha256: string;
};

/** Settings of a run, fixed when it begins. */
export type AskSettings = CodeSettings & {
  /** In the order of `inputs`. */
  readonly files: readonly InputFile[];
  readonly environment: WrittenEnvironment;
  /** Bytes that the code may allocate, in addition to the inputs. */
  readonly memoryMax: number;
  /** System instructions for a plain sub-call: one prompt, no environment. */
  readonly subcallInstructions: string;
  /** The tool call that asks. Absent: a person or a program asks, or the journal is older. */
  readonly caller?: string;
  /** Timeouts for the first byte of a reply and between two pieces; 0 means no timeout. */
  readonly firstByteMs: number;
  readonly silenceMs: number;
};

/** The types of the machine that steps a tree of runs. */
export type AskTypes = {
  readonly kind: 'ask';
  readonly event: TreeEvent;
  readonly state: Tree;
  readonly action: TreeAction;
  readonly settings: AskSettings;
};
