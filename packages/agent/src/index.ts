/**
 * The agent as a library: agents, their sessions, and tools of your own. Models, journals and the
 * interfaces between them (ports) are exported by other files, such as ports/model.ts.
 */

export type { ApprovalQuestion, ApprovalReply, OnApproval } from './session/approvals.js';
export {
  type Agent,
  type AgentOptions,
  createAgent,
  openSession,
  type Session,
  type SessionOptions,
} from './session/create-agent.js';
export {
  defineTool,
  type StandardSchema,
  type ToolDefinition,
  type Touched,
} from './session/define-tool.js';
export { judgeCall } from './session/judge-call.js';
export type { PromptOptions } from './session/session.js';
export type { SettingsPatch } from './session/session-settings.js';
export type { Turn, TurnReason } from './session/turn.js';
