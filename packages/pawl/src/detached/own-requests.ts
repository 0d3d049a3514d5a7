/**
 * Own requests: what the user's terminals ask the process of a detached session, and what the
 * HTTP of `pawl serve` has no route for. `POST /v1/sessions/ID/own` with `{ "what": METHOD, … }`;
 * only the key of the session's owner may send it.
 *
 * From top to bottom: the user's commands that run; the question of an MCP server that waits; and
 * the table of methods, of which the client (live-client.ts) has its types.
 */

import { randomUUID } from 'node:crypto';
import type { ServerAnswer, ServerQuestion } from '@pawl/agent/extensions/mcp/question';
import type { SessionServers } from '@pawl/agent/extensions/mcp/session-servers';
import { attempt } from '@pawl/agent/platform/attempt';
import { systemClock } from '@pawl/agent/platform/clock';
import type { Model } from '@pawl/agent/ports/model';
import type { Session } from '@pawl/agent/session/create-agent';
import { ApiFault } from '@pawl/serve/api-fault';
import { questionCode } from '@pawl/serve/question-code';
import * as v from 'valibot';

/** The commands that users run with `!` in their terminals. */
class UserCommands {
  readonly #session: Session;
  /** Ends each running command, in the order in which they began. */
  readonly #ends: (() => Promise<void>)[] = [];

  constructor(session: Session) {
    this.#session = session;
  }

  /**
   * Resolves when the files before the command are stored, so that it can run. Rejects if they
   * can't be: then no command has begun, and none must end.
   */
  begin(): Promise<void> {
    return new Promise((resolve, reject) => {
      const settled = this.#session.whileUserRuns(
        () =>
          new Promise<void>((end) => {
            this.#ends.push(() => {
              end();
              return settled;
            });
            resolve();
          }),
      );
      settled.catch(reject);
    });
  }

  /**
   * Ends the oldest one, also if another window's has ended: the request does not say which. The
   * session stores files after each end, for all commands together, so they differ in nothing.
   */
  async end(): Promise<void> {
    await this.#ends.shift()?.();
  }
}

/** What an MCP server asks the user now. `number` grows whenever a question comes or ends. */
export type ServerQuestionNow = {
  readonly number: number;
  /** null: none waits. */
  readonly question: ServerQuestion | null;
  /** Its `questionCode`, which an answer carries. Nothing can be answered while none waits. */
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

type MethodParts = OwnSession & { readonly userCommands: UserCommands };

/** A method: the fields of its body, and what it does. The types of both follow from them. */
const method = <const F extends v.ObjectEntries, A>(
  fields: F,
  run: (parts: MethodParts, body: v.InferOutput<v.ObjectSchema<F, undefined>>) => A,
) => ({ body: v.object(fields), run });

const aboutModel = async (model: Promise<Model>): Promise<Pick<Model, 'id' | 'facts'>> => {
  const { id, facts } = await model;
  return { id, facts };
};

const rewindRequest = {
  request: v.object({
    at: v.number(),
    files: v.exactOptional(v.boolean()),
    conversation: v.exactOptional(v.boolean()),
    force: v.exactOptional(v.boolean()),
    editsOnly: v.exactOptional(v.boolean()),
    refs: v.exactOptional(v.boolean()),
  }),
};

const serverAnswer = v.variant('action', [
  v.object({
    action: v.literal('accept'),
    content: v.record(
      v.string(),
      v.union([v.string(), v.number(), v.boolean(), v.array(v.string())]),
    ),
  }),
  v.object({ action: v.picklist(['decline', 'cancel']) }),
]);

/** Each method by its name: the fields of its body, and its answer, which goes as JSON. */
const methods = {
  model: method({}, ({ session }) => aboutModel(session.model())),
  useModel: method({ id: v.string() }, ({ session }, { id }) => aboutModel(session.useModel(id))),
  jobs: method({}, ({ session }) =>
    session.jobs().map(({ jobId, command, status, output }) => ({
      jobId,
      command,
      status: status(),
      output: output().slice(-OUTPUT_CHARACTERS_MAX),
    })),
  ),
  killJob: method({ jobId: v.string() }, ({ session }, body) => {
    const job = session.jobs().find(({ jobId }) => jobId === body.jobId);
    if (job === undefined) throw new Error(`The session has no ${body.jobId}.`);
    return job.kill();
  }),
  servers: method({}, ({ servers }) => servers?.status() ?? null),
  reconnectServers: method({}, ({ servers }) => servers?.reconnect()),
  serverQuestion: method({ after: v.number() }, ({ serverQuestion }, { after }) =>
    serverQuestion.next(after),
  ),
  answerServer: method(
    { code: v.string(), answer: serverAnswer },
    ({ serverQuestion }, { code, answer }) => serverQuestion.answer(code, answer),
  ),
  timeline: method({}, ({ session }) => session.timeline()),
  planRewind: method(rewindRequest, ({ session }, { request }) => session.planRewind(request)),
  rewind: method(rewindRequest, ({ session }, { request }) => session.rewind(request)),
  redo: method({}, ({ session }) => session.redo()),
  undoCompaction: method({}, ({ session }) => session.undoCompaction()),
  userBegins: method({}, ({ userCommands }) => userCommands.begin()),
  userEnds: method({}, ({ userCommands }) => userCommands.end()),
};

export type OwnMethod = keyof typeof methods;
export type OwnBody<N extends OwnMethod> = Parameters<(typeof methods)[N]['run']>[1];
export type OwnAnswer<N extends OwnMethod> = Awaited<ReturnType<(typeof methods)[N]['run']>>;

const isMethod = (what: unknown): what is OwnMethod =>
  typeof what === 'string' && Object.hasOwn(methods, what);

/** Answers the requests about a session. */
export const createOwnRequests = (opened: OwnSession) => {
  const parts = { ...opened, userCommands: new UserCommands(opened.session) };
  return async (body: unknown): Promise<object> => {
    const what = typeof body === 'object' && body !== null && 'what' in body ? body.what : null;
    const asked = isMethod(what) ? methods[what] : null;
    const parsed = asked === null ? null : v.safeParse(asked.body, body);
    if (asked === null || !parsed?.success)
      throw new ApiFault('badRequest', 'The body asks for nothing known.');
    // Safe: the schema of this method has checked it.
    const answered = await attempt(async () => asked.run(parts, parsed.output as never));
    // why it can't be done is for the user, who asked for it
    if (answered.kind === 'fault') throw new ApiFault('conflict', answered.fault.message);
    return { result: answered.value ?? null };
  };
};
