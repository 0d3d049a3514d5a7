/** The pure core: the machine alone, without anything of Node. It runs in a browser, too. */
export type { Action, ActionType } from './agent/action.js';
export type { Call, CallOutcome, CallStatus, JudgedCall } from './agent/call.js';
export { type Conversation, messagesOf } from './agent/conversation.js';
export type { Event, EventType } from './agent/event.js';
export { agent, initialState, step } from './agent/machine.js';
export type { Message } from './agent/message.js';
export { defaultSettings, type Preset, presetRules, type Settings } from './agent/settings.js';
export type { RestingState, Session, State, StateName, WaitReason } from './agent/state.js';
export { mutableStateMachine, stateMachine } from './kernel/build.js';
export type {
  AlwaysOptions,
  BuiltMachine,
  From,
  MutableStateMachine,
  StateMachine,
  StateOptions,
  Stepped,
  TransitionOptions,
} from './kernel/builder.js';
export { edgesJson, markdownTable, mermaid } from './kernel/describe.js';
export {
  type AsyncSource,
  type HistoryEntry,
  type Listener,
  type Ran,
  type RunningMachine,
  type RunOptions,
  run,
  runAsync,
  type Source,
  type StartOptions,
  startMachine,
} from './kernel/drive.js';
export {
  BadRegistration,
  BadSetting,
  CallbackFailed,
  type CallbackKind,
  EndlessTransitions,
  IllegalTransition,
  MachineBusy,
  MachineFrozen,
  UnmatchedEvents,
} from './kernel/faults.js';
export type { BuildReport, Pair, Shadowed } from './kernel/report.js';
export type { Diagnostic, Edge } from './kernel/step.js';
