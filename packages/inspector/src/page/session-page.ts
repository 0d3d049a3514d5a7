/**
 * The page of one session: the panels, in a wide window the small chart of the machine at their
 * right, and the timeline below. `seq` is the number of an entry of the journal.
 *
 * From top to bottom: `SessionPage`; and `TimeTravel` with the strip of all events.
 */

import { moneyText, tokensText, totalTokens } from '@pawl/agent/machine/settings';
import { groupDigits } from '@pawl/agent/platform/text';
import { clockText, plural } from '../model/figure-text.js';
import { MARKER_KINDS, nextMarker } from '../model/session-history.js';
import { conversationPanel } from './conversation-panel.js';
import { button, make, makeSvg, visibleText } from './elements.js';
import { MachinePanel, smallMachine } from './machine-panel.js';
import { OverviewPanel, sessionTitle } from './overview-panel.js';
import {
  apiAddress,
  PANELS,
  type PageState,
  type Panel,
  type PanelName,
  sessionInAddress,
} from './page-state.js';
import { StepsPanel } from './steps-panel.js';
import { TracePanel } from './trace-panel.js';

const TITLES: Readonly<Record<PanelName, string>> = {
  overview: 'Overview',
  conversation: 'Conversation',
  trace: 'Trace',
  steps: 'Steps',
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

export class SessionPage {
  readonly element: HTMLElement;
  readonly #pageState: PageState;
  readonly #panels: Readonly<Record<PanelName, Panel>>;
  readonly #tabs: ReadonlyMap<PanelName, HTMLButtonElement>;
  readonly #machine: MachinePanel;
  readonly #steps: StepsPanel;
  readonly #small: Panel;
  readonly #trace: TracePanel;
  readonly #timeline: TimeTravel;
  #shownPanel: PanelName | null = null;
  /** The number of turns for which the title was written: a new turn may bring its words. */
  #titledFor = -1;
  readonly #scrolled = new Map<PanelName, number>();
  readonly #help = keyHelp();
  readonly #state = make('span', { class: 'chip' });
  readonly #facts = make('span', { class: 'facts' });
  readonly #connection = make('span', { class: 'connection', role: 'status' });
  readonly #trouble = make('p', { class: 'trouble', role: 'alert', hidden: true });
  readonly #title = make('h1');
  readonly #body = make('div', { class: 'body', role: 'tabpanel', tabindex: 0 });

  constructor(pageState: PageState) {
    this.#pageState = pageState;
    this.#machine = new MachinePanel(pageState);
    this.#steps = new StepsPanel(pageState);
    this.#trace = new TracePanel(pageState);
    this.#small = smallMachine(pageState);
    this.#timeline = new TimeTravel(pageState);
    this.#tabs = new Map(PANELS.map((name) => [name, this.#tab(name)]));
    this.#panels = {
      overview: new OverviewPanel(pageState),
      conversation: conversationPanel(pageState),
      trace: this.#trace,
      steps: this.#steps,
      machine: this.#machine,
    };
    for (const { element } of Object.values(this.#panels)) {
      element.hidden = true;
      this.#body.append(element);
    }
    const tabs = { class: 'tabs', role: 'tablist', 'aria-label': 'Panels' };
    const side = { class: 'side', 'aria-label': 'Where it is' };
    this.element = make(
      'div',
      { class: 'page' },
      this.#header(),
      this.#trouble,
      make(
        'main',
        {},
        make('div', { class: 'panels' }, make('div', tabs, ...this.#tabs.values()), this.#body),
        make('aside', side, this.#small.element),
      ),
      this.#timeline.element,
      this.#help,
    );
    WIDE.addEventListener('change', () => this.#pageState.update()); // draws the page again
    document.addEventListener('keydown', (event) => this.#press(event));
  }

  #header(): HTMLElement {
    const { header } = this.#pageState.session;
    const back = make('a', { href: apiAddress(''), class: 'home', title: 'All sessions' }, 'Pawl');
    const about = `${header.sessionId} · ${header.settings.model} · ${header.workspace}`;
    return make(
      'header',
      {},
      sessionInAddress === '' ? make('span', { class: 'home' }, 'Pawl') : back,
      this.#title,
      make('span', { class: 'faint workspace' }, about),
      make('span', { class: 'spacer' }),
      this.#state,
      this.#facts,
      this.#connection,
    );
  }

  #tab(name: PanelName): HTMLButtonElement {
    return make(
      'button',
      {
        type: 'button',
        role: 'tab',
        id: `tab-${name}`,
        'data-tab': name,
        onclick: () => this.#pageState.update({ panel: name }),
        onkeydown: (event) => this.#pressTab(event),
      },
      TITLES[name],
    );
  }

  #pressTab(event: KeyboardEvent): void {
    const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (by === 0) return;
    const next = PANELS.at((PANELS.indexOf(this.#pageState.panel) + by) % PANELS.length);
    if (next === undefined) return;
    event.preventDefault();
    this.#pageState.update({ panel: next });
    this.#tabs.get(next)?.focus();
  }

  #press(event: KeyboardEvent): void {
    const { ctrlKey, metaKey, altKey, key, target, shiftKey } = event;
    if (this.#help.open || ctrlKey || metaKey || altKey || isTaken(target, key)) return;
    const panel = PANELS[Number(key) - 1];
    const act = panel === undefined ? this.#keys[key] : () => this.#pageState.update({ panel });
    if (act === undefined) return;
    event.preventDefault();
    act(shiftKey ? 10 : 1);
  }

  /** What keys do. `steps`: one, or ten with Shift. */
  readonly #keys: Readonly<Record<string, (steps: number) => void>> = {
    ArrowLeft: (steps) => this.#go(-steps),
    ArrowRight: (steps) => this.#go(steps),
    PageUp: () => this.#go(-100),
    PageDown: () => this.#go(100),
    Home: () => this.#go(Number.NEGATIVE_INFINITY),
    End: () => this.#go(Number.POSITIVE_INFINITY),
    n: () => this.#timeline.jump('forward'),
    p: () => this.#timeline.jump('back'),
    d: () => {
      const { pinned, seq } = this.#pageState;
      this.#pageState.update({ pinned: pinned === seq ? null : seq, panel: 'steps' });
    },
    '/': () => {
      this.#pageState.update({ panel: 'steps' });
      this.render(); // the field must be in the page to get the focus
      this.#steps.focusSearch();
    },
    '+': () => this.#zoom(1),
    '-': () => this.#zoom(-1),
    '?': () => this.#help.showModal(),
  };

  #go(by: number): void {
    this.#pageState.go(this.#pageState.seq + by);
  }

  /** The chart or the trace, whichever is open. */
  #zoom(by: 1 | -1): void {
    if (this.#pageState.panel === 'trace') this.#trace.zoom(by);
    else if (this.#pageState.panel === 'machine') this.#machine.zoom(by);
  }

  render(): void {
    const { connection, panel } = this.#pageState;
    this.#renderConnection();
    // To draw thousands of entries again and again while they come would take longer than they do.
    if (connection === 'loading') return;
    if (this.#shownPanel !== panel) this.#open(panel);
    this.#renderHeader();
    if (WIDE.matches) this.#small.render();
    this.#panels[panel].render();
    this.#timeline.render();
  }

  /** Shows a panel, at its last scroll position; what scrolls inside of it stays as it was. */
  #open(name: PanelName): void {
    const shown = this.#shownPanel;
    if (shown !== null) {
      this.#scrolled.set(shown, this.#body.scrollTop);
      this.#panels[shown].element.hidden = true;
    }
    this.#shownPanel = name;
    this.#panels[name].element.hidden = false;
    this.#body.scrollTop = this.#scrolled.get(name) ?? 0;
    this.#body.setAttribute('aria-labelledby', `tab-${name}`);
    for (const [tabName, tab] of this.#tabs) {
      tab.setAttribute('aria-selected', String(tabName === name));
      tab.tabIndex = tabName === name ? 0 : -1;
    }
    this.#tabs.get(name)?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }

  #renderConnection(): void {
    const { history, connection, troubles } = this.#pageState;
    const count =
      connection === 'loading' && history.seq > 0 ? ` ${plural(history.seq, 'event')}` : '';
    const isClosed = connection === 'live' && history.stateAt(history.seq).name === 'ShuttingDown';
    this.#connection.textContent = isClosed ? 'closed' : `${CONNECTIONS[connection]}${count}`;
    this.#connection.className = `connection ${connection}`;
    this.#trouble.textContent = [...troubles].join('\n');
    this.#trouble.hidden = troubles.size === 0;
  }

  #renderHeader(): void {
    const { history, seq, following } = this.#pageState;
    const { name, session } = history.stateAt(seq);
    const { usage } = session;
    this.#state.textContent = name;
    this.#state.className = `chip ${name}`;
    const unknown = `${usage.unpriced > 0 ? '+?' : ''}${usage.estimated ? ' (estimated)' : ''}`;
    this.#facts.replaceChildren(
      `up to #${seq}: ${moneyText(usage.costUsd)}${unknown}`,
      make('span', { class: 'tokens' }, ` · ${tokensText(totalTokens(usage))} tokens`),
    );
    if (this.#titledFor !== history.index.turns.length) {
      this.#titledFor = history.index.turns.length;
      this.#title.replaceChildren(visibleText(sessionTitle(history)));
    }
    // For the tests of the page.
    const { dataset } = document.body;
    dataset.seq = String(seq);
    dataset.last = String(history.seq);
    dataset.state = name;
    dataset.following = following ? 'yes' : 'no';
  }
}

/** Keys that fields, lists and scrolled regions use themselves. */
const isTaken = (target: EventTarget | null, key: string): boolean => {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement && target.type === 'range')
    return /^(Arrow|Page|Home|End)/.test(key);
  if (target.matches('input, select, textarea')) return true;
  if (target.matches('[role="tab"]') && key.startsWith('Arrow')) return true;
  return target.matches('[role="region"]') && /^(Page|Home|End)/.test(key);
};

const KEY_WORDS: readonly (readonly [string, string])[] = [
  ['← →', 'previous, next event; with Shift ten'],
  ['Page Up, Page Down', 'a hundred events'],
  ['Home, End', 'first event; last event, and follow'],
  ['n, p', 'next, previous error, retry, approval, … (chosen beside the buttons)'],
  ['/', 'search; Enter goes to the next hit'],
  ['d', 'pin this state to compare others with it'],
  ['+ −', 'trace: less, more time; machine: larger, smaller chart'],
  [`1 … ${PANELS.length}`, PANELS.join(', ')],
  ['?', 'these keys'],
];

const keyHelp = (): HTMLDialogElement => {
  const words = KEY_WORDS.flatMap(([keys, about]) => [make('dt', {}, keys), make('dd', {}, about)]);
  const dialog = make(
    'dialog',
    { 'aria-label': 'Keys' },
    make('h2', {}, 'Keys'),
    make('dl', {}, ...words),
    button('Close', {}, () => dialog.close()),
  );
  return dialog;
};

// ---- The strip of all events with its slider, and the buttons that go from place to place ----

const BINS_MAX = 400;

/** A part of the strip, as high as it. Its whole width is 1,000. */
const stripPart = (kind: string, x: number, width: number): SVGElement =>
  makeSvg('rect', { class: kind, x, width, y: 0, height: 1 });

/**
 * The states of the strip, a bar for a run of equal ones. In a long session a bar stands for
 * several events.
 */
const stripBars = ({ history }: PageState): readonly SVGElement[] => {
  const bins = Math.min(BINS_MAX, history.seq);
  const nameIn = (bin: number): string =>
    history.stateAt(Math.ceil(((bin + 1) * history.seq) / bins)).name;
  const bars: SVGElement[] = [];
  let begin = 0;
  for (let bin = 0; bin < bins; bin++) {
    const name = nameIn(bin);
    if (bin + 1 < bins && nameIn(bin + 1) === name) continue;
    const width = ((bin + 1 - begin) / bins) * 1_000;
    bars.push(stripPart(`run ${name}`, (begin / bins) * 1_000, width));
    begin = bin + 1;
  }
  return bars;
};

/** Marks for what can be jumped to, but prompts; at most one for each kind in a bin. */
const stripMarks = ({ history }: PageState): readonly SVGElement[] => {
  const seen = new Set<string>();
  return history.markers.flatMap(({ seq, kind }) => {
    const x = Math.round(((seq - 0.5) / history.seq) * 1_000);
    const key = `${kind} ${Math.round(x / 3)}`;
    if (kind === 'prompt' || seen.has(key)) return [];
    seen.add(key);
    return [stripPart(`mark ${kind.replace(' ', '-')}`, x - 1.5, 3)];
  });
};

class TimeTravel implements Panel {
  readonly element: HTMLElement;
  readonly #pageState: PageState;
  readonly #strip = makeSvg('svg', {
    class: 'strip',
    viewBox: '0 0 1000 1',
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
    oninput: () => this.#pageState.go(Number(this.#slider.value)),
  });
  readonly #where = make('output', { class: 'where', for: 'slider' });
  readonly #jump = make('select', {
    id: 'jump',
    'aria-label': 'What to jump to',
    onchange: () =>
      this.#pageState.update({
        jump: MARKER_KINDS.find((kind) => kind === this.#jump.value) ?? null,
      }),
  });
  readonly #live: HTMLButtonElement;
  #drawnSeq = -1;
  #jumpKey = '';

  constructor(pageState: PageState) {
    this.#pageState = pageState;
    const go = (label: string, about: string, key: string, seqOf: () => number) => {
      const words = `${about} event`;
      return button(label, { 'aria-label': words, title: `${words} (${key})` }, () =>
        pageState.go(seqOf()),
      );
    };
    this.#live = button('Latest', { title: 'Go to the last event and follow (End)' }, () =>
      pageState.go(pageState.history.seq),
    );
    this.element = make(
      'nav',
      { class: 'timeline', 'aria-label': 'Time travel' },
      this.#strip,
      this.#slider,
      make(
        'div',
        { class: 'bar' },
        go('|◀', 'First', 'Home', () => 0),
        go('◀', 'Previous', '←', () => pageState.seq - 1),
        go('▶', 'Next', '→', () => pageState.seq + 1),
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
    const { history, seq, following, connection, jump } = this.#pageState;
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
    const named = history.markers.flatMap((one) => (one.seq === seq ? [one.kind] : [])).join(', ');
    this.#where.replaceChildren(
      make('strong', {}, groupDigits(seq)),
      ` of ${groupDigits(history.seq)} · ${about}${named === '' ? '' : ` · ${named}`}`,
    );
    this.#slider.setAttribute(
      'aria-valuetext',
      `${seq} of ${history.seq}, ${about}, ${history.stateAt(seq).name}`,
    );
    this.#live.classList.toggle('on', following && connection === 'live');
    this.#live.setAttribute('aria-pressed', String(following));
    this.#jump.value = jump ?? '';
  }

  #fillJump(): void {
    const { markers } = this.#pageState.history;
    const counts = MARKER_KINDS.map(
      (kind) => [kind, markers.filter((one) => one.kind === kind).length] as const,
    );
    const key = counts.join();
    if (key === this.#jumpKey) return;
    this.#jumpKey = key;
    this.#jump.replaceChildren(
      make('option', { value: '' }, `anything (${groupDigits(markers.length)})`),
      ...counts.map(([value, count]) =>
        make('option', { value, disabled: count === 0 }, `${value} (${groupDigits(count)})`),
      ),
    );
  }
}
