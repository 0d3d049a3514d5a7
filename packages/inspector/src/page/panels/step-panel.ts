import type { JournalStep } from '@pawl/agent/journal/read/steps';
import type { Edge } from '@pawl/machine/kernel/step-types';
import { copyCommand } from '../copy-command.js';
import { make } from '../dom.js';
import { clockText, dayText } from '../format-numbers.js';
import { JsonTree } from '../json-tree.js';
import type { PageState, Panel } from '../page-state.js';

/** One step: the event, the edges that it took and the guards that decided, the actions, commands for the shell. */

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

export const stepPanel = (pageState: PageState): Panel => {
  const element = make('section', { class: 'step', 'aria-label': 'Step' });
  const tree = new JsonTree(['event']);
  return {
    element,
    render() {
      const step = pageState.history.stepAt(pageState.seq);
      const { id, seq } = pageState;
      if (step === null) {
        const { createdAt, workspace, parent } = pageState.session.header;
        const fork = parent === null ? '' : ` It is a fork of ${parent.sessionId} at ${parent.seq}.`;
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
      );
    },
  };
};
