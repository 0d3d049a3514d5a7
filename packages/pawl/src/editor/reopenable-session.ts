/** Opens a session for an editor (ACP), and a session that can be reopened. */

import type { McpServer } from '@pawl/agent/extensions/mcp/server-config';
import type { AskUserOrNot } from '@pawl/agent/extensions/mcp/session-servers';
import type { JournalStep } from '@pawl/agent/journal/steps';
import { attempt } from '@pawl/agent/platform/attempt';
import type { Watcher } from '@pawl/agent/ports/session';
import type { Session } from '@pawl/agent/session/create-agent';
import type { SessionRights } from '@pawl/agent/session/session-settings';
import { type Opened, openFromFlags } from '../sessions/open-session.js';
import type { SessionPrompts } from '../sessions/typed-input.js';
import { newSessionFlags, type RunFlags, storedSessionFlags } from '../settings/flags.js';

/** A session to open again. */
export type ResumeRequest = {
  readonly id: string;
  /** Throws if the session must not be opened. `workspace`: the folder that it works in. */
  accept(workspace: string): Promise<void>;
  /** Rights of a session that was open a moment ago. */
  readonly rights?: SessionRights;
  /** Called with every step of the session so far, in order; null if nobody wants to see them. */
  readonly visit: ((step: JournalStep) => void) | null;
};

export type SessionRequest = {
  /** Real absolute path of the workspace. */
  readonly workspace: string;
  /** Null for a new session. */
  readonly resume: ResumeRequest | null;
  /** MCP servers that the editor gives to the session. */
  readonly servers: readonly McpServer[];
  /** Called with every step, beginning with the first. */
  readonly watcher: Watcher;
  /** Receives warnings for the user, one line each. */
  warn(text: string): void;
};

export type OpenedSession = Pick<Opened, 'session' | 'prompts' | 'servers'>;

/** Opens a session from flags and configuration. */
export const openForEditor = (
  flags: RunFlags,
  { workspace, resume, servers, watcher, warn }: SessionRequest,
): Promise<OpenedSession> => {
  const sessionFlags = { ...flags, workspace };
  if (resume === null) return openFromFlags(sessionFlags, 'editor', { watcher, warn, servers });
  const { id, visit, accept, rights } = resume;
  return openFromFlags(sessionFlags, 'editor', {
    watcher,
    warn,
    servers,
    resume: id,
    ...(visit === null ? {} : { visit }),
    ...(rights === undefined ? {} : { rights }),
    async flagsFor({ settings, origin }) {
      await accept(settings.workspace); // throws if it works in another folder
      // A session of this user keeps its model. One from elsewhere is not believed that far.
      return {
        ...(origin === 'own'
          ? storedSessionFlags(flags, (settings.primary ?? settings).model)
          : newSessionFlags(flags)),
        workspace,
      };
    },
  });
};

/**
 * A session that can be closed and opened again under its id, so that it gets what the user has
 * just allowed.
 *
 * 1. Its users wait until it is open again. They never reach the closed one.
 * 2. Once it was closed for good it does not come back, not even if it is being opened again at
 *    that moment.
 */
export class ReopenableSession {
  #opened: OpenedSession;
  #reopening: Promise<void> | null = null;
  #isClosed = false;
  #end: () => void = () => undefined;
  /** Resolves when it has ended for good, also by a fault. */
  readonly ended = new Promise<void>((resolve) => {
    this.#end = resolve;
  });

  readonly #ask: AskUserOrNot;

  /** `ask`: answers the questions of the session's MCP servers. */
  constructor(opened: OpenedSession, ask: AskUserOrNot) {
    this.#opened = opened;
    this.#ask = ask;
    this.#follow();
  }

  get id(): string {
    return this.#opened.session.id;
  }

  get prompts(): SessionPrompts {
    return this.#opened.prompts;
  }

  /** The open session. */
  async current(): Promise<Session> {
    // If it could not be opened again, the closed one refuses whatever is asked of it.
    await attempt(() => this.#reopening);
    return this.#opened.session;
  }

  /** Rejects if it can't be opened again; then it has ended. */
  reopen(open: () => Promise<OpenedSession>): Promise<void> {
    const reopening = this.#replace(open).finally(() => {
      this.#reopening = null;
      this.#follow();
    });
    this.#reopening = reopening;
    return reopening;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const session = await this.current();
    await session.close();
  }

  async #replace(open: () => Promise<OpenedSession>): Promise<void> {
    await this.#opened.session.close();
    if (!this.#isClosed) this.#opened = await open();
  }

  /** Also after a reopening that failed: the session is then the closed one, and this ends. */
  #follow(): void {
    const { session, servers } = this.#opened;
    servers?.answerWith(this.#ask);
    const endIfLast = (): void => {
      if (this.#opened.session === session && this.#reopening === null) this.#end();
    };
    session.ended.then(endIfLast, endIfLast); // a fault ends the turn, and its waiters get it
  }
}
