/**
 * The audit log of a node: which key did what, and how it was answered. It is a file of JSON lines
 * to which the node only appends, and which only its user may read.
 *
 * 1. A request that changes something is written before anything is done; if that fails, nothing is
 *    done. A second line with the same `id` has its answer.
 * 2. Texts of inputs are not written: they are in the journal of the session.
 * 3. The file is opened anew for each write, so it may be moved away at any time.
 */

import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import path from 'node:path';
import { makeFolder, syncIfAllowed } from '@pawl/agent/journal/state-folder';
import { attempt } from '@pawl/agent/platform/attempt';
import { systemClock } from '@pawl/agent/platform/clock';
import { ApiFault, RETRY_SECONDS, toApiFault } from './api-fault.js';

type AuditedAction = { readonly action: string; readonly [field: string]: string };

export type AuditedRequest = AuditedAction & { readonly key: string };

const FLAGS = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW;

/** After a crash the last line may be cut: the next one begins a new line. */
const endsCut = async (file: FileHandle, size: number): Promise<boolean> => {
  if (size === 0) return false;
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer.toString() !== '\n';
};

export class AuditLog {
  readonly #file: string | null;
  readonly #report: (fault: Error) => void;
  #lines: string[] = [];
  /** The write that will take `#lines`; null if no line waits. */
  #next: Promise<void> | null = null;
  #last: Promise<unknown> = Promise.resolve();

  /** `file` null: nothing is written, as for the one user of a detached session. */
  constructor(file: string | null, report: (fault: Error) => void) {
    this.#file = file;
    this.#report = report;
  }

  /**
   * Runs the work of a request, with a line before it and one after it. `doneStatus`: the status of
   * an answer without a fault.
   */
  async around<T extends object | null>(
    request: AuditedRequest,
    work: () => Promise<T>,
    doneStatus = 200,
  ): Promise<T> {
    if (this.#file === null) return work();
    const id = randomUUID();
    const written = await attempt(() => this.append({ id, ...request }));
    if (written.kind === 'fault') {
      this.#report(new Error(`the audit log can't be written: ${written.fault.message}`));
      throw new ApiFault(
        'unavailable',
        "The node can't write its audit log, so it did nothing. Tell the operator.",
        RETRY_SECONDS,
      );
    }
    const done = await attempt(work);
    const status = done.kind === 'done' ? doneStatus : (toApiFault(done.fault)?.status ?? 500);
    const answered = done.kind === 'done' ? pickIds(done.value ?? {}) : {};
    const answerLine = await attempt(() => this.append({ id, status, ...answered }));
    // not fatal: the first line says who asked for what
    if (answerLine.kind === 'fault') this.#report(answerLine.fault);
    if (done.kind === 'fault') throw done.fault;
    return done.value;
  }

  /** Resolves when the line is on disk. Lines that come together are written together. */
  append(fields: object): Promise<void> {
    const at = new Date(systemClock.now()).toISOString();
    this.#lines.push(`${JSON.stringify({ at, ...fields })}\n`);
    this.#next ??= this.#last.then(() => this.#write());
    const written = this.#next;
    this.#last = written.catch(() => undefined); // whoever wrote the line gets the fault
    return written;
  }

  async #write(): Promise<void> {
    const text = this.#lines.join('');
    this.#lines = [];
    this.#next = null;
    if (this.#file === null) return;
    const folder = path.dirname(this.#file);
    await makeFolder(folder);
    const file = await open(this.#file, FLAGS, 0o600);
    try {
      await file.chmod(0o600);
      const { size } = await file.stat();
      await file.writeFile((await endsCut(file, size)) ? `\n${text}` : text);
      await file.datasync();
      if (size === 0) await syncIfAllowed(folder); // the name of a new file
    } finally {
      await file.close();
    }
  }
}

/** What an answer names that its request could not. */
const pickIds = (body: object): object =>
  Object.fromEntries(
    Object.entries(body).filter(([name]) => name === 'sessionId' || name === 'seq'),
  );

/** The type of an input, and the fields of an answer to a question that say what was allowed. */
const NAMED = ['type', 'batchId', 'callId', 'scope'];
/** What a client writes can't flood the log. */
const LENGTH_MAX = 100;
/** Inputs that are logged as `settings`. */
const SETTINGS = ['SettingsChanged', 'ApproveBudget'];

/** What an input does, without its text. */
export const auditedInput = (body: unknown): AuditedAction => {
  const fields = typeof body === 'object' && body !== null ? Object.entries(body) : [];
  const named: Record<string, string> = {};
  for (const [name, value] of fields)
    if (NAMED.includes(name) && typeof value === 'string') named[name] = value.slice(0, LENGTH_MAX);
  const { answer } = Object.fromEntries(fields);
  const kind = typeof answer === 'object' && answer !== null && 'kind' in answer ? answer.kind : '';
  const { type = 'UserInput' } = named;
  if (SETTINGS.includes(type)) return { action: 'settings', type };
  if (type !== 'ApprovalAnswered') return { action: 'input', type };
  return {
    action: 'approval',
    ...named,
    answer: typeof kind === 'string' ? kind.slice(0, LENGTH_MAX) : '',
  };
};
