import { realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import type { SessionInfo as ListedSession, ListSessionsResponse } from '@agentclientprotocol/sdk';
import { refusalOfWorkspace } from '@pawl/agent/api/refuse-workspace';
import type { McpServer } from '@pawl/agent/extensions/mcp-servers';
import { systemWords } from '@pawl/agent/platform/base/path-error-texts';
import type { SessionInfo } from '@pawl/agent/ports/journal';
import { attempt } from '@pawl/agent/session/attempt';
import { AcpSession } from './acp-session.js';
import type { AcpHost } from './host-interface.js';
import type { Client } from './replay-into-outbox.js';

/** Parameters that can't be used. The message is for the user. */
export class BadParameters extends Error {}

/** No session has this id. */
export class UnknownSession extends Error {
  readonly sessionId: string;

  constructor(sessionId: string) {
    super(`There is no session ${sessionId}.`);
    this.sessionId = sessionId;
  }
}

const PAGE = 50;

/** Folder and MCP servers, as the client names them. */
type Wanted = { readonly cwd: string; readonly servers: readonly McpServer[] };
/** What the client wants to see of a session that it opens again. */
type Shows = 'conversation' | 'nothing';
type Stored = Wanted & { readonly sessionId: string; readonly workspace: string; readonly shows: Shows };

/** The real path of a workspace. Throws BadParameters if it is not an absolute path of a folder. */
const realWorkspace = async (folder: string): Promise<string> => {
  if (!path.isAbsolute(folder)) throw new BadParameters(`cwd must be an absolute path, not '${folder}'.`);
  const found = await attempt(async () => ({ real: await realpath(folder), status: await stat(folder) }));
  if (found.kind === 'fault')
    throw new BadParameters(`cwd can't be opened: ${systemWords(found.fault) ?? found.fault.message}.`);
  if (!found.value.status.isDirectory()) throw new BadParameters(`cwd must be a folder: ${folder}`);
  return found.value.real;
};

/** As `realWorkspace`, for a session: also throws where other programs would obey what the agent writes. */
const sessionWorkspace = async (folder: string): Promise<string> => {
  const real = await realWorkspace(folder);
  const refusal = refusalOfWorkspace(real, process.env);
  if (refusal !== null) throw new BadParameters(refusal);
  return real;
};

/** A session without a title has never had a prompt: there is nothing to open. */
const isListed = (info: SessionInfo, workspace: string | null): boolean =>
  info.kind === 'agent' &&
  info.unreadable === undefined &&
  info.title !== '' &&
  (workspace === null || info.workspace === workspace);

const listed = ({ sessionId, workspace, title, changedAt }: SessionInfo): ListedSession => ({
  sessionId,
  cwd: workspace,
  title,
  updatedAt: new Date(changedAt).toISOString(),
});

/** The sessions that are open for one client. */
export class AcpSessions {
  readonly #host: AcpHost;
  readonly #open = new Map<string, AcpSession>();
  /** Openings of stored sessions that are under way: a second one joins the first. */
  readonly #opening = new Map<string, Promise<AcpSession>>();
  /** Openings of any kind, so that none outlives `closeAll`. */
  readonly #begun = new Set<Promise<AcpSession>>();

  constructor(host: AcpHost) {
    this.#host = host;
  }

  /** Throws an UnknownSession if it is not open here. */
  get(sessionId: string): AcpSession {
    const session = this.#open.get(sessionId);
    if (session === undefined) throw new UnknownSession(sessionId);
    return session;
  }

  async create(client: Client, { cwd, servers }: Wanted): Promise<AcpSession> {
    const workspace = await sessionWorkspace(cwd);
    return this.#begin(AcpSession.open(this.#host, client, { workspace, servers, resume: null }));
  }

  /** Opens a stored session; one that is open here already is the same. */
  async find(client: Client, wanted: Omit<Stored, 'workspace'>): Promise<AcpSession> {
    const { sessionId, cwd } = wanted;
    const workspace = await sessionWorkspace(cwd);
    const session = await this.#findOpen(client, { ...wanted, workspace });
    if (session.workspace !== workspace) throw wrongFolder(sessionId, session.workspace, cwd);
    return session;
  }

  /** Cancels the turn of a session. One that is not open has none. */
  cancel(sessionId: string): void {
    this.#open.get(sessionId)?.cancel();
  }

  /** Closes a session. One that is not open is closed already. */
  async close(sessionId: string): Promise<void> {
    const session = this.#open.get(sessionId);
    this.#open.delete(sessionId);
    await session?.close();
  }

  /** Deletes a stored session. One that is open for this client is closed first. */
  async delete(sessionId: string): Promise<void> {
    await this.#opening.get(sessionId)?.catch(() => undefined); // that request tells its fault
    await this.close(sessionId);
    await this.#host.journals.delete(sessionId);
  }

  /** Closes all sessions, also those that are still being opened. Never rejects. */
  async closeAll(): Promise<void> {
    const late = [...this.#begun].map((begun) => begun.then(({ id }) => this.close(id)));
    const open = [...this.#open.keys()].map((sessionId) => this.close(sessionId));
    await Promise.allSettled([...late, ...open]);
  }

  /** A page of the stored sessions, newest first. The cursor is the last session of the page before. */
  async list(cwd: string | null, cursor: string | null): Promise<ListSessionsResponse> {
    const workspace = cwd === null ? null : await realWorkspace(cwd);
    const sessions: ListedSession[] = [];
    let isPast = cursor === null;
    for await (const info of this.#host.journals.list()) {
      if (isPast && isListed(info, workspace)) {
        const last = sessions.at(-1);
        if (last !== undefined && sessions.length === PAGE) return { sessions, nextCursor: last.sessionId };
        sessions.push(listed(info));
      }
      if (info.sessionId === cursor) isPast = true;
    }
    if (isPast) return { sessions };
    throw new BadParameters('The cursor is of another list. List the sessions again from the start.');
  }

  async #findOpen(client: Client, request: Stored): Promise<AcpSession> {
    const { sessionId } = request;
    const known = this.#open.get(sessionId) ?? this.#opening.get(sessionId);
    if (known !== undefined) return known;
    const opening = this.#begin(this.#openStored(client, request));
    this.#opening.set(sessionId, opening);
    try {
      return await opening;
    } finally {
      this.#opening.delete(sessionId);
    }
  }

  #openStored(client: Client, { sessionId, workspace, servers, shows }: Stored): Promise<AcpSession> {
    const accept = async (recorded: string): Promise<void> => {
      const real = await attempt(() => realpath(recorded));
      if (real.kind === 'fault' || real.value !== workspace)
        throw wrongFolder(sessionId, recorded, workspace);
    };
    const resume = { id: sessionId, accept, shows };
    return AcpSession.open(this.#host, client, { workspace, servers, resume });
  }

  async #begin(opening: Promise<AcpSession>): Promise<AcpSession> {
    this.#begun.add(opening);
    try {
      const session = await opening;
      this.#open.set(session.id, session);
      void session.ended.then(() => {
        if (this.#open.get(session.id) === session) this.#open.delete(session.id);
      });
      return session;
    } finally {
      this.#begun.delete(opening);
    }
  }
}

const wrongFolder = (sessionId: string, recorded: string, cwd: string): BadParameters =>
  new BadParameters(
    `The session ${sessionId} works in ${recorded}, not in ${cwd}. Open that folder in the editor. ` +
      `If it has moved: pawl --resume ${sessionId} --workspace ${cwd}`,
  );
