/**
 * Search, and the list of events, one for each entry of the journal (`seq` is its number). Only the
 * rows in view are drawn: a session may have many thousands.
 */

import { eventWords } from '../model/event-words.js';
import { clockText, plural } from '../model/figure-text.js';
import { type FoundEntry, findEntries } from '../model/session-history.js';
import { make, rowsInSight, scrollToRow } from './elements.js';
import type { PageState, Panel } from './page-state.js';

const ROW_PIXELS = 30;

const drawRow = (
  { seq, type, before, hit, after }: FoundEntry,
  index: number,
  pageState: PageState,
): HTMLElement => {
  const step = pageState.history.stepAt(seq);
  const words = hit === '' && step !== null ? eventWords(step, pageState.history.index) : before;
  const row = make(
    'button',
    {
      type: 'button',
      class: `event-row${seq === pageState.seq ? ' selected' : ''}`,
      'data-row': seq,
      tabindex: -1,
    },
    make('span', { class: 'number' }, String(seq)),
    make('span', { class: 'clock' }, step === null ? '' : clockText(step.event.at)),
    make('span', { class: 'type' }, type),
    make('span', { class: 'about' }, words, ...(hit === '' ? [] : [make('mark', {}, hit)]), after),
  );
  row.style.top = `${index * ROW_PIXELS}px`;
  row.addEventListener('click', () => pageState.go(seq));
  return row;
};

class EventsPanel implements Panel {
  readonly element: HTMLElement;
  readonly #pageState: PageState;
  readonly #field = make('input', {
    type: 'search',
    id: 'search',
    placeholder: 'Search all texts   ( / )',
    'aria-label': 'Search all texts',
    autocomplete: 'off',
    spellcheck: 'false',
  });
  readonly #count = make('span', { class: 'faint', role: 'status' });
  readonly #rows = make('div', { class: 'event-rows' });
  readonly #list = make(
    'div',
    { class: 'event-list', tabindex: 0, role: 'region', 'aria-label': 'Events' },
    this.#rows,
  );
  #entries: readonly FoundEntry[] = [];
  /** The number of entries and the query of the last search. */
  #searchedFor = '';
  /** The selected entry at the last drawing. */
  #shownSeq = -1;

  constructor(pageState: PageState) {
    this.#pageState = pageState;
    this.element = make(
      'section',
      { class: 'events' },
      make('h2', { class: 'hidden' }, 'Events'),
      make('div', { class: 'bar' }, this.#field, this.#count),
      this.#list,
    );
    this.#field.addEventListener('input', () => pageState.update({ query: this.#field.value }));
    this.#field.addEventListener('keydown', (event) => {
      if (event.key === 'Enter') this.#goToNext(event.shiftKey ? 'back' : 'forward');
    });
    this.#list.addEventListener('scroll', () => this.#drawRows());
  }

  focusSearch(): void {
    this.#field.focus();
    this.#field.select();
  }

  render(): void {
    const { query } = this.#pageState;
    if (this.#field.value !== query) this.#field.value = query;
    this.#find();
    if (this.#shownSeq !== this.#pageState.seq) this.#scrollTo(this.#pageState.seq);
    this.#drawRows();
  }

  #find(): void {
    const { history, query } = this.#pageState;
    const key = `${history.seq} ${query}`;
    if (key === this.#searchedFor) return;
    this.#entries = findEntries(history.steps, query);
    this.#searchedFor = key;
    this.#count.textContent =
      query === ''
        ? plural(this.#entries.length, 'event')
        : `${plural(this.#entries.length, 'hit')}; Enter goes to the next`;
    this.#rows.style.height = `${this.#entries.length * ROW_PIXELS}px`;
  }

  /** Enter may be pressed before the page has drawn what was typed. */
  #goToNext(direction: 'forward' | 'back'): void {
    this.#find();
    const { seq } = this.#pageState;
    const hit =
      direction === 'forward'
        ? (this.#entries.find((one) => one.seq > seq) ?? this.#entries[0])
        : (this.#entries.findLast((one) => one.seq < seq) ?? this.#entries.at(-1));
    if (hit !== undefined) this.#pageState.go(hit.seq);
  }

  #scrollTo(seq: number): void {
    this.#shownSeq = seq;
    const index = this.#entries.findIndex((one) => one.seq >= seq);
    scrollToRow(this.#list, index < 0 ? this.#entries.length : index, ROW_PIXELS);
  }

  #drawRows(): void {
    const [first, last] = rowsInSight(this.#list, ROW_PIXELS);
    const shown = this.#entries.slice(first, last);
    this.#rows.replaceChildren(
      ...shown.map((one, index) => drawRow(one, first + index, this.#pageState)),
    );
  }
}

export const eventsPanel = (pageState: PageState): Panel & { focusSearch(): void } =>
  new EventsPanel(pageState);
