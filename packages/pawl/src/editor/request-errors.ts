import { type AgentContext, type JsonRpcId, RequestError } from '@agentclientprotocol/sdk';
import { BadParameters, UnknownSession } from './acp-sessions.js';
import { BadOption } from './config-options.js';
import type { AcpHost } from './host-interface.js';
import { BadPrompt } from './prompt-blocks.js';
import { TurnFailed } from './turn-answer.js';

/** The errors of requests. Their messages are for the user. */

const AUTH_REQUIRED = -32000;
const NOT_FOUND = -32002;
const INVALID_PARAMS = -32602;
const INTERNAL = -32603;

/** Errors with words for the user. `data` says the kind of a failed turn. */
const errorFor = (host: AcpHost, error: unknown): RequestError => {
  if (error instanceof RequestError) return error;
  if (error instanceof BadParameters || error instanceof BadPrompt || error instanceof BadOption)
    return new RequestError(INVALID_PARAMS, error.message);
  if (error instanceof UnknownSession)
    return new RequestError(NOT_FOUND, error.message, { sessionId: error.sessionId });
  if (error instanceof TurnFailed)
    return new RequestError(INTERNAL, error.message, { kind: error.error, message: error.message });
  const { kind, reason, message } = host.describeError(error);
  if (kind === 'configuration') return new RequestError(AUTH_REQUIRED, message, { kind: reason, message });
  if (reason === 'notFound') return new RequestError(NOT_FOUND, message);
  return new RequestError(INTERNAL, message, { kind: reason, message });
};

export type Request<Params> = {
  readonly params: Params;
  readonly client: AgentContext;
  readonly requestId: JsonRpcId;
  readonly signal: AbortSignal;
};

/** A handler whose errors have a code and words. */
export const answering =
  <Params, Answer>(host: AcpHost, answer: (request: Request<Params>) => Answer | Promise<Answer>) =>
  async (request: Request<Params>): Promise<Answer> => {
    try {
      return await answer(request);
    } catch (error) {
      throw errorFor(host, error);
    }
  };
