import type { Redactor } from '../../../platform/secrets/redactor.js';
import { attempt } from '../../../session/attempt.js';
import type { Connection } from '../connection.js';
import { declaredName } from '../tools/declare-to-model.js';
import type { DeclaredPrompt, ServerOffers } from './offered-prompts-and-resources.js';
import { promptText, resourceText } from './prompt-and-resource-text.js';
import { argumentsFor } from './prompt-arguments.js';

/** The prompts and resources of a session's servers, for the user to name. The model is not told of them. */
export type SessionOffers = {
  /** What the servers offered when they were last connected. */
  prompts(): readonly DeclaredPrompt[];
  resources(): readonly DeclaredResource[];
  /** Whether the session has a server of this name. */
  hasServer(name: string): boolean;
  /** The text of a prompt, filled in with the words of the user. Rejects with a sentence. */
  prompt(declared: DeclaredPrompt, words: string): Promise<string>;
  /** The text of a resource. Rejects with a sentence. */
  resource(server: string, uri: string): Promise<string>;
};

export type DeclaredResource = { readonly server: string; readonly uri: string; readonly about: string };

export type OfferingServer = { readonly connection: Connection; offers: ServerOffers };

/** A user waits for the answer, and has typed a message that must not be lost. */
const ANSWER_MS = 20_000;

const inTime = async <T>(
  server: string,
  answerMs: number,
  ask: (signal: AbortSignal) => Promise<T>,
): Promise<T> => {
  const late = AbortSignal.timeout(answerMs);
  const answered = await attempt(() => ask(late));
  if (answered.kind === 'done') return answered.value;
  if (late.aborted) throw new Error(`the MCP server ${server} did not answer within ${answerMs / 1_000} s`);
  throw answered.fault;
};

export const createSessionOffers = (
  servers: readonly OfferingServer[],
  redactor: Redactor,
  answerMs = ANSWER_MS,
): SessionOffers => {
  const byName = new Map(servers.map((one) => [one.connection.server.name, one]));
  const connectionOf = (name: string): Connection => {
    const found = byName.get(name);
    if (found === undefined) throw new Error(`there is no MCP server ${name}`);
    return found.connection;
  };
  return {
    prompts: () =>
      servers.flatMap(({ connection: { server }, offers }) =>
        offers.prompts.map((prompt) => ({
          ...prompt,
          server: server.name,
          declaredName: declaredName(server.name, prompt.name),
        })),
      ),
    resources: () =>
      servers.flatMap(({ connection: { server }, offers }) =>
        offers.resources.map(({ uri, name }) => ({ server: server.name, uri, about: name })),
      ),
    hasServer: (name) => byName.has(name),
    async prompt(declared, words) {
      const given = argumentsFor(declared, words);
      const { server, name } = declared;
      const got = await inTime(server, answerMs, (signal) =>
        connectionOf(server).getPrompt(name, given, signal),
      );
      return redactor.clean(promptText(got));
    },
    async resource(server, uri) {
      const got = await inTime(server, answerMs, (signal) => connectionOf(server).readResource(uri, signal));
      return redactor.clean(resourceText(`@${server}:${uri}`, got));
    },
  };
};
