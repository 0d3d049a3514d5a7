import { projectionNamed } from '@pawl/verify/projections/all-projections';
import type { Projection } from '@pawl/verify/projections/projection';
import type { ChartName } from '../charts/chart.js';
import { ChartTrace } from '../model/chart-trace.js';
import type { MarkerKind } from '../model/jump-markers.js';
import { SessionHistory } from '../model/session-history.js';
import type { InspectedSession } from '../page-data-types.js';

/** What the page shows: the session, the selected entry, the open panel. Panels draw from it and change it. */

export type PanelName =
  | 'machine'
  | 'conversation'
  | 'step'
  | 'state'
  | 'changes'
  | 'request'
  | 'time'
  | 'events';

export const PANELS: readonly PanelName[] = [
  'machine',
  'conversation',
  'step',
  'state',
  'changes',
  'request',
  'time',
  'events',
];

/** `loading`: the entries that there are so far have not all come; until then only their number is shown. */
export type FeedStatus = 'loading' | 'live' | 'file' | 'lost' | 'damaged';

export class PageState {
  readonly session: InspectedSession;
  history: SessionHistory;
  /** The selected entry; 0 is before the first. */
  seq = 0;
  /** Whether the selection moves with new entries. */
  following = true;
  panel: PanelName = 'conversation';
  chart: ChartName = 'whole';
  /** The entry with which states are compared; null for the one before the selected. */
  pinned: number | null = null;
  jump: MarkerKind | null = null;
  query = '';
  connection: FeedStatus = 'loading';
  /** Why there are no more entries; empty otherwise. */
  trouble = '';
  readonly #traces = new Map<ChartName, ChartTrace>();
  readonly #changed: () => void;

  constructor(session: InspectedSession, changed: () => void) {
    this.session = session;
    this.history = new SessionHistory(session.header);
    this.#changed = changed;
  }

  /** Tells that something was changed from outside. */
  update(change: Partial<Pick<PageState, 'panel' | 'chart' | 'pinned' | 'jump' | 'query'>> = {}): void {
    Object.assign(this, change);
    this.#changed();
  }

  go(seq: number): void {
    this.seq = Math.max(0, Math.min(this.history.seq, Math.round(seq)));
    this.following = this.seq === this.history.seq;
    this.#changed();
  }

  /** New entries are there. */
  grown(): void {
    if (this.following) this.seq = this.history.seq;
    this.#changed();
  }

  restart(): void {
    this.history = new SessionHistory(this.session.header);
    this.connection = 'loading';
    this.#traces.clear();
    this.seq = Math.min(this.seq, 0);
    this.following = true;
  }

  get id(): string {
    return this.session.header.sessionId;
  }

  get projection(): Projection | null {
    return projectionNamed(this.chart) ?? null;
  }

  get trace(): ChartTrace {
    const { chart } = this;
    const own = chart === 'whole' || chart === 'resting' ? chart : (projectionNamed(chart) ?? 'whole');
    const trace = this.#traces.get(chart) ?? ChartTrace.of(own);
    this.#traces.set(chart, trace);
    trace.follow(this.history.steps);
    return trace;
  }
}

/** A part of the page. It is drawn again whenever the state of the page has changed and it is visible. */
export type Panel = { readonly element: HTMLElement; render(): void };
