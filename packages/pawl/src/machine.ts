/** The pure core: the machine alone, without anything of Node. It runs in a browser, too. */

export { type JournalStep, steps } from '@pawl/agent/journal/steps';
export {
  type Action,
  type ActionType,
  type Answers,
  answersTo,
  type HookPhase,
  type NoticeKind,
  type RequestPurpose,
  type WarningKind,
} from '@pawl/agent/machine/action';
export type {
  Call,
  CallOutcome,
  CallPreview,
  CallStatus,
  RanStatus,
  SeenFile,
} from '@pawl/agent/machine/call';
export { type Conversation, messagesOf } from '@pawl/agent/machine/conversation';
export {
  type ApprovalAnswer,
  type CallDraft,
  type Event,
  type EventType,
  type HookEffect,
  type HookEvent,
  type InputMode,
  type LlmEvent,
  type ModelError,
  type ModelErrorKind,
  modelReply,
  type On,
  type OtherEvent,
  type QueuedInput,
  type ReplyDraft,
  type StoppedCall,
  type StopReason,
  type ToolEvent,
  toolCall,
  type UserEvent,
  userInput,
} from '@pawl/agent/machine/event';
export {
  agent,
  type DecodedState,
  decodeState,
  type EncodedState,
  encodeState,
  initialState,
  step,
} from '@pawl/agent/machine/machine';
export type {
  AssistantMessage,
  AssistantPart,
  Image,
  Message,
  ResultPart,
  UserMessage,
  UserText,
} from '@pawl/agent/machine/message';
export type { Limit, Prices, Usage, UsageTotals } from '@pawl/agent/machine/settings';
export {
  type Dimension,
  defaultSettings,
  type Effort,
  type EffortLevel,
  type Limits,
  type RetrySchedule,
  type Settings,
} from '@pawl/agent/machine/settings';
export type {
  RestingState,
  SessionData,
  State,
  StateName,
  TransientState,
  WaitReason,
} from '@pawl/agent/machine/state';
export type { SandboxLevel } from '@pawl/agent/policy/decide';
export type {
  CallEffect,
  CallFacts,
  CallTraits,
  CallVerdict,
  HookVerdict,
  HookVerdicts,
  JudgedCall,
  McpToolName,
  Needs,
  ParsedCommand,
  ShellFacts,
} from '@pawl/agent/policy/judged-call';
export { type Preset, presetRules } from '@pawl/agent/policy/presets';
export type { ApprovalScope, Grant } from '@pawl/agent/policy/rules';
export type { TreeAction } from '@pawl/ask/run/action';
export { seedParity } from '@pawl/ask/run/eager-values';
export type { CodeEvent, LimitsChanged, TreeEvent } from '@pawl/ask/run/event';
export {
  projectEdges,
  type SeedCursor,
  type SeedEdge,
  type SeedStep,
  seedEdges,
} from '@pawl/ask/run/seed-projection';
export { type CodeSettings, defaultCodeSettings, type Parity } from '@pawl/ask/run/settings';
export type { CodeState, Outcome } from '@pawl/ask/run/state';
export { codeMode } from '@pawl/ask/run/table';
export { stepTree } from '@pawl/ask/tree/step-tree';
export {
  initialTree,
  outcomeOf,
  type Pieces,
  piecesOf,
  spentBy,
  type Tree,
  type TreeStep,
} from '@pawl/ask/tree/tree-state';
export {
  type AlwaysOptions,
  BadRegistration,
  BadSetting,
  type BuilderStep,
  type BuildReport,
  type BuiltMachine,
  CallbackFailed,
  type CallbackKind,
  EndlessTransitions,
  type From,
  IllegalTransition,
  MachineBusy,
  MachineFrozen,
  type MutableStateMachine,
  mutableStateMachine,
  type Pair,
  type Shadowed,
  type StateMachine,
  type StateOptions,
  stateMachine,
  type TransitionOptions,
  UnmatchedEvents,
} from '@pawl/machine/builder/builder';
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
} from '@pawl/machine/builder/drive';
export { edgesJson, markdownTable, mermaid } from '@pawl/machine/kernel/diagrams';
export type { Json, JsonObject } from '@pawl/machine/kernel/shape';
export type { Diagnostic, Edge } from '@pawl/machine/kernel/table';
