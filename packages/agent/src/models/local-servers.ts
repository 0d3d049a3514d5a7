/**
 * Model servers that run on this machine, at their usual ports: what a user without a key can use.
 *
 * Another person with an account here must not get what is asked: on Linux the kernel says whose
 * process listens at a port. It must be the user's, or that of the system.
 */

import type { ProcessEnvironment } from '../platform/environment.js';
import { readTextOrEmptySync } from '../platform/files.js';
import { listModels } from './list-models.js';
import { findEndpoint, type Provider, providers } from './provider-table.js';

export type LocalModel = { readonly id: string; readonly url: string; readonly title: string };

/** Without a server the refusal comes at once; a server on a busy machine may need longer. */
const ANSWER_MS = 3_000;
/** Models that answer no questions. */
const NO_CHAT = /embed|rerank|whisper|tts|ocr|guard/i;

/** Accounts below this number are those of the system: root, and services such as `ollama`. */
const PEOPLE_FROM = 1_000;
const LISTENS = '0A';
const TABLE_BYTES_MAX = 4 * 1024 * 1024;

/** The kernel's tables of connections, as text: `/proc/net/tcp` and `tcp6`. Empty elsewhere. */
const readTables = (): readonly string[] =>
  ['tcp', 'tcp6'].map((name) => readTextOrEmptySync(`/proc/net/${name}`, TABLE_BYTES_MAX));

/** The user ids of the processes that listen at a port of this machine. */
const listenersIn = (tables: readonly string[], port: number): readonly number[] => {
  const ending = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return tables.flatMap((table) =>
    table.split('\n').flatMap((line) => {
      const [, local = '', , state, , , , userId] = line.trim().split(/\s+/);
      return local.endsWith(ending) && state === LISTENS ? [Number(userId)] : [];
    }),
  );
};

/** Whether only the user and the system listen at the port of an address of this machine. */
const isTrusted = (url: string, tables: readonly string[]): boolean => {
  const { hostname, port } = new URL(url);
  if (!/^(localhost|127\.[\d.]+|\[::1\])$/.test(hostname)) return false;
  const userId = process.geteuid?.();
  return listenersIn(tables, Number(port || 80)).every(
    (listener) => listener === userId || listener < PEOPLE_FROM,
  );
};

const askOne = async (
  provider: Provider,
  environment: ProcessEnvironment,
  tables: readonly string[],
): Promise<LocalModel | null> => {
  const endpoint = findEndpoint(provider, environment, undefined);
  if (endpoint.kind === 'badUrl' || endpoint.url === null || !isTrusted(endpoint.url, tables))
    return null;
  const listed = await listModels(provider, environment, ANSWER_MS);
  if (listed.kind === 'failed') return null;
  const names = listed.names.filter((name) => !NO_CHAT.test(name));
  const name = names.find((one) => one.startsWith(provider.defaultModel)) ?? names[0];
  return name === undefined
    ? null
    : { id: `${provider.name}/${name}`, url: endpoint.url, title: provider.title };
};

/**
 * The model of the first server of the table that answers on this machine; null if none does.
 * `tables`: those of the kernel.
 */
export const findLocalModel = async (
  environment: ProcessEnvironment,
  tables: readonly string[] = readTables(),
): Promise<LocalModel | null> => {
  const local = providers.filter(
    ({ ownServer, address }) => ownServer !== null && address !== null,
  );
  const answers = await Promise.all(local.map((provider) => askOne(provider, environment, tables)));
  return answers.find((answer) => answer !== null) ?? null;
};
