import { attempt, type Posted } from 'pawl/engine';
import type { ShownText } from '../session/session-records.js';
import { SessionWorker, type WorkerWorld } from './session-worker.js';

/** The sessions that this process works for. One that rests costs nothing: it is made again when it is needed. */

export class Workers {
  readonly #world: WorkerWorld;
  /** `node`: where the session's workspace was when its worker was made. */
  readonly #workers = new Map<string, { readonly node: string; readonly opening: Promise<SessionWorker> }>();
  readonly #open = new Map<string, SessionWorker>();
  readonly #idleMs: number;
  readonly #sweeping: NodeJS.Timeout;

  constructor(world: WorkerWorld, idleMs: number) {
    this.#world = world;
    this.#idleMs = idleMs;
    this.#sweeping = setInterval(() => this.#sweep(), idleMs / 2);
    this.#sweeping.unref();
  }

  get size(): number {
    return this.#open.size;
  }

  async of(sessionId: string, seq: number, node: string): Promise<SessionWorker> {
    const known = this.#workers.get(sessionId);
    if (known?.node === node) return known.opening;
    if (known !== undefined) this.#endMoved(sessionId, known.opening);
    const opening = SessionWorker.open(sessionId, seq, node, this.#world);
    this.#workers.set(sessionId, { node, opening });
    const opened = await attempt(() => opening);
    if (opened.kind === 'fault') {
      if (this.#workers.get(sessionId)?.opening === opening) this.#workers.delete(sessionId);
      throw opened.fault;
    }
    if (this.#workers.get(sessionId)?.opening === opening) this.#open.set(sessionId, opened.value);
    return opened.value;
  }

  known(sessionId: string): SessionWorker | undefined {
    return this.#open.get(sessionId);
  }

  shownText(sessionId: string, requestId: string): ShownText | null {
    return this.#open.get(sessionId)?.shownOf(requestId) ?? null;
  }

  /** Ends a session here. Resolves with what its last hooks say. */
  async end(sessionId: string): Promise<readonly Posted[]> {
    const worker = this.#open.get(sessionId);
    this.#forget(sessionId);
    return (await worker?.end()) ?? [];
  }

  #endMoved(sessionId: string, opening: Promise<SessionWorker>): void {
    this.#forget(sessionId);
    void attempt(async () => (await opening).end()); // one that could not be opened has nothing to end
  }

  async stop(): Promise<void> {
    clearInterval(this.#sweeping);
    const workers = [...this.#open.values()];
    this.#open.clear();
    this.#workers.clear();
    await Promise.all(workers.map((worker) => worker.stop()));
  }

  #forget(sessionId: string): void {
    this.#open.delete(sessionId);
    this.#workers.delete(sessionId);
  }

  #sweep(): void {
    const now = Date.now();
    for (const [sessionId, worker] of this.#open) {
      worker.sweep(now);
      if (!worker.isIdle || now - worker.usedAt < this.#idleMs) continue;
      this.#forget(sessionId);
      void worker.close();
    }
  }
}
