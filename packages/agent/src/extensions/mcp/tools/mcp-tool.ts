import type { McpToolName } from '../../../machine/call.js';
import type { JsonObject } from '../../../machine/message.js';
import type { InterruptedCall, SentState, Tool, ToolContext, ToolOutcome } from '../../../ports/tool.js';
import { attempt } from '../../../session/attempt.js';
import type { Connection } from '../connection.js';
import type { DeclaredTool } from './declare-to-model.js';
import { compareDeclaration, type DeclarationState, storeDeclaration } from './tool-cache.js';
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

type ToolPlace = { readonly stateFolder: string; readonly warn: (text: string) => void };

/**
 * Notes the declaration when the tool runs: a tool whose declaration has changed runs only after the user's yes. Compared
 * once, at the first call, so sessions that declare a tool differently don't ask in turns. A call that an earlier process
 * judged, which runs before the first call here, notes nothing.
 */
const createDeclarationNote = (
  declared: DeclaredTool,
  { server }: Connection,
  { stateFolder, warn }: ToolPlace,
): { compare(): DeclarationState; store(): Promise<void> } => {
  let state: DeclarationState | null = null;
  return {
    compare() {
      state ??= compareDeclaration(stateFolder, server, declared);
      return state;
    },
    async store() {
      if (state === null || state === 'same') return;
      state = 'same';
      const stored = await attempt(() => storeDeclaration(stateFolder, server, declared));
      if (stored.kind === 'fault')
        warn(
          `how the MCP server ${server.name} describes ${declared.name} can't be stored, so a change may be missed, or asked about again: ${stored.fault.message}`,
        );
    },
  };
};

export const createMcpTool = (declared: DeclaredTool, connection: Connection, place: ToolPlace): Tool => {
  const { server, name, declaredName, description, inputSchema, isReadOnly = false } = declared;
  const mcp: McpToolName = {
    server,
    tool: name,
    ...(connection.server.project === undefined ? {} : { from: 'project' }),
  };
  const note = createDeclarationNote(declared, connection, place);
  const run = async (
    input: JsonObject,
    { signal, force, blobs, progress, sending, whileAsking = (asked) => asked }: ToolContext,
  ): Promise<ToolOutcome> => {
    await note.store();
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
      facts: {
        argv: [],
        paths: [],
        hosts: [],
        shape: declaredName,
        mcp: note.compare() === 'changed' ? { ...mcp, declaration: 'changed' } : mcp,
      },
      title: titleOf(declared, input),
    }),
    findInterrupted: async (_, context) => {
      const sent = await context.findSent?.();
      return isReadOnly || sent === 'notSent' ? { kind: 'neverBegan' } : interrupted(server, sent);
    },
    run,
  };
};
