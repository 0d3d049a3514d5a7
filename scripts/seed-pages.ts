/**
 * The page of each seed (a published text that describes an agent as a state machine): its chart,
 * its words beside ours, its arrows. They come from its projection, which maps our states to its
 * own. What is said about them is written by hand.
 */

import {
  type Projection,
  projectionDiagram,
  projectionTable,
} from '../packages/verify/src/projections/projection.js';
import { fenced, splice } from './diagram.js';

export const seedPage = (view: Projection): string => `docs/seeds/${view.name}.md`;

type Names = Readonly<Record<string, string>>;

const wordRows = (kind: string, theirs: Names, ours: Names): readonly string[] => {
  const names = Object.entries(theirs);
  if (names.length === 0) return [];
  return [
    `| ${kind} | says its text | ours |`,
    '|---|---|---|',
    ...names.map(([name, meaning]) => `| ${name} | ${meaning} | ${ours[name] ?? ''} |`),
    '',
  ];
};

/** Its states, events and actions, each with our words for it. */
const wordTables = ({ states, events, actions, ours }: Projection): string =>
  [
    ...wordRows('its state', states, ours.states),
    ...wordRows('its event', events, ours.events),
    ...wordRows('its action', actions, ours.actions),
  ].join('\n');

const arrows = (view: Projection): string => {
  const never = Object.entries(view.unreached).map(([id, why]) => `- \`${id}\`: ${why}.`);
  return never.length === 0
    ? projectionTable(view)
    : [projectionTable(view), '', 'Never taken:', '', ...never].join('\n');
};

/**
 * The page with everything that comes from the view put in anew. Throws when it has no place for
 * it.
 */
export const fillSeedPage = (text: string, view: Projection): string =>
  splice(
    splice(splice(text, 'diagram', fenced(projectionDiagram(view))), 'words', wordTables(view)),
    'table',
    arrows(view),
  );
