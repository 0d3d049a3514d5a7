import type { Redactor } from '../platform/secrets/redactor.js';
import type { Hooks } from '../ports/after-tool-hooks.js';
import type { Clock } from '../ports/clock.js';
import type { Model, ToolDeclaration } from '../ports/model.js';
import type { StoppingPolicy } from '../ports/session-input-output.js';
import type { FileMemory, Jobs, SentCalls, Tool } from '../ports/tool.js';
import type { UserHooks } from '../ports/user-hooks.js';

/** The dependencies of one session, besides its journal. */
export type SessionDependencies = {
  /** The model with this id. Throws if there is none; the request then fails. */
  model(modelId: string): Model;
  readonly tools: readonly Tool[];
  readonly files: FileMemory;
  readonly jobs: Jobs;
  /** The request for a summary, at the end of the conversation. `kept`: the user's wish about its content. */
  compactionInstructions(kept: string | null): string;
  /** null: no hooks are connected, and a requested phase fails. */
  readonly hooks: Hooks | null;
  /** The user's hooks. Absent or null: there are none. */
  readonly userHooks?: UserHooks | null;
  /** Asked before every model call, unless the session was opened with a policy of its own. Absent: there is none. */
  readonly stoppingPolicy?: StoppingPolicy | null;
  /** Whether tools work only where they are connected, so that models are called there too. Absent: no. */
  readonly isBound?: boolean;
  /** Replaces secrets in what tools return. Absent: nothing is secret. */
  readonly redactor?: Redactor;
  /**
   * Takes over what earlier processes of the session have left running. `waited`: the interrupted calls that are being
   * recovered, each as batch and call.
   */
  takeOver?(waited: readonly string[]): Promise<void>;
  /** Which calls have left this process. Absent: after a crash that is unknown. */
  readonly sentCalls?: SentCalls;
  /** Releases the session's own resources after all its work has stopped. `isFailed`: the journal may lack results. */
  close?(isFailed: boolean): Promise<void>;
};

/** The dependencies in the form that the performers use. */
export type Equipment = Omit<SessionDependencies, 'tools' | 'redactor'> & {
  readonly redactor: Redactor;
  /** By name. */
  readonly tools: ReadonlyMap<string, Tool>;
  /** Fixed at the start of the session, like the declarations. */
  readonly instructions: string;
  readonly declarations: readonly ToolDeclaration[];
  readonly clock: Clock;
  /** null: no policy is connected. */
  readonly stoppingPolicy: StoppingPolicy | null;
  /** A number from 0 to 1, for jitter. */
  random(): number;
};
