/**
 * The input line between its edges, and what stands below it: the row of settings, or the card of
 * keys.
 */

import { knownCostUsd, type State } from '@pawl/agent/machine/state';
import type { Preset } from '@pawl/agent/policy/presets';
import type { Frame } from './live-area.js';
import {
  countColumns,
  cutLine,
  formatCost,
  type Look,
  paint,
  type Style,
  wrapWords,
} from './paint.js';
import { joinSafe, makeSafe, type Safe, safe } from './safe-text.js';

type Size = { readonly columns: number; readonly rows: number };

/** Lower windows have no lower edge, no upper edge, and at last no row of settings. */
const BOTH_EDGES_ROWS = 20;
const UPPER_EDGE_ROWS = 12;
const SETTINGS_ROWS = 8;

const PRESET_STYLES: Readonly<Record<Preset, Style>> = {
  plan: 'blue',
  careful: 'green',
  auto: 'yellow',
  ci: 'yellow',
  full: 'red',
};

type Part = {
  readonly text: Safe;
  /** Parts with a low rank stay longest in a narrow window. */
  readonly rank: number;
  readonly style: Style;
  /** What replaces the text before parts of lower rank are left out. */
  readonly short?: Safe;
};

const costText = (state: State): Safe => {
  const { usd } = state.session.settings.limits;
  const spent = formatCost(knownCostUsd(state));
  return usd === 'unlimited' ? spent : safe`${spent} of $${makeSafe(usd.toFixed(2))}`;
};

const sandboxPart = ({ session: { settings } }: State): Part => {
  const { sandbox = 'off' } = settings;
  if (sandbox === 'off') return { text: safe`sandbox off`, rank: 1, style: 'yellow' };
  if (sandbox === 'missing') return { text: safe`no sandbox`, rank: 1, style: 'yellow' };
  return { text: makeSafe(`sandbox ${sandbox}`), rank: 6, style: 'dim' };
};

const settingsParts = (state: State): readonly Part[] => {
  const { settings, contextTokens } = state.session;
  const { preset, model, effort = 'auto', windowTokens } = settings;
  const share = Math.round((100 * contextTokens) / Math.max(1, windowTokens));
  const parts: readonly Part[] = [
    {
      text: makeSafe(preset ?? ''),
      rank: 0,
      style: preset === undefined ? 'dim' : PRESET_STYLES[preset],
    },
    sandboxPart(state),
    {
      text: makeSafe(model),
      rank: 3,
      style: 'dim',
      short: makeSafe(model.slice(model.lastIndexOf('/') + 1)),
    },
    { text: makeSafe(effort === 'auto' ? '' : `effort ${effort}`), rank: 5, style: 'dim' },
    { text: costText(state), rank: 2, style: 'dim' },
    { text: safe`${share}% of context`, rank: 4, style: 'dim', short: safe`${share}%` },
  ];
  return parts.filter(({ text }) => text !== '');
};

const SEPARATOR = safe` · `;
const INDENT = safe`  `;

const measureParts = (parts: readonly Part[]): number =>
  countColumns(joinSafe([INDENT, ...parts.map(({ text }) => safe`${SEPARATOR}${text}`)])) -
  (parts.length === 0 ? 0 : SEPARATOR.length);

/** Whether the row names the key that changes the preset: only where that key does so. */
type PresetKey = 'named' | 'notNamed';

/** One row of at most `columns`: preset, sandbox, model, effort, money, share of the context. */
export const settingsRow = (
  state: State,
  look: Look,
  columns: number,
  key: PresetKey = 'named',
): Safe => {
  let parts = settingsParts(state);
  if (measureParts(parts) > columns)
    parts = parts.map((part) => ({ ...part, text: part.short ?? part.text }));
  while (parts.length > 1 && measureParts(parts) > columns) {
    const last = Math.max(...parts.map(({ rank }) => rank));
    parts = parts.filter(({ rank }) => rank !== last);
  }
  const [first] = parts;
  const hint = safe` (Shift+Tab)`;
  const isNamed = key === 'named' && state.session.settings.preset !== 'full';
  const hasRoom = measureParts(parts) + hint.length <= columns && first?.rank === 0;
  const painted = parts.map(({ text, style }, index) => {
    const shown = paint(look, style, text);
    if (index > 0) return safe`${paint(look, 'dim', SEPARATOR)}${shown}`;
    return hasRoom && isNamed ? safe`${shown}${paint(look, 'dim', hint)}` : shown;
  });
  return cutLine(joinSafe([INDENT, ...painted]), columns);
};

/** The row of settings, if the window is high enough for it. */
export const settingsRows = (
  state: State,
  look: Look,
  { columns, rows }: Size,
  key: PresetKey = 'named',
): readonly Safe[] => (rows < SETTINGS_ROWS ? [] : [settingsRow(state, look, columns - 1, key)]);

const KEY_CARD: readonly (readonly [key: string, meaning: string])[] = [
  ['Enter', 'send; while it works: with the next step'],
  ['Alt+Enter', 'send after this turn'],
  ['Escape', 'stop; twice at rest: take back'],
  ['Shift+Tab', 'next preset: what runs unasked'],
  ['@', 'name a file of this folder'],
  ['!', 'run a command yourself'],
  ['Ctrl-O', 'show what is folded'],
  ['/', 'all commands; /help explains them'],
];
const KEY_COLUMNS = 2 + Math.max(...KEY_CARD.map(([key]) => key.length));

/** The eight keys, in one or two columns. */
const cardRows = (look: Look, columns: number): readonly Safe[] => {
  const cells = KEY_CARD.map(([key, meaning]) => ({ key: makeSafe(key), meaning }));
  const width = Math.max(...KEY_CARD.map(([, meaning]) => meaning.length)) + KEY_COLUMNS + 2;
  const cell = ({ key, meaning }: (typeof cells)[number]): Safe =>
    safe`${paint(look, 'bold', key.padEnd(KEY_COLUMNS))}${makeSafe(meaning)}`;
  if (columns <= 2 * width)
    return cells.map((one) => cutLine(safe`${INDENT}${cell(one)}`, columns));
  const half = cells.length / 2;
  return cells.slice(0, half).map((left, index) => {
    const right = cells[half + index];
    const gap = safe` `.repeat(width - KEY_COLUMNS - left.meaning.length);
    return safe`${INDENT}${cell(left)}${right === undefined ? safe`` : safe`${gap}${cell(right)}`}`;
  });
};

/** The card that stands below the line while it holds a question mark alone. */
export const keyCard = (look: Look, { columns }: Pick<Size, 'columns'>): readonly Safe[] => [
  ...cardRows(look, columns - 1),
  ...wrapWords(safe`Backspace closes this; Enter shows all keys and commands`, columns - 4).map(
    (row) => safe`${INDENT}${paint(look, 'dim', row)}`,
  ),
];

const PLACEHOLDER = 'Give a task, for example: find out why the tests fail and repair it';

/** An empty line with an example of what to type. */
export const withPlaceholder = ({ rows, cursor }: Frame, look: Look, columns: number): Frame => {
  const [first = safe`> `, ...others] = rows;
  const example = cutLine(makeSafe(PLACEHOLDER), Math.max(4, columns - 3));
  return { rows: [safe`${first}${paint(look, 'dim', example)}`, ...others], cursor };
};

/** The line between its edges, with `below` under it. */
export const inputBox = (
  line: Frame,
  look: Look,
  { columns, rows }: Size,
  below: readonly Safe[],
): Frame => {
  const edge = paint(look, 'dim', safe`─`.repeat(columns));
  const upper = rows < UPPER_EDGE_ROWS ? [] : [edge];
  const lower = rows < BOTH_EDGES_ROWS ? [] : [edge];
  const { cursor } = line;
  return {
    rows: [...upper, ...line.rows, ...lower, ...below],
    cursor: cursor === null ? null : { ...cursor, row: cursor.row + upper.length },
  };
};
