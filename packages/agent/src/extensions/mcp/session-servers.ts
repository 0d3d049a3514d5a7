import type { Tool as RemoteTool } from '@modelcontextprotocol/client';
import { attempt } from '../../platform/attempt.js';
import type { ProcessEnvironment } from '../../platform/environment.js';
import { plural } from '../../platform/text.js';
import type { Tool } from '../../ports/tool.js';
import type { Redactor } from '../../secrets/redactor.js';
import type { RemoteOffers } from './connected-server.js';
import { type ConnectionStatus, createConnection } from './connection.js';
import { declareTools, type OfferedTool, offeredTools, selectTools } from './declare-tools.js';
import {
  createSessionOffers,
  type OfferingServer,
  type SessionOffers,
  safeOffers,
} from './offers.js';
import type { AskUser, ServerAnswer, ServerQuestion } from './question.js';
import type { McpServer } from './server-config.js';
import { createMcpTool, readOffers, readTools, storeOffers, storeTools } from './tool.js';

/**
 * The MCP servers of one session.
 *
 * 1. The session declares the tools that the servers had when they were last connected, and waits
 *    for no server. Only a server that is `required`, and whose tools are not known, is waited for.
 * 2. What a session declares never changes. If a server has other tools now, the next session
 *    declares them.
 * 3. A server that fails is one line for the user, and never a failed session.
 */
export type SessionServers = {
  readonly tools: readonly Tool[];
  /** Connects all servers in the background. */
  connect(): void;
  /**
   * Connects the servers again that are not connected; resolves when each is connected or has
   * failed.
   */
  reconnect(): Promise<void>;
  /** Ends all connections, and the servers that were started. */
  close(): Promise<void>;
  status(): readonly ServerStatus[];
  readonly offers: SessionOffers;
  /**
   * Gives the servers somebody to ask. Until then their questions are declined. `ask` resolves with
   * null if it can't.
   */
  answerWith(ask: AskUserOrNot): void;
};

export type ServerStatus = {
  readonly name: string;
  readonly connection: ConnectionStatus;
  /** Its tools in this session, as the server names them. */
  readonly tools: readonly string[];
  /** Questions to the user that were declined. */
  readonly declined: number;
};

export type ServersOptions = {
  readonly servers: readonly McpServer[];
  readonly stateFolder: string;
  readonly workspace: string;
  readonly environment: ProcessEnvironment;
  /** Told in one line what the user should know. */
  readonly warn: (text: string) => void;
  /** Time limit for connecting. */
  readonly startMs?: number;
  /** Time limit for a prompt or a resource that the user has named. */
  readonly answerMs?: number;
  /** Asked before each start of a server: why it must not be started; null if it may. */
  readonly whyNot: (server: McpServer) => Promise<string | null>;
  /** Replaces secrets in texts of the servers: their logs and messages. */
  readonly redactor: Redactor;
};

const toolNames = (tools: readonly OfferedTool[]): string =>
  tools
    .map(({ name }) => name)
    .toSorted()
    .join(' ');

/** Names that are listed one by one. */
const NAMES_MAX = 5;

const namesInWords = (names: readonly string[]): string =>
  names.length > NAMES_MAX
    ? `${names.slice(0, NAMES_MAX).join(', ')} and ${names.length - NAMES_MAX} more tools`
    : names.join(', ');

/** How the tools differ, in words; null if the session's declarations are right. */
const describeChange = (
  server: string,
  known: readonly OfferedTool[] | null,
  now: readonly OfferedTool[],
): string | null => {
  if (known === null)
    return `the MCP server ${server} is new: ${plural(now.length, 'tool')} from the next session on`;
  if (JSON.stringify(known) === JSON.stringify(now)) return null;
  const what =
    toolNames(known) === toolNames(now)
      ? 'describes its tools differently'
      : 'has other tools than before';
  return `the MCP server ${server} ${what}: the next session declares them`;
};

type OpenServer = OfferingServer & { known: readonly OfferedTool[] | null; declined: number };

/** Characters of a question that are shown. */
const QUESTION_MAX = 300;

/**
 * Before its declarations are frozen, a session takes what it learns. After its end it reports
 * nothing any more.
 */
type Phase = { isFrozen: boolean; isClosed: boolean };

const openServer = (
  server: McpServer,
  { stateFolder, warn, ...place }: Omit<ServersOptions, 'servers'>,
  phase: Phase,
  asker: ServerAsker,
): OpenServer => {
  const reported = new Set<string>();
  const learn = async (remote: readonly RemoteTool[]): Promise<void> => {
    const { tools, needTasks } = offeredTools(remote);
    const change = describeChange(server.name, served.known, tools);
    served.known = tools;
    if (change === null) return;
    const { isFrozen } = phase; // as it was when the tools came
    const stored = await attempt(() => storeTools(stateFolder, server, tools));
    if (stored.kind === 'fault')
      warn(`the tools of the MCP server ${server.name} can't be stored: ${stored.fault.message}`);
    // A server can change its tools all the time. One report is enough.
    else if (isFrozen && !reported.has(change)) warn(change);
    if (needTasks.length > 0 && !reported.has(change))
      warn(
        `the MCP server ${server.name} runs ${namesInWords(needTasks)} only as tasks, which ` +
          'Pawl has not: they are not offered',
      );
    reported.add(change);
  };
  const onTools = (tools: readonly RemoteTool[]): void => void learn(tools);
  const onOffers = (remote: RemoteOffers): void => {
    const offers = safeOffers(remote);
    if (JSON.stringify(offers) === JSON.stringify(served.offers)) return;
    served.offers = offers;
    // a later session lists them when it is connected
    void attempt(() => storeOffers(stateFolder, server, offers));
  };
  const onDeclined = (message: string): void => {
    served.declined += 1;
    if (served.declined > 1) return;
    warn(
      `the MCP server ${server.name} asks: ${message.slice(0, QUESTION_MAX)} Pawl can't ask ` +
        'you for it, and has declined',
    );
  };
  const onQuestion: AskUser = async (question, signal) => {
    const answer = await asker.ask(question, signal);
    if (answer === null) onDeclined(question.message);
    return answer ?? { action: 'decline' };
  };
  const served: OpenServer = {
    known: readTools(stateFolder, server),
    offers: readOffers(stateFolder, server),
    declined: 0,
    connection: createConnection(server, {
      ...place,
      stateFolder,
      onTools,
      onOffers,
      onQuestion,
      onDeclined,
    }),
  };
  return served;
};

export const openServers = async ({
  servers,
  ...options
}: ServersOptions): Promise<SessionServers> => {
  const { warn } = options;
  const phase: Phase = { isFrozen: false, isClosed: false };
  const asker = createServerAsker();
  const all = servers
    .filter(({ enabled }) => enabled)
    .map((server) => openServer(server, options, phase, asker));
  const open = async ({ connection }: OpenServer): Promise<void> => {
    const listed = await attempt(() => connection.listTools());
    if (listed.kind === 'fault' && !phase.isClosed) warn(listed.fault.message);
  };
  await Promise.all(
    all.filter(({ connection, known }) => known === null && connection.server.required).map(open),
  );
  phase.isFrozen = true;
  const { tools: declared, faults } = declareTools(
    all.map(({ connection, known }) => ({
      server: connection.server.name,
      tools: selectTools(connection.server, known ?? []),
    })),
  );
  for (const fault of faults) warn(fault);
  const byName = new Map(all.map(({ connection }) => [connection.server.name, connection]));
  const tools = declared.flatMap((tool) => {
    const connection = byName.get(tool.server);
    return connection === undefined ? [] : [createMcpTool(tool, connection, options)];
  });
  return {
    tools,
    answerWith: asker.use,
    connect() {
      for (const served of all) if (served.connection.status().kind === 'off') void open(served);
    },
    async reconnect() {
      const gone = all.filter(({ connection }) => connection.status().kind !== 'connected');
      await Promise.all(gone.map(open));
    },
    offers: createSessionOffers(all, options.redactor, options.answerMs),
    async close() {
      phase.isClosed = true;
      await Promise.all(all.map(({ connection }) => connection.close()));
    },
    status: () =>
      all.map(({ connection, declined }) => ({
        declined,
        name: connection.server.name,
        connection: connection.status(),
        tools: declared.flatMap(({ server, name }) =>
          server === connection.server.name ? [name] : [],
        ),
      })),
  };
};

/** Asks the user one question of a server after the other. */

/** Resolves with null if the question can't be asked here. */
export type AskUserOrNot = (
  question: ServerQuestion,
  signal: AbortSignal,
) => Promise<ServerAnswer | null>;

type ServerAsker = {
  ask: AskUserOrNot;
  /** Who asks the user from now on. */
  use(ask: AskUserOrNot): void;
};

const createServerAsker = (): ServerAsker => {
  let current: AskUserOrNot | null = null;
  let before: Promise<unknown> = Promise.resolve();
  return {
    ask(question, signal) {
      const asked = before.then(() => {
        if (signal.aborted) return { action: 'cancel' } as const;
        return current === null ? null : current(question, signal);
      });
      before = asked.catch(() => undefined); // whoever has asked gets the fault
      return asked;
    },
    use(ask) {
      current = ask;
    },
  };
};
