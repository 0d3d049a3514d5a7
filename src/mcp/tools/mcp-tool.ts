import type { McpToolName } from '../../agent/call.js';
import type { JsonObject } from '../../agent/message.js';
import type { InterruptedCall, SentState, Tool, ToolContext, ToolOutcome } from '../../ports/tool.js';
import { attempt } from '../../runtime/attempt.js';
import type { Connection } from '../connection.js';
import type { DeclaredTool } from './declare-to-model.js';
import { outcomeOf } from './tool-result.js';

/** A tool of an MCP server as a tool of the agent. What it does is unknown, so it counts as changing things. */

const TITLE_MAX = 120;

const titleOf = ({ server, name }: DeclaredTool, input: JsonObject): string => {
  const first = Object.values(input).find((value) => typeof value === 'string' && value !== '');
  return `${server}/${name}${first === undefined ? '' : ` ${String(first).slice(0, TITLE_MAX)}`}`;
};

const stopped = (signal: AbortSignal, server: string): ToolOutcome =>
  signal.reason === 'timedOut'
    ? {
        status: 'timedOut',
        text: `the MCP server ${server} did not answer in time. It may still be working on the call`,
      }
    : { status: 'cancelled', text: 'cancelled; the server was told, and may have done a part of it' };

/** A call that was sent, or of which that is not known. */
const interrupted = (server: string, sent: SentState | undefined): InterruptedCall => {
  const how =
    sent === 'sent'
      ? `this call was being sent to the MCP server ${server}, or the server was working on it, when the session was interrupted`
      : `the session was interrupted during this call, and nothing shows whether the MCP server ${server} had received it`;
  return { kind: 'unknown', text: `${how}; look whether it took effect before you repeat it` };
};

export const createMcpTool = (declared: DeclaredTool, connection: Connection): Tool => {
  const { server, name, declaredName, description, inputSchema, isReadOnly = false } = declared;
  const mcp: McpToolName = {
    server,
    tool: name,
    ...(connection.server.project === undefined ? {} : { from: 'project' }),
  };
  const run = async (
    input: JsonObject,
    { signal, force, blobs, progress, sending, whileAsking = (asked) => asked }: ToolContext,
  ): Promise<ToolOutcome> => {
    const either = AbortSignal.any([signal, force]);
    const called = await attempt(() =>
      connection.call(name, input, {
        signal: either,
        onProgress: progress,
        whileAsking,
        ...(sending === undefined ? {} : { onSend: sending }),
      }),
    );
    if (called.kind === 'done') return outcomeOf(called.value, blobs);
    if (either.aborted) return stopped(signal, server);
    return { status: 'failed', text: called.fault.message };
  };
  return {
    name: declaredName,
    description,
    inputSchema,
    traits: {
      effect: 'opaque',
      parallelSafe: false,
      mutating: true,
      deadlineMs: connection.server.timeoutMs,
    },
    judge: (input) => ({
      kind: 'ok',
      input,
      facts: { argv: [], paths: [], hosts: [], shape: declaredName, mcp },
      title: titleOf(declared, input),
    }),
    findInterrupted: async (_, context) => {
      const sent = await context.findSent?.();
      return isReadOnly || sent === 'notSent' ? { kind: 'neverBegan' } : interrupted(server, sent);
    },
    run,
  };
};
