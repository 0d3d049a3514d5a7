/**
 * Names of MCP servers in a user's message: prompts as `/mcp__server__prompt words`, resources as
 * `@server:uri`. Both are asked for when the message is sent; the names come from the cache.
 */

import type { SessionOffers } from '@pawl/agent/extensions/mcp/offers';
import type { SessionServers } from '@pawl/agent/extensions/mcp/session-servers';
import { attempt } from '@pawl/agent/platform/attempt';
import type { Choice } from '@pawl/terminal/choices';
import {
  type ExpandedText,
  openSessionPrompts,
  type SessionPrompts,
  type SessionPromptsOptions,
} from './typed-input.js';

/** `@server:uri`, or `@"server:uri with spaces"`. */
const MENTION =
  /(?<=^|\s)@(?:"([A-Za-z0-9][\w-]{0,31}):([^"\n]+)"|([A-Za-z0-9][\w-]{0,31}):([^\s"]+))/g;
const TYPED = /^\/(mcp__[\w-]+)(?:\s+([\s\S]*))?$/;
const MENTIONS_MAX = 10;
/** Characters that end a sentence rather than an address. */
const SENTENCE_END = /[.,;:!?)\]}'>]+$/;

type Mention = { readonly server: string; readonly uri: string };

const mentionsIn = (text: string, offers: SessionOffers): readonly Mention[] => {
  const listed = new Set(offers.resources().map(({ server, uri }) => `${server}:${uri}`));
  const mentions = new Map<string, Mention>();
  for (const [, quoted, quotedUri, bare, bareUri] of text.matchAll(MENTION)) {
    const server = quoted ?? bare ?? '';
    const whole = quotedUri ?? bareUri ?? '';
    const isWhole = quoted !== undefined || listed.has(`${server}:${whole}`);
    const uri = isWhole ? whole : whole.replace(SENTENCE_END, '');
    if (uri !== '' && offers.hasServer(server)) mentions.set(`${server}:${uri}`, { server, uri });
  }
  return [...mentions.values()];
};

const joinFaults = (faults: readonly (string | null)[]): string | null =>
  faults.filter((fault) => fault !== null).join('\n') || null;

/**
 * The texts of the resources that are mentioned. A fault stands in the place of a resource that
 * can't be read.
 */
const attachResources = async (typed: string, offers: SessionOffers): Promise<ExpandedText> => {
  const mentions = mentionsIn(typed, offers);
  const read = await Promise.all(
    mentions.slice(0, MENTIONS_MAX).map(async ({ server, uri }): Promise<ExpandedText> => {
      const got = await attempt(() => offers.resource(server, uri));
      if (got.kind === 'done') return { text: got.value, fault: null };
      const fault = `@${server}:${uri} can't be read: ${got.fault.message}`;
      return { text: `(${fault})`, fault };
    }),
  );
  const others = mentions.length - read.length;
  const more =
    others > 0
      ? `${others} more resources are not attached: a message takes ${MENTIONS_MAX}`
      : null;
  return {
    text: [...read.map(({ text }) => text), ...(more === null ? [] : [`(${more})`])].join('\n\n'),
    fault: joinFaults([...read.map(({ fault }) => fault), more]),
  };
};

/** The text of a prompt, if the message names one; null otherwise. */
const fillPrompt = async (typed: string, offers: SessionOffers): Promise<ExpandedText | null> => {
  const [, name, words = ''] = TYPED.exec(typed.trim()) ?? [];
  const declared = offers.prompts().find((prompt) => prompt.declaredName === name);
  if (declared === undefined) return null;
  const got = await attempt(() => offers.prompt(declared, words));
  if (got.kind === 'done') return { text: `${typed.trim()}\n\n${got.value}`, fault: null };
  const fault =
    `The prompt ${declared.name} of the MCP server ${declared.server} can't be used: ` +
    `${got.fault.message}`;
  return { text: `${typed.trim()}\n\n(${fault})`, fault };
};

const promptChoices = (offers: SessionOffers): readonly Choice[] =>
  offers.prompts().map(({ declaredName, description, arguments: all }) => ({
    text: declaredName,
    about: [
      ...all.map(({ name, required }) => (required ? `<${name}>` : `[${name}]`)),
      description,
    ].join(' '),
  }));

/** The skills and commands of a session together with what its MCP servers offer. */
export const withServerPrompts = (
  prompts: SessionPrompts,
  offers: SessionOffers | null,
): SessionPrompts => {
  if (offers === null) return prompts;
  const choices = [...prompts.choices, ...promptChoices(offers)];
  return {
    ...prompts,
    choices,
    mentions: () =>
      offers.resources().map(({ server, uri, about }) => ({ text: `${server}:${uri}`, about })),
    expands: (typed) =>
      (typed.startsWith('/') && choices.length > 0) || mentionsIn(typed, offers).length > 0,
    async expand(typed) {
      const [named, attached] = await Promise.all([
        fillPrompt(typed, offers).then((filled) => filled ?? prompts.expand(typed)),
        attachResources(typed, offers),
      ]);
      const text = attached.text === '' ? named.text : `${named.text}\n\n${attached.text}`;
      return { text, fault: joinFaults([named.fault, attached.fault]) };
    },
  };
};

export const openAllPrompts = async (
  options: SessionPromptsOptions,
  servers: SessionServers | null,
): Promise<SessionPrompts> =>
  withServerPrompts(await openSessionPrompts(options), servers?.offers ?? null);
