import type { Session } from '@pawl/agent/api/create-agent';
import type { AskUserOrNot } from '@pawl/agent/extensions/mcp/questions/ask-server-questions';
import { attempt } from '@pawl/agent/session/attempt';
import type { EditorPrompts, OpenedSession } from './host-interface.js';

/**
 * A session that can be closed and opened again under its id, so that it gets what the user has just allowed.
 *
 * 1. Its users wait until it is open again. They never reach the closed one.
 * 2. Once it was closed for good it does not come back, not even if it is being opened again at that moment.
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

  #follow(): void {
    const { session, servers } = this.#opened;
    servers?.answerWith(this.#ask);
    const follow = (): void => {
      if (this.#opened.session === session && this.#reopening === null) this.#end();
    };
    session.ended.then(follow, follow); // a fault is told to whoever waits for the turn
  }
}
