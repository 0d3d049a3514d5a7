/**
 * What the terminals of a detached session ask of its process beside inputs: `POST
 * /v1/sessions/ID/own` with `{ "what": … }`, for the user alone.
 */

import type { SessionServers } from '@pawl/agent/extensions/mcp/session-servers';
import { attempt } from '@pawl/agent/platform/attempt';
import type { Session } from '@pawl/agent/session/create-agent';
import { ApiFault } from '@pawl/serve/api-fault';
import * as v from 'valibot';

const rewindSchema = v.object({
  at: v.number(),
  files: v.exactOptional(v.boolean()),
  conversation: v.exactOptional(v.boolean()),
  force: v.exactOptional(v.boolean()),
  refs: v.exactOptional(v.boolean()),
});

const plain = <const W extends string>(what: W) => v.object({ what: v.literal(what) });

const requestSchema = v.variant('what', [
  plain('model'),
  plain('jobs'),
  plain('servers'),
  plain('reconnectServers'),
  plain('timeline'),
  plain('redo'),
  plain('undoCompaction'),
  plain('userBegins'),
  plain('userEnds'),
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

  async end(): Promise<void> {
    const command = this.#running.shift();
    command?.end();
    await command?.settled;
  }
}

/** Bytes of the output of each job. */
const OUTPUT_MAX = 256 * 1024;

type OwnSession = {
  readonly session: Session;
  readonly servers: Pick<SessionServers, 'status' | 'reconnect'> | null;
};

/** Answers such requests about a session. */
export const createOwnRequests = ({ session, servers }: OwnSession) => {
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
          output: output().slice(-OUTPUT_MAX),
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
