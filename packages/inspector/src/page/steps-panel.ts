/**
 * Every step of the machine: a list of the events with a search, and beside it all of the selected
 * step. From top to bottom: `StepsPanel`; the step itself (the event, the edges that it took with
 * the guards that held, the actions, what it changed); the state; and the request.
 */

import type { JournalStep } from '@pawl/agent/journal/steps';
import { moneyText, shareText, totalTokens } from '@pawl/agent/machine/settings';
import type { State } from '@pawl/agent/machine/state';
import { durationText } from '@pawl/agent/platform/clock';
import { cut, firstCharacters, groupDigits, localTime } from '@pawl/agent/platform/text';
import { callTitle } from '@pawl/agent/policy/judged-call';
import { getCacheShare, promptTokens } from '../figures/session-figures.js';
import { eventWords } from '../model/event-words.js';
import { clockText, plural } from '../model/figure-text.js';
import {
  type RequestPart,
  requestAt,
  type SharedPrefix,
  sharedPrefix,
} from '../model/sent-request.js';
import { type FoundEntry, findEntries, valueDifferences } from '../model/session-history.js';
import { button, copyCommand, JsonTree, make, RowList, seqLink, table } from './elements.js';
import type { PageState, Panel } from './page-state.js';

const ROW_PIXELS = 30;

export class StepsPanel implements Panel {
  readonly element: HTMLElement;
  readonly #pageState: PageState;
  readonly #field = make('input', {
    type: 'search',
    id: 'search',
    placeholder: 'Search all texts   ( / )',
    'aria-label': 'Search all texts',
    autocomplete: 'off',
    spellcheck: 'false',
    oninput: () => this.#pageState.update({ query: this.#field.value }),
    onkeydown: ({ key, shiftKey }) => {
      if (key === 'Enter') this.#goToNext(shiftKey ? 'back' : 'forward');
    },
  });
  readonly #count = make('span', { class: 'faint', role: 'status' });
  readonly #list = new RowList<FoundEntry>('Events', ROW_PIXELS, (row) => this.#row(row));
  readonly #step = make('div', { class: 'step' });
  readonly #tree = new JsonTree(['event']);
  readonly #parts: readonly Panel[];
  #entries: readonly FoundEntry[] = [];
  /** The number of entries and the query of the last search. */
  #searchedFor: readonly unknown[] = [];
  /** The selected entry at the last drawing. */
  #shownSeq = -1;

  constructor(pageState: PageState) {
    this.#pageState = pageState;
    this.#parts = [
      openPart(['State'], 'state-panel', stateView(pageState)),
      openPart(['Request'], 'sent', requestView(pageState)),
    ];
    this.element = make(
      'section',
      { class: 'steps' },
      make('h2', { class: 'hidden' }, 'Steps'),
      make('div', { class: 'bar' }, this.#field, this.#count),
      this.#list.element,
      make(
        'div',
        { class: 'detail', tabindex: 0, role: 'region', 'aria-label': 'Step' },
        this.#step,
        ...this.#parts.map(({ element }) => element),
      ),
    );
  }

  focusSearch(): void {
    this.#field.focus();
    this.#field.select();
  }

  render(): void {
    const { query, seq } = this.#pageState;
    if (this.#field.value !== query) this.#field.value = query;
    this.#find();
    if (this.#shownSeq !== seq) {
      this.#shownSeq = seq;
      const index = this.#entries.findIndex((one) => one.seq >= seq);
      this.#list.scrollTo(index < 0 ? this.#entries.length : index);
    }
    this.#list.draw();
    this.#step.replaceChildren(...stepView(this.#pageState, this.#tree));
    for (const part of this.#parts) part.render();
  }

  #find(): void {
    const { history, query } = this.#pageState;
    const key = [history, history.seq, query];
    if (isSame(key, this.#searchedFor)) return;
    this.#entries = findEntries(history.steps, query);
    this.#searchedFor = key;
    this.#count.textContent =
      query === ''
        ? plural(this.#entries.length, 'event')
        : `${plural(this.#entries.length, 'hit')}; Enter goes to the next`;
    this.#list.rows = this.#entries;
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

  #row({ seq, type, before, hit, after }: FoundEntry): HTMLElement {
    const { history } = this.#pageState;
    const step = history.stepAt(seq);
    const words = hit === '' && step !== null ? eventWords(step, history.index) : before;
    return make(
      'button',
      {
        type: 'button',
        class: `row${seq === this.#pageState.seq ? ' selected' : ''}`,
        'data-row': seq,
        tabindex: -1,
        onclick: () => this.#pageState.go(seq),
      },
      make('span', { class: 'number' }, String(seq)),
      make('span', { class: 'clock' }, step === null ? '' : clockText(step.event.at)),
      make('span', { class: 'type' }, type),
      make('span', { class: 'about' }, words, hit === '' ? null : make('mark', {}, hit), after),
    );
  }
}

/** A part that is drawn only while it is open. `draw`: null if nothing changed. */
const openPart = (
  title: readonly (Node | string)[],
  kind: string,
  draw: () => readonly Node[] | null,
): Panel & { readonly element: HTMLDetailsElement } => {
  const body = make('div', { class: kind });
  const render = (): void => {
    const nodes = element.open ? draw() : null;
    if (nodes !== null) body.replaceChildren(...nodes);
  };
  const element = make('details', { ontoggle: render }, make('summary', {}, ...title), body);
  return { element, render };
};

// ---- The step ----

const stepView = (pageState: PageState, tree: JsonTree): readonly Node[] => {
  const { id, seq, history, session } = pageState;
  const step = history.stepAt(seq);
  if (step === null) {
    const { createdAt, workspace, parent } = session.header;
    const fork = parent === null ? '' : ` It is a fork of ${parent.sessionId} at ${parent.seq}.`;
    return [
      make('h3', {}, 'Before the first event'),
      make('p', {}, `The session was made on ${localTime(createdAt)} in ${workspace}.${fork}`),
    ];
  }
  const { event, actions } = step;
  const at = make('span', { class: 'faint' }, ` at ${clockText(event.at)}`);
  return [
    make('h3', {}, `${seq}. ${event.type}`, at),
    tree.draw('event', event, 'event'),
    make('h3', {}, 'Path'),
    pathTable(step),
    make('h3', {}, actions.length === 0 ? 'No actions' : 'Actions'),
    ...actions.map((action, index) =>
      tree.draw(`${index + 1}. ${action.type}`, action, `action/${index}/${action.type}`),
    ),
    make('h3', {}, 'In a terminal'),
    make(
      'ul',
      { class: 'commands' },
      copyCommand(`pawl fork ${id} --at ${seq}`, 'go on from here in a copy'),
      copyCommand(`pawl show ${id} --at ${seq}`, 'the conversation here'),
      copyCommand(`pawl show ${id} --at ${seq} --request`, 'what the model was sent last'),
      copyCommand(`pawl replay ${id} --at ${seq}`, 'compute and check it again'),
    ),
    ...changesView(pageState),
  ];
};

const pathTable = ({ path, diagnostics }: JournalStep): HTMLElement => {
  if (path.length === 0) {
    const why = diagnostics.map(({ why: reason }) => reason).join('; ');
    return make('p', {}, `The event changed nothing${why === '' ? '' : `: ${why}`}.`);
  }
  const head = ['from', 'to', 'by', 'guard that held', 'move'];
  const rows = path.map(({ from, to, event, when, then, as, kind }) => [
    from,
    kind === 'stay' ? 'stays' : `→ ${to}`,
    event ?? '(at once)',
    make('code', {}, when === '' ? '–' : `[${when}]`),
    [then, as].filter((word) => word !== '').join(' as '),
  ]);
  return table('Path', '', head, rows);
};

const DIFFERENCES_MAX = 300;
const VALUE_CHARACTERS = 400;

const valueText = (value: unknown): string => {
  if (value === undefined) return '–';
  return cut(typeof value === 'string' ? value : JSON.stringify(value), VALUE_CHARACTERS);
};

/** The differences between the selected state and the one before it, or a pinned one. */
const changesView = (pageState: PageState): readonly Node[] => {
  const { history, pinned, seq } = pageState;
  const from = pinned ?? Math.max(0, seq - 1);
  const all = valueDifferences(history.stateAt(from), history.stateAt(seq));
  const rest = all.length - DIFFERENCES_MAX;
  const go = (to: number): void => pageState.go(to);
  const pin =
    pinned === null
      ? button(`Compare later states with #${seq}`, {}, () => pageState.update({ pinned: seq }))
      : button('Compare with the entry before', {}, () => pageState.update({ pinned: null }));
  const count = all.length === 0 ? 'The states are equal.' : `${plural(all.length, 'difference')}.`;
  const rows = all
    .slice(0, DIFFERENCES_MAX)
    .map(({ path, before, after }) => [
      make('code', {}, path),
      make('code', { class: 'minus' }, valueText(before)),
      make('code', { class: 'plus' }, valueText(after)),
    ]);
  return [
    make('h3', {}, 'State, from ', seqLink(from, go), ' to ', seqLink(seq, go)),
    make('p', {}, make('span', { class: 'faint' }, `${count} `), pin),
    ...(all.length === 0 ? [] : [table('Differences', '', ['where', `#${from}`, `#${seq}`], rows)]),
    ...(rest > 0 ? [make('p', { class: 'faint' }, `${plural(rest, 'more difference')}.`)] : []),
  ];
};

// ---- The state: queue, budget, calls of the batch, and everything else as a tree ----

const stateView = (pageState: PageState): (() => readonly Node[]) => {
  const tree = new JsonTree();
  return () => {
    const state = pageState.history.stateAt(pageState.seq);
    const { session, ...fields } = state;
    const { usage, queue } = session;
    const unpriced = usage.unpriced > 0 ? `; ${usage.unpriced} calls without a known price` : '';
    const estimated = usage.estimated
      ? `; estimated: ${usage.estimated.join(', ')} reports no usage`
      : '';
    return [
      make('p', {}, make('strong', {}, state.name), ` ${describeReason(state)}`),
      ...budgetRows(state),
      make(
        'p',
        { class: 'faint' },
        `${groupDigits(promptTokens(usage))} tokens in ` +
          `(${shareText(getCacheShare(usage))} from the cache), ` +
          `${groupDigits(usage.outputTokens)} out${unpriced}${estimated}`,
      ),
      ...callsView(state),
      ...(queue.length === 0 ? [] : [make('h3', {}, 'Queue')]),
      ...queue.map(({ text, mode }) =>
        make('p', {}, make('span', { class: 'tag' }, mode), ` ${text}`),
      ),
      make('h3', {}, 'Everything'),
      ...Object.entries(fields).map(([key, value]) => tree.draw(key, value, key)),
      tree.draw('session', session, 'session'),
    ];
  };
};

type Limit = number | 'unlimited';

/** What is used of each limit, as a bar. */
const budgetRows = ({ session }: State): readonly HTMLElement[] => {
  const { usage, settings, turn, contextTokens } = session;
  const { limits, windowTokens } = settings;
  const rows: readonly (readonly [string, number, Limit, (value: number) => string])[] = [
    ['Money', usage.costUsd, limits.usd, moneyText],
    ['Tokens', totalTokens(usage), limits.tokens, groupDigits],
    ['Rounds of this turn', turn.rounds, limits.rounds, String],
    ['Context window', contextTokens, windowTokens, groupDigits],
  ];
  return rows.map(([label, used, limit, words]) =>
    make(
      'div',
      { class: 'budget' },
      make('span', {}, label),
      limit === 'unlimited'
        ? make('span', { class: 'faint' }, 'no limit')
        : make('meter', {
            low: 0.6,
            high: 0.85,
            optimum: 0.2,
            value: limit <= 0 ? 1 : Math.min(1, used / limit),
            'aria-label': label,
          }),
      make(
        'span',
        { class: 'faint' },
        `${words(used)}${limit === 'unlimited' ? '' : ` of ${words(limit)}`}`,
      ),
    ),
  );
};

const callsView = (state: State): readonly HTMLElement[] => {
  if (state.name !== 'ExecutingTools') return [];
  const { workspace } = state.session.settings;
  const rows = state.calls.map((call) => [
    call.judged.tool,
    callTitle(call.judged, workspace),
    make('span', { class: 'tag' }, call.status),
    'completedAt' in call && call.startedAt !== null
      ? durationText(Math.max(0, call.completedAt - call.startedAt))
      : '',
  ]);
  return [table('Tool calls of this batch', '', ['tool', 'call', 'status', 'time'], rows)];
};

/** What the state waits for, or why, in words. */
const describeReason = (state: State): string => {
  if (state.name === 'WaitingForUserInput') {
    const { reason } = state;
    const detail = 'cause' in reason ? reason.cause : 'dimension' in reason ? reason.dimension : '';
    return `${reason.kind}${detail === '' ? '' : `: ${detail}`}${reason.kind === 'error' ? `: ${reason.message}` : ''}`;
  }
  if (state.name === 'CallingLlm')
    return `attempt ${state.attempt}${state.call.mode === 'draining' ? ', being cancelled' : ''}`;
  if (state.name === 'Error')
    return `${state.error.kind}: ${state.error.message}; waits ${durationText(state.delayMs)}`;
  if (state.name === 'PostToolsHook') return state.phase;
  if (state.name === 'ExecutingTools') return state.phase.mode;
  return state.name === 'Compacting' ? state.mode.kind : '';
};

// ---- The last request to the model, part by part ----

/** Only the last parts are shown. */
const PARTS_AT_ONCE = 60;

/** A text of megabytes would stop the page. */
const CHARACTERS_MAX = 100_000;

const shortened = (text: string): string =>
  text.length <= CHARACTERS_MAX
    ? text
    : `${firstCharacters(text, CHARACTERS_MAX)}\n… ${groupDigits(text.length - CHARACTERS_MAX)} characters more`;

/** A part of the request: closed if it is as in the request before. */
const partView = (
  { title, text }: RequestPart,
  index: number,
  { parts, characters }: SharedPrefix,
): HTMLElement => {
  const isShared = index < parts;
  const shared = isShared ? text : index === parts ? text.slice(0, characters) : '';
  const state = isShared ? 'as before' : shared === '' ? 'new' : 'new from the mark on';
  const size = make('span', { class: 'faint' }, ` ${groupDigits(text.length)} characters`);
  let pre: HTMLElement | null = null;
  const { element, render } = openPart(
    [`${title} `, make('span', { class: 'tag' }, state), size],
    '',
    () => {
      if (pre !== null) return null;
      const fresh = shortened(text.slice(shared.length));
      pre = make(
        'pre',
        { class: 'code', tabindex: 0 },
        shared === '' ? null : make('span', { class: 'faint' }, shortened(shared)),
        fresh === '' ? null : make('mark', {}, fresh),
      );
      return [pre];
    },
  );
  element.open = !isShared;
  render();
  return element;
};

const isSame = (key: readonly unknown[], before: readonly unknown[]): boolean =>
  key.every((part, index) => part === before[index]);

/**
 * A provider's cache can keep the beginning that is equal in the request before: that is shown
 * apart from the rest.
 */
const requestView = (pageState: PageState): (() => readonly Node[] | null) => {
  /** What is drawn: the history, the entry, and its usage. */
  let drawn: readonly unknown[] = [];
  return () => {
    const { history, session, seq, id } = pageState;
    const request = requestAt(history, session.prompt, seq);
    const usage =
      history.figures.requests.find((one) => one.id === request?.requestId)?.usage ?? null;
    const key = [history, request?.seq, usage];
    if (isSame(key, drawn)) return null;
    drawn = key;
    if (request === null)
      return [make('p', { class: 'faint' }, 'No request was sent to a model up to here.')];
    const shared = sharedPrefix(requestAt(history, session.prompt, request.seq - 1), request);
    const { sharedBytes, bytes } = shared;
    const paid =
      usage === null
        ? 'No usage was reported so far.'
        : `The provider counted ${groupDigits(promptTokens(usage))} tokens, ` +
          `${shareText(getCacheShare(usage))} of them from its cache: ${moneyText(usage.costUsd)}.`;
    const hidden = request.parts.length - PARTS_AT_ONCE;
    const rest =
      `The first ${hidden} parts are not shown here; pawl show ${id} ` +
      `--at ${request.seq} --request prints all.`;
    return [
      make(
        'p',
        {},
        make('strong', {}, `Request ${request.requestId} to ${request.model}`),
        ', after ',
        seqLink(request.seq, (to) => pageState.go(to)),
        `. ${groupDigits(sharedBytes)} of ${groupDigits(bytes)} bytes ` +
          `(${shareText(bytes === 0 ? null : sharedBytes / bytes)}) ` +
          `begin as in the request before: a cache can keep that much. ${paid}`,
      ),
      ...(hidden > 0 ? [make('p', { class: 'faint' }, rest)] : []),
      ...request.parts.flatMap((part, index) =>
        index < hidden ? [] : [partView(part, index, shared)],
      ),
    ];
  };
};
