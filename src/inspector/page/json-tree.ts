import { make } from './dom.js';

/** A value of JSON as a tree that opens. What was open stays open when the value is drawn again. */

const CHILDREN_AT_ONCE = 200;

const plain = (value: object): unknown =>
  'toJSON' in value && typeof value.toJSON === 'function' ? value.toJSON() : value;

const leaf = (value: unknown): HTMLElement =>
  make(
    'span',
    { class: `json ${value === null ? 'null' : typeof value}` },
    JSON.stringify(value) ?? 'undefined',
  );

const childrenOf = (value: unknown): readonly (readonly [string, unknown])[] => {
  if (Array.isArray(value)) return value.map((one, index) => [String(index), one] as const);
  return typeof value === 'object' && value !== null ? Object.entries(value) : [];
};

const sizeText = (value: unknown, count: number): string =>
  Array.isArray(value) ? `[${count}]` : `{${count}}`;

const branch = (name: string, given: object, path: string, open: Set<string>): HTMLElement => {
  const value = plain(given);
  const children = childrenOf(value);
  if (children.length === 0) return row(name, leaf(value));
  const details = make(
    'details',
    { class: 'json-branch' },
    make('summary', {}, make('span', { class: 'key' }, name), ` ${sizeText(value, children.length)}`),
  );
  const fill = (): void => {
    if (details.childElementCount > 1) return;
    const rest = children.length - CHILDREN_AT_ONCE;
    const shown = children
      .slice(0, CHILDREN_AT_ONCE)
      .map(([key, one]) => jsonTree(key, one, `${path}/${key}`, open));
    details.append(...shown);
    if (rest > 0) details.append(make('p', { class: 'faint' }, `and ${rest} more`));
  };
  details.addEventListener('toggle', () => {
    if (details.open) {
      open.add(path);
      fill();
    } else open.delete(path);
  });
  if (open.has(path)) {
    details.open = true;
    fill();
  }
  return details;
};

const row = (name: string, value: HTMLElement): HTMLElement =>
  make('div', { class: 'json-row' }, make('span', { class: 'key' }, name), ': ', value);

export const jsonTree = (name: string, value: unknown, path: string, open: Set<string>): HTMLElement =>
  typeof value === 'object' && value !== null ? branch(name, value, path, open) : row(name, leaf(value));
