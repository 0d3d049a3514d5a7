import { type ValueDifference, valueDifferences } from '../../model/value-differences.js';
import { button, make, seqLink } from '../dom.js';
import { plural } from '../format-numbers.js';
import type { PageState, Panel } from '../page-state.js';

/** What differs between two states: the selected one and the one before it, or a pinned one. */

const ROWS_MAX = 300;
const VALUE_CHARACTERS = 400;

const valueText = (value: unknown): string => {
  if (value === undefined) return '–';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length > VALUE_CHARACTERS ? `${text.slice(0, VALUE_CHARACTERS)}…` : text;
};

const rowOf = ({ path, before, after }: ValueDifference): HTMLElement =>
  make(
    'tr',
    {},
    make('th', { scope: 'row' }, path),
    make('td', { class: 'removed' }, valueText(before)),
    make('td', { class: 'added' }, valueText(after)),
  );

const tableOf = (differences: readonly ValueDifference[], left: string, right: string): HTMLElement =>
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
      make('tbody', {}, ...differences.slice(0, ROWS_MAX).map(rowOf)),
    ),
  );

export const changesPanel = (pageState: PageState): Panel => {
  const element = make('section', { class: 'changes', 'aria-label': 'Changes' });
  return {
    element,
    render() {
      const { history, pinned, seq } = pageState;
      const from = pinned ?? Math.max(0, seq - 1);
      const differences = valueDifferences(history.stateAt(from), history.stateAt(seq));
      const rest = differences.length - ROWS_MAX;
      const pin =
        pinned === null
          ? button(`Compare later states with #${seq}`, {}, () => pageState.update({ pinned: seq }))
          : button('Compare with the entry before', {}, () => pageState.update({ pinned: null }));
      element.replaceChildren(
        make(
          'h2',
          {},
          'From ',
          seqLink(from, (to) => pageState.go(to)),
          ' to ',
          seqLink(seq, (to) => pageState.go(to)),
        ),
        make('p', {}, pin),
        make(
          'p',
          { class: 'faint' },
          differences.length === 0 ? 'The states are equal.' : `${plural(differences.length, 'difference')}.`,
        ),
        ...(differences.length === 0 ? [] : [tableOf(differences, `#${from}`, `#${seq}`)]),
        ...(rest > 0 ? [make('p', { class: 'faint' }, `${plural(rest, 'more difference')}.`)] : []),
      );
    },
  };
};
