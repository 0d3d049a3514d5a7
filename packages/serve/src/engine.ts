/**
 * `pawl/engine`: the parts of a runtime on an engine, a service that keeps the journals of sessions
 * and calls programs for them (`restate/` is one). The machine (`agentMachine`, `step`) decides,
 * and performers (`createPerformers`, `perform`) do what it asks for. The program that uses these
 * parts stores the entries, and steps the machine once for each event.
 *
 * Above the empty line: the parts of a runtime, and their types. Below it: a node that serves
 * sessions, with its keys, its spending and the places of its blobs.
 */

export { forkHeader } from '@pawl/agent/journal/fork';
export { agentMachine } from '@pawl/agent/journal/journaled-agent-machine';
export { summarise, titleFrom } from '@pawl/agent/journal/list';
export { versionIn } from '@pawl/agent/journal/replay';
export { fileBlobs } from '@pawl/agent/journal/state-folder';
export type { Action } from '@pawl/agent/machine/action';
export { carrySession } from '@pawl/agent/machine/carried-session';
export type { CarriedSession, Event, MachineUpgrade, StoppedCall } from '@pawl/agent/machine/event';
export { step } from '@pawl/agent/machine/machine';
export type { Settings } from '@pawl/agent/machine/settings';
export { type State, turnRuns } from '@pawl/agent/machine/state';
export { attempt, attemptNow, reportThrough } from '@pawl/agent/platform/attempt';
export { systemClock } from '@pawl/agent/platform/clock';
export { EventParser, eventText } from '@pawl/agent/platform/http';
export type { JudgedCall } from '@pawl/agent/policy/judged-call';
export type { HookMoment } from '@pawl/agent/ports/hooks';
export type {
  Blobs,
  Entry,
  FrozenPrompt,
  Header,
  SessionInfo,
  StartedBy,
} from '@pawl/agent/ports/journal';
export type { Input, NewSession, Runtime, Stepped, Watcher } from '@pawl/agent/ports/session';
export type { Judgement, Tool } from '@pawl/agent/ports/tool';
export {
  agentOnEngine,
  type EngineAgent,
  type EngineAgentOptions,
} from '@pawl/agent/session/create-agent';
export {
  beginHeader,
  type Equipment,
  freezePrompt,
  gatherEquipment,
  newSessionId,
  type PerformedSession,
  type SessionDependencies,
} from '@pawl/agent/session/equipment';
export { SessionFollower } from '@pawl/agent/session/follow';
export { AsyncQueue, type OnApplied, type Posted } from '@pawl/agent/session/loop';
export { checkInput, checkSettings } from '@pawl/agent/session/outside-values';
export {
  createPerformers,
  createUserHookRuns,
  type Performers,
  perform,
  prepare,
} from '@pawl/agent/session/perform';
export { recoverCalls } from '@pawl/agent/session/recover-calls';
export { isUnattended } from '@pawl/agent/session/tool-run';
export type { SessionBegin, UserHookRuns } from '@pawl/agent/session/user-hooks';

export { isLoopback } from './http.js';
export { keyOfToken, readKeys, type ServeKey } from './keys.js';
export type { AppliedChange } from './metrics.js';
export { type NodeOptions, type ServingNode, startNode as serveSessions } from './node.js';
export {
  type BlobPlace,
  type EngineNodeOptions,
  isRecord,
  type LastingRuntime,
  lastingSessions,
  type NodeRuntime,
  type NodeSessionRecord,
  type NodeSessionWish,
  type RecordStore,
  readS3Place,
  type S3Place,
  type SessionToEquip,
  type SharedRuntime,
  sharedSessions,
} from './node-runtime.js';
export { type DayCharge, type DayCharged, spendAfter } from './spending.js';
