/**
 * The page with the list of sessions. Cells that need a whole journal to be read are filled in
 * afterwards, row by row.
 */

import { moneyText } from '@pawl/agent/machine/settings';
import { durationText } from '@pawl/agent/platform/clock';
import { localTime } from '@pawl/agent/platform/text';
import type { SessionInfo } from '@pawl/agent/ports/journal';
import { plural } from '../model/figure-text.js';
import type { SessionList, SessionSummary } from '../page-data-types.js';
import { make, table } from './elements.js';
import { showLive } from './live-sessions.js';
import { apiAddress, fetchJson } from './page-state.js';

export const showSessions = async (): Promise<void> => {
  const { sessions, version } = await fetchJson<SessionList>('sessions');
  const rows = sessions.map(createRow);
  const list = table(
    'Sessions',
    'sessions',
    ['session', 'last used', 'state', 'events', 'turns', 'duration', 'cost', 'folder'],
    rows.map(({ cells }) => cells),
  );
  const field = make('input', {
    type: 'search',
    placeholder: 'Filter',
    'aria-label': 'Filter the sessions',
    oninput: () => {
      const query = field.value.toLowerCase();
      for (const row of list.querySelectorAll<HTMLElement>('tbody tr'))
        row.hidden = !(row.textContent ?? '').toLowerCase().includes(query);
    },
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
      make('main', {}, live, list),
    ),
  );
  await showLive(live);
  for (const row of rows) await fillRow(row);
  document.body.dataset.loaded = 'yes';
};

/** `later`: the cells that are filled in afterwards, from the state to the cost. */
type Row = {
  readonly info: SessionInfo;
  readonly cells: readonly (Node | string)[];
  readonly later: readonly HTMLElement[];
};

const isReadable = ({ kind, unreadable }: SessionInfo): boolean =>
  kind === 'agent' && unreadable === undefined;

const createRow = (info: SessionInfo): Row => {
  const { sessionId, kind, title, changedAt, workspace, parent, startedBy } = info;
  const name = title === '' ? sessionId : title;
  const link = isReadable(info)
    ? make('a', { href: apiAddress(`session/${sessionId}`) }, name)
    : name;
  const from = parent === null ? '' : ` · fork of ${parent.sessionId} at ${parent.seq}`;
  const task = startedBy === undefined ? '' : ` · task of ${startedBy.sessionId}`;
  const asked = kind === 'ask' ? ' · pawl ask: pawl show prints it' : '';
  const about = make('div', { class: 'faint' }, `${sessionId}${from}${task}${asked}`);
  const later = ['state', 'events', 'turns', 'duration', 'cost'].map(() => make('span'));
  const folder = make('span', { class: 'faint' }, workspace);
  return {
    info,
    cells: [make('div', {}, link, about), localTime(changedAt), ...later, folder],
    later,
  };
};

const summaryTexts = (summary: SessionSummary): readonly (Node | string)[] => {
  const { seq, state, turns, usage, startedAt, endedAt, damage } = summary;
  const unknown = `${usage.unpriced > 0 ? '+?' : ''}${usage.estimated ? ' (estimated)' : ''}`;
  return [
    make(
      'span',
      { title: damage },
      make('span', { class: `chip ${state}` }, state),
      damage === null ? '' : ' damaged',
    ),
    String(seq),
    String(turns),
    durationText(endedAt - startedAt),
    `${moneyText(usage.costUsd)}${unknown}`,
  ];
};

const fillRow = async ({ info, later }: Row): Promise<void> => {
  if (!isReadable(info)) return;
  try {
    const texts = summaryTexts(await fetchJson(`data/${info.sessionId}/summary`));
    for (const [index, cell] of later.entries()) cell.replaceChildren(texts[index] ?? '');
  } catch (error) {
    later[0]?.replaceChildren(make('span', { class: 'faint' }, `can't be read: ${String(error)}`));
  }
};
