/**
 * The page with the list of sessions. Cells that need a whole journal to be read are filled in
 * afterwards, row by row.
 */

import type { SessionInfo } from '@pawl/agent/ports/journal';
import { dayText, durationText, moneyText, plural } from '../model/figure-text.js';
import type { SessionList, SessionSummary } from '../page-data-types.js';
import { make } from './elements.js';
import { showLive } from './live-sessions.js';
import { apiAddress, fetchJson } from './page-state.js';

export const showSessions = async (): Promise<void> => {
  const { sessions, version } = await fetchJson<SessionList>('sessions');
  const rows = sessions.map(createRow);
  const field = make('input', {
    type: 'search',
    placeholder: 'Filter',
    'aria-label': 'Filter the sessions',
  });
  field.addEventListener('input', () => {
    const query = field.value.toLowerCase();
    for (const { element } of rows)
      element.hidden = !(element.textContent ?? '').toLowerCase().includes(query);
  });
  const live = make('section', { class: 'live', hidden: true, 'aria-label': 'Detached sessions' });
  document.title = 'Sessions · Pawl';
  document.body.replaceChildren(
    make(
      'div',
      { class: 'page list' },
      make(
        'header',
        {},
        make('span', { class: 'home' }, 'Pawl'),
        make('h1', {}, plural(sessions.length, 'session')),
        make('span', { class: 'spacer' }),
        field,
        make('span', { class: 'faint' }, version),
      ),
      make(
        'main',
        {},
        live,
        make(
          'div',
          { class: 'scrolls', tabindex: 0, role: 'region', 'aria-label': 'Sessions' },
          make(
            'table',
            { class: 'sessions' },
            make(
              'thead',
              {},
              make('tr', {}, ...HEAD.map((text) => make('th', { scope: 'col' }, text))),
            ),
            make('tbody', {}, ...rows.map(({ element }) => element)),
          ),
        ),
      ),
    ),
  );
  await showLive(live);
  await fillAll(rows);
  document.body.dataset.loaded = 'yes';
};

type Row = {
  readonly info: SessionInfo;
  readonly element: HTMLTableRowElement;
  /** Those that are filled in afterwards. */
  readonly cells: readonly HTMLElement[];
};

const HEAD = ['session', 'last used', 'state', 'events', 'turns', 'duration', 'cost', 'folder'];

const createRow = (info: SessionInfo): Row => {
  const { sessionId, kind, title, changedAt, workspace, parent, startedBy } = info;
  const isOurs = kind === 'agent' && info.unreadable === undefined;
  const name = title === '' ? sessionId : title;
  const link = isOurs
    ? make('a', { href: apiAddress(`session/${sessionId}`) }, name)
    : make('span', {}, name);
  const from = parent === null ? '' : ` · fork of ${parent.sessionId} at ${parent.seq}`;
  const task = startedBy === undefined ? '' : ` · task of ${startedBy.sessionId}`;
  const asked = kind === 'ask' ? ' · pawl ask: pawl show prints it' : '';
  const cells = [1, 2, 3, 4, 5].map(() => make('td', {}));
  const element = make(
    'tr',
    {},
    make('td', {}, link, make('div', { class: 'faint' }, `${sessionId}${from}${task}${asked}`)),
    make('td', {}, dayText(changedAt)),
    ...cells,
    make('td', { class: 'faint' }, workspace),
  );
  return { info, element, cells };
};

const fillRow = (
  { cells }: Row,
  { seq, state, turns, usage, startedAt, endedAt, damage }: SessionSummary,
): void => {
  const [stateCell, events, turnsCell, duration, cost] = cells;
  stateCell?.replaceChildren(
    make('span', { class: `chip ${state}` }, state),
    damage === null ? '' : ' damaged',
  );
  if (damage !== null) stateCell?.setAttribute('title', damage);
  if (events !== undefined) events.textContent = String(seq);
  if (turnsCell !== undefined) turnsCell.textContent = String(turns);
  if (duration !== undefined) duration.textContent = durationText(endedAt - startedAt);
  if (cost !== undefined)
    cost.textContent =
      moneyText(usage.costUsd) +
      (usage.unpriced > 0 ? '+?' : '') +
      (usage.estimated ? ' (estimated)' : '');
};

const fillAll = async (rows: readonly Row[]): Promise<void> => {
  for (const row of rows) {
    const { info } = row;
    if (info.kind !== 'agent' || info.unreadable !== undefined) continue;
    try {
      fillRow(row, await fetchJson<SessionSummary>(`data/${info.sessionId}/summary`));
    } catch (error) {
      row.cells[0]?.replaceChildren(
        make('span', { class: 'faint' }, `can't be read: ${String(error)}`),
      );
    }
  }
};
