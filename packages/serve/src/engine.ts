/**
 * `pawl/engine`: the parts of a runtime that keeps its sessions elsewhere. The machine decides, performers do what it asks
 * for, and whoever uses them keeps the entries and calls the machine once for each event.
 */

export {
  agentOnEngine,
  type EngineAgent,
  type EngineAgentOptions,
} from '@pawl/agent/api/agent-for-engine-sessions';
export { fileBlobs } from '@pawl/agent/journal/blobs';
export { versionIn } from '@pawl/agent/journal/journaled-machine';
export { agentMachine } from '@pawl/agent/journal/read/journaled-agent-machine';
export { summarise, titleFrom } from '@pawl/agent/journal/read/list-sessions';
export { forkHeader } from '@pawl/agent/journal/write/copy-entries-to-fork';
export type { Action } from '@pawl/agent/machine/action';
export type { JudgedCall } from '@pawl/agent/machine/call';
export { carrySession, stateFrom } from '@pawl/agent/machine/carried-session';
export type { CarriedSession, Event, MachineUpgrade, StoppedCall } from '@pawl/agent/machine/event';
export { step } from '@pawl/agent/machine/machine';
export type { Settings } from '@pawl/agent/machine/settings';
export type { State } from '@pawl/agent/machine/state';
export { turnRuns } from '@pawl/agent/machine/values/turn-running';
export type { Blobs, Entry, FrozenPrompt, Header, SessionInfo, StartedBy } from '@pawl/agent/ports/journal';
export type { Input, Stepped, Watcher } from '@pawl/agent/ports/session-input-output';
export type { NewSession, Runtime } from '@pawl/agent/ports/session-runtime';
export type { Judgement, Tool } from '@pawl/agent/ports/tool';
export type { HookMoment } from '@pawl/agent/ports/user-hooks';
export { AsyncQueue } from '@pawl/agent/session/async-queue';
export { attempt, attemptNow } from '@pawl/agent/session/attempt';
export { checkInput, checkSettings } from '@pawl/agent/session/check-outside-values';
export { systemClock } from '@pawl/agent/session/clock';
export {
  createPerformers,
  createUserHookRuns,
  type PerformedSession,
} from '@pawl/agent/session/create-performers';
export type { Equipment, SessionDependencies } from '@pawl/agent/session/dependency-types';
export { newSessionId } from '@pawl/agent/session/new-session-id';
export { type Performers, perform, prepare } from '@pawl/agent/session/perform';
export type { Posted, Told } from '@pawl/agent/session/posted-event-types';
export { beginHeader, freezePrompt, gatherEquipment } from '@pawl/agent/session/session-header-and-equipment';
export { recoverCalls } from '@pawl/agent/session/tools/recover-calls';
export type { SessionBegin, UserHookRuns } from '@pawl/agent/session/user-hooks/user-hook-runs';
export {
  type LastingRuntime,
  lastingSessions,
  type NodeRuntime,
  type NodeSessionWish,
  type SharedRuntime,
  sharedSessions,
} from './adapt-runtime-to-node.js';
export type { BlobPlace, S3Place } from './blob-place.js';
export type { EngineNodeOptions, SessionToEquip } from './engine-node-options-types.js';
export { keyOfToken, readKeys, type ServeKey } from './http/keys.js';
export { type NodeOptions, type ServingNode, startNode as serveSessions } from './start-node.js';
