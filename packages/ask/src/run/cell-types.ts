/** Cells: programs that the model wrote, each executed once in the run's environment. */

export type CellVariable = {
  readonly name: string;
  readonly type: string;
  readonly size: number | null;
};

/**
 * Result of a cell. Output over `outputMax` characters keeps head and tail, with the number of
 * missing characters.
 */
export type CellReport = {
  /**
   * `raised`: the code threw. `stopped`: interrupted by its deadline or its signal; variables
   * remain. `died`: its process ended or was killed, and was replaced by a new one.
   */
  readonly status: 'ok' | 'raised' | 'stopped' | 'died';
  readonly stdout: string;
  /** Includes type, message and line of a failure. */
  readonly stderr: string;
  /** The variables of the model's code so far, without the reserved names. */
  readonly variables: readonly CellVariable[];
  /** Content of the answer record as text, if the code set it ready; null otherwise. */
  readonly answer: string | null;
  /** `yes`: the variables of earlier cells are lost. */
  readonly variablesLost: 'no' | 'yes';
};

/** `llm`: one plain call per prompt. `rlm`: a child run per prompt. */
export type SubcallKind = 'llm' | 'rlm';

/**
 * An answered sub-call. `prompts` is a digest of the prompts, to detect a different call on replay.
 */
export type AnsweredSubcall = {
  readonly ordinal: number;
  readonly kind: SubcallKind;
  readonly prompts: string;
  readonly texts: readonly string[];
};

/** A sub-call that children work on. */
export type OpenSubcall = Omit<AnsweredSubcall, 'texts'> & {
  /** Number of prompts. */
  readonly slots: number;
  /** `no`: the restarted cell has not repeated this call yet, so the answer is only recorded. */
  readonly awaited: 'yes' | 'no';
};

/**
 * The record of a finished cell that a rerun needs: its code, its answered sub-calls and its
 * result.
 */
export type PastCell = {
  readonly cellId: string;
  readonly code: string;
  readonly status: CellReport['status'];
  /** A digest of its output. */
  readonly printed: string;
  readonly subcalls: readonly AnsweredSubcall[];
};
