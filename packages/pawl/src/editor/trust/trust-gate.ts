import type { State } from '@pawl/agent/machine/state';
import { commandsUpdate } from '../available-commands.js';
import type { AcpHost, OpenedSession } from '../host-interface.js';
import type { Outbox } from '../outbox.js';
import type { ReopenableSession } from '../reopenable-session.js';
import type { Client } from '../replay-into-outbox.js';
import { noticeUpdate } from '../session-updates.js';
import { askTrustQuestions } from './ask-trust-questions.js';

/**
 * What the project wants to run is asked about once, before the first turn. Until then a session runs without it; once
 * something was allowed, the session is opened again and has it.
 */

type Parts = {
  readonly host: AcpHost;
  readonly client: Client;
  readonly outbox: Outbox;
  readonly live: ReopenableSession;
  readonly workspace: string;
  openAgain(): Promise<OpenedSession>;
};

export class TrustGate {
  readonly #parts: Parts;
  #asking: Promise<void> | null = null;
  #withdrawn = new AbortController();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Resolves when the user has answered, or the question was withdrawn. Rejects if the session could not be opened again.
   * While something runs in the session, nothing is asked: a later turn will.
   */
  async pass({ name }: State): Promise<void> {
    const session = await this.#parts.live.current();
    const isAtRest = name === 'Ready' || name === 'WaitingForUserInput';
    if (this.#asking === null && (!isAtRest || session.jobs().length > 0)) return;
    this.#asking ??= this.#settle();
    await this.#asking;
  }

  /** Withdraws the open question: that is no answer, and the next session asks again. */
  withdraw(): void {
    this.#withdrawn.abort();
  }

  async #settle(): Promise<void> {
    const { host, client, outbox, live, workspace, openAgain } = this.#parts;
    this.#withdrawn = new AbortController();
    const { signal } = this.#withdrawn;
    const tell = (text: string): void => outbox.push(noticeUpdate(text, 'warning', client.features));
    const questions = await host.trustQuestions(workspace, tell);
    const isAllowed = await askTrustQuestions(questions, { client, sessionId: live.id, outbox, signal });
    if (!isAllowed) return;
    await live.reopen(openAgain);
    outbox.push(commandsUpdate(host.commands, live.prompts));
  }
}
