/**
 * The page of one session: the panels, in a wide window the small chart of the machine at their
 * right, and the timeline below. `seq` is the number of an entry of the journal.
 *
 * From top to bottom: `SessionPage`; the strip of all events, and `TimeTravel` around it; the keys.
 */

import { groupDigits } from '@pawl/agent/platform/text';
import { clockText, moneyText, plural, shortCount } from '../model/figure-text.js';
import { MARKER_KINDS, type MarkerKind, nextMarker } from '../model/session-history.js';
import { conversationPanel } from './conversation-panel.js';
import { button, draw, make, visibleText } from './elements.js';
import { eventsPanel } from './events-panel.js';
import { machinePanel, smallMachine } from './machine-panel.js';
import { overviewPanel, sessionTitle } from './overview-panel.js';
import {
  apiAddress,
  PANELS,
  type PageState,
  type Panel,
  type PanelName,
  sessionInAddress,
} from './page-state.js';
import { requestPanel } from './request-panel.js';
import { statePanel } from './state-panel.js';
import { stepPanel } from './step-panel.js';
import { tracePanel } from './trace-panel.js';

const TITLES: Readonly<Record<PanelName, string>> = {
  overview: 'Overview',
  conversation: 'Conversation',
  trace: 'Trace',
  events: 'Events',
  step: 'Step',
  state: 'State',
  request: 'Request',
  machine: 'Machine',
};

const CONNECTIONS = {
  loading: 'loading',
  live: 'following',
  file: 'saved file',
  lost: 'connection lost',
  damaged: 'damaged',
};

/** In a wide window the states stand beside the panels. */
const WIDE = matchMedia('(min-width: 1000px)');

const keyHelp = (): HTMLDialogElement => {
  const dialog = make(
    'dialog',
    { class: 'help', 'aria-label': 'Keys' },
    make('h2', {}, 'Keys'),
    make(
      'dl',
      {},
      ...KEY_WORDS.flatMap(([keys, about]) => [make('dt', {}, keys), make('dd', {}, about)]),
    ),
  );
  dialog.append(button('Close', {}, () => dialog.close()));
  return dialog;
};

export class SessionPage {
  readonly element: HTMLElement;
  readonly #pageState: PageState;
  readonly #panels: Readonly<Record<PanelName, Panel>>;
  readonly #tabs = new Map<PanelName, HTMLButtonElement>();
  readonly #machine: ReturnType<typeof machinePanel>;
  readonly #events: ReturnType<typeof eventsPanel>;
  readonly #small: Panel;
  readonly #trace: ReturnType<typeof tracePanel>;
  readonly #timeline: TimeTravel;
  readonly #commands: Readonly<Record<KeyCommand, () => void>> = {
    first: () => this.#pageState.go(0),
    last: () => this.#pageState.go(this.#pageState.history.seq),
    next: () => this.#timeline.jump('forward'),
    previous: () => this.#timeline.jump('back'),
    pin: () => {
      const { pinned, seq } = this.#pageState;
      this.#pageState.update({ pinned: pinned === seq ? null : seq, panel: 'step' });
    },
    search: () => {
      this.#pageState.update({ panel: 'events' });
      this.render(); // the field must be in the page to get the focus
      this.#events.focusSearch();
    },
    larger: () => this.#zoom(1),
    smaller: () => this.#zoom(-1),
    help: () => this.#help.showModal(),
  };
  #shownPanel: PanelName | null = null;
  /** The number of turns for which the title was written: a new turn may bring its words. */
  #titledFor = -1;
  readonly #scrolled = new Map<PanelName, number>();
  readonly #help = keyHelp();
  readonly #state = make('span', { class: 'chip' });
  readonly #facts = make('span', { class: 'facts' });
  readonly #connection = make('span', { class: 'connection', role: 'status' });
  readonly #trouble = make('p', { class: 'trouble', role: 'alert', hidden: true });
  readonly #title = make('h1', {});
  readonly #side = make('aside', { class: 'side', 'aria-label': 'Where it is' });
  readonly #body = make('div', { class: 'body', role: 'tabpanel', tabindex: 0 });

  constructor(pageState: PageState) {
    this.#pageState = pageState;
    this.#machine = machinePanel(pageState);
    this.#events = eventsPanel(pageState);
    this.#trace = tracePanel(pageState);
    this.#small = smallMachine(pageState);
    this.#side.append(this.#small.element);
    this.#timeline = new TimeTravel(pageState);
    this.#panels = {
      overview: overviewPanel(pageState),
      conversation: conversationPanel(pageState),
      trace: this.#trace,
      events: this.#events,
      step: stepPanel(pageState),
      state: statePanel(pageState),
      request: requestPanel(pageState),
      machine: this.#machine,
    };
    this.element = make(
      'div',
      { class: 'page' },
      this.#header(),
      this.#trouble,
      make('main', {}, make('div', { class: 'panels' }, this.#tabList(), this.#body), this.#side),
      this.#timeline.element,
      this.#help,
    );
    WIDE.addEventListener('change', () => this.#pageState.update()); // draws the page again
    document.addEventListener('keydown', (event) => this.#press(event));
  }

  #header(): HTMLElement {
    const { header } = this.#pageState.session;
    const back = make('a', { href: apiAddress(''), class: 'home', title: 'All sessions' }, 'Pawl');
    const home = sessionInAddress === '' ? make('span', { class: 'home' }, 'Pawl') : back;
    return make(
      'header',
      {},
      home,
      this.#title,
      make(
        'span',
        { class: 'faint workspace' },
        `${header.sessionId} · ${header.settings.model} · ${header.workspace}`,
      ),
      make('span', { class: 'spacer' }),
      this.#state,
      this.#facts,
      this.#connection,
    );
  }

  #tabList(): HTMLElement {
    const list = make('div', { class: 'tabs', role: 'tablist', 'aria-label': 'Panels' });
    for (const name of PANELS) {
      const tab = make(
        'button',
        { type: 'button', role: 'tab', id: `tab-${name}`, 'data-tab': name },
        TITLES[name],
      );
      tab.addEventListener('click', () => this.#pageState.update({ panel: name }));
      tab.addEventListener('keydown', (event) => this.#pressTab(event));
      this.#tabs.set(name, tab);
      list.append(tab);
    }
    return list;
  }

  #pressTab(event: KeyboardEvent): void {
    const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (by === 0) return;
    const place = PANELS.indexOf(this.#pageState.panel) + by + PANELS.length;
    const next = PANELS[place % PANELS.length];
    if (next === undefined) return;
    event.preventDefault();
    this.#pageState.update({ panel: next });
    this.#tabs.get(next)?.focus();
  }

  #press(event: KeyboardEvent): void {
    const action = this.#help.open ? null : findKeyAction(event);
    if (action === null) return;
    event.preventDefault();
    const pageState = this.#pageState;
    if (action.kind === 'step') pageState.go(pageState.seq + action.by);
    else if (action.kind === 'panel') pageState.update({ panel: action.name });
    else this.#commands[action.kind]();
  }

  render(): void {
    const pageState = this.#pageState;
    this.#renderConnection();
    // To draw thousands of entries again and again while they come would take longer than they do.
    if (pageState.connection === 'loading') return;
    const name = pageState.panel;
    const shown = this.#panels[name].element;
    if (this.#body.firstElementChild !== shown || this.#body.childElementCount !== 1)
      this.#open(name, shown);
    this.#body.setAttribute('aria-labelledby', `tab-${name}`);
    for (const [tabName, tab] of this.#tabs) {
      tab.setAttribute('aria-selected', String(tabName === name));
      tab.tabIndex = tabName === name ? 0 : -1;
    }
    if (this.#shownPanel !== name)
      this.#tabs.get(name)?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    this.#shownPanel = name;
    this.#renderHeader();
    if (WIDE.matches) this.#small.render();
    this.#panels[name].render();
    this.#timeline.render();
  }

  /** The chart or the trace, whichever is open. */
  #zoom(by: 1 | -1): void {
    if (this.#pageState.panel === 'trace') this.#trace.zoom(by);
    else if (this.#pageState.panel === 'machine') this.#machine.zoom(by);
  }

  /** Puts a panel into the page, at its last scroll position. */
  #open(name: PanelName, shown: HTMLElement): void {
    if (this.#shownPanel !== null) this.#scrolled.set(this.#shownPanel, this.#body.scrollTop);
    this.#body.replaceChildren(shown);
    this.#body.scrollTop = this.#scrolled.get(name) ?? 0;
  }

  #renderConnection(): void {
    const { history, connection, trouble } = this.#pageState;
    const count =
      connection === 'loading' && history.seq > 0 ? ` ${plural(history.seq, 'event')}` : '';
    const isClosed = connection === 'live' && history.stateAt(history.seq).name === 'ShuttingDown';
    this.#connection.textContent = isClosed ? 'closed' : `${CONNECTIONS[connection]}${count}`;
    this.#connection.className = `connection ${connection}`;
    this.#trouble.textContent = trouble;
    this.#trouble.hidden = trouble === '';
  }

  #renderHeader(): void {
    const { history, seq, following } = this.#pageState;
    const { name, session } = history.stateAt(seq);
    const { usage } = session;
    this.#state.textContent = name;
    this.#state.className = `chip ${name}`;
    const tokens =
      usage.inputTokens + usage.outputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
    const unknown = `${usage.unpriced > 0 ? '+?' : ''}${usage.estimated ? ' (estimated)' : ''}`;
    this.#facts.replaceChildren(
      `up to #${seq}: ${moneyText(usage.costUsd)}${unknown}`,
      make('span', { class: 'tokens' }, ` · ${shortCount(tokens)} tokens`),
    );
    if (this.#titledFor !== history.index.turns.length) {
      this.#titledFor = history.index.turns.length;
      this.#title.replaceChildren(visibleText(sessionTitle(history)));
    }
    // For the tests of the page, and for what depends on following.
    const { dataset } = document.body;
    dataset.seq = String(seq);
    dataset.last = String(history.seq);
    dataset.state = name;
    dataset.following = following ? 'yes' : 'no';
  }
}

// ---- The strip of all events with its slider, and the buttons that go from place to place ----

const BINS_MAX = 400;
const STRIP_PIXELS = 26;

/**
 * The states of the strip, a bar for a run of equal ones. In a long session a bar stands for
 * several events.
 */
const stripBars = (pageState: PageState): readonly SVGElement[] => {
  const { history } = pageState;
  const count = history.seq;
  const bins = Math.min(BINS_MAX, count);
  const bars: SVGElement[] = [];
  let begin = 0;
  for (let bin = 0; bin < bins; bin++) {
    const name = history.stateAt(Math.ceil(((bin + 1) / bins) * count)).name;
    const next =
      bin + 1 < bins ? history.stateAt(Math.ceil(((bin + 2) / bins) * count)).name : null;
    if (next === name) continue;
    bars.push(
      draw('rect', {
        class: `run ${name}`,
        x: (begin / bins) * 1_000,
        width: ((bin + 1 - begin) / bins) * 1_000,
        y: 0,
        height: STRIP_PIXELS,
      }),
    );
    begin = bin + 1;
  }
  return bars;
};

/** Marks for what can be jumped to, but prompts; at most one for each kind in a bin. */
const stripMarks = (pageState: PageState): readonly SVGElement[] => {
  const { history } = pageState;
  const seen = new Set<string>();
  return history.markers.flatMap(({ seq, kind }) => {
    const x = Math.round(((seq - 0.5) / history.seq) * 1_000);
    const key = `${kind} ${Math.round(x / 3)}`;
    if (kind === 'prompt' || seen.has(key)) return [];
    seen.add(key);
    return [
      draw('rect', {
        class: `mark ${kind.replace(' ', '-')}`,
        x: x - 1.5,
        width: 3,
        y: 0,
        height: STRIP_PIXELS,
      }),
    ];
  });
};

class TimeTravel implements Panel {
  readonly element: HTMLElement;
  readonly #pageState: PageState;
  readonly #strip = draw('svg', {
    class: 'strip',
    viewBox: `0 0 1000 ${STRIP_PIXELS}`,
    preserveAspectRatio: 'none',
    'aria-hidden': 'true',
  });
  readonly #slider = make('input', {
    type: 'range',
    id: 'slider',
    min: 0,
    max: 0,
    step: 1,
    value: 0,
    'aria-label': 'Event',
  });
  readonly #where = make('output', { class: 'where', for: 'slider' });
  readonly #jump = make('select', { id: 'jump', 'aria-label': 'What to jump to' });
  readonly #live: HTMLButtonElement;
  #drawnSeq = -1;
  #jumpKey = '';

  constructor(pageState: PageState) {
    this.#pageState = pageState;
    const step = (by: number) => () => pageState.go(pageState.seq + by);
    this.#live = button('Latest', { title: 'Go to the last event and follow (End)' }, () =>
      pageState.go(pageState.history.seq),
    );
    this.#slider.addEventListener('input', () => pageState.go(Number(this.#slider.value)));
    this.#jump.addEventListener('change', () =>
      pageState.update({ jump: MARKER_KINDS.find((kind) => kind === this.#jump.value) ?? null }),
    );
    this.element = make(
      'nav',
      { class: 'timeline', 'aria-label': 'Time travel' },
      make('div', { class: 'track' }, this.#strip, this.#slider),
      make(
        'div',
        { class: 'bar' },
        button('|◀', { 'aria-label': 'First event', title: 'First event (Home)' }, () =>
          pageState.go(0),
        ),
        button('◀', { 'aria-label': 'Previous event', title: 'Previous event (←)' }, step(-1)),
        button('▶', { 'aria-label': 'Next event', title: 'Next event (→)' }, step(1)),
        this.#live,
        this.#where,
        make('span', { class: 'spacer' }),
        this.#jump,
        button('Previous', { title: 'Jump back (p)' }, () => this.jump('back')),
        button('Next', { title: 'Jump on (n)' }, () => this.jump('forward')),
      ),
    );
  }

  /** Goes to the next error, retry, approval… */
  jump(direction: 'forward' | 'back'): void {
    const { history, jump, seq } = this.#pageState;
    const marker = nextMarker(history.markers, jump, seq, direction);
    if (marker !== null) this.#pageState.go(marker.seq);
  }

  render(): void {
    const { history, seq, following, connection } = this.#pageState;
    if (this.#drawnSeq !== history.seq) {
      this.#drawnSeq = history.seq;
      this.#strip.replaceChildren(...stripBars(this.#pageState), ...stripMarks(this.#pageState));
      this.#slider.max = String(history.seq);
      this.#fillJump();
    }
    this.#slider.value = String(seq);
    const step = history.stepAt(seq);
    const about =
      step === null ? 'before the first event' : `${step.event.type} · ${clockText(step.event.at)}`;
    const markers = history.markers.filter((marker) => marker.seq === seq).map(({ kind }) => kind);
    const named = markers.length === 0 ? '' : ` · ${markers.join(', ')}`;
    this.#where.replaceChildren(
      make('strong', {}, groupDigits(seq)),
      ` of ${groupDigits(history.seq)} · ${about}${named}`,
    );
    this.#slider.setAttribute(
      'aria-valuetext',
      `${seq} of ${history.seq}, ${about}, ${history.stateAt(seq).name}`,
    );
    this.#live.classList.toggle('on', following && connection === 'live');
    this.#live.setAttribute('aria-pressed', String(following));
    this.#jump.value = this.#pageState.jump ?? '';
  }

  #fillJump(): void {
    const counts = new Map<MarkerKind, number>();
    for (const { kind } of this.#pageState.history.markers)
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
    const key = [...counts].join();
    if (key === this.#jumpKey) return;
    this.#jumpKey = key;
    const all = this.#pageState.history.markers.length;
    this.#jump.replaceChildren(
      make('option', { value: '' }, `anything (${groupDigits(all)})`),
      ...MARKER_KINDS.map((kind) =>
        make(
          'option',
          { value: kind, disabled: !counts.has(kind) },
          `${kind} (${groupDigits(counts.get(kind) ?? 0)})`,
        ),
      ),
    );
  }
}

// ---- The keys of the page ----

type KeyCommand =
  | 'first'
  | 'last'
  | 'next'
  | 'previous'
  | 'pin'
  | 'search'
  | 'larger'
  | 'smaller'
  | 'help';

type KeyAction =
  | { readonly kind: 'step'; readonly by: number }
  | { readonly kind: KeyCommand }
  | { readonly kind: 'panel'; readonly name: PanelName };

const KEY_WORDS: readonly (readonly [string, string])[] = [
  ['← →', 'previous, next event; with Shift ten'],
  ['Page Up, Page Down', 'a hundred events'],
  ['Home, End', 'first event; last event, and follow'],
  ['n, p', 'next, previous error, retry, approval, … (chosen beside the buttons)'],
  ['/', 'search; Enter goes to the next hit'],
  ['d', 'pin this state to compare others with it'],
  ['+ −', 'trace: less, more time; machine: larger, smaller chart'],
  ['1 … 8', 'overview, conversation, trace, events, step, state, request, machine'],
  ['?', 'these keys'],
];

const ACTIONS: Readonly<Record<string, KeyAction>> = {
  Home: { kind: 'first' },
  End: { kind: 'last' },
  PageUp: { kind: 'step', by: -100 },
  PageDown: { kind: 'step', by: 100 },
  n: { kind: 'next' },
  p: { kind: 'previous' },
  d: { kind: 'pin' },
  '/': { kind: 'search' },
  '?': { kind: 'help' },
  '+': { kind: 'larger' },
  '-': { kind: 'smaller' },
  1: { kind: 'panel', name: 'overview' },
  2: { kind: 'panel', name: 'conversation' },
  3: { kind: 'panel', name: 'trace' },
  4: { kind: 'panel', name: 'events' },
  5: { kind: 'panel', name: 'step' },
  6: { kind: 'panel', name: 'state' },
  7: { kind: 'panel', name: 'request' },
  8: { kind: 'panel', name: 'machine' },
};

/** Keys that fields, lists and scrolled regions use themselves. */
const isTaken = (target: EventTarget | null, key: string): boolean => {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement && target.type === 'range')
    return /^(Arrow|Page|Home|End)/.test(key);
  if (target.matches('input, select, textarea')) return true;
  if (target.matches('[role="tab"]') && key.startsWith('Arrow')) return true;
  return target.matches('[role="region"]') && /^(Page|Home|End)/.test(key);
};

/** The action of a key; null if it has none here. */
const findKeyAction = (event: KeyboardEvent): KeyAction | null => {
  if (event.ctrlKey || event.metaKey || event.altKey || isTaken(event.target, event.key))
    return null;
  const steps = event.shiftKey ? 10 : 1;
  if (event.key === 'ArrowLeft') return { kind: 'step', by: -steps };
  if (event.key === 'ArrowRight') return { kind: 'step', by: steps };
  return ACTIONS[event.key] ?? null;
};
