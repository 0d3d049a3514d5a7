import type { Clock } from '../ports/clock.js';
import type { Hooks } from '../ports/hooks.js';
import type { Model, ToolDeclaration } from '../ports/model.js';
import type { StoppingPolicy } from '../ports/session.js';
import type { FileMemory, Jobs, Tool } from '../ports/tool.js';
import type { Redactor } from '../secrets/redactor.js';

/** The dependencies of one session, besides its journal. */
export type SessionDependencies = {
  /** The model with this id; throws if there is none, which is reported as a failed request. */
  model(modelId: string): Model;
  readonly tools: readonly Tool[];
  readonly files: FileMemory;
  readonly jobs: Jobs;
  /** What a model is told, at the end of a conversation that it is to summarise; `kept` is what the user wants kept. */
  compactionInstructions(kept: string | null): string;
  /** null: none is connected, and a phase that is wanted fails. */
  readonly hooks: Hooks | null;
  /** Replaces values of secrets in what tools return; absent: nothing is secret. */
  readonly redactor?: Redactor;
  /** Releases the session's own resources after all its work has stopped. */
  close?(): Promise<void>;
};

/** The same, as the performers use it. */
export type Equipment = Omit<SessionDependencies, 'tools' | 'redactor'> & {
  readonly redactor: Redactor;
  /** By name. */
  readonly tools: ReadonlyMap<string, Tool>;
  /** Frozen at session start, as are the declarations. */
  readonly instructions: string;
  readonly declarations: readonly ToolDeclaration[];
  readonly clock: Clock;
  /** null: none is connected. */
  readonly stoppingPolicy: StoppingPolicy | null;
  /** A number from 0 to 1, for jitter. */
  random(): number;
};
