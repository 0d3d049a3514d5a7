/**
 * `pawl/engine`: the parts of a runtime that keeps its sessions elsewhere. The machine decides, performers do what it asks
 * for, and whoever uses them keeps the entries and calls the machine once for each event.
 */
export type { Action } from './agent/action.js';
export type { JudgedCall } from './agent/call.js';
export { carrySession, stateFrom } from './agent/carried-session.js';
export type { CarriedSession, Event, MachineUpgrade, StoppedCall } from './agent/event.js';
export { step } from './agent/machine.js';
export type { Settings } from './agent/settings.js';
export type { State } from './agent/state.js';
export { turnRuns } from './agent/values/turn-running.js';
export { agentOnEngine, type EngineAgent, type EngineAgentOptions } from './api/agent-for-engine-sessions.js';
export { fileBlobs } from './journal/blobs.js';
export { versionIn } from './journal/journaled-machine.js';
export { agentMachine } from './journal/read/journaled-agent-machine.js';
export { summarise, titleFrom } from './journal/read/list-sessions.js';
export { forkHeader } from './journal/write/copy-entries-to-fork.js';
export type { Blobs, Entry, FrozenPrompt, Header, SessionInfo, StartedBy } from './ports/journal.js';
export type { Input, Stepped, Watcher } from './ports/session-input-output.js';
export type { NewSession, Runtime } from './ports/session-runtime.js';
export type { Judgement, Tool } from './ports/tool.js';
export type { HookMoment } from './ports/user-hooks.js';
export { AsyncQueue } from './runtime/async-queue.js';
export { attempt, attemptNow } from './runtime/attempt.js';
export { checkInput, checkSettings } from './runtime/check-outside-values.js';
export { systemClock } from './runtime/clock.js';
export { createPerformers, createUserHookRuns, type PerformedSession } from './runtime/create-performers.js';
export type { Equipment, SessionDependencies } from './runtime/dependency-types.js';
export { newSessionId } from './runtime/new-session-id.js';
export { type Performers, perform, prepare } from './runtime/perform.js';
export type { Posted, Told } from './runtime/posted-event-types.js';
export { beginHeader, freezePrompt, gatherEquipment } from './runtime/session-header-and-equipment.js';
export { recoverCalls } from './runtime/tools/recover-calls.js';
export type { SessionBegin, UserHookRuns } from './runtime/user-hooks/user-hook-runs.js';
export {
  type LastingRuntime,
  lastingSessions,
  type NodeRuntime,
  type NodeSessionWish,
  type SharedRuntime,
  sharedSessions,
} from './serve/adapt-runtime-to-node.js';
export type { BlobPlace, S3Place } from './serve/blob-place.js';
export type { EngineNodeOptions, SessionToEquip } from './serve/engine-node-options-types.js';
export { keyOfToken, readKeys, type ServeKey } from './serve/http/keys.js';
export { type NodeOptions, type ServingNode, startNode as serveSessions } from './serve/start-node.js';
