import type { TreeAction } from './recursive/action.js';
import type { CellReport } from './recursive/cell.js';
import type { TreeEvent } from './recursive/event.js';
import type { CodeSettings } from './recursive/settings.js';
import type { Tree } from './recursive/tree-state.js';

/** What a recursive run asks of the world: where code that a model wrote runs, and how it is journaled. Types only. */

export type EnvironmentName = 'javascript' | 'quickjs' | 'python';

/** A call into the world that a cell makes; `prompts` has one prompt per slot. */
export type Subcall = {
  /** `llm`: one plain call per prompt. `rlm`: a child run per prompt. */
  readonly kind: 'llm' | 'rlm';
  /** From 1 in each cell, in the order in which the cell makes them. */
  readonly ordinal: number;
  readonly prompts: readonly string[];
};

/** Answers a sub-call with one text per prompt, in prompt order; a failed slot holds a text that begins `Error: `. */
export type SubcallAnswerer = (subcall: Subcall) => Promise<readonly string[]>;

export type Cell = {
  readonly cellId: string;
  readonly code: string;
  /** Time for the cell's own work; time in which it waits for sub-calls does not count. */
  readonly deadlineMs: number;
  readonly signal: AbortSignal;
};

/** One namespace that persists over cells, in a process or worker of its own. One cell at a time. */
export type Environment = {
  /** Never rejects for what the code did; rejects if the environment itself is broken. */
  run(cell: Cell, answer: SubcallAnswerer): Promise<CellReport>;
  /** A variable as text (not quoted if it is a string), for FINAL_VAR; null if there is none. */
  read(name: string): Promise<string | null>;
  /** Ends it; leaves no process. Never rejects. */
  close(): Promise<void>;
};

export type EnvironmentOptions = {
  /** Real paths of the inputs; text, UTF-8. One: `context` is its text. Several: `context` is a list of texts. */
  readonly contexts: readonly string[];
  /** Characters of output that a report keeps. */
  readonly outputMax: number;
  /** Bytes that the code may allocate, the contexts not counted. */
  readonly memoryMax: number;
};

export type EnvironmentKind = {
  readonly name: EnvironmentName;
  readonly language: 'javascript' | 'python';
  /** Null if it works here; otherwise why not, and what to do. */
  probe(): Promise<string | null>;
  start(options: EnvironmentOptions): Promise<Environment>;
};

// ---- Journal ----

/** An input as it was when the run began: its text is never copied, and must still be the same when the run goes on. */
export type InputFile = {
  /** Real absolute path. */
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
};

/** What a run is set to, frozen when it begins. */
export type AskSettings = CodeSettings & {
  /** In the order of `inputs`. */
  readonly files: readonly InputFile[];
  readonly environment: EnvironmentName;
  /** Bytes that the code may allocate, the inputs not counted. */
  readonly memoryMax: number;
  /** What a model is told that gets one prompt and no environment. */
  readonly subcallInstructions: string;
  /** How long a model may keep silent, before its first word and after; 0 is for ever. */
  readonly firstByteMs: number;
  readonly silenceMs: number;
};

/** The machine of a tree of runs. */
export type AskTypes = {
  readonly kind: 'ask';
  readonly event: TreeEvent;
  readonly state: Tree;
  readonly action: TreeAction;
  readonly settings: AskSettings;
};
