import { sessionLimit } from '../agent/moves/budget.js';
import type { Session } from '../agent/state.js';
import type { Usage } from '../agent/usage.js';
import type { TokenUsage } from '../needs.js';
import type { Equipment } from './equipment.js';
import { type Listening, listen, textOf } from './listen.js';
import { priceUsage, sumUsage } from './price.js';
import { attempt } from './wall.js';

/** How long a text may take. */
const TEXT_MS = 20_000;

/**
 * Short texts from the session's model, aside from the conversation, for one phase of the hooks.
 *
 * 1. Whoever asks gets the text, or null: it did not come in time, was cut off, or the session has reached its limit.
 * 2. What all of them used is known when the last one is silent, whether its text came in time or not.
 */
export class Asides {
  readonly #equipment: Equipment;
  readonly #session: Session;
  readonly #asked = new Set<Listening>();
  #used: Usage | null = null;
  #over = false;

  constructor(equipment: Equipment, session: Session) {
    this.#equipment = equipment;
    this.#session = session;
  }

  async write(instructions: string, text: string): Promise<string | null> {
    const written = await attempt(() => this.#ask(instructions, text));
    // a model that can't be asked writes nothing: what the text was for has a substitute
    return written.kind === 'done' ? written.value : null;
  }

  /** Ends what still runs, and asks for nothing more. */
  end(): void {
    this.#over = true;
    for (const listening of this.#asked) listening.abort();
  }

  /** Rule 2; null if nothing was used. */
  async used(): Promise<Usage | null> {
    await Promise.all([...this.#asked].map(({ silent }) => silent));
    return this.#used;
  }

  async #ask(instructions: string, text: string): Promise<string | null> {
    if (this.#over || sessionLimit(this.#session) !== null) return null;
    const { clock } = this.#equipment;
    const model = this.#equipment.model(this.#session.settings.model);
    const book = (tokens: TokenUsage): void => {
      this.#used = sumUsage(this.#used, priceUsage(tokens, model.facts.prices));
    };
    const listening = listen({
      model,
      request: {
        instructions,
        tools: [],
        messages: [{ role: 'user', parts: [{ type: 'text', origin: 'user', text }] }],
      },
      // there is one deadline for the whole
      ...{ clock, firstByteMs: 0, silenceMs: 0 },
      onPiece: () => undefined,
      onLateUsage: book,
    });
    this.#asked.add(listening);
    const cancel = clock.after(TEXT_MS, listening.abort);
    const ending = await listening.ended;
    cancel();
    if (ending.type === 'aborted') return null;
    if (ending.usage !== null) book(ending.usage);
    return ending.type === 'completed' && ending.stopReason === 'end' ? textOf(ending) : null;
  }
}
