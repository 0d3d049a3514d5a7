/**
 * The prompts and resources that MCP servers offer to the user. A prompt is a text of the server
 * that the user sends to the model; a resource is something that the user attaches.
 */

import type {
  ContentBlock,
  GetPromptResult,
  ReadResourceResult,
  Prompt as RemotePrompt,
  Resource as RemoteResource,
} from '@modelcontextprotocol/client';
import { attempt } from '../../platform/attempt.js';
import { codeFence, firstCharacters } from '../../platform/text.js';
import { isTable } from '../../platform/untrusted-input.js';
import type { Redactor } from '../../secrets/redactor.js';
import type { Connection } from './connection.js';
import { declaredName } from './declare-tools.js';

/**
 * The prompts and resources of a session's servers, for the user to name. The model does not see
 * them.
 */
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

type DeclaredResource = { readonly server: string; readonly uri: string; readonly about: string };

export type OfferingServer = { readonly connection: Connection; offers: ServerOffers };

/** A user waits for the answer, and has typed a message that must not be lost. */
const ANSWER_MS = 20_000;

/** Asks a server, with a time limit. */
const inTime = async <T>(
  server: string,
  answerMs: number,
  ask: (signal: AbortSignal) => Promise<T>,
): Promise<T> => {
  const timeIsUp = AbortSignal.timeout(answerMs);
  const answered = await attempt(() => ask(timeIsUp));
  if (answered.kind === 'done') return answered.value;
  if (timeIsUp.aborted)
    throw new Error(`the MCP server ${server} did not answer within ${answerMs / 1_000} s`);
  throw answered.fault;
};

export const createSessionOffers = (
  servers: readonly OfferingServer[],
  redactor: Redactor,
  answerMs = ANSWER_MS,
): SessionOffers => {
  const byName = new Map(servers.map((one) => [one.connection.server.name, one]));
  const findConnection = (name: string): Connection => {
    const server = byName.get(name);
    if (server === undefined) throw new Error(`there is no MCP server ${name}`);
    return server.connection;
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
      const args = parseArguments(declared, words);
      const { server, name } = declared;
      const result = await inTime(server, answerMs, (signal) =>
        findConnection(server).getPrompt(name, args, signal),
      );
      return redactor.clean(promptText(result));
    },
    async resource(server, uri) {
      const result = await inTime(server, answerMs, (signal) =>
        findConnection(server).readResource(uri, signal),
      );
      return redactor.clean(resourceText(`@${server}:${uri}`, result));
    },
  };
};

// ---- The prompts and resources of one server, safe to list ----

type OfferedPrompt = {
  readonly name: string;
  readonly description: string;
  readonly arguments: readonly { readonly name: string; readonly required: boolean }[];
};

/** `declaredName`: `mcp__server__prompt`, as the user types it after `/`. */
type DeclaredPrompt = OfferedPrompt & { readonly server: string; readonly declaredName: string };

type OfferedResource = { readonly uri: string; readonly name: string };

export type ServerOffers = {
  readonly prompts: readonly OfferedPrompt[];
  readonly resources: readonly OfferedResource[];
};

export const NO_OFFERS: ServerOffers = { prompts: [], resources: [] };

const PROMPTS_MAX = 100;
const ARGUMENTS_MAX = 20;
const RESOURCES_MAX = 1_000;
const NAME_MAX = 200;
const URI_MAX = 1_000;
const DESCRIPTION_MAX = 300;

/** Of equal keys the first counts. */
const distinctBy = <T>(all: readonly T[], keyOf: (one: T) => string): readonly T[] => {
  const byKey = new Map<string, T>();
  for (const one of all) if (!byKey.has(keyOf(one))) byKey.set(keyOf(one), one);
  return [...byKey.values()];
};

const oneLine = (text: string): string =>
  firstCharacters(text.replace(/\s+/g, ' ').trim(), DESCRIPTION_MAX);

export const offeredPrompts = (remote: readonly RemotePrompt[]): readonly OfferedPrompt[] =>
  distinctBy(remote, ({ name }) => name)
    .filter(({ name }) => name.length <= NAME_MAX)
    .slice(0, PROMPTS_MAX)
    .map(({ name, title, description = title ?? '', arguments: args = [] }) => ({
      name,
      description: oneLine(description),
      arguments: args.slice(0, ARGUMENTS_MAX).map((one) => ({
        name: firstCharacters(one.name, NAME_MAX),
        required: one.required === true,
      })),
    }));

/** Addresses with spaces or other characters that no mention can hold are omitted. */
export const offeredResources = (remote: readonly RemoteResource[]): readonly OfferedResource[] =>
  distinctBy(remote, ({ uri }) => uri)
    .filter(({ uri }) => uri.length <= URI_MAX && !/[\s"\p{C}]/u.test(uri))
    .slice(0, RESOURCES_MAX)
    .map(({ uri, name, title }) => ({ uri, name: oneLine(title ?? name) }));

export const safeOffers = ({
  prompts,
  resources,
}: {
  readonly prompts: readonly RemotePrompt[];
  readonly resources: readonly RemoteResource[];
}): ServerOffers => ({ prompts: offeredPrompts(prompts), resources: offeredResources(resources) });

const isPrompt = (value: unknown): value is OfferedPrompt =>
  isTable(value) &&
  typeof value.name === 'string' &&
  typeof value.description === 'string' &&
  Array.isArray(value.arguments) &&
  value.arguments.every((one) => isTable(one) && typeof one.name === 'string');

const isResource = (value: unknown): value is OfferedResource =>
  isTable(value) && typeof value.uri === 'string' && typeof value.name === 'string';

/** Whether a value from the cache has the form of offers. */
export const isOffers = (value: unknown): value is ServerOffers =>
  isTable(value) &&
  Array.isArray(value.prompts) &&
  value.prompts.every(isPrompt) &&
  Array.isArray(value.resources) &&
  value.resources.every(isResource);

// ---- The arguments of a prompt, from the words behind its name ----

const WORD = /(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|(\S+))\s*/gs;

type Word = { readonly text: string; readonly at: number };

const splitWords = (text: string): readonly Word[] =>
  [...text.matchAll(WORD)].map(({ 1: double, 2: single, 3: bare, index }) => ({
    text: double?.replace(/\\(.)/gs, '$1') ?? single ?? bare ?? '',
    at: index,
  }));

const promptUsage = ({ declaredName, arguments: all }: DeclaredPrompt): string =>
  [
    `/${declaredName}`,
    ...all.map(({ name, required }) => (required ? `<${name}>` : `[${name}]`)),
  ].join(' ');

/**
 * 1. Words are separated by spaces; quotes keep spaces together. The last argument takes all
 *    remaining words.
 * 2. `name=value` gives an argument by its name.
 *
 * Throws if a required argument is missing. Words beyond the last argument are ignored here: the
 * model sees them in the typed line, with which the message begins.
 */
export const parseArguments = (
  prompt: DeclaredPrompt,
  words: string,
): Readonly<Record<string, string>> => {
  const typed = words.trim();
  const args = new Map<string, string>();
  const unnamed: Word[] = [];
  for (const word of splitWords(typed)) {
    const name = prompt.arguments.find((one) => word.text.startsWith(`${one.name}=`))?.name;
    if (name === undefined) unnamed.push(word);
    else args.set(name, word.text.slice(name.length + 1));
  }
  const hasNamed = args.size > 0;
  const open = prompt.arguments.filter(({ name }) => !args.has(name));
  for (const [index, { name }] of open.entries()) {
    const word = unnamed[index];
    if (word === undefined) break;
    // The last argument takes the rest of the line, unless `name=value` may stand in that rest.
    const isRest = !hasNamed && index === open.length - 1 && unnamed.length > open.length;
    args.set(name, isRest ? typed.slice(word.at) : word.text);
  }
  const missing = prompt.arguments.filter(({ name, required }) => required && !args.has(name));
  if (missing.length > 0) throw new Error(`it is written as ${promptUsage(prompt)}`);
  return Object.fromEntries(args);
};

// ---- Prompts and resources as text for the model ----

/** Characters of one prompt, or of one resource. */
const TEXT_MAX = 100_000;

const cut = (text: string): string =>
  text.length <= TEXT_MAX
    ? text
    : `${firstCharacters(text, TEXT_MAX)}\n[cut: the first ${TEXT_MAX} of ${text.length} characters]`;

const blockText = (block: ContentBlock): string => {
  if (block.type === 'text') return block.text;
  if (block.type === 'resource' && 'text' in block.resource) return block.resource.text;
  if (block.type === 'resource_link') return `[resource ${block.uri}]`;
  return `[${block.type === 'resource' ? 'a resource' : block.type} is not shown]`;
};

/** The messages of a prompt. Those of the assistant are examples, and named so. */
const promptText = ({ messages }: GetPromptResult): string =>
  cut(
    messages
      .map(
        ({ role, content }) => `${role === 'assistant' ? 'Assistant: ' : ''}${blockText(content)}`,
      )
      .join('\n\n'),
  );

/** `mention`: how the user named it. */
const resourceText = (mention: string, { contents }: ReadResourceResult): string => {
  const texts = contents.map((content) =>
    'text' in content
      ? content.text
      : `[${content.mimeType ?? 'an unknown type'}, ` +
        `${Buffer.from(content.blob, 'base64').length} bytes, is not shown]`,
  );
  return `Attached: ${mention}\n${codeFence(cut(texts.join('\n')))}`;
};
