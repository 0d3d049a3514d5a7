import { sessionLimit } from '../../machine/moves/budget.js';
import type { SessionData } from '../../machine/state.js';
import { sumUsage, type Usage } from '../../machine/values/usage.js';
import type { TokenUsage } from '../../ports/model.js';
import { attempt } from '../attempt.js';
import type { Equipment } from '../dependency-types.js';
import { priceUsage, UNKNOWN_USAGE } from './price-usage.js';
import { type OpenRequest, readStream, textOf } from './read-stream.js';

/** Time limit for a text. */
const TEXT_MS = 20_000;

/**
 * Short texts from the session's model outside of the conversation, for one phase of the hooks.
 *
 * 1. The caller gets the text, or null if it was late or cut off, or if the session has reached its limit.
 * 2. The total usage is known after the last request has ended, even if its text was late.
 */
export class SideRequests {
  readonly #equipment: Equipment;
  readonly #session: SessionData;
  readonly #asked = new Set<OpenRequest>();
  #used: Usage | null = null;
  #faults = new Set<string>();
  #over = false;

  constructor(equipment: Equipment, session: SessionData) {
    this.#equipment = equipment;
    this.#session = session;
  }

  async write(instructions: string, text: string): Promise<string | null> {
    const written = await attempt(() => this.#ask(instructions, text));
    // Without a text from the model, the caller uses its own.
    return written.kind === 'done' ? written.value : null;
  }

  /** Aborts running requests and accepts no more. */
  end(): void {
    this.#over = true;
    for (const reading of this.#asked) reading.abort();
  }

  /** The total usage (rule 2); null if nothing was used. */
  async used(): Promise<Usage | null> {
    await Promise.all([...this.#asked].map(({ silent }) => silent));
    return this.#used;
  }

  /** Messages about usage that can't be counted. */
  get faults(): readonly string[] {
    return [...this.#faults];
  }

  async #ask(instructions: string, text: string): Promise<string | null> {
    if (this.#over || sessionLimit(this.#session) !== null) return null;
    const { clock } = this.#equipment;
    const model = this.#equipment.model(this.#session.settings.model);
    const book = (tokens: TokenUsage): void => {
      this.#used = sumUsage(this.#used, priceUsage(tokens, model.facts.prices));
    };
    const reading = readStream({
      model,
      request: {
        instructions,
        tools: [],
        messages: [{ role: 'user', parts: [{ type: 'text', origin: 'user', text }] }],
      },
      // One deadline covers the whole request.
      clock,
      firstByteMs: 0,
      silenceMs: 0,
      onPiece: () => undefined,
      onLateUsage: book,
      onBadUsage: (why) => {
        this.#used = sumUsage(this.#used, UNKNOWN_USAGE);
        this.#faults.add(why);
      },
    });
    this.#asked.add(reading);
    const cancel = clock.after(TEXT_MS, reading.abort);
    const ending = await reading.ended;
    cancel();
    if (ending.type === 'aborted') return null;
    if (ending.usage !== null) book(ending.usage);
    return ending.type === 'completed' && ending.stopReason === 'end' ? textOf(ending) : null;
  }
}
