import type { CallPreview, JudgedCall } from '../../machine/call.js';
import type { SessionData } from '../../machine/state.js';
import type { PreviewContext, Tool } from '../../ports/tool.js';
import { attempt } from '../attempt.js';
import { takePreview } from '../check-outside-values.js';
import type { Equipment } from '../dependency-types.js';
import type { Post } from '../posted-event-types.js';
import { redactPreview } from './redaction.js';

/** Time limit for a preview. After that the user is asked without one. */
const PATIENCE_MS = 10_000;

const NONE: CallPreview = { kind: 'none' };

/**
 * Performs PreviewCall: asks the tool for a preview of the call and posts one CallPreviewed.
 *
 * If the tool fails or takes too long, the question shows the call's input instead.
 */
export class Previews {
  readonly #equipment: Equipment;
  readonly #session: () => SessionData;
  readonly #remember: () => Promise<void>;
  readonly #post: Post;
  readonly #running = new Map<string, AbortController>();

  /** `remember` resolves when the session knows again which files were read before it was resumed. */
  constructor(equipment: Equipment, session: () => SessionData, remember: () => Promise<void>, post: Post) {
    this.#equipment = equipment;
    this.#session = session;
    this.#remember = remember;
    this.#post = post;
  }

  start(batchId: string, call: JudgedCall): void {
    void this.#run(batchId, call);
  }

  /** The answer is no longer needed. */
  drop(batchId: string, callId: string): void {
    this.#running.get(`${batchId} ${callId}`)?.abort();
  }

  stopAll(): Promise<void> {
    for (const stop of this.#running.values()) stop.abort();
    return Promise.resolve();
  }

  async #run(batchId: string, call: JudgedCall): Promise<void> {
    const { callId } = call;
    const key = `${batchId} ${callId}`;
    const stop = new AbortController();
    this.#running.set(key, stop);
    const preview = await this.#askTool(call, stop.signal);
    if (this.#running.get(key) === stop) this.#running.delete(key);
    if (!stop.signal.aborted) this.#post({ type: 'CallPreviewed', batchId, callId, preview });
  }

  async #askTool(call: JudgedCall, signal: AbortSignal): Promise<CallPreview> {
    const tool = this.#equipment.tools.get(call.tool);
    if (tool?.preview === undefined) return NONE;
    let stopWaiting = (): void => undefined;
    const tooLate = new Promise<CallPreview>((resolve) => {
      stopWaiting = this.#equipment.clock.after(PATIENCE_MS, () => resolve(NONE));
      signal.addEventListener('abort', () => resolve(NONE), { once: true });
    });
    const asked = attempt(() => this.#previewOf(tool, call, signal));
    const answered = asked.then((result) => (result.kind === 'done' ? result.value : NONE));
    const preview = await Promise.race([answered, tooLate]);
    stopWaiting();
    return preview;
  }

  async #previewOf(tool: Tool, { input, facts }: JudgedCall, signal: AbortSignal): Promise<CallPreview> {
    await this.#remember();
    const { files } = this.#equipment;
    const { workspace } = this.#session().settings;
    const context: PreviewContext = { workspace, paths: facts.paths, files, signal };
    const preview = takePreview(await tool.preview?.(input, context));
    return redactPreview(this.#equipment.redactor, preview);
  }
}
