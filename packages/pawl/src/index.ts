/**
 * The library: an agent that lives in your program. `pawl/machine` is the core alone,
 * `pawl/testing` is for tests.
 */

export {
  type Agent,
  type AgentOptions,
  type ApprovalQuestion,
  type ApprovalReply,
  createAgent,
  defineTool,
  judgeCall,
  type OnApproval,
  openSession,
  type PromptOptions,
  type Session,
  type SessionOptions,
  type SettingsPatch,
  type StandardSchema,
  type ToolDefinition,
  type Touched,
  type Turn,
  type TurnReason,
} from '@pawl/agent';
export type {
  CommandHook,
  FunctionHook,
  HookResult,
  SessionHook,
} from '@pawl/agent/extensions/hooks/session-hooks';
export { fileJournals } from '@pawl/agent/journal/file-store';
export { JournalError, type JournalErrorKind } from '@pawl/agent/journal/journal-error';
export { replay } from '@pawl/agent/journal/journaled-agent-machine';
export { type JournalStep, steps } from '@pawl/agent/journal/steps';
export type { Action } from '@pawl/agent/machine/action';
export { messagesOf } from '@pawl/agent/machine/conversation';
export type { Event } from '@pawl/agent/machine/event';
export type { Image, Message } from '@pawl/agent/machine/message';
export type { Usage } from '@pawl/agent/machine/settings';
export { defaultSettings, type Settings } from '@pawl/agent/machine/settings';
export type { State, WaitReason } from '@pawl/agent/machine/state';
export { type FinishReason, finishReasonOf, toolsMode } from '@pawl/agent/machine/tools-mode';
export { type AiSdkLanguageModel, aiSdkModel } from '@pawl/agent/models/ai-sdk-model';
export { type ChosenModel, chooseModel } from '@pawl/agent/models/choose-model';
export type { SandboxLevel } from '@pawl/agent/policy/decide';
export type { JudgedCall, Needs } from '@pawl/agent/policy/judged-call';
export { allowHosts, type Preset, presetRules } from '@pawl/agent/policy/presets';
export type { HookMoment } from '@pawl/agent/ports/hooks';
export type { Entry, Header, Journal, JournalStore, SessionInfo } from '@pawl/agent/ports/journal';
export type { Model, ModelFacts, ModelPiece, ModelRequest, RawCall } from '@pawl/agent/ports/model';
export type { Input, Runtime, Stepped, StoppingPolicy, Watcher } from '@pawl/agent/ports/session';
export type { PreviewContext, Tool, ToolContext, ToolOutcome } from '@pawl/agent/ports/tool';
export { builtinTools } from '@pawl/agent/tools/builtin-tools';
export { createAsker, fileAskJournals } from '@pawl/ask';
export type {
  Asker,
  AskerOptions,
  AskOptions,
  AskOutcome,
  AskRun,
  ResumeOptions,
} from '@pawl/ask/create-asker';
export type {
  Environment,
  EnvironmentKind,
  EnvironmentName,
  EnvironmentOptions,
} from '@pawl/ask/ports';
export { EnvironmentUnavailable, seedParity } from '@pawl/ask/run/eager-values';
export type { Outcome } from '@pawl/ask/run/state';
export type { InputSource } from '@pawl/ask/runtime/measure-inputs';
export type { Pieces } from '@pawl/ask/tree/tree-state';
export type {
  Extension,
  ExtensionApi,
  ExtensionCommand,
  ExtensionFunction,
  ExtensionProvider,
} from './settings/user-extensions.js';
export { type UiMessageChunk, type UiMessageOptions, uiMessageResponse } from './ui-stream.js';
