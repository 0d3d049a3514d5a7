/** The pure core: the machine alone, without anything of Node. It runs in a browser, too. */

export { type JournalStep, steps } from '@pawl/agent/journal/read/steps';
export type {
  Action,
  ActionType,
  HookPhase,
  NoticeKind,
  RequestPurpose,
  WarningKind,
} from '@pawl/agent/machine/action';
export { type Answers, answersTo } from '@pawl/agent/machine/answers';
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
} from '@pawl/agent/machine/call';
export { type Conversation, messagesOf } from '@pawl/agent/machine/conversation';
export {
  type DecodedState,
  decodeState,
  type EncodedState,
  encodeState,
} from '@pawl/agent/machine/encode-state';
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
} from '@pawl/agent/machine/event';
export { agent, initialState, step } from '@pawl/agent/machine/machine';
export {
  type CallDraft,
  modelReply,
  type ReplyDraft,
  toolCall,
  userInput,
} from '@pawl/agent/machine/make-events';
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
} from '@pawl/agent/machine/message';
export {
  type Dimension,
  defaultSettings,
  type Effort,
  type Grant,
  type Limits,
  type RetrySchedule,
  type SandboxLevel,
  type Settings,
} from '@pawl/agent/machine/settings';
export type {
  RestingState,
  SessionData,
  State,
  StateName,
  TransientState,
  UsageTotals,
  WaitReason,
} from '@pawl/agent/machine/state';
export type { HookVerdict, HookVerdicts } from '@pawl/agent/machine/values/hook-verdict';
export type { Limit } from '@pawl/agent/machine/values/limit-value';
export type { Prices, Usage } from '@pawl/agent/machine/values/usage';
export { type Preset, presetRules } from '@pawl/agent/policy/preset-rules';
export { seedParity } from '@pawl/ask/eager-ask-values';
export type { TreeAction } from '@pawl/ask/run/action';
export type { CodeEvent, LimitsChanged, TreeEvent } from '@pawl/ask/run/event';
export { codeMode } from '@pawl/ask/run/machine';
export {
  projectEdges,
  type SeedCursor,
  type SeedEdge,
  type SeedStep,
  seedEdges,
} from '@pawl/ask/run/seed-projection';
export { type CodeSettings, defaultCodeSettings, type Parity } from '@pawl/ask/run/settings';
export type { CodeState, Outcome } from '@pawl/ask/run/state';
export { type Pieces, piecesOf } from '@pawl/ask/tree/count-answered-pieces';
export { stepTree } from '@pawl/ask/tree/step-tree';
export { initialTree, outcomeOf, spentBy, type Tree, type TreeStep } from '@pawl/ask/tree/tree-state';
export { mutableStateMachine, stateMachine } from '@pawl/machine/builder/build-machine';
export type { BuildReport, Pair, Shadowed } from '@pawl/machine/builder/build-report';
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
} from '@pawl/machine/builder/builder-errors';
export type {
  AlwaysOptions,
  BuilderStep,
  BuiltMachine,
  From,
  MutableStateMachine,
  StateMachine,
  StateOptions,
  TransitionOptions,
} from '@pawl/machine/builder/builder-types';
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
} from '@pawl/machine/builder/drive-machine';
export { edgesJson, markdownTable, mermaid } from '@pawl/machine/kernel/diagrams';
export type { Diagnostic, Edge } from '@pawl/machine/kernel/step-types';
