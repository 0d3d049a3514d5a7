/**
 * One step of the machine: the event, the edges that it took (rows of the table, with the guards
 * that chose them), the actions, commands for the shell, and what it changed in the state.
 */

import type { JournalStep } from '@pawl/agent/journal/steps';
import { cut } from '@pawl/agent/platform/text';
import type { Edge } from '@pawl/machine/kernel/table';
import { clockText, dayText, plural } from '../model/figure-text.js';
import { type ValueDifference, valueDifferences } from '../model/session-history.js';
import { button, copyCommand, JsonTree, make, seqLink } from './elements.js';
import type { PageState, Panel } from './page-state.js';

export const stepPanel = (pageState: PageState): Panel => {
  const element = make('section', { class: 'step' });
  const tree = new JsonTree(['event']);
  return {
    element,
    render() {
      const step = pageState.history.stepAt(pageState.seq);
      const { id, seq } = pageState;
      if (step === null) {
        const { createdAt, workspace, parent } = pageState.session.header;
        const fork =
          parent === null ? '' : ` It is a fork of ${parent.sessionId} at ${parent.seq}.`;
        element.replaceChildren(
          make('h2', {}, 'Before the first event'),
          make('p', {}, `The session was made on ${dayText(createdAt)} in ${workspace}.${fork}`),
        );
        return;
      }
      const { event, actions } = step;
      element.replaceChildren(
        make(
          'h2',
          {},
          `${seq}. ${event.type}`,
          make('span', { class: 'faint' }, ` at ${clockText(event.at)}`),
        ),
        tree.draw('event', event, 'event'),
        make('h3', {}, 'Path'),
        pathTable(step),
        make('h3', {}, actions.length === 0 ? 'No actions' : 'Actions'),
        ...actions.map((action, index) =>
          tree.draw(`${index + 1}. ${action.type}`, action, `action/${index}/${action.type}`),
        ),
        make('h3', {}, 'In a terminal'),
        commandsFor(id, seq),
        ...changesView(pageState),
      );
    },
  };
};

const edgeRow = ({ from, to, event, when, then, as, kind }: Edge): HTMLElement =>
  make(
    'tr',
    { class: kind },
    make('td', {}, from),
    make('td', {}, kind === 'stay' ? 'stays' : `→ ${to}`),
    make('td', {}, event ?? '(at once)'),
    make('td', { class: 'guard' }, when === '' ? '–' : `[${when}]`),
    make('td', {}, [then, as].filter((word) => word !== '').join(' as ')),
  );

const pathTable = ({ path, diagnostics }: JournalStep): HTMLElement => {
  if (path.length === 0) {
    const why = diagnostics.map(({ why: reason }) => reason).join('; ');
    return make('p', {}, `The event changed nothing${why === '' ? '' : `: ${why}`}.`);
  }
  const head = ['from', 'to', 'by', 'guard that held', 'move'];
  return make(
    'div',
    { class: 'scrolls', tabindex: 0, role: 'region', 'aria-label': 'Path' },
    make(
      'table',
      {},
      make('thead', {}, make('tr', {}, ...head.map((text) => make('th', { scope: 'col' }, text)))),
      make('tbody', {}, ...path.map(edgeRow)),
    ),
  );
};

const commandsFor = (id: string, seq: number): HTMLElement =>
  make(
    'ul',
    { class: 'commands' },
    copyCommand(`pawl fork ${id} --at ${seq}`, 'go on from here in a copy'),
    copyCommand(`pawl show ${id} --at ${seq}`, 'the conversation here'),
    copyCommand(`pawl show ${id} --at ${seq} --request`, 'what the model was sent last'),
    copyCommand(`pawl replay ${id} --at ${seq}`, 'compute and check it again'),
  );

// ---- What it changed in the state ----

/** The differences between the selected state and the one before it, or a pinned one. */
const changesView = (pageState: PageState): readonly HTMLElement[] => {
  const { history, pinned, seq } = pageState;
  const from = pinned ?? Math.max(0, seq - 1);
  const differences = valueDifferences(history.stateAt(from), history.stateAt(seq));
  const rest = differences.length - ROWS_MAX;
  const go = (to: number): void => pageState.go(to);
  const pin =
    pinned === null
      ? button(`Compare later states with #${seq}`, {}, () => pageState.update({ pinned: seq }))
      : button('Compare with the entry before', {}, () => pageState.update({ pinned: null }));
  const count =
    differences.length === 0
      ? 'The states are equal.'
      : `${plural(differences.length, 'difference')}.`;
  return [
    make('h3', {}, 'State, from ', seqLink(from, go), ' to ', seqLink(seq, go)),
    make('p', {}, make('span', { class: 'faint' }, `${count} `), pin),
    ...(differences.length === 0 ? [] : [differenceTable(differences, `#${from}`, `#${seq}`)]),
    ...(rest > 0 ? [make('p', { class: 'faint' }, `${plural(rest, 'more difference')}.`)] : []),
  ];
};

const ROWS_MAX = 300;
const VALUE_CHARACTERS = 400;

const valueText = (value: unknown): string => {
  if (value === undefined) return '–';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return cut(text, VALUE_CHARACTERS);
};

const differenceRow = ({ path, before, after }: ValueDifference): HTMLElement =>
  make(
    'tr',
    {},
    make('th', { scope: 'row' }, path),
    make('td', { class: 'removed' }, valueText(before)),
    make('td', { class: 'added' }, valueText(after)),
  );

const differenceTable = (
  differences: readonly ValueDifference[],
  left: string,
  right: string,
): HTMLElement =>
  make(
    'div',
    { class: 'scrolls', tabindex: 0, role: 'region', 'aria-label': 'Differences' },
    make(
      'table',
      { class: 'differences' },
      make(
        'thead',
        {},
        make('tr', {}, ...['where', left, right].map((text) => make('th', { scope: 'col' }, text))),
      ),
      make('tbody', {}, ...differences.slice(0, ROWS_MAX).map(differenceRow)),
    ),
  );
