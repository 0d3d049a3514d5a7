import {
  type CallToolResult,
  fromJsonSchema,
  McpServer,
  type ServerContext,
} from '@modelcontextprotocol/server';
import type { Session } from '@pawl/agent/api/create-agent';
import { messagesOf } from '@pawl/agent/machine/conversation';
import type { Message } from '@pawl/agent/machine/message';
import type { State } from '@pawl/agent/machine/state';
import type { Preset } from '@pawl/agent/policy/preset-rules';
import type { SessionInfo } from '@pawl/agent/ports/journal';
import type { Stepped, Watcher } from '@pawl/agent/ports/session-input-output';
import { attempt } from '@pawl/agent/session/attempt';

/**
 * Pawl as a tool of other agents: `prompt`, `sessions` and `show`.
 *
 * 1. Each prompt opens its session and closes it again. A session is a handle in the arguments, never state of a
 *    connection.
 * 2. Nobody can be asked here. Calls that need an approval are denied, and the model goes on without.
 */
export type SessionsHost = {
  readonly version: string;
  /** Rejects with the reason if the session can't be opened. `workspace` counts for a new session. */
  open(wanted: WantedSession): Promise<Session>;
  list(): Promise<readonly SessionInfo[]>;
  /** Rejects if there is no such session. */
  stateOf(sessionId: string): Promise<State>;
};

export type WantedSession = {
  readonly workspace: string | null;
  readonly resume: string | null;
  /** null: a resumed session keeps its own. */
  readonly preset: Preset | null;
  readonly watcher: Watcher;
};

type PromptInput = {
  readonly prompt: string;
  readonly workspace?: string;
  readonly sessionId?: string;
  readonly preset?: Preset;
};

const LISTED_MAX = 50;
const text = (description: string): object => ({ type: 'string', minLength: 1, description });
const inputOf = <T>(properties: Readonly<Record<string, object>>, required: readonly string[]) =>
  fromJsonSchema<T>({ type: 'object', properties, required: [...required], additionalProperties: false });

const say = (words: string, isError = false): CallToolResult => ({
  content: [{ type: 'text', text: words }],
  ...(isError ? { isError } : {}),
});

/** The result of the work; an error becomes a failed result. */
const answer = async (work: () => Promise<CallToolResult>): Promise<CallToolResult> => {
  const done = await attempt(work);
  return done.kind === 'done' ? done.value : say(done.fault.message, true);
};

/** Tells the caller of each model reply and each tool, if it asked for progress. */
const progressOf = (context: ServerContext): Watcher => {
  const request = context.mcpReq;
  const token = request._meta?.progressToken;
  let progress = 0;
  const tell = (message: string): void => {
    if (token === undefined) return;
    progress += 1;
    const params = { progressToken: token, progress, message };
    // A caller that is gone misses nothing.
    request.notify({ method: 'notifications/progress', params }).catch(() => undefined);
  };
  return ({ event }: Stepped) => {
    if (event.type === 'LlmCompleted') tell('the model has replied');
    if (event.type === 'ToolCompleted') tell(`a tool has ended: ${event.outcome.status}`);
  };
};

const runPrompt = async (
  host: SessionsHost,
  { prompt, preset, ...given }: PromptInput,
  context: ServerContext,
): Promise<CallToolResult> => {
  const [workspace, sessionId] = [given.workspace ?? null, given.sessionId ?? null];
  if ((workspace === null) === (sessionId === null))
    return say('Give either workspace, for a new session, or sessionId, to continue one.', true);
  const session = await host.open({
    workspace,
    resume: sessionId,
    watcher: progressOf(context),
    preset: preset ?? (sessionId === null ? 'plan' : null),
  });
  try {
    const {
      ok,
      text: words,
      reason,
      usage,
    } = await session.prompt(prompt, { signal: context.mcpReq.signal });
    const about = { sessionId: session.id, ok, text: words, reason: reason.kind, costUsd: usage.costUsd };
    const shown = ok ? words : `The turn ended without an answer: ${reason.kind}. Session ${session.id}.`;
    return { ...say(shown, !ok), structuredContent: about };
  } finally {
    await session.close();
  }
};

const partText = (part: Message['parts'][number]): readonly string[] => {
  if (part.type === 'text') return [part.text];
  if (part.type === 'call') return [`[calls ${part.tool}]`];
  return part.type === 'result' ? [`[${part.tool}: ${part.text.length} characters]`] : [];
};

const showText = (state: State): string =>
  messagesOf(state.session.conversation)
    .map(({ role, parts }) => `${role}: ${parts.flatMap(partText).join('\n')}`)
    .join('\n\n');

const listText = (all: readonly SessionInfo[]): string =>
  all
    .slice(0, LISTED_MAX)
    .map(({ sessionId, workspace, title }) => `${sessionId}  ${workspace}  ${title}`)
    .join('\n');

/** The server of one connection or request. */
export const createSessionsServer = (host: SessionsHost): McpServer => {
  const server = new McpServer({ name: 'pawl', version: host.version });
  const promptInput = inputOf<PromptInput>(
    {
      prompt: text('What the agent is to do.'),
      workspace: text('Absolute path of the folder to work in, for a new session.'),
      sessionId: text('The session to continue.'),
      preset: {
        type: 'string',
        enum: ['plan', 'careful', 'auto', 'ci'],
        description:
          'What it may do: plan (default) only reads; auto and ci change files and run sandboxed commands.',
      },
    },
    ['prompt'],
  );
  const description =
    'Gives a task to Pawl, a coding agent, and waits for its answer. The answer names the session, which can be continued.';
  server.registerTool('prompt', { description, inputSchema: promptInput }, (input, context) =>
    answer(() => runPrompt(host, input, context)),
  );
  server.registerTool(
    'sessions',
    {
      description: 'Lists the newest sessions: id, folder, first words.',
      inputSchema: inputOf<object>({}, []),
    },
    () => answer(async () => say(listText(await host.list()) || 'There are no sessions.')),
  );
  const showInput = inputOf<{ readonly sessionId: string }>({ sessionId: text('The session to show.') }, [
    'sessionId',
  ]);
  server.registerTool(
    'show',
    { description: 'Shows the conversation of a session.', inputSchema: showInput },
    ({ sessionId }) => answer(async () => say(showText(await host.stateOf(sessionId)))),
  );
  return server;
};
