/** The pure core: the machine alone, without anything of Node. It runs in a browser, too. */
export type {
  Action,
  ActionType,
  HookPhase,
  NoticeKind,
  RequestPurpose,
  WarningKind,
} from './agent/action.js';
export { type Answers, answersTo } from './agent/answers.js';
export type {
  Call,
  CallEffect,
  CallFacts,
  CallOutcome,
  CallPreview,
  CallStatus,
  CallTraits,
  CallVerdict,
  JudgedCall,
  McpToolName,
  Needs,
  ParsedCommand,
  RanStatus,
  SeenFile,
  ShellFacts,
} from './agent/call.js';
export { type Conversation, messagesOf } from './agent/conversation.js';
export { type DecodedState, decodeState, type EncodedState, encodeState } from './agent/encode-state.js';
export type {
  ApprovalAnswer,
  ApprovalScope,
  Event,
  EventType,
  HookEffect,
  HookEvent,
  InputMode,
  LlmEvent,
  ModelError,
  ModelErrorKind,
  On,
  OtherEvent,
  QueuedInput,
  StoppedCall,
  StopReason,
  ToolEvent,
  UserEvent,
} from './agent/event.js';
export { agent, initialState, step } from './agent/machine.js';
export { type CallDraft, modelReply, type ReplyDraft, toolCall, userInput } from './agent/make-events.js';
export type {
  AssistantMessage,
  AssistantPart,
  Image,
  Json,
  JsonObject,
  Message,
  ResultPart,
  UserMessage,
  UserText,
} from './agent/message.js';
export { type Preset, presetRules } from './agent/policy/preset-rules.js';
export {
  type Dimension,
  defaultSettings,
  type Effort,
  type Grant,
  type Limits,
  type RetrySchedule,
  type SandboxLevel,
  type Settings,
} from './agent/settings.js';
export type {
  RestingState,
  SessionData,
  State,
  StateName,
  TransientState,
  UsageTotals,
  WaitReason,
} from './agent/state.js';
export type { HookVerdict, HookVerdicts } from './agent/values/hook-verdict.js';
export type { Limit } from './agent/values/limit-value.js';
export type { Prices, Usage } from './agent/values/usage.js';
export type { TreeAction } from './ask/run/action.js';
export type { CodeEvent, LimitsChanged, TreeEvent } from './ask/run/event.js';
export { codeMode } from './ask/run/machine.js';
export {
  projectEdges,
  type SeedCursor,
  type SeedEdge,
  type SeedStep,
  seedEdges,
} from './ask/run/seed-projection.js';
export { type CodeSettings, defaultCodeSettings, type Parity } from './ask/run/settings.js';
export type { CodeState, Outcome } from './ask/run/state.js';
export { type Pieces, piecesOf } from './ask/tree/count-answered-pieces.js';
export { stepTree } from './ask/tree/step-tree.js';
export { initialTree, outcomeOf, spentBy, type Tree, type TreeStep } from './ask/tree/tree-state.js';
export { seedParity } from './eager-ask-values.js';
export { type JournalStep, steps } from './journal/read/steps.js';
export { mutableStateMachine, stateMachine } from './machine-kit/builder/build-machine.js';
export type { BuildReport, Pair, Shadowed } from './machine-kit/builder/build-report.js';
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
} from './machine-kit/builder/builder-errors.js';
export type {
  AlwaysOptions,
  BuilderStep,
  BuiltMachine,
  From,
  MutableStateMachine,
  StateMachine,
  StateOptions,
  TransitionOptions,
} from './machine-kit/builder/builder-types.js';
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
} from './machine-kit/builder/drive-machine.js';
export { edgesJson, markdownTable, mermaid } from './machine-kit/kernel/diagrams.js';
export type { Diagnostic, Edge } from './machine-kit/kernel/step-types.js';
