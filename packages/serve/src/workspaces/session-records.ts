import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { readTextOrEmpty } from '@pawl/agent/platform/files/regular-file';
import { writePrivate } from '@pawl/agent/platform/files/write-private-file';
import * as v from 'valibot';

/** What a node remembers of its sessions besides their journals: whose they are, and where they work. */

const workspaceSchema = v.variant('kind', [
  v.object({ kind: v.literal('folder'), path: v.string() }),
  v.object({
    kind: v.literal('worktree'),
    path: v.string(),
    /** The name under which the operator offers the repository. */
    repository: v.string(),
    /** The hash at which a fresh worktree begins. */
    commit: v.string(),
    /** `removed`: by this node, with nothing lost; it is made again when the session goes on. */
    state: v.picklist(['present', 'removed']),
  }),
]);

const recordSchema = v.object({
  version: v.literal(1),
  sessionId: v.string(),
  /** The name of the key that created it. */
  key: v.string(),
  workspace: workspaceSchema,
  /** Its client has not closed it. */
  isOpen: v.boolean(),
  /** Told to the model before the next input; empty if there is nothing to tell. */
  notice: v.string(),
});

export type NodeWorkspace = v.InferOutput<typeof workspaceSchema>;
export type NodeSessionRecord = v.InferOutput<typeof recordSchema>;

/** Each change is durable when its promise resolves. */
export type RecordStore = {
  get(sessionId: string): Promise<NodeSessionRecord | undefined>;
  all(): Promise<readonly NodeSessionRecord[]>;
  put(record: NodeSessionRecord): Promise<void>;
};

const BYTES_MAX = 1024 * 1024;

/** A record that was stored elsewhere; null if it is none. */
export const checkRecord = (stored: unknown): NodeSessionRecord | null => {
  const parsed = v.safeParse(recordSchema, stored);
  return parsed.success ? parsed.output : null;
};

const parseRecord = (text: string): NodeSessionRecord | null => {
  try {
    return checkRecord(JSON.parse(text));
  } catch {
    return null; // not JSON: it is reported like any other text that is no record
  }
};

/** The records of a folder. One process at a time writes there. */
export class SessionRecords implements RecordStore {
  readonly #folder: string;
  readonly #all = new Map<string, NodeSessionRecord>();

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** Reads all records. `report` gets the ones that can't be read: their sessions are unknown to every key. */
  static async open(folder: string, report: (fault: Error) => void): Promise<SessionRecords> {
    const records = new SessionRecords(folder);
    const names = await readdir(folder).catch(() => []); // none yet
    for (const name of names.filter((one) => one.endsWith('.json'))) {
      const file = path.join(folder, name);
      const record = parseRecord(await readTextOrEmpty(file, BYTES_MAX));
      if (record !== null && name === `${record.sessionId}.json`) records.#all.set(record.sessionId, record);
      else
        report(new Error(`${file} is no record of a session, and is left out: no key can use the session.`));
    }
    return records;
  }

  async get(sessionId: string): Promise<NodeSessionRecord | undefined> {
    return this.#all.get(sessionId);
  }

  async all(): Promise<readonly NodeSessionRecord[]> {
    return [...this.#all.values()];
  }

  async put(record: NodeSessionRecord): Promise<void> {
    await writePrivate(this.#fileOf(record.sessionId), `${JSON.stringify(record)}\n`);
    this.#all.set(record.sessionId, record);
  }

  #fileOf(sessionId: string): string {
    return path.join(this.#folder, `${sessionId}.json`);
  }
}
