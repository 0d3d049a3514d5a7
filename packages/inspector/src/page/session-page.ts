import { button, make } from './dom.js';
import { moneyText, plural, shortCount } from './format-numbers.js';
import { actionOf, KEY_WORDS, type KeyCommand } from './keys.js';
import { addressOf, sessionInAddress } from './load-session.js';
import { PANELS, type PageState, type Panel, type PanelName } from './page-state.js';
import { changesPanel } from './panels/changes-panel.js';
import { conversationPanel } from './panels/conversation-panel.js';
import { eventsPanel } from './panels/events-panel.js';
import { machinePanel } from './panels/machine-panel.js';
import { requestPanel } from './panels/request-panel.js';
import { statePanel } from './panels/state-panel.js';
import { stepPanel } from './panels/step-panel.js';
import { timePanel } from './panels/time-panel.js';
import { TimeTravel } from './timeline.js';

/** The page of one session: the machine at the left, the panels at the right, the timeline below. */

const TITLES: Readonly<Record<PanelName, string>> = {
  machine: 'Machine',
  conversation: 'Conversation',
  step: 'Step',
  state: 'State',
  changes: 'Changes',
  request: 'Request',
  time: 'Time & money',
  events: 'Events',
};

const CONNECTIONS = {
  loading: 'loading',
  live: 'following',
  file: 'saved file',
  lost: 'connection lost',
  damaged: 'damaged',
};

/** Below this width the machine is a panel among the others. */
const WIDE = matchMedia('(min-width: 1000px)');

const keyHelp = (): HTMLDialogElement => {
  const dialog = make(
    'dialog',
    { class: 'help', 'aria-label': 'Keys' },
    make('h2', {}, 'Keys'),
    make('dl', {}, ...KEY_WORDS.flatMap(([keys, about]) => [make('dt', {}, keys), make('dd', {}, about)])),
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
  readonly #timeline: TimeTravel;
  readonly #commands: Readonly<Record<KeyCommand, () => void>> = {
    first: () => this.#pageState.go(0),
    last: () => this.#pageState.go(this.#pageState.history.seq),
    next: () => this.#timeline.jump('forward'),
    previous: () => this.#timeline.jump('back'),
    pin: () => {
      const { pinned, seq } = this.#pageState;
      this.#pageState.update({ pinned: pinned === seq ? null : seq, panel: 'changes' });
    },
    search: () => {
      this.#pageState.update({ panel: 'events' });
      this.render();
      this.#events.focusSearch();
    },
    larger: () => this.#machine.zoom(1),
    smaller: () => this.#machine.zoom(-1),
    help: () => this.#help.showModal(),
  };
  #shownPanel: PanelName | null = null;
  readonly #scrolled = new Map<PanelName, number>();
  readonly #help = keyHelp();
  readonly #state = make('span', { class: 'chip' });
  readonly #facts = make('span', { class: 'facts' });
  readonly #connection = make('span', { class: 'connection', role: 'status' });
  readonly #trouble = make('p', { class: 'trouble', role: 'alert', hidden: true });
  readonly #side = make('div', { class: 'side' });
  readonly #body = make('div', { class: 'body', role: 'tabpanel', tabindex: 0 });

  constructor(pageState: PageState) {
    this.#pageState = pageState;
    this.#machine = machinePanel(pageState);
    this.#events = eventsPanel(pageState);
    this.#timeline = new TimeTravel(pageState);
    this.#panels = {
      machine: this.#machine,
      conversation: conversationPanel(pageState),
      step: stepPanel(pageState),
      state: statePanel(pageState),
      changes: changesPanel(pageState),
      request: requestPanel(pageState),
      time: timePanel(pageState),
      events: this.#events,
    };
    this.element = make(
      'div',
      { class: 'page' },
      this.#header(),
      this.#trouble,
      make('main', {}, this.#side, make('div', { class: 'panels' }, this.#tabList(), this.#body)),
      this.#timeline.element,
      this.#help,
    );
    WIDE.addEventListener('change', () => this.#pageState.update());
    document.addEventListener('keydown', (event) => this.#press(event));
  }

  #header(): HTMLElement {
    const { header } = this.#pageState.session;
    const back = make('a', { href: addressOf(''), class: 'home', title: 'All sessions' }, 'Pawl');
    const home = sessionInAddress === '' ? make('span', { class: 'home' }, 'Pawl') : back;
    return make(
      'header',
      {},
      home,
      make('h1', {}, header.sessionId),
      make('span', { class: 'faint workspace' }, `${header.settings.model} · ${header.workspace}`),
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

  get #shownTabs(): readonly PanelName[] {
    return PANELS.filter((name) => name !== 'machine' || !WIDE.matches);
  }

  #pressTab(event: KeyboardEvent): void {
    const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (by === 0) return;
    const names = this.#shownTabs;
    const next = names[(names.indexOf(this.#pageState.panel) + by + names.length) % names.length];
    if (next === undefined) return;
    event.preventDefault();
    this.#pageState.update({ panel: next });
    this.#tabs.get(next)?.focus();
  }

  #press(event: KeyboardEvent): void {
    const action = this.#help.open ? null : actionOf(event);
    if (action === null) return;
    event.preventDefault();
    const pageState = this.#pageState;
    if (action.kind === 'step') pageState.go(pageState.seq + action.by);
    else if (action.kind === 'panel') pageState.update({ panel: action.name });
    else this.#commands[action.kind]();
  }

  render(): void {
    const pageState = this.#pageState;
    const wide = WIDE.matches;
    this.#renderConnection();
    // To draw thousands of entries again and again while they come would take longer than they do.
    if (pageState.connection === 'loading') return;
    const name = wide && pageState.panel === 'machine' ? 'conversation' : pageState.panel;
    const machine = this.#panels.machine.element;
    if (wide && machine.parentElement !== this.#side) this.#side.replaceChildren(machine);
    const shown = this.#panels[name].element;
    if (this.#body.firstElementChild !== shown || this.#body.childElementCount !== 1) this.#open(name, shown);
    this.#body.setAttribute('aria-labelledby', `tab-${name}`);
    for (const [tabName, tab] of this.#tabs) {
      tab.hidden = wide && tabName === 'machine';
      tab.setAttribute('aria-selected', String(tabName === name));
      tab.tabIndex = tabName === name ? 0 : -1;
    }
    if (this.#shownPanel !== name)
      this.#tabs.get(name)?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    this.#shownPanel = name;
    this.#renderHeader();
    if (wide) this.#panels.machine.render();
    this.#panels[name].render();
    this.#timeline.render();
  }

  /** Puts a panel into the page, scrolled to where its reader left it. */
  #open(name: PanelName, shown: HTMLElement): void {
    if (this.#shownPanel !== null) this.#scrolled.set(this.#shownPanel, this.#body.scrollTop);
    this.#body.replaceChildren(shown);
    this.#body.scrollTop = this.#scrolled.get(name) ?? 0;
  }

  #renderConnection(): void {
    const { history, connection, trouble } = this.#pageState;
    const count = connection === 'loading' && history.seq > 0 ? ` ${plural(history.seq, 'event')}` : '';
    this.#connection.textContent = `${CONNECTIONS[connection]}${count}`;
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
    const tokens = usage.inputTokens + usage.outputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
    const unknown = usage.unpriced > 0 ? '+?' : '';
    this.#facts.textContent = `${moneyText(usage.costUsd)}${unknown} · ${shortCount(tokens)} tokens`;
    const { dataset } = document.body;
    dataset.seq = String(seq);
    dataset.last = String(history.seq);
    dataset.state = name;
    dataset.following = following ? 'yes' : 'no';
  }
}
