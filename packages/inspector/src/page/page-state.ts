/**
 * The state of the page: session, selected entry, open panel. Panels draw and change it. An entry
 * is a line of the session's journal: one event, with its number `seq`. Below the state stand the
 * sources of a session: an exported file, or the server with its feed of entries.
 */

import type { Entry } from '@pawl/agent/ports/journal';
import { projectionNamed } from '@pawl/verify/projections/all-projections';
import type { Projection } from '@pawl/verify/projections/projection';
import { type ChartName, ChartTrace } from '../model/chart.js';
import { type MarkerKind, SessionHistory } from '../model/session-history.js';
import type { ExportedSession, FeedPiece, InspectedSession } from '../page-data-types.js';

/** In the order of their tabs and keys. */
export const PANELS = ['overview', 'conversation', 'trace', 'steps', 'machine'] as const;

export type PanelName = (typeof PANELS)[number];

/**
 * Where the entries come from. `loading`: the entries that there are so far have not all come;
 * until then only their number is shown. `live`: each new entry comes. `file`: all are in the page.
 * `lost`: the server does not answer. `damaged`: the journal can't be read on.
 */
type FeedStatus = 'loading' | 'live' | 'file' | 'lost' | 'damaged';

export class PageState {
  readonly session: InspectedSession;
  history: SessionHistory;
  /** The selected entry; 0 is before the first. */
  seq = 0;
  /** Whether the selection moves with new entries. */
  following = true;
  panel: PanelName = 'overview';
  /** Another session, with which this one is compared; null for none. */
  other: SessionHistory | null = null;
  chart: ChartName = 'whole';
  /** The entry with which states are compared; null for the one before the selected. */
  pinned: number | null = null;
  /** The kind of markers between which keys jump; null for all. */
  jump: MarkerKind | null = null;
  /** The text that the events are searched for. */
  query = '';
  connection: FeedStatus = 'loading';
  /**
   * What the user must know of what is shown, one sentence each: why there are no more entries, or
   * that the states may differ from those that were.
   */
  readonly troubles = new Set<string>();
  readonly #traces = new Map<ChartName, ChartTrace>();
  /** Has the page drawn again. */
  readonly #changed: () => void;

  constructor(session: InspectedSession, changed: () => void) {
    this.session = session;
    this.history = new SessionHistory(session.header);
    this.#changed = changed;
  }

  /** Makes a change, and has the page drawn again. Also after a change of a field from outside. */
  update(
    change: Partial<Pick<PageState, 'panel' | 'chart' | 'pinned' | 'jump' | 'query'>> = {},
  ): void {
    Object.assign(this, change);
    this.#changed();
  }

  /** Selects an entry. */
  go(seq: number): void {
    this.seq = Math.max(0, Math.min(this.history.seq, Math.round(seq)));
    this.following = this.seq === this.history.seq;
    this.#changed();
  }

  /** Takes note of new entries, which are in the history already. */
  grown(): void {
    if (this.following) this.seq = this.history.seq;
    this.#changed();
  }

  /** Drops all entries: they come again. */
  restart(): void {
    this.history = new SessionHistory(this.session.header);
    this.connection = 'loading';
    this.#traces.clear();
    this.seq = 0;
    this.pinned = null;
    this.following = true;
  }

  get id(): string {
    return this.session.header.sessionId;
  }

  /** The other agent as which the chart shows the session; null: the chart is ours. */
  get projection(): Projection | null {
    return projectionNamed(this.chart) ?? null;
  }

  get trace(): ChartTrace {
    return this.traceOf(this.chart);
  }

  /** The way of the session through a chart. */
  traceOf(chart: ChartName): ChartTrace {
    const target =
      chart === 'whole' || chart === 'resting' ? chart : (projectionNamed(chart) ?? 'whole');
    const trace = this.#traces.get(chart) ?? ChartTrace.of(target);
    this.#traces.set(chart, trace);
    trace.follow(this.history.steps);
    return trace;
  }
}

/**
 * A part of the page. It is drawn again whenever the state of the page has changed and it is
 * visible.
 */
export type Panel = { readonly element: HTMLElement; render(): void };

// ---- The sources of a session: the exported file itself, or the server ----

export const exportedSession = (): ExportedSession | null => {
  const text = document.getElementById('exported')?.textContent ?? 'null';
  // Safe: the program that wrote the file put it there.
  return JSON.parse(text) as ExportedSession | null;
};

/** `/TOKEN/session/ID?compare=OTHER`: the token, and the ids if there are some. */
const [, token = '', , sessionId = ''] = location.pathname.split('/');
export const sessionInAddress = sessionId;
export const comparedInAddress = new URLSearchParams(location.search).get('compare') ?? '';
export const apiAddress = (path: string): string => `/${token}/${path}`;

export const fetchJson = async <T>(path: string): Promise<T> => {
  const response = await fetch(apiAddress(path));
  if (!response.ok) throw new Error((await response.text()).trim());
  return (await response.json()) as T; // Safe: this program's server sent it.
};

export const fetchSession = (id: string): Promise<InspectedSession> =>
  fetchJson(`data/${id}/session`);

/** Hears the pieces of a session's feed. The browser reconnects by itself. */
const readFeed = (id: string, hear: (piece: FeedPiece) => void): EventSource => {
  const feed = new EventSource(apiAddress(`data/${id}/feed`));
  feed.addEventListener('message', ({ data }: MessageEvent<string>) => {
    hear(JSON.parse(data) as FeedPiece); // Safe: this program's server sent it.
  });
  return feed;
};

const addEntries = (pageState: PageState, entries: readonly Entry[]): void => {
  pageState.history.add(entries);
  pageState.grown();
};

/** Reads present and future entries of the session. */
export const followSession = (pageState: PageState): void => {
  let beforeLoss: FeedStatus = 'loading';
  const feed = readFeed(pageState.id, (piece) => {
    if (piece.kind === 'restart') return pageState.restart();
    if (piece.kind === 'damaged') {
      feed.close();
      pageState.troubles.add(piece.why);
      return connect('damaged');
    }
    if (piece.caughtUp) pageState.connection = 'live';
    addEntries(pageState, piece.entries);
    if (piece.caughtUp) document.body.dataset.loaded = 'yes';
  });
  const connect = (connection: FeedStatus): void => {
    pageState.connection = connection;
    pageState.update();
  };
  feed.addEventListener('open', () =>
    connect(pageState.connection === 'lost' ? beforeLoss : pageState.connection),
  );
  feed.addEventListener('error', () => {
    if (pageState.connection !== 'lost') beforeLoss = pageState.connection;
    connect('lost');
  });
};

/** Reads the session with which this one is compared, as it is now. */
export const readCompared = async (pageState: PageState, id: string): Promise<void> => {
  const { header } = await fetchSession(encodeURIComponent(id));
  let history = new SessionHistory(header);
  const end = (trouble: string): void => {
    feed.close();
    pageState.other = history;
    if (trouble !== '') pageState.troubles.add(`${id}: ${trouble}`);
    pageState.update();
  };
  const feed = readFeed(encodeURIComponent(id), (piece) => {
    if (piece.kind === 'restart') history = new SessionHistory(header);
    else if (piece.kind === 'damaged') end(piece.why);
    else {
      history.add(piece.entries);
      if (piece.caughtUp) end('');
    }
  });
  // after a refusal the browser does not reconnect
  feed.addEventListener('error', () => {
    if (feed.readyState === EventSource.CLOSED) end("it can't be read");
  });
};

export const readExported = (pageState: PageState, { entries, damage }: ExportedSession): void => {
  pageState.connection = damage === null ? 'file' : 'damaged';
  if (damage !== null) pageState.troubles.add(damage);
  addEntries(pageState, entries);
  document.body.dataset.loaded = 'yes';
};
