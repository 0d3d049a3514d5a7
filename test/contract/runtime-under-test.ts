import type { Hooks, UserHooks } from '../../packages/agent/src/ports/hooks.js';
import type { Model } from '../../packages/agent/src/ports/model.js';
import type { Runtime, StoppingPolicy } from '../../packages/agent/src/ports/session.js';
import type { Tool } from '../../packages/agent/src/ports/tool.js';

/** What the contract needs of a runtime. Each runtime of the project has a file that makes one. */

/** The world of the sessions: every runtime performs their actions with exactly these. */
export type ContractWorld = {
  readonly model: Model;
  readonly tools: readonly Tool[];
  readonly hooks: Hooks | null;
  /** Absent: there are none. */
  readonly userHooks?: UserHooks | null;
  readonly stoppingPolicy?: StoppingPolicy | null;
};

export type RuntimeUnderTest = {
  readonly runtime: Runtime;
  /** Ends everything that was started for the runtime. */
  stop(): Promise<void>;
};

export type MakeRuntime = (world: ContractWorld) => Promise<RuntimeUnderTest>;
