/**
 * The keys of `pawl serve`: from a file, whose changes count while the node runs, from a variable,
 * or a new one; and what a key means for its sessions.
 *
 * From top to bottom: the sources; the check that no key sees the places of another one; the flags
 * that the sessions of a key have.
 */

import { randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { attemptNow } from '@pawl/agent/platform/attempt';
import { systemClock } from '@pawl/agent/platform/clock';
import { isWithin, readRegularSync } from '@pawl/agent/platform/files';
import type { Model } from '@pawl/agent/ports/model';
import { ApiFault } from '@pawl/serve/api-fault';
import {
  type KeyPlaces,
  type KeySource,
  keyOfToken,
  type ReadKeys,
  readKeys,
  type ServeKey,
} from '@pawl/serve/keys';
import { meteredModel, type SpendingStore } from '@pawl/serve/spending';
import { sharedObjects } from '@pawl/serve/workspaces';
import { exitCodes, Stop } from '../process/exit-codes.js';
import { sessionWorkspace, type Warn } from '../settings/connect-model.js';
import type { ClientKeyFlags } from './serve-sessions.js';

/** The keys of the clients. */
export type NodeKeys = {
  readonly source: KeySource;
  /** A random token, to be shown; null if the operator has keys. */
  readonly newToken: string | null;
};

const FILE_BYTES_MAX = 1024 * 1024;

const keysFault = (message: string): Stop =>
  new Stop(exitCodes.configuration, 'configuration', message);

const keysOrFault = (what: string, read: ReadKeys): readonly ServeKey[] => {
  if (read.kind === 'ok') return read.keys;
  throw keysFault(`${what} can't be used: ${read.why}.`);
};

const readKeyFile = (file: string): string => {
  const loaded = readRegularSync(file, FILE_BYTES_MAX);
  if (loaded.kind === 'absent')
    throw keysFault(`There is no file of keys ${file}. docs/build/serve.md has an example.`);
  if (loaded.kind !== 'file')
    throw keysFault(`${file} is not a file of keys: it is not a regular file.`);
  const { status, bytes } = loaded;
  if (status.uid !== process.getuid?.())
    throw keysFault(`${file} belongs to another user. Use a file of your own.`);
  if ((status.mode & 0o077) !== 0)
    throw keysFault(`Others may read ${file}. Make it yours alone: chmod 600 ${file}`);
  return bytes.toString('utf8');
};

type KeyOptions = {
  /** Those of the node, for keys that name none. */
  readonly places: KeyPlaces;
  /** Throws if the node can't serve such keys. */
  check(keys: readonly ServeKey[]): void;
  readonly warn: Warn;
};

const loadKeys = (file: string, { places, check, warn }: KeyOptions): readonly ServeKey[] => {
  const keys = keysOrFault(file, readKeys(readKeyFile(file))).map((key) =>
    withRealPlaces(file, key, warn),
  );
  const fault = placesFault(keys, places);
  if (fault !== null) throw keysFault(`${file} can't be used: ${fault}.`);
  check(keys);
  return keys;
};

/** How soon a change counts where no request comes: for the streams of a key that was removed. */
const LOOK_MS = 1_000;

/** Changes whenever the file does. A file that can't be looked at has the words of that fault. */
const readStamp = (file: string): string => {
  const looked = attemptNow(() => statSync(file, { bigint: true }));
  if (looked.kind === 'fault') return looked.fault.message;
  const { ino, size, mode, mtimeNs, ctimeNs } = looked.value;
  return [ino, size, mode, mtimeNs, ctimeNs].join(' ');
};

/** The keys of a file as it is now. After a change that can't be used they stay as they were. */
const fileKeys = (file: string, options: KeyOptions): KeySource => {
  const { warn } = options;
  let stamp = readStamp(file);
  let keys = loadKeys(file, options);
  const listeners: (() => void)[] = [];
  const look = (): void => {
    const now = readStamp(file);
    if (now === stamp) return;
    stamp = now;
    const loaded = attemptNow(() => loadKeys(file, options));
    if (loaded.kind === 'fault') {
      warn(`The keys stay as they were: ${loaded.fault.message}`);
      return;
    }
    keys = loaded.value;
    warn(`The keys were read again: ${keys.map(({ name }) => name).join(', ')}.`);
    for (const listener of listeners) listener();
  };
  return {
    now: () => {
      look();
      return keys;
    },
    onChange: (listener) => {
      if (listeners.length === 0) setInterval(look, LOOK_MS).unref();
      listeners.push(listener);
    },
  };
};

/** The keys of a node: from a file, from PAWL_SERVE_TOKEN, or a new one; never from a flag. */
export const nodeKeys = (
  file: string | undefined,
  { PAWL_SERVE_TOKEN: token = '' }: NodeJS.ProcessEnv,
  options: KeyOptions,
): NodeKeys => {
  if (file !== undefined && token !== '')
    throw keysFault('There are keys in --keys and a token in PAWL_SERVE_TOKEN. Give one of them.');
  if (file !== undefined) return { source: fileKeys(file, options), newToken: null };
  const newToken = token === '' ? randomBytes(24).toString('base64url') : null;
  const what = newToken === null ? 'PAWL_SERVE_TOKEN' : 'the token';
  const keys = keysOrFault(what, keyOfToken(newToken ?? token));
  return { source: { now: () => keys, onChange: () => undefined }, newToken };
};

// ---- Places that one key has alone ----

/**
 * The key with its places as real paths, without those that can't be used till the next change:
 * what stands at a place may change at any time, also by the key's own sessions, and must not hold
 * up the others. A place without use stays hidden from the other keys, in `withheld`.
 */
const withRealPlaces = (file: string, key: ServeKey, warn: Warn): ServeKey => {
  const { name, places } = key;
  if (places === undefined) return key;
  const all = [...places.folders, ...places.repositories.values()];
  const withheld: string[] = [];
  const findReal = (path: string, isRepository: boolean): readonly string[] => {
    const around = all.filter((other) => other !== path && isWithin(path, other));
    const real = attemptNow(() => {
      const found = sessionWorkspace(path);
      if (!around.every((other) => isWithin(found, sessionWorkspace(other))))
        throw new Error('a link leads out of the folder of the key that it lies in');
      const shared = isRepository ? sharedObjects(found) : null;
      if (shared !== null) throw new Error(shared);
      return found;
    });
    if (real.kind === 'done') return [real.value];
    warn(
      `${file}: the key ${name} goes without ${path} till the next change: ${real.fault.message}`,
    );
    // one that lies in another place of the key is hidden with that place
    if (around.length === 0) withheld.push(path);
    return [];
  };
  const folders = places.folders.flatMap((folder) => findReal(folder, false));
  const repositories = [...places.repositories].flatMap(([label, path]) =>
    findReal(path, true).map((real) => [label, real] as const),
  );
  return { ...key, places: { folders, repositories: new Map(repositories), withheld } };
};

type OwnedPlace = { readonly owner: string; readonly path: string };

const placesIn = (
  owner: string,
  { folders, repositories, withheld = [] }: KeyPlaces,
): readonly OwnedPlace[] =>
  [...folders, ...repositories.values(), ...withheld].map((path) => ({ owner, path }));

const ownedPlaces = (keys: readonly ServeKey[], nodePlaces: KeyPlaces): readonly OwnedPlace[] => [
  ...placesIn(NODE, nodePlaces),
  ...keys.flatMap(({ name, places }) =>
    places === undefined ? [] : placesIn(`the key ${name}`, places),
  ),
];
const NODE = 'the node (--folder, --repository)';

/** Why one key could see what another one has; null if it can't. */
const placesFault = (keys: readonly ServeKey[], nodePlaces: KeyPlaces): string | null => {
  const all = ownedPlaces(keys, nodePlaces);
  for (const { owner, path } of all) {
    const around = all.find((other) => other.owner !== owner && isWithin(path, other.path));
    if (around !== undefined)
      return (
        `${path} of ${owner} lies in ${around.path} of ${around.owner}. Give each a folder that ` +
        'is beside those of the others'
      );
  }
  return null;
};

// ---- Sessions ----

/** The model, until `isFenced` is false: the session could see the place of another key. */
const fencedModel = (model: Model, isFenced: () => boolean): Model => ({
  ...model,
  async *stream(request, signal) {
    if (isFenced()) yield* model.stream(request, signal);
    else yield { type: 'failed', error: UNFENCED, usage: null };
  },
});
const UNFENCED = {
  kind: 'quotaExhausted',
  message:
    'another key has got a place since this session was opened: close it, ' +
    'then the next input opens it',
  retryable: false,
  retryAfterMs: null,
  sent: 'no',
} as const;

/**
 * What the keys mean for their sessions. A change of the keys counts with the next request; what
 * is hidden stays as it was when the session was opened, so more than that ends its requests.
 * Throws without such a key: its session has the rights of nobody.
 */
export const clientKeyFlags =
  (source: KeySource, nodePlaces: KeyPlaces, store: SpendingStore): ClientKeyFlags =>
  (name) => {
    const find = (): ServeKey | undefined => source.now().find((key) => key.name === name);
    const key = find();
    if (key === undefined)
      throw new ApiFault(
        'wrongToken',
        `The key ${name} of the session is not among those of this node. Its operator has removed ` +
          'or renamed it.',
      );
    const { places, models, preset } = key;
    const owner = places === undefined ? NODE : `the key ${name}`;
    const findHidden = (): readonly string[] =>
      ownedPlaces(source.now(), nodePlaces)
        .filter((place) => place.owner !== owner)
        .map(({ path }) => path);
    const hidden = findHidden();
    return {
      forKey: {
        meter: (model) =>
          fencedModel(
            meteredModel(model, {
              store,
              key: async () => find() ?? null,
              now: () => systemClock.now(),
            }),
            () => findHidden().every((path) => hidden.includes(path)),
          ),
        hidden,
        ...(models === undefined ? {} : { models }),
        ...(places === undefined ? {} : { isConfined: 'yes' }),
      },
      ...(preset === undefined ? {} : { preset }),
    };
  };
