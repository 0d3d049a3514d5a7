/** The library: an agent that lives in your program. `pawl/machine` is the core alone, `pawl/testing` is for tests. */
export type { Action } from './agent/action.js';
export { messagesOf } from './agent/conversation.js';
export type { Event } from './agent/event.js';
export type { Image, Message } from './agent/message.js';
export { allowHosts, defaultSettings, type Preset, presetRules, type Settings } from './agent/settings.js';
export type { State, WaitReason } from './agent/state.js';
export type { Usage } from './agent/usage.js';
export type { ApprovalQuestion, ApprovalReply, OnApproval } from './agent-api/approvals.js';
export { defineTool, type ToolDefinition, type Touched } from './agent-api/define-tool.js';
export type { PromptOptions, Session } from './agent-api/session.js';
export type { SettingsPatch } from './agent-api/settings.js';
export type { StandardSchema } from './agent-api/standard-schema.js';
export type { Turn } from './agent-api/turn.js';
export {
  type Agent,
  type AgentOptions,
  createAgent,
  openSession,
  type SessionOptions,
} from './agent-api.js';
export {
  type Asker,
  type AskerOptions,
  type AskOptions,
  type AskRun,
  createAsker,
  EnvironmentUnavailable,
} from './ask-api.js';
export { fileAskJournals } from './journal/ask.js';
export { JournalError, type JournalErrorKind } from './journal/error.js';
export { fileJournals } from './journal/file.js';
export { replay } from './journal/replay.js';
export { type AiSdkLanguageModel, aiSdkModel } from './models/ai-sdk.js';
export { type ChosenModel, chooseModel } from './models/choose.js';
export type {
  Entry,
  Header,
  Input,
  Journal,
  JournalStore,
  Model,
  ModelFacts,
  ModelPiece,
  ModelRequest,
  Runtime,
  SessionInfo,
  Stepped,
  StoppingPolicy,
  Tool,
  ToolContext,
  ToolOutcome,
  Watcher,
} from './needs.js';
export type { Outcome } from './recursive/state.js';
export { type FinishReason, finishReasonOf, toolsMode } from './recursive/tools-mode.js';
export { builtinTools } from './tools/builtin.js';
