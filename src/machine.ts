/** The pure core: the machine alone, without anything of Node. It runs in a browser, too. */
export type { Action, ActionType } from './agent/action.js';
export type { Call, CallOutcome, CallStatus, JudgedCall } from './agent/call.js';
export { type Conversation, messagesOf } from './agent/conversation.js';
export type { Event, EventType } from './agent/event.js';
export { agent, initialState, step } from './agent/machine.js';
export type { Message } from './agent/message.js';
export { defaultSettings, type Preset, presetRules, type Settings } from './agent/settings.js';
export type { RestingState, Session, State, StateName, WaitReason } from './agent/state.js';
export { edgesJson, markdownTable, mermaid } from './kernel/describe.js';
export type { Edge } from './kernel/step.js';
