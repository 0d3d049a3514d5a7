/** The library: an agent that lives in your program. `pawl/machine` is the core alone, `pawl/testing` is for tests. */
export type { Action } from './agent/action.js';
export { messagesOf } from './agent/conversation.js';
export type { Event } from './agent/event.js';
export type { Message } from './agent/message.js';
export { defaultSettings, type Preset, presetRules, type Settings } from './agent/settings.js';
export type { State, WaitReason } from './agent/state.js';
export {
  type Agent,
  type AgentOptions,
  createAgent,
  openSession,
  type Session,
  type SessionOptions,
  type SettingsPatch,
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
