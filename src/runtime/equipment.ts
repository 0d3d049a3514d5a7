import type { Clock, FileMemory, Jobs, Model, StoppingPolicy, Tool, ToolDeclaration } from '../needs.js';
import type { Hooks } from '../needs-hooks.js';

/** What one session works with, besides its journal. */
export type SessionNeeds = {
  /** The model of that name; throws if there is none, which the wall reports as a failed request. */
  model(modelId: string): Model;
  readonly tools: readonly Tool[];
  readonly files: FileMemory;
  readonly jobs: Jobs;
  /** What a model is told, at the end of a conversation that it is to summarise; `kept` is what the user wants kept. */
  compactionInstructions(kept: string | null): string;
  /** null: none is connected, and a phase that is wanted fails. */
  readonly hooks: Hooks | null;
};

/** The same, as the performers use it. */
export type Equipment = Omit<SessionNeeds, 'tools'> & {
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
