import { type JournalStep, stepEntry } from '@pawl/agent/journal/read/steps';
import { agent, initialState } from '@pawl/agent/machine/machine';
import type { State } from '@pawl/agent/machine/state';
import type { Entry, Header } from '@pawl/agent/ports/journal';
import { FigureCollector } from '../figures/collect-figures.js';
import type { SessionFigures } from '../figures/session-figures.js';
import { type Marker, markersOf } from './jump-markers.js';

/**
 * A session as the page knows it: every step from the first entry on, folded by the same machine that ran it. States share
 * their parts, so all of them are kept, and going to any of them costs nothing.
 */
export class SessionHistory {
  readonly header: Header;
  readonly #initial: State;
  readonly #collector: FigureCollector;
  readonly #steps: JournalStep[] = [];
  readonly #markers: Marker[] = [];
  #figures: SessionFigures | null = null;

  constructor(header: Header) {
    this.header = header;
    this.#initial = initialState(header.settings);
    this.#collector = new FigureCollector(header);
  }

  /** Adds the next entries. Those that it has already are left out; a gap is a fault of the sender. */
  add(entries: readonly Entry[]): void {
    for (const entry of entries) {
      if (entry.seq <= this.seq) continue;
      if (entry.seq !== this.seq + 1) throw new Error(`entry ${this.seq + 1} is missing before ${entry.seq}`);
      const before = this.stateAt(this.seq);
      const step = stepEntry({ step: agent.stepUnchecked }, before, entry);
      this.#steps.push(step);
      this.#markers.push(...markersOf(step));
      this.#collector.see(step);
    }
    this.#figures = null;
  }

  /** The number of the last entry; 0 for none. */
  get seq(): number {
    return this.#steps.length;
  }

  get steps(): readonly JournalStep[] {
    return this.#steps;
  }

  /** What can be jumped to, in order. */
  get markers(): readonly Marker[] {
    return this.#markers;
  }

  stepAt(seq: number): JournalStep | null {
    return this.#steps[seq - 1] ?? null;
  }

  /** The state after the entry; before the first one for 0. */
  stateAt(seq: number): State {
    return this.stepAt(seq)?.state ?? this.#initial;
  }

  /** Time and money of the whole session so far. */
  get figures(): SessionFigures {
    this.#figures ??= this.#collector.figures();
    return this.#figures;
  }
}
