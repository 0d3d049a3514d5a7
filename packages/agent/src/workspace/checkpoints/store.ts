/**
 * The store of the checkpoints of one workspace: contents of files, manifests (a checkpoint as
 * JSON) and plans of rewinds, each an object that is found by the sha256 of its bytes. Below the
 * class: how much is stored for all workspaces, and what is removed to make room.
 *
 * 1. It lies in the state folder, never in the workspace, and commands in the sandbox don't see it.
 * 2. An object is written under another name, synced and renamed: it is whole or absent. Many at
 *    once are not synced, which would take minutes. A power cut within the next half minute could
 *    lose one, which its hash then shows.
 * 3. Each session has a list of its manifests, and files that name what its next one needs. Of a
 *    store that is over its limit, `pruneStores` removes what these do not reach first.
 */

import { randomUUID } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import {
  appendFile,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { deflateRaw, deflateRawSync, inflateRaw, inflateRawSync } from 'node:zlib';
import { attempt } from '../../platform/attempt.js';
import { errorCode, hashBytes } from '../../platform/files.js';
import { encodeManifest, keptObjects, type Manifest, parseManifest } from './manifest.js';

const deflate = promisify<Buffer, Buffer>(deflateRaw);
const inflate = promisify<Buffer, Buffer>(inflateRaw);

const checkpointsFolder = (stateFolder: string): string => path.join(stateFolder, 'checkpoints');

/** The folder of a workspace's store. `workspace`: real absolute path. */
export const storeFolder = (stateFolder: string, workspace: string): string =>
  path.join(checkpointsFolder(stateFolder), hashBytes(Buffer.from(workspace)).slice(0, 32));

/** The first byte of an object says how its content is stored. */
const PLAIN = 0;
const DEFLATED = 1;

/** Smaller contents are not compressed: they take a block of the disk anyway. */
const DEFLATE_FROM_BYTES = 4_096;

const readOrNull = async (file: string): Promise<Buffer | null> => {
  try {
    return await readFile(file);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null;
    throw error;
  }
};

/**
 * Replaces a file as a whole; null removes it. One that can't be written is removed: what it said
 * before does not hold any more.
 */
export const replaceFile = async (file: string, text: string | null): Promise<void> => {
  const draft = `${file}.draft`;
  try {
    if (text === null) return await rm(file, { force: true });
    await mkdir(path.dirname(file), { recursive: true, mode: 0o700 });
    await writeFile(draft, text, { mode: 0o600 });
    await rename(draft, file);
  } catch {
    // the next process scans anew, and does not know what a killed one was doing
    for (const old of [draft, file]) await attempt(() => rm(old, { force: true }));
  }
};

export class CheckpointStore {
  readonly folder: string;
  /** Objects that this process has written, or read as a whole. Another may have removed them. */
  readonly #known = new Set<string>();
  /** Folders that this process has made. */
  readonly #folders = new Set<string>();

  /** `folder`: as `storeFolder` names it. */
  constructor(folder: string) {
    this.folder = folder;
  }

  #place(sha256: string): string {
    return path.join(this.folder, 'objects', sha256.slice(0, 2), sha256.slice(2));
  }

  /** Whether the object is there and whole. */
  async has(sha256: string): Promise<boolean> {
    return (await this.get(sha256)) !== null;
  }

  /** Stores bytes and returns their sha256. Rejects if the disk refuses. */
  async put(bytes: Buffer): Promise<string> {
    const sha256 = hashBytes(bytes);
    if (this.#isStored(sha256)) return sha256;
    const packed = bytes.length < DEFLATE_FROM_BYTES ? bytes : await deflate(bytes);
    const draft = this.#writeDraft(sha256, bytes, packed);
    try {
      const file = await open(draft, 'r+');
      await file.datasync().finally(() => file.close());
    } catch (error) {
      rmSync(draft, { force: true });
      throw error;
    }
    this.#finish(sha256, draft);
    return sha256;
  }

  /** Like `put`, for one of many contents: synchronous, and the disk is not synced. */
  putMany(bytes: Buffer): string {
    const sha256 = hashBytes(bytes);
    if (this.#isStored(sha256)) return sha256;
    const packed = bytes.length < DEFLATE_FROM_BYTES ? bytes : deflateRawSync(bytes, { level: 1 });
    this.#finish(sha256, this.#writeDraft(sha256, bytes, packed));
    return sha256;
  }

  /** Writes an object under another name, which it returns. */
  #writeDraft(sha256: string, bytes: Buffer, packed: Buffer): string {
    const place = this.#place(sha256);
    const folder = path.dirname(place);
    if (!this.#folders.has(folder)) mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.#folders.add(folder);
    const isSmaller = packed.length < bytes.length * 0.9;
    const kind = Buffer.from([isSmaller ? DEFLATED : PLAIN]);
    const draft = `${place}.${randomUUID()}`;
    try {
      const content = Buffer.concat([kind, isSmaller ? packed : bytes]);
      writeFileSync(draft, content, { flag: 'wx', mode: 0o600 });
      return draft;
    } catch (error) {
      rmSync(draft, { force: true });
      throw error;
    }
  }

  #finish(sha256: string, draft: string): void {
    renameSync(draft, this.#place(sha256));
    this.#known.add(sha256);
  }

  /**
   * Whether the object is on disk and whole. It then counts as written now, so that no sweep
   * removes it. A damaged one is written again.
   */
  #isStored(sha256: string): boolean {
    const place = this.#place(sha256);
    if (!existsSync(place)) return false;
    try {
      const now = Date.now() / 1_000;
      utimesSync(place, now, now);
      if (this.#known.has(sha256)) return true;
      const stored = readFileSync(place);
      const content = stored.subarray(1);
      const bytes = stored[0] === DEFLATED ? inflateRawSync(content) : content;
      if (hashBytes(bytes) === sha256) this.#known.add(sha256);
      return this.#known.has(sha256);
    } catch {
      return false; // damaged, or removed just now
    }
  }

  /** Null if the object is missing or damaged. */
  async get(sha256: string): Promise<Buffer | null> {
    if (!/^[0-9a-f]{64}$/.test(sha256)) return null;
    const stored = await readOrNull(this.#place(sha256));
    if (stored === null || stored.length === 0) return null;
    try {
      const content = stored.subarray(1);
      const bytes = stored[0] === DEFLATED ? await inflate(content) : content;
      return hashBytes(bytes) === sha256 ? bytes : null;
    } catch {
      return null; // damaged: whoever asks says that the content is missing
    }
  }

  /** The file with the hashes of a session's manifests. */
  #listFile(sessionId: string): string {
    return path.join(this.folder, 'sessions', sessionId);
  }

  /** The file with a session's last scan of the workspace, for its next process. */
  scanFile(sessionId: string): string {
    return `${this.#listFile(sessionId)}.scan`;
  }

  /** The file that says which calls run whose changes are in no checkpoint yet. */
  callsFile(sessionId: string): string {
    return `${this.#listFile(sessionId)}.calls`;
  }

  /** Where folder-watch.ts makes files of which only the events count. */
  marksFolder(sessionId: string): string {
    return path.join(this.folder, 'marks', sessionId);
  }

  /** Stores a manifest and adds it to the list of the session. */
  async addManifest(sessionId: string, manifest: Manifest): Promise<string> {
    const sha256 = await this.put(encodeManifest(manifest));
    const list = this.#listFile(sessionId);
    await mkdir(path.dirname(list), { recursive: true, mode: 0o700 });
    await appendFile(list, `${sha256}\n`, { mode: 0o600 });
    return sha256;
  }

  /** Null if it is missing or damaged. */
  async manifest(sha256: string): Promise<Manifest | null> {
    const bytes = await this.get(sha256);
    return bytes === null ? null : parseManifest(bytes);
  }

  /** The manifests of a session, the oldest first. */
  async listed(sessionId: string): Promise<readonly string[]> {
    const list = (await readOrNull(this.#listFile(sessionId)))?.toString('utf8') ?? '';
    return list.split('\n').filter((line) => line !== '');
  }

  /** Contents that the session needs for its next checkpoint, by how its files write a hash. */
  async neededContents(sessionId: string): Promise<readonly string[]> {
    const contents: string[] = [];
    for (const file of [this.scanFile(sessionId), this.callsFile(sessionId)]) {
      const text = (await readOrNull(file))?.toString('latin1') ?? '';
      for (const [, sha256 = ''] of text.matchAll(/"sha256":"([0-9a-f]{64})"/g))
        contents.push(sha256);
    }
    return contents;
  }

  /** Removes what belongs to a session alone. Its objects are removed by `pruneStores`. */
  async forget(sessionId: string): Promise<void> {
    const files = [this.#listFile(sessionId), this.scanFile(sessionId), this.callsFile(sessionId)];
    for (const file of files) await rm(file, { force: true });
    await rm(this.marksFolder(sessionId), { recursive: true, force: true });
  }
}

// ---- Sizes, and making room ----

export type StoredSession = {
  readonly store: string;
  readonly sessionId: string;
  readonly usedAtMs: number;
  readonly checkpoints: number;
};

export type StoreSizes = {
  readonly bytes: number;
  readonly stores: readonly { readonly folder: string; readonly bytes: number }[];
  readonly sessions: readonly StoredSession[];
};

export const listNames = async (folder: string): Promise<readonly string[]> => {
  try {
    return await readdir(folder);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return [];
    throw error;
  }
};

type StoredObject = {
  readonly sha256: string;
  readonly file: string;
  readonly bytes: number;
};

const objectsIn = async (store: string): Promise<readonly StoredObject[]> => {
  const objects: StoredObject[] = [];
  for (const head of await listNames(path.join(store, 'objects')))
    for (const name of await listNames(path.join(store, 'objects', head))) {
      const file = path.join(store, 'objects', head, name);
      const status = await stat(file).catch(() => null); // removed meanwhile
      if (status === null) continue;
      objects.push({ sha256: `${head}${name}`, file, bytes: status.size });
    }
  return objects;
};

/** Also those that have no checkpoint yet, only contents for their first. */
export const sessionsIn = async (store: string): Promise<readonly StoredSession[]> => {
  const sessions = new Map<string, StoredSession>();
  for (const name of await listNames(path.join(store, 'sessions'))) {
    if (name.endsWith('.draft')) continue;
    const sessionId = name.replace(/\.(scan|calls)$/, '');
    const file = path.join(store, 'sessions', name);
    const list = sessionId === name ? await readOrNull(file) : null;
    const status = await stat(file).catch(() => null);
    if (status === null) continue; // removed meanwhile
    const { usedAtMs = 0, checkpoints = 0 } = sessions.get(sessionId) ?? {};
    const listed = list === null ? 0 : list.toString('latin1').split('\n').length - 1;
    sessions.set(sessionId, {
      store,
      sessionId,
      usedAtMs: Math.max(usedAtMs, status.mtimeMs),
      checkpoints: checkpoints + listed,
    });
  }
  return [...sessions.values()];
};

const sumBytes = (objects: readonly StoredObject[]): number =>
  objects.reduce((sum, { bytes }) => sum + bytes, 0);

/** What is stored for all workspaces, in bytes on disk. */
export const checkpointSizes = async (stateFolder: string): Promise<StoreSizes> => {
  const folder = checkpointsFolder(stateFolder);
  const stores: { folder: string; bytes: number }[] = [];
  const sessions: StoredSession[] = [];
  for (const name of await listNames(folder)) {
    const store = path.join(folder, name);
    stores.push({ folder: store, bytes: sumBytes(await objectsIn(store)) });
    sessions.push(...(await sessionsIn(store)));
  }
  return { bytes: stores.reduce((sum, { bytes }) => sum + bytes, 0), stores, sessions };
};

export const STORE_BYTES_MAX = 1024 ** 3;
export const ALL_BYTES_MAX = 4 * 1024 ** 3;

/**
 * Removes the objects that no session of the store needs, nor `keep` names. What was written a
 * moment ago stays: its manifest may follow.
 */
const sweep = async (folder: string, keep: Iterable<string>): Promise<void> => {
  const store = new CheckpointStore(folder);
  const needed = new Set(keep);
  for (const { sessionId } of await sessionsIn(folder)) {
    for (const sha256 of await store.listed(sessionId)) {
      needed.add(sha256);
      const manifest = await store.manifest(sha256);
      for (const content of manifest === null ? [] : keptObjects(manifest)) needed.add(content);
    }
    for (const content of await store.neededContents(sessionId)) needed.add(content);
  }
  const youngFromMs = Date.now() - 10 * 60_000;
  for (const { sha256, file } of await objectsIn(folder)) {
    if (needed.has(sha256)) continue;
    const status = await stat(file).catch(() => null); // only now: it may be stored again meanwhile
    if (status !== null && status.mtimeMs < youngFromMs) await rm(file, { force: true });
  }
};

export type PruneOptions = {
  /** Sessions of which nothing is removed. */
  isOpen(sessionId: string): Promise<boolean>;
  /** The session that asks, and what it needs besides its manifests. */
  readonly own?: { readonly sessionId: string; keep(): Iterable<string> };
  /** Removes the checkpoints of a session also if there is room. Default: none. */
  isNeedless?(sessionId: string): boolean;
};

/**
 * Removes the checkpoints of the oldest sessions until each store has at most 1 GB, and all have at
 * most 4 GB. Returns the sessions whose changes can't be taken back any more. A store in which
 * another session is open is left alone.
 */
export const pruneStores = async (
  stateFolder: string,
  { isOpen, own, isNeedless = () => false }: PruneOptions,
): Promise<readonly StoredSession[]> => {
  const removed: StoredSession[] = [];
  let sizes = await checkpointSizes(stateFolder);
  const oldest = [...sizes.sessions].sort((one, other) => one.usedAtMs - other.usedAtMs);
  // asked before each removal: a session may be opened meanwhile
  const isBusy = async (store: string): Promise<boolean> => {
    for (const { sessionId } of await sessionsIn(store))
      if (sessionId !== own?.sessionId && (await isOpen(sessionId))) return true;
    return false;
  };
  const hasRoom = (store: string): boolean => {
    const bytes = sizes.stores.find(({ folder }) => folder === store)?.bytes ?? 0;
    return sizes.bytes <= ALL_BYTES_MAX && bytes <= STORE_BYTES_MAX;
  };
  const makeRoom = async (store: string): Promise<void> => {
    await sweep(store, own?.keep() ?? []);
    sizes = await checkpointSizes(stateFolder);
  };
  for (const { folder } of sizes.stores)
    if (!hasRoom(folder) && !(await isBusy(folder))) await makeRoom(folder);
  for (const session of oldest) {
    const { store, sessionId } = session;
    if (sessionId === own?.sessionId || (hasRoom(store) && !isNeedless(sessionId))) continue;
    if (await isBusy(store)) continue;
    await new CheckpointStore(store).forget(sessionId);
    removed.push(session);
    await makeRoom(store);
  }
  return removed;
};
