import { make } from './dom.js';

/**
 * Values of JSON as trees that open. What was open stays open when a value is drawn again, and a part that is the same
 * object as before keeps its elements: states share most of their parts.
 */

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

const row = (name: string, value: HTMLElement): HTMLElement =>
  make('div', { class: 'json-row' }, make('span', { class: 'key' }, name), ': ', value);

export class JsonTree {
  /** Paths of the branches that are open. */
  readonly #open: Set<string>;
  readonly #drawn = new Map<string, { readonly value: object; readonly element: HTMLElement }>();

  constructor(open: readonly string[] = []) {
    this.#open = new Set(open);
  }

  /** The elements of a value. `path` is its name for later calls. */
  draw(name: string, value: unknown, path: string): HTMLElement {
    if (typeof value !== 'object' || value === null) return row(name, leaf(value));
    const known = this.#drawn.get(path);
    if (known?.value === value) return known.element;
    const element = this.#branch(name, value, path);
    this.#drawn.set(path, { value, element });
    return element;
  }

  #branch(name: string, given: object, path: string): HTMLElement {
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
      const shown = children.slice(0, CHILDREN_AT_ONCE);
      details.append(...shown.map(([key, one]) => this.draw(key, one, `${path}/${key}`)));
      if (rest > 0) details.append(make('p', { class: 'faint' }, `and ${rest} more`));
    };
    details.addEventListener('toggle', () => {
      if (details.open) {
        this.#open.add(path);
        fill();
      } else this.#open.delete(path);
    });
    if (this.#open.has(path)) {
      details.open = true;
      fill();
    }
    return details;
  }
}
