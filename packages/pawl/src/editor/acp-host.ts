/**
 * What the agent of an editor (ACP) needs of the program around it, as a type (`AcpHost`); and a
 * session that can be reopened.
 */

import type { McpServer } from '@pawl/agent/extensions/mcp/server-config';
import type { AskUserOrNot, SessionServers } from '@pawl/agent/extensions/mcp/session-servers';
import type { InspectableStore } from '@pawl/agent/journal/reader';
import type { JournalStep } from '@pawl/agent/journal/steps';
import { attempt } from '@pawl/agent/platform/attempt';
import type { Watcher } from '@pawl/agent/ports/session';
import type { Session } from '@pawl/agent/session/create-agent';
import type { SessionRights } from '@pawl/agent/session/session-settings';
import type { ProjectQuestion } from '../sessions/project-trust.js';

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

/** A slash command that the editor offers. `hint` describes its argument; null if it takes none. */
export type EditorCommand = {
  readonly name: string;
  readonly description: string;
  readonly hint: string | null;
};

/** The skills and commands of a session's folder. */
export type EditorPrompts = {
  /** Names that can be typed after `/`. */
  readonly choices: readonly { readonly text: string; readonly about: string }[];
  /** Whether `expand` may change this text. */
  expands(typed: string): boolean;
  /**
   * The prompt for a typed `/NAME WORDS`; other texts as they are. `fault`: why it could not be
   * read.
   */
  expand(typed: string): Promise<{ readonly text: string; readonly fault: string | null }>;
};

export type OpenedSession = {
  readonly session: Session;
  readonly prompts: EditorPrompts;
  /** Null without MCP servers. */
  readonly servers: Pick<SessionServers, 'answerWith'> | null;
};

/** An error for the user. `configuration`: the user has to set something up, for example a key. */
type DescribedError = {
  readonly kind: 'configuration' | 'other';
  readonly reason: string;
  readonly message: string;
};

export type AcpHost = {
  readonly version: string;
  readonly journals: InspectableStore;
  open(request: SessionRequest): Promise<OpenedSession>;
  readonly commands: readonly EditorCommand[];
  /** Runs one of the commands; resolves with what it prints. Never rejects. */
  runCommand(session: Session, name: string, words: string): Promise<string>;
  /** Ids of the models that can be chosen now, besides the session's own. */
  models(): readonly string[];
  /**
   * Questions about programs of the project. They do not run in a session before the user has
   * answered.
   */
  trustQuestions(
    workspace: string,
    warn: (text: string) => void,
  ): Promise<readonly ProjectQuestion[]>;
  describeError(error: unknown): DescribedError;
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

  get prompts(): EditorPrompts {
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
