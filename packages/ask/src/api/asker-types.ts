import type { Effort } from '@pawl/agent/machine/settings';
import type { Clock } from '@pawl/agent/ports/clock';
import type { JournalStore, OpenJournal } from '@pawl/agent/ports/journal';
import type { Model } from '@pawl/agent/ports/model';
import type { Watcher } from '@pawl/agent/ports/session-input-output';
import type {
  AskSettings,
  AskTypes,
  EnvironmentKind,
  EnvironmentName,
} from '../environment-and-journal-types.js';
import type { ChangedLimits } from '../run/event.js';
import type { RunLimits } from '../run/settings.js';
import type { Outcome } from '../run/state.js';
import type { StopPolicy } from '../runtime/ask-equipment.js';
import type { InputSource } from '../runtime/measure-inputs.js';
import type { Pieces } from '../tree/count-answered-pieces.js';
import type { Tree } from '../tree/tree-state.js';

/** The types of code mode as a library. */

export type EnvironmentKinds = Readonly<Record<EnvironmentName, EnvironmentKind>>;

export type AskerOptions = {
  readonly model: Model;
  /** The model for sub-calls. Default: `model`. */
  readonly subModel?: Model;
  /** Further models that programs may name: `llm_query(prompt, model)`. */
  readonly models?: readonly Model[];
  readonly journals: JournalStore<AskTypes>;
  /** The environments for programs. Default: the ones that come with Pawl. */
  readonly environments?: EnvironmentKinds;
  readonly clock?: Clock;
  /** How much the models should think. Default: `auto`, which leaves it to them. */
  readonly effort?: Effort;
  /**
   * Secrets in addition to those in the environment. Each key is the name that models see in place of its value.
   */
  readonly secrets?: Readonly<Record<string, string>>;
  /** Called before every model call, in addition to the limits. */
  readonly policy?: StopPolicy;
  /** Called with faults that do not stop a run. Default: emits a process warning. */
  readonly report?: (fault: Error) => void;
};

/** Settings of a run. A missing field has its default. */
export type AskSettingsPatch = Partial<
  Omit<
    AskSettings,
    | 'model'
    | 'subModel'
    | 'models'
    | 'question'
    | 'inputs'
    | 'files'
    | 'environment'
    | 'limits'
    | 'childLimits'
  >
> & { readonly limits?: Partial<RunLimits>; readonly childLimits?: Partial<RunLimits> };

export type AskOptions = {
  readonly question: string;
  /** UTF-8 files (unchanged until the run ends), or texts and JSON (kept in the journal). At most 100 MB in all. */
  readonly contexts: readonly InputSource[];
  /** The folder that the run is listed under. */
  readonly workspace: string;
  /** Default: `javascript` where it works, else `quickjs`. */
  readonly environment?: EnvironmentName;
  readonly settings?: AskSettingsPatch;
  /** Called with every step, from the first. */
  readonly watcher?: Watcher<AskTypes>;
};

/** The outcome of a run, with counts of the prompts that its programs sent to models. */
export type AskOutcome = Outcome & { readonly pieces: Pieces };

export type AskRun = {
  readonly id: string;
  readonly settings: AskSettings;
  /** Why the run does not use the best environment; null if it does. */
  readonly note: string | null;
  /** The incomplete end that was cut off the journal of a resumed run. */
  readonly tornTail: OpenJournal['tornTail'];
  /** Rejects with the error that stopped the run before its end, e.g. a full disk. */
  readonly outcome: Promise<AskOutcome>;
  state(): Tree;
  /** Calls the watcher with every step from now on. The returned function removes it. */
  watch(watcher: Watcher<AskTypes>): () => void;
  /** Ends the run; `outcome` then has the status `cancelled`. */
  cancel(): Promise<void>;
  /** Stops the run so that it can be resumed. The journal's lock is free when the promise resolves. */
  close(): Promise<void>;
};

export type Asker = {
  ask(options: AskOptions): Promise<AskRun>;
  /**
   * Continues an interrupted run; answered model calls are not repeated. A finished run is only opened for reading,
   * unless `limits` is given and a limit ended the run or refused some of its sub-calls.
   */
  resume(sessionId: string, options?: Watcher<AskTypes> | ResumeOptions): Promise<AskRun>;
};

export type ResumeOptions = {
  /** Called with every step from the resume on. */
  readonly watcher?: Watcher<AskTypes>;
  /** New limits; a missing one stays as it was. 0 means no limit; `timeMs` counts from now. */
  readonly limits?: ChangedLimits;
  /** Resume the run even if another process may have it open. That process stops before it writes again. */
  readonly takeOver?: boolean;
};
