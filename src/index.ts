/** The library: an agent that lives in your program. `pawl/machine` is the core alone, `pawl/testing` is for tests. */
export type { Action } from './agent/action.js';
export type { JudgedCall, Needs } from './agent/call.js';
export { messagesOf } from './agent/conversation.js';
export type { Event } from './agent/event.js';
export type { Image, Message } from './agent/message.js';
export { allowHosts, type Preset, presetRules } from './agent/policy/preset-rules.js';
export { defaultSettings, type SandboxLevel, type Settings } from './agent/settings.js';
export type { State, WaitReason } from './agent/state.js';
export {
  type FinishReason,
  finishReasonOf,
  toolsMode,
} from './agent/tools-mode.js';
export type { Usage } from './agent/values/usage.js';
export type { ApprovalQuestion, ApprovalReply, OnApproval } from './api/approvals.js';
export {
  type Agent,
  type AgentOptions,
  createAgent,
  openSession,
  type SessionOptions,
} from './api/create-agent.js';
export { defineTool, type ToolDefinition, type Touched } from './api/define-tool.js';
export type { PromptOptions, Session } from './api/session.js';
export type { SettingsPatch } from './api/session-settings.js';
export type { StandardSchema } from './api/standard-schema.js';
export type { Turn } from './api/turn-result.js';
export type {
  Asker,
  AskerOptions,
  AskOptions,
  AskOutcome,
  AskRun,
  ResumeOptions,
} from './ask/api/asker-types.js';
export type {
  Environment,
  EnvironmentKind,
  EnvironmentName,
  EnvironmentOptions,
} from './ask/environment-and-journal-types.js';
export type { Outcome } from './ask/run/state.js';
export type { InputSource } from './ask/runtime/measure-inputs.js';
export type { Pieces } from './ask/tree/count-answered-pieces.js';
export { EnvironmentUnavailable, seedParity } from './eager-ask-values.js';
export { fileJournals } from './journal/file-store.js';
export { JournalError, type JournalErrorKind } from './journal/journal-error.js';
export { replay } from './journal/read/journaled-agent-machine.js';
export { type JournalStep, steps } from './journal/read/steps.js';
export { createAsker, fileAskJournals } from './lazy-ask.js';
export { type AiSdkLanguageModel, aiSdkModel } from './models/ai-sdk-model.js';
export { type ChosenModel, chooseModel } from './models/choose-model.js';
export type { Entry, Header, Journal, JournalStore, SessionInfo } from './ports/journal.js';
export type { Model, ModelFacts, ModelPiece, ModelRequest, RawCall } from './ports/model.js';
export type { Input, Stepped, StoppingPolicy, Watcher } from './ports/session-input-output.js';
export type { Runtime } from './ports/session-runtime.js';
export type { PreviewContext, Tool, ToolContext, ToolOutcome } from './ports/tool.js';
export type { HookMoment } from './ports/user-hooks.js';
export { judgeCall } from './runtime/tools/validate-raw-call.js';
export { builtinTools } from './tools/builtin-tools.js';
export type { CommandHook, FunctionHook, HookResult, SessionHook } from './user-hooks/session-hooks.js';
