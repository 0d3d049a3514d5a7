/**
 * Requests of terminals to the process of a detached session, for what its server has no route for:
 * `POST /v1/sessions/ID/own` with `{ "what": … }`. Only the user's own key may send them.
 */

import { randomUUID } from 'node:crypto';
import type { ServerAnswer, ServerQuestion } from '@pawl/agent/extensions/mcp/question';
import type { SessionServers } from '@pawl/agent/extensions/mcp/session-servers';
import { attempt } from '@pawl/agent/platform/attempt';
import { systemClock } from '@pawl/agent/platform/clock';
import type { Session } from '@pawl/agent/session/create-agent';
import { ApiFault } from '@pawl/serve/api-fault';
import { questionCode } from '@pawl/serve/question-code';
import * as v from 'valibot';

const rewindSchema = v.object({
  at: v.number(),
  files: v.exactOptional(v.boolean()),
  conversation: v.exactOptional(v.boolean()),
  force: v.exactOptional(v.boolean()),
  editsOnly: v.exactOptional(v.boolean()),
  refs: v.exactOptional(v.boolean()),
});

const serverAnswerSchema = v.variant('action', [
  v.object({
    action: v.literal('accept'),
    content: v.record(
      v.string(),
      v.union([v.string(), v.number(), v.boolean(), v.array(v.string())]),
    ),
  }),
  v.object({ action: v.picklist(['decline', 'cancel']) }),
]);

const withoutFields = <const W extends string>(what: W) => v.object({ what: v.literal(what) });

const requestSchema = v.variant('what', [
  withoutFields('model'),
  withoutFields('jobs'),
  withoutFields('servers'),
  withoutFields('reconnectServers'),
  withoutFields('timeline'),
  withoutFields('redo'),
  withoutFields('undoCompaction'),
  withoutFields('userBegins'),
  withoutFields('userEnds'),
  v.object({ what: v.literal('serverQuestion'), after: v.number() }),
  v.object({ what: v.literal('answerServer'), code: v.string(), answer: serverAnswerSchema }),
  v.object({ what: v.literal('useModel'), id: v.string() }),
  v.object({ what: v.literal('killJob'), jobId: v.string() }),
  v.object({ what: v.literal('planRewind'), request: rewindSchema }),
  v.object({ what: v.literal('rewind'), request: rewindSchema }),
]);

/** The commands that users run with `!` in their terminals: begun, and not ended. */
class UserCommands {
  readonly #session: Session;
  #running: { end(): void; readonly settled: Promise<void> }[] = [];

  constructor(session: Session) {
    this.#session = session;
  }

  /** Resolves when the files before the command are stored, so that it can run. */
  begin(): Promise<void> {
    return new Promise((resolve, reject) => {
      let end = (): void => undefined;
      const settled = this.#session.whileUserRuns(
        () =>
          new Promise<void>((done) => {
            end = done;
            resolve();
          }),
      );
      settled.catch(reject);
      this.#running.push({ end: () => end(), settled });
    });
  }

  /**
   * Ends the oldest one, also if another window's has ended: the request does not say which. The
   * session stores files after each end, for all commands together, so they differ in nothing.
   */
  async end(): Promise<void> {
    const command = this.#running.shift();
    command?.end();
    await command?.settled;
  }
}

/** What MCP servers ask the user now. `number` grows whenever a question comes or ends. */
export type ServerQuestionNow = {
  readonly number: number;
  /** null: none waits. */
  readonly question: ServerQuestion | null;
  /** Its `questionCode`, which an answer carries; that of no question if none waits. */
  readonly code: string;
  /** How the last one ended, in words. */
  readonly ended: string;
};

/** After this time `next` answers without a change, so that a terminal that is gone is not kept. */
const LONG_POLL_MS = 20_000;

const NOT_ASKED = 'The question was answered elsewhere, or is not asked any more.';

/** The question of an MCP server that waits for the user. Servers ask one after another. */
export class WaitingServerQuestion {
  /** Another process of the session counts from 0 too, and may ask the same again. */
  readonly #processId = randomUUID();
  #now: ServerQuestionNow = { number: 0, question: null, code: '', ended: '' };
  /** Ends the question that waits; does nothing if none does. */
  #end = (_answer: ServerAnswer, _ended: string): void => undefined;
  readonly #listeners = new Set<() => void>();
  readonly #limitMs: () => number | null;

  /** `limitMs`: the user's time limit for answers; null: a question waits for ever. */
  constructor(limitMs: () => number | null) {
    this.#limitMs = limitMs;
  }

  get now(): ServerQuestionNow {
    return this.#now;
  }

  ask(question: ServerQuestion, signal: AbortSignal): Promise<ServerAnswer> {
    return new Promise((resolve) => {
      const cancel = (why: string): void => this.#end({ action: 'cancel' }, why);
      const withdraw = (): void => cancel('withdrawn: the call has ended');
      const limitMs = this.#limitMs();
      const cancelLimit =
        limitMs === null
          ? null
          : systemClock.after(limitMs, () => cancel('nobody answered in time'));
      this.#end = (answer, ended) => {
        this.#end = () => undefined;
        signal.removeEventListener('abort', withdraw);
        cancelLimit?.();
        this.#change(null, ended);
        resolve(answer);
      };
      signal.addEventListener('abort', withdraw, { once: true });
      this.#change(question, this.#now.ended);
    });
  }

  /** `code`: of the question that was shown. Throws if it is not asked any more. */
  answer(code: string, answer: ServerAnswer): void {
    if (this.#now.question === null || this.#now.code !== code) throw new Error(NOT_ASKED);
    this.#end(answer, 'answered elsewhere');
  }

  /** What is asked, once it is no longer number `after`, or after some seconds. */
  next(after: number): Promise<ServerQuestionNow> {
    if (this.#now.number !== after) return Promise.resolve(this.#now);
    return new Promise((resolve) => {
      const finish = (): void => {
        clearTimeout(timer);
        stop();
        resolve(this.#now);
      };
      const stop = this.listen(finish);
      const timer = setTimeout(finish, LONG_POLL_MS).unref();
    });
  }

  /** Calls at each change, until the returned function is called. */
  listen(changed: () => void): () => void {
    this.#listeners.add(changed);
    return () => void this.#listeners.delete(changed);
  }

  #change(question: ServerQuestion | null, ended: string): void {
    const number = this.#now.number + 1;
    const code = questionCode([this.#processId, number, question]);
    this.#now = { number, question, code, ended };
    for (const changed of [...this.#listeners]) changed();
  }
}

/** Characters of each job's output that are sent: the last ones. */
const OUTPUT_CHARACTERS_MAX = 256 * 1024;

type OwnSession = {
  readonly session: Session;
  readonly servers: Pick<SessionServers, 'status' | 'reconnect'> | null;
  readonly serverQuestion: WaitingServerQuestion;
};

/** Answers the requests about a session. */
export const createOwnRequests = ({ session, servers, serverQuestion }: OwnSession) => {
  const userCommands = new UserCommands(session);
  const answer = async (request: v.InferOutput<typeof requestSchema>): Promise<unknown> => {
    switch (request.what) {
      case 'model':
      case 'useModel': {
        const { id, facts } =
          request.what === 'model' ? await session.model() : await session.useModel(request.id);
        return { id, facts };
      }
      case 'servers':
        return servers?.status() ?? null;
      case 'reconnectServers':
        return servers?.reconnect();
      case 'serverQuestion':
        return serverQuestion.next(request.after);
      case 'answerServer':
        return serverQuestion.answer(request.code, request.answer);
      case 'timeline':
        return session.timeline();
      case 'planRewind':
        return session.planRewind(request.request);
      case 'rewind':
        return session.rewind(request.request);
      case 'redo':
        return session.redo();
      case 'undoCompaction':
        return session.undoCompaction();
      case 'userBegins':
        return userCommands.begin();
      case 'userEnds':
        return userCommands.end();
      case 'killJob':
        return session
          .jobs()
          .find(({ jobId }) => jobId === request.jobId)
          ?.kill();
      case 'jobs':
        return session.jobs().map(({ jobId, command, status, output }) => ({
          jobId,
          command,
          status: status(),
          output: output().slice(-OUTPUT_CHARACTERS_MAX),
        }));
      default:
        return request satisfies never;
    }
  };
  return async (body: unknown): Promise<object> => {
    const parsed = v.safeParse(requestSchema, body);
    if (!parsed.success) throw new ApiFault('badRequest', 'The body asks for nothing known.');
    const answered = await attempt(() => answer(parsed.output));
    // why it can't be done is for the user, who asked for it
    if (answered.kind === 'fault') throw new ApiFault('conflict', answered.fault.message);
    return { result: answered.value ?? null };
  };
};
