/** Cells: pieces of code that the model wrote, each run once in the run's environment. */

export type CellVariable = { readonly name: string; readonly type: string; readonly size: number | null };

/** What a cell came to. Output is cut to `outputMax` characters, head and tail kept, the count of what is missing said. */
export type CellReport = {
  /**
   * `raised`: the code failed; `stopped`: interrupted at its deadline or by its signal, variables kept; `died`: its
   * process ended or had to be killed, and a fresh one stands ready.
   */
  readonly status: 'ok' | 'raised' | 'stopped' | 'died';
  readonly stdout: string;
  /** Type, message and line of a failure among it. */
  readonly stderr: string;
  /** What the model's code has bound so far, without the reserved names. */
  readonly variables: readonly CellVariable[];
  /** Content of the answer record, as text, if it was made ready; null otherwise. */
  readonly answer: string | null;
  /** Whether what earlier cells bound is gone. */
  readonly variablesLost: 'no' | 'yes';
};

/** `llm`: one plain call per prompt. `rlm`: a child run per prompt. */
export type SubcallKind = 'llm' | 'rlm';

/** A sub-call whose answer is known. `prompts` is a digest of the prompts, by which a difference is noticed. */
export type AnsweredSubcall = {
  readonly ordinal: number;
  readonly kind: SubcallKind;
  readonly prompts: string;
  readonly texts: readonly string[];
};

/** A sub-call that children work on. */
export type OpenSubcall = Omit<AnsweredSubcall, 'texts'> & {
  /** How many texts are asked for. */
  readonly slots: number;
  /** Whether the cell has asked since it was started last: else nobody is there to be answered. */
  readonly awaited: 'yes' | 'no';
};

/** A finished cell as it must be known to run it again: what it ran, what it was told, what it came to. */
export type PastCell = {
  readonly cellId: string;
  readonly code: string;
  readonly status: CellReport['status'];
  /** A digest of what it printed. */
  readonly printed: string;
  readonly subcalls: readonly AnsweredSubcall[];
};
