import type { Clock, FileMemory, Jobs, Model, Tool, ToolDeclaration } from '../needs.js';

/** What one session works with, besides its journal. */
export type SessionNeeds = {
  /** The model of that name; throws if there is none, which the wall reports as a failed request. */
  model(modelId: string): Model;
  readonly tools: readonly Tool[];
  readonly files: FileMemory;
  readonly jobs: Jobs;
  /** What a model is told, at the end of a conversation that it is to summarise. */
  readonly compactionInstructions: string;
};

/** The same, as the performers use it. */
export type Equipment = Omit<SessionNeeds, 'tools'> & {
  /** By name. */
  readonly tools: ReadonlyMap<string, Tool>;
  /** Frozen at session start, as are the declarations. */
  readonly instructions: string;
  readonly declarations: readonly ToolDeclaration[];
  readonly clock: Clock;
  /** A number from 0 to 1, for jitter. */
  random(): number;
};
