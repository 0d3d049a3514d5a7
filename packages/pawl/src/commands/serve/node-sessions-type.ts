import type { NodeRuntime } from '@pawl/serve/adapt-runtime-to-node';

/** The sessions of a node, and what belongs to them. */
export type NodeSessions = {
  readonly runtime: NodeRuntime;
  /** Holds the records of whose the sessions are. */
  readonly recordsFolder: string;
  /** Called when the node has drained. */
  stop(): Promise<void>;
};
