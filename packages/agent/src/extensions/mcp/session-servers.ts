/**
 * The MCP servers of one session, in every user interface: `openServers` declares their tools,
 * connects them, and tells what has changed. To declare a tool is to name it to the model in each
 * request.
 *
 * From top to bottom: the types; `openServers`; words for changes of tools; `createServer`, one
 * server; `JoiningServers`, which waits a moment for servers whose tools are not known yet;
 * `DeclaredTools`, the tools that the model knows; and the queue of questions that servers ask the
 * user.
 */

import type { Tool as RemoteTool } from '@modelcontextprotocol/client';
import { attempt } from '../../platform/attempt.js';
import { type Clock, waitAtMost } from '../../platform/clock.js';
import type { ProcessEnvironment } from '../../platform/environment.js';
import { firstCharacters, plural } from '../../platform/text.js';
import type { LateTools, Tool } from '../../ports/tool.js';
import type { Redactor } from '../../secrets/redactor.js';
import type { RemoteOffers } from './connected-server.js';
import { type ConnectionStatus, createConnection } from './connection.js';
import {
  type DeclaredTool,
  declareTools,
  type OfferedTool,
  offeredTools,
  selectTools,
} from './declare-tools.js';
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
 *    for none of them. Servers whose tools are not known are waited for once, before the first
 *    request: `WAIT_MS` in all; the `required` ones among them when the session opens.
 * 2. Tools that come later join with a later request, all at once and once a session, since that
 *    costs the cached prompt.
 * 3. A declared tool never changes. If a server has other tools than it had, the next session
 *    declares them.
 * 4. A server that fails is one line for the user, and never a failed session.
 */
export type SessionServers = {
  /** The tools that the session declares from its start. */
  readonly tools: readonly Tool[];
  /** Null without `joining`. */
  readonly lateTools: LateTools | null;
  /** Names of the servers that the request waits for now. */
  waitsFor(): readonly string[];
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
  /** The prompts and resources of the servers, for the user to name. */
  readonly offers: SessionOffers;
  /**
   * Sets who asks the user. Until then the questions of servers are declined. `ask` resolves with
   * null if it can't ask.
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
  /**
   * How tools that are not known at the start come into the session: `wait` says in a line what it
   * waits for, `waitQuietly` leaves that to the status row. Absent: not at all, so the next
   * session declares them.
   */
  readonly joining?: 'wait' | 'waitQuietly';
  /** Time limit for connecting. */
  readonly startMs?: number;
  /** Time limit for a prompt or a resource that the user has named. */
  readonly answerMs?: number;
  /** Asked before each start of a server: why it must not be started; null if it may. */
  readonly whyNot: (server: McpServer) => Promise<string | null>;
  /** Replaces secrets in texts of the servers: their logs and messages. */
  readonly redactor: Redactor;
};

/** Opens the servers of a session: reads which tools are known, and waits for required ones. */
export const openServers = async ({
  servers,
  ...options
}: ServersOptions): Promise<SessionServers> => {
  const { warn } = options;
  const phase: Phase = { isFrozen: false, isClosed: false };
  const asker = createServerAsker();
  const all = servers
    .filter(({ enabled }) => enabled)
    .map((server) => createServer(server, options, phase, asker));
  const connectNow = async (served: SessionServer): Promise<void> => {
    const listed = await attempt(() => served.connection.listTools());
    if (listed.kind === 'fault' && !phase.isClosed) warn(listed.fault.message);
    await served.learning;
    served.hasFailed = listed.kind === 'fault' || served.known === null;
    served.opening = null;
  };
  /** Connects a server, or finds that it is connected. Shares an attempt that runs. */
  const shareAttempt = (served: SessionServer): Promise<void> => {
    served.opening ??= connectNow(served);
    return served.opening;
  };
  /** The first attempt to connect a server. Another call only waits for an attempt that runs. */
  const begin = async (served: SessionServer): Promise<void> => {
    const hasBegun = served.hasBegun;
    served.hasBegun = true;
    await (hasBegun ? served.opening : shareAttempt(served));
  };
  await Promise.all(
    all.filter(({ connection, known }) => known === null && connection.server.required).map(begin),
  );
  phase.isFrozen = true; // what the servers report from now on does not change `tools` below
  const declared = new DeclaredTools(options);
  const tools = declared.declare(all, new Set()); // those that are left may join later
  const joiningServers = new JoiningServers(all, options, begin, (joiners, names) =>
    declared.declare(joiners, names),
  );
  return {
    tools,
    lateTools: options.joining === undefined ? null : joiningServers,
    waitsFor: () => joiningServers.unanswered.map(({ connection }) => connection.server.name),
    answerWith: asker.use,
    connect() {
      // `off`: no attempt was made so far, not even by `reconnect`
      for (const served of all) if (served.connection.status().kind === 'off') void begin(served);
    },
    async reconnect() {
      const gone = all.filter(({ connection }) => connection.status().kind !== 'connected');
      await Promise.all(gone.map(shareAttempt));
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
        tools: declared.namesFrom(connection.server.name),
      })),
  };
};

// ---- Words for changes of tools ----

const toolNames = (tools: readonly OfferedTool[]): string =>
  tools
    .map(({ name }) => name)
    .toSorted()
    .join(' ');

/** Names, and lines, that are listed one by one. */
const LISTED_MAX = 5;

const namesInWords = (names: readonly string[]): string =>
  names.length > LISTED_MAX
    ? `${names.slice(0, LISTED_MAX).join(', ')} and ${plural(names.length - LISTED_MAX, 'more tool')}`
    : names.join(', ');

/** How the tools differ from those that were seen last, in words; null if they are the same. */
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

// ---- One server ----

/**
 * A server of the session, connected or not; named `served` in the code below.
 *
 * 1. `begin` makes the first attempt to connect it (`hasBegun`), `reconnect` and calls later ones.
 *    An attempt runs (`opening`), and ends connected or `hasFailed`.
 * 2. The list of tools that a connected server sends is `known`, as is one that an earlier session
 *    stored. It may change at any time.
 * 3. One whose tools are not known at the start may join later (`mayJoin`), until `declare` has
 *    taken its tools for a request.
 */
type SessionServer = OfferingServer & {
  /** Its tools as they were last seen, by any session; null if none are known. */
  known: readonly OfferedTool[] | null;
  /** Questions to the user that were declined. */
  declined: number;
  /** Its tools were not known when the session began, and may still join it. */
  mayJoin: boolean;
  /** `begin` has tried to connect it. */
  hasBegun: boolean;
  /** The attempt that runs; null: none. */
  opening: Promise<void> | null;
  /** Resolves when the last list of its tools is stored. */
  learning: Promise<void>;
  /** The last attempt of `begin` or `reconnect` has failed, or its list could not be taken in. */
  hasFailed: boolean;
};

/** Characters of a question that are shown. */
const QUESTION_MAX = 300;

/**
 * `isFrozen`: the session has declared its tools, so another list is for the next session.
 * `isClosed`: it has ended, so a server that it was connecting has not failed.
 */
type Phase = { isFrozen: boolean; isClosed: boolean };

/**
 * Takes the lists of tools that a server sends, stores them, and tells of changes. `served`: a
 * function, since the server is made after its listeners.
 */
const createToolsListener = (
  served: () => SessionServer,
  { stateFolder, warn, joining }: Pick<ServersOptions, 'stateFolder' | 'warn' | 'joining'>,
  phase: Phase,
  tellLeftOut: (lines: readonly string[]) => void,
): ((remote: readonly RemoteTool[]) => Promise<void>) => {
  const reported = new Set<string>();
  /** A server can change its tools all the time. One report of each key is enough. */
  const report = (key: string, text: string): void => {
    if (!reported.has(key)) warn(text);
    reported.add(key);
  };
  let storing: Promise<unknown> = Promise.resolve(); // one after the other: the last list stays
  /** Returns whether the tools are stored. */
  const store = async (server: McpServer, tools: readonly OfferedTool[]): Promise<boolean> => {
    const storingThese = storing.then(() => attempt(() => storeTools(stateFolder, server, tools)));
    storing = storingThese;
    const stored = await storingThese;
    if (stored.kind === 'fault')
      warn(`the tools of the MCP server ${server.name} can't be stored: ${stored.fault.message}`);
    return stored.kind !== 'fault';
  };
  return async (remote) => {
    // `tools`: safe to declare. `needTasks`: names of those that are left out.
    const { tools, leftOut, needTasks } = offeredTools(remote);
    const { known, mayJoin, connection } = served();
    const { server } = connection;
    tellLeftOut(leftOut);
    const change = describeChange(server.name, known, tools);
    served().known = tools;
    if (change === null) return;
    // Asked before the wait below, since both may change meanwhile. A new server may still join.
    const isForNextSession = phase.isFrozen && !(joining !== undefined && mayJoin);
    if ((await store(server, tools)) && isForNextSession) report(change, change);
    // Like the change, this is not said again in a session that finds the same tools.
    if (needTasks.length > 0)
      report(
        'tasks',
        `the MCP server ${server.name} runs ${namesInWords(needTasks)} only as tasks, which ` +
          'Pawl does not support: they are not offered',
      );
  };
};

/**
 * Tells the user which members of a server's lists are left out: one line each, once a session.
 * `lines`: further ones, beside those that `connection.leftOut` names.
 */
const createLeftOutTeller = (
  served: () => SessionServer,
  warn: (text: string) => void,
): ((lines: readonly string[]) => void) => {
  const reported = new Set<string>();
  return (lines) => {
    const { connection } = served();
    const { name } = connection.server;
    const unreported = [...connection.leftOut(), ...lines].filter((line) => !reported.has(line));
    for (const line of unreported.slice(0, LISTED_MAX)) warn(`the MCP server ${name}: ${line}`);
    if (unreported.length > LISTED_MAX)
      warn(
        `the MCP server ${name}: ${unreported.length - LISTED_MAX} more are left out. ` +
          `pawl mcp test ${name} names them`,
      );
    for (const line of unreported) reported.add(line);
  };
};

/** A server of the session. It is not connected yet. */
const createServer = (
  server: McpServer,
  options: Omit<ServersOptions, 'servers'>,
  phase: Phase,
  asker: ServerAsker,
): SessionServer => {
  const { stateFolder, warn, joining, ...connecting } = options;
  const tellLeftOut = createLeftOutTeller(() => served, warn);
  const learn = createToolsListener(() => served, options, phase, tellLeftOut);
  const onTools = (tools: readonly RemoteTool[]): void => {
    served.learning = attempt(() => learn(tools)).then((learned) => {
      if (learned.kind === 'fault')
        warn(`the tools of the MCP server ${server.name} can't be read: ${learned.fault.message}`);
    });
  };
  const onOffers = (remote: RemoteOffers): void => {
    tellLeftOut([]);
    const offers = safeOffers(remote); // cut, and without what can't be listed
    if (JSON.stringify(offers) === JSON.stringify(served.offers)) return;
    served.offers = offers;
    // a later session lists them when it is connected
    void attempt(() => storeOffers(stateFolder, server, offers));
  };
  const onDeclined = (message: string): void => {
    served.declined += 1;
    if (served.declined > 1) return;
    warn(
      `the MCP server ${server.name} asks: ${firstCharacters(message, QUESTION_MAX)} Pawl can't ask ` +
        'you for it, and has declined',
    );
  };
  const onQuestion: AskUser = async (question, signal) => {
    const answer = await asker.ask(question, signal);
    if (answer === null) onDeclined(question.message);
    return answer ?? { action: 'decline' };
  };
  const served: SessionServer = {
    known: readTools(stateFolder, server),
    offers: readOffers(stateFolder, server),
    declined: 0,
    mayJoin: false,
    hasBegun: false,
    opening: null,
    learning: Promise.resolve(),
    hasFailed: false,
    connection: createConnection(server, {
      ...connecting,
      stateFolder,
      onTools,
      onOffers,
      onQuestion,
      onDeclined,
    }),
  };
  served.mayJoin = served.known === null;
  return served;
};

// ---- Servers whose tools are not known ----

/** How long the first request waits for servers whose tools are not known, in all. */
const WAIT_MS = 5_000;
const WAIT_WORDS = `${WAIT_MS / 1_000} s`;
/** A shorter wait is not told. */
const UNTOLD_MS = 1_000;

const serverNames = (servers: readonly SessionServer[]): string => {
  const names = servers.map(({ connection }) => connection.server.name);
  return `the MCP server${names.length > 1 ? 's' : ''} ${names.join(', ')}`;
};

const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
  });

/** Waits for servers whose tools are not known, and lets their tools join the session. */
class JoiningServers implements LateTools {
  /** Those whose tools were not known when the session began. */
  readonly #servers: readonly SessionServer[];
  readonly #options: Pick<ServersOptions, 'warn' | 'joining'>;
  /** Connects a server, once. */
  readonly #begin: (served: SessionServer) => Promise<void>;
  /** `DeclaredTools.declare`. */
  readonly #declare: DeclaredTools['declare'];
  /** Until when the first request waits; null before it. */
  #endsAt: number | null = null;
  /** The tools that have joined late, which happens once a session; null: not yet. */
  #late: readonly Tool[] | null = null;
  /** The servers that the request waits for now. */
  #waited: readonly SessionServer[] = [];

  constructor(
    servers: readonly SessionServer[],
    options: Pick<ServersOptions, 'warn' | 'joining'>,
    begin: (served: SessionServer) => Promise<void>,
    declare: DeclaredTools['declare'],
  ) {
    this.#servers = servers.filter(({ mayJoin }) => mayJoin);
    this.#options = options;
    this.#begin = begin;
    this.#declare = declare;
  }

  /** The servers of `#waited` that have not answered. */
  get unanswered(): readonly SessionServer[] {
    return this.#waited.filter((served) => this.#isExpected(served));
  }

  /** Called before each request. Returns the tools that join it. */
  async before({
    isFirst,
    declared,
    clock,
    signal,
  }: Parameters<LateTools['before']>[0]): Promise<readonly Tool[]> {
    if (signal.aborted) return [];
    // again, until the session declares them: a cancel may have kept it from that
    if (this.#late !== null) return this.#late.filter(({ name }) => !declared.has(name));
    const connecting = this.#servers.filter(({ mayJoin }) => mayJoin).map(this.#begin);
    // The model has not replied yet: another list of tools costs no cached prompt.
    if (isFirst) {
      if (this.#expected().length > 0) await this.#wait(clock, signal, Promise.all(connecting));
      return signal.aborted ? [] : this.#declare(this.#servers, declared);
    }
    const late = this.#servers.filter(({ mayJoin, known }) => mayJoin && known !== null);
    // One that is still expected holds back the others: tools join once a session.
    if (late.length === 0 || this.#expected().length > 0) return [];
    const tools = this.#declare(late, declared);
    this.#late = tools;
    if (tools.length > 0)
      this.#options.warn(
        `${serverNames(late)} answered: ${plural(tools.length, 'tool')} for the model from ` +
          'this request on',
      );
    // what they offer from now on is for the next session
    for (const served of this.#servers) served.mayJoin = false;
    return tools;
  }

  /** Waits until these servers have answered, or the time is up, and tells the user so. */
  async #wait(clock: Clock, signal: AbortSignal, ready: Promise<unknown>): Promise<void> {
    const { warn, joining } = this.#options;
    const now = clock.now();
    const hasWaitedBefore = this.#endsAt !== null; // the first request is sent once more
    this.#endsAt ??= now + WAIT_MS;
    if (this.#endsAt <= now) return;
    const waited = this.#expected();
    this.#waited = waited;
    const cancelHint = clock.after(UNTOLD_MS, () => {
      if (hasWaitedBefore || joining === 'waitQuietly') return;
      warn(
        `waiting at most ${WAIT_WORDS} for ${serverNames(this.unanswered)}, ` +
          'whose tools are not known yet',
      );
    });
    await waitAtMost(clock, this.#endsAt - now, Promise.race([ready, untilAborted(signal)]));
    cancelHint();
    if (this.#waited !== waited) return; // another request waits by now, and will tell
    const missing = this.unanswered;
    this.#waited = [];
    if (signal.aborted || missing.length === 0) return;
    this.#endsAt = 0; // a repeated request does not wait again, even if the clock is set back
    warn(
      `${serverNames(missing)} did not answer within ${WAIT_WORDS}: the model works without the tools, ` +
        'and gets them with a later request',
    );
  }

  /** The servers that may still answer. */
  #expected(): readonly SessionServer[] {
    return this.#servers.filter((served) => this.#isExpected(served));
  }

  #isExpected({ mayJoin, known, hasFailed }: SessionServer): boolean {
    return mayJoin && known === null && !hasFailed;
  }
}

/** The tools that a session declares. */
class DeclaredTools {
  /** Also those of requests that were never sent. */
  readonly #everDeclared: DeclaredTool[] = [];
  readonly #options: Omit<ServersOptions, 'servers'>;
  /** Faults that the user was warned of. */
  readonly #faults = new Set<string>();

  constructor(options: Omit<ServersOptions, 'servers'>) {
    this.#options = options;
  }

  /**
   * Declares the tools of these servers, and so ends their `mayJoin`. Returns those that the
   * session did not declare before. `declared`: the names that it declares.
   */
  declare(servers: readonly SessionServer[], declared: ReadonlySet<string>): readonly Tool[] {
    // a session that lost a request, or was forked, may declare less than was ever declared
    const before = this.#everDeclared.filter(({ declaredName }) => declared.has(declaredName));
    const toolsByServer = servers.map(({ connection, known }) => ({
      server: connection.server.name,
      tools: selectTools(connection.server, known ?? []), // those that the settings name
    }));
    // Names the tools for the model, and leaves out some beyond the limits: `faults` says which.
    const { tools, faults } = declareTools(toolsByServer, before);
    for (const fault of faults)
      if (!this.#faults.has(fault)) {
        this.#faults.add(fault);
        this.#options.warn(fault);
      }
    const added = tools.filter(({ declaredName }) => !declared.has(declaredName));
    const names = new Set(this.#everDeclared.map(({ declaredName }) => declaredName));
    this.#everDeclared.push(...tools.filter(({ declaredName }) => !names.has(declaredName)));
    for (const served of servers) if (served.known !== null) served.mayJoin = false;
    const byName = new Map(servers.map(({ connection }) => [connection.server.name, connection]));
    return added.flatMap((tool) => {
      const connection = byName.get(tool.server);
      return connection === undefined ? [] : [createMcpTool(tool, connection, this.#options)];
    });
  }

  namesFrom(name: string): readonly string[] {
    return this.#everDeclared.flatMap((tool) => (tool.server === name ? [tool.name] : []));
  }
}

// ---- The queue of questions to the user ----

/** Resolves with null if the question can't be asked here. The signal is not aborted yet. */
export type AskUserOrNot = (
  question: ServerQuestion,
  signal: AbortSignal,
) => Promise<ServerAnswer | null>;

type ServerAsker = {
  ask: AskUserOrNot;
  /** Who asks the user from now on. */
  use(ask: AskUserOrNot): void;
};

/** Asks the user one question of a server after the other. */
const createServerAsker = (): ServerAsker => {
  let current: AskUserOrNot | null = null;
  let before: Promise<unknown> = Promise.resolve();
  return {
    ask(question, signal) {
      const asked = before.then(() => {
        if (signal.aborted) return { action: 'cancel' } as const;
        return current === null ? null : current(question, signal);
      });
      before = asked.catch(() => undefined); // the caller gets the fault
      return asked;
    },
    use(ask) {
      current = ask;
    },
  };
};
