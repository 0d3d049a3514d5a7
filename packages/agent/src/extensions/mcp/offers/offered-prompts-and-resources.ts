import type { Prompt as RemotePrompt, Resource as RemoteResource } from '@modelcontextprotocol/client';
import { isTable } from '../../../platform/base/is-parsed-table.js';

/** The prompts and resources that a server offers, made safe to list. Of equal names the first counts. */

export type OfferedPrompt = {
  readonly name: string;
  readonly description: string;
  readonly arguments: readonly { readonly name: string; readonly required: boolean }[];
};

/** `declaredName`: `mcp__server__prompt`, as the user types it after `/`. */
export type DeclaredPrompt = OfferedPrompt & { readonly server: string; readonly declaredName: string };

export type OfferedResource = { readonly uri: string; readonly name: string };

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

const firstOf = <T>(all: readonly T[], keyOf: (one: T) => string): readonly T[] => {
  const byKey = new Map<string, T>();
  for (const one of all) if (!byKey.has(keyOf(one))) byKey.set(keyOf(one), one);
  return [...byKey.values()];
};

const oneLine = (text: string): string => text.replace(/\s+/g, ' ').trim().slice(0, DESCRIPTION_MAX);

export const offeredPrompts = (remote: readonly RemotePrompt[]): readonly OfferedPrompt[] =>
  firstOf(remote, ({ name }) => name)
    .filter(({ name }) => name.length <= NAME_MAX)
    .slice(0, PROMPTS_MAX)
    .map(({ name, title, description = title ?? '', arguments: given = [] }) => ({
      name,
      description: oneLine(description),
      arguments: given
        .slice(0, ARGUMENTS_MAX)
        .map((one) => ({ name: one.name.slice(0, NAME_MAX), required: one.required === true })),
    }));

/** Addresses with spaces or other characters that no mention can hold are left out. */
export const offeredResources = (remote: readonly RemoteResource[]): readonly OfferedResource[] =>
  firstOf(remote, ({ uri }) => uri)
    .filter(({ uri }) => uri.length <= URI_MAX && !/[\s"\p{C}]/u.test(uri))
    .slice(0, RESOURCES_MAX)
    .map(({ uri, name, title }) => ({ uri, name: oneLine(title ?? name) }));

export const offersOf = ({
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
