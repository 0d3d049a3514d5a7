/** The library: an agent that lives in your program. `pawl/machine` is the core alone, `pawl/testing` is for tests. */

export type { ApprovalQuestion, ApprovalReply, OnApproval } from '@pawl/agent/api/approvals';
export {
  type Agent,
  type AgentOptions,
  createAgent,
  openSession,
  type SessionOptions,
} from '@pawl/agent/api/create-agent';
export { defineTool, type ToolDefinition, type Touched } from '@pawl/agent/api/define-tool';
export type { PromptOptions, Session } from '@pawl/agent/api/session';
export type { SettingsPatch } from '@pawl/agent/api/session-settings';
export type { StandardSchema } from '@pawl/agent/api/standard-schema';
export type { Turn } from '@pawl/agent/api/turn-result';
export type {
  CommandHook,
  FunctionHook,
  HookResult,
  SessionHook,
} from '@pawl/agent/extensions/user-hooks/session-hooks';
export { fileJournals } from '@pawl/agent/journal/file-store';
export { JournalError, type JournalErrorKind } from '@pawl/agent/journal/journal-error';
export { replay } from '@pawl/agent/journal/read/journaled-agent-machine';
export { type JournalStep, steps } from '@pawl/agent/journal/read/steps';
export type { Action } from '@pawl/agent/machine/action';
export type { JudgedCall, Needs } from '@pawl/agent/machine/call';
export { messagesOf } from '@pawl/agent/machine/conversation';
export type { Event } from '@pawl/agent/machine/event';
export type { Image, Message } from '@pawl/agent/machine/message';
export { defaultSettings, type SandboxLevel, type Settings } from '@pawl/agent/machine/settings';
export type { State, WaitReason } from '@pawl/agent/machine/state';
export {
  type FinishReason,
  finishReasonOf,
  toolsMode,
} from '@pawl/agent/machine/tools-mode';
export type { Usage } from '@pawl/agent/machine/values/usage';
export { type AiSdkLanguageModel, aiSdkModel } from '@pawl/agent/models/ai-sdk-model';
export { type ChosenModel, chooseModel } from '@pawl/agent/models/choose-model';
export { allowHosts, type Preset, presetRules } from '@pawl/agent/policy/preset-rules';
export type { Entry, Header, Journal, JournalStore, SessionInfo } from '@pawl/agent/ports/journal';
export type { Model, ModelFacts, ModelPiece, ModelRequest, RawCall } from '@pawl/agent/ports/model';
export type { Input, Stepped, StoppingPolicy, Watcher } from '@pawl/agent/ports/session-input-output';
export type { Runtime } from '@pawl/agent/ports/session-runtime';
export type { PreviewContext, Tool, ToolContext, ToolOutcome } from '@pawl/agent/ports/tool';
export type { HookMoment } from '@pawl/agent/ports/user-hooks';
export { judgeCall } from '@pawl/agent/session/tools/validate-raw-call';
export { builtinTools } from '@pawl/agent/tools/builtin-tools';
export type {
  Asker,
  AskerOptions,
  AskOptions,
  AskOutcome,
  AskRun,
  ResumeOptions,
} from '@pawl/ask/api/asker-types';
export { EnvironmentUnavailable, seedParity } from '@pawl/ask/eager-ask-values';
export type {
  Environment,
  EnvironmentKind,
  EnvironmentName,
  EnvironmentOptions,
} from '@pawl/ask/environment-and-journal-types';
export { createAsker, fileAskJournals } from '@pawl/ask/lazy-ask';
export type { Outcome } from '@pawl/ask/run/state';
export type { InputSource } from '@pawl/ask/runtime/measure-inputs';
export type { Pieces } from '@pawl/ask/tree/count-answered-pieces';
