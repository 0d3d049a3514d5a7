import type { NodeRuntime } from '../../serve/adapt-runtime-to-node.js';

/** The sessions of a node, and what belongs to them. */
export type NodeSessions = {
  readonly runtime: NodeRuntime;
  /** Holds the records of whose the sessions are. */
  readonly recordsFolder: string;
  /** Called when the node has drained. */
  stop(): Promise<void>;
};
