import type { Settings } from '@pawl/agent/machine/settings';
import type { StartedBy } from '@pawl/agent/ports/journal';
import type { SessionDependencies } from '@pawl/agent/session/dependency-types';
import type { BlobPlace } from './blob-place.js';

/** What `pawl serve --engine` starts a node with; a package with an engine takes it. */

export type SessionToEquip = {
  readonly settings: Settings;
  readonly sessionId: string;
  readonly startedBy?: StartedBy;
  readonly isNew: boolean;
  /** Whether the session's workspace is on this node; if not, only models are called here. */
  readonly isHere: boolean;
};

export type EngineNodeOptions = {
  /** The name of the node; it stays the same for ever. */
  readonly name: string;
  /** Where the engine takes calls, and where it takes orders. */
  readonly ingressUrl: string;
  readonly adminUrl: string;
  /** A name or an address by which the engine and the other nodes reach this computer. */
  readonly address: string;
  /**
   * The first of three ports: of what any node can do, of what only this one can do, of the live channel. They stay the
   * same, since the engine goes on there with what it has begun.
   */
  readonly firstPort: number;
  /** Reaches the first port of all nodes; null: this is the only node. */
  readonly sharedUrl: string | null;
  /** The live channels of the other nodes. */
  readonly peers: readonly string[];
  /** The secret of all live channels; null: this is the only node. */
  readonly liveToken: string | null;
  readonly identityKeys: readonly string[];
  /** The same for all nodes. */
  readonly blobs: BlobPlace;
  equip(session: SessionToEquip): Promise<SessionDependencies>;
  report(fault: Error): void;
};
