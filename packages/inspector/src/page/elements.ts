/**
 * Makes elements: of HTML and SVG, trees of JSON values, commands to copy, tables and long lists.
 * Texts only ever become text nodes and attributes: nothing of a session is read as HTML.
 */

import { firstCharacters, localTime } from '@pawl/agent/platform/text';
import { clockText } from '../model/figure-text.js';
import { plainValue } from '../model/session-history.js';

type Child = Node | string | null;
/**
 * `onclick` and the like are listeners, `style` has its properties; null is left out. A listener's
 * event is `never` here, so that each name can have its own below.
 */
type Attributes = {
  readonly [name: `on${string}`]: (event: never) => void;
  readonly [name: string]: Attribute | ((event: never) => void);
} & {
  readonly [K in keyof HTMLElementEventMap as `on${K}`]?: (event: HTMLElementEventMap[K]) => void;
};
type Attribute = string | number | boolean | null | Readonly<Record<string, string>>;

const SVG = 'http://www.w3.org/2000/svg';

/**
 * Characters that would reorder the text around them stand as marks, and so do those that control a
 * terminal.
 */
export const visibleText = (text: string): string =>
  text.replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    (one) => {
      const code = one.charCodeAt(0);
      if (code < 32) return String.fromCharCode(0x2400 + code);
      return `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`;
    },
  );

const setAttribute = (
  element: HTMLElement | SVGElement,
  name: string,
  value: Attributes[string],
): void => {
  if (value === null || value === false) return;
  if (typeof value === 'function') {
    // Safe: `Attributes` gives each listener the events of its name.
    element.addEventListener(name.slice(2), value as (event: Event) => void);
  } else if (typeof value === 'object')
    for (const [property, text] of Object.entries(value)) element.style.setProperty(property, text);
  else element.setAttribute(name, value === true ? '' : String(value));
};

const fill = <E extends HTMLElement | SVGElement>(
  element: E,
  attributes: Attributes,
  children: readonly Child[],
): E => {
  for (const [name, value] of Object.entries(attributes)) setAttribute(element, name, value);
  for (const child of children)
    if (child !== null) element.append(typeof child === 'string' ? visibleText(child) : child);
  return element;
};

export const make = <K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] => fill(document.createElement(tag), attributes, children);

export const makeSvg = <K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): SVGElementTagNameMap[K] => fill(document.createElementNS(SVG, tag), attributes, children);

/**
 * Gives a parent these children and touches only those that differ: what stays in its place is not
 * laid out again, and keeps what a reader opened in it.
 */
export const arrange = (parent: Element, children: readonly Element[]): void => {
  const remaining = new Set(children);
  for (const child of [...parent.children]) if (!remaining.has(child)) child.remove();
  let place = parent.firstElementChild;
  for (const child of children) {
    if (child === place) place = place.nextElementSibling;
    else parent.insertBefore(child, place);
  }
};

export const button = (
  label: string,
  attributes: Attributes,
  press: () => void,
): HTMLButtonElement => make('button', { type: 'button', onclick: press, ...attributes }, label);

/** A link that goes to an entry of the journal. */
export const seqLink = (
  seq: number,
  go: (seq: number) => void,
  label = `#${seq}`,
): HTMLButtonElement => button(label, { class: 'seq', title: `Go to entry ${seq}` }, () => go(seq));

// ---- Values of JSON ----

/**
 * Values of JSON as trees that open. What was open stays open when a value is drawn again, and a
 * part that is the same object as before keeps its elements: states share most of their parts.
 */
export class JsonTree {
  /** Paths of the branches that are open. */
  readonly #open: Set<string>;
  readonly #drawn = new Map<string, { readonly value: object; readonly element: HTMLElement }>();

  constructor(open: readonly string[] = []) {
    this.#open = new Set(open);
  }

  /** The elements of a value. `name` stands before it; later calls find them by `path`. */
  draw(name: string, value: unknown, path: string): HTMLElement {
    if (typeof value !== 'object' || value === null) return row(name, leaf(value));
    const known = this.#drawn.get(path);
    if (known?.value === value) return known.element;
    const element = this.#branch(name, value, path);
    this.#drawn.set(path, { value, element });
    return element;
  }

  #branch(name: string, source: object, path: string): HTMLElement {
    const value = plainValue(source);
    const children = getChildren(value);
    if (children.length === 0) return row(name, leaf(value));
    const toggle = (): void => {
      if (details.open) {
        this.#open.add(path);
        addChildren();
      } else this.#open.delete(path);
    };
    const details = make(
      'details',
      { class: 'json-branch', open: this.#open.has(path), ontoggle: toggle },
      make(
        'summary',
        {},
        make('span', { class: 'key' }, name),
        ` ${sizeText(value, children.length)}`,
      ),
    );
    const addChildren = (): void => {
      if (details.childElementCount > 1) return;
      const rest = children.length - CHILDREN_AT_ONCE;
      const shown = children.slice(0, CHILDREN_AT_ONCE);
      details.append(...shown.map(([key, one]) => this.draw(key, one, `${path}/${key}`)));
      if (rest > 0) details.append(make('p', { class: 'faint' }, `and ${rest} more`));
    };
    if (details.open) addChildren();
    return details;
  }
}

/** Further children of a value are only counted. */
const CHILDREN_AT_ONCE = 200;

/** A text of megabytes would stop the page. */
const LEAF_MAX = 20_000;

const leafText = (value: unknown): string => {
  if (typeof value !== 'string' || value.length <= LEAF_MAX)
    return JSON.stringify(value) ?? 'undefined';
  return `${JSON.stringify(firstCharacters(value, LEAF_MAX))} and ${value.length - LEAF_MAX} characters more`;
};

const leaf = (value: unknown): HTMLElement =>
  make('span', { class: `json ${value === null ? 'null' : typeof value}` }, leafText(value));

const getChildren = (value: unknown): readonly (readonly [string, unknown])[] => {
  if (Array.isArray(value)) return value.map((one, index) => [String(index), one] as const);
  return typeof value === 'object' && value !== null ? Object.entries(value) : [];
};

const sizeText = (value: unknown, count: number): string =>
  Array.isArray(value) ? `[${count}]` : `{${count}}`;

/** A time in milliseconds since 1970 has its time of day beside it; the style sheet shows that. */
const row = (name: string, value: HTMLElement): HTMLElement => {
  const at = /(?:^at|At)$/.test(name) ? Number(value.textContent) : Number.NaN;
  const clock = at > 1e12 && at < 1e13 ? `${localTime(at)}${clockText(at).slice(5)}` : null;
  const key = make('span', { class: 'key' }, name);
  return make('div', { class: 'json-row', 'data-clock': clock }, key, ': ', value);
};

// ---- Commands to copy ----

/**
 * A command for the shell, with a button that copies it. Where the clipboard is closed to the page,
 * it is selected.
 */
export const copyCommand = (command: string, about: string): HTMLElement => {
  const code = make('code', { class: 'code', tabindex: 0 }, command);
  const status = make('span', { class: 'faint', role: 'status' });
  const copy = button('Copy', { 'aria-label': `Copy ${command}` }, () => {
    const select = (): unknown => getSelection()?.selectAllChildren(code);
    if (navigator.clipboard === undefined) return select();
    return navigator.clipboard
      .writeText(command)
      .then(() => status.replaceChildren('copied'), select);
  });
  return make(
    'li',
    { class: 'command' },
    make('span', { class: 'faint' }, about),
    code,
    copy,
    status,
  );
};

// ---- Tables and long lists ----

/** What may be wider than its place scrolls, also by keys. */
export const scrolled = (label: string, ...children: readonly Node[]): HTMLElement =>
  make('div', { class: 'scrolls', tabindex: 0, role: 'region', 'aria-label': label }, ...children);

/** A table in a place that scrolls. */
export const table = (
  label: string,
  kind: string,
  head: readonly string[],
  rows: readonly (readonly Child[])[],
): HTMLElement =>
  scrolled(
    label,
    make(
      'table',
      { class: kind },
      make('thead', {}, make('tr', {}, ...head.map((text) => make('th', { scope: 'col' }, text)))),
      make(
        'tbody',
        {},
        ...rows.map((cells) => make('tr', {}, ...cells.map((cell) => make('td', {}, cell)))),
      ),
    ),
  );

/** Rows that are drawn above and below those in sight. */
const ROWS_AROUND = 12;

/** A list of many equal rows, of which only those in sight are drawn. */
export class RowList<T> {
  readonly element: HTMLElement;
  readonly #inner = make('div', {});
  readonly #pixels: number;
  readonly #drawRow: (row: T) => HTMLElement;
  #rows: readonly T[] = [];

  /** `pixels`: the height of a row. */
  constructor(label: string, pixels: number, drawRow: (row: T) => HTMLElement) {
    this.#pixels = pixels;
    this.#drawRow = drawRow;
    this.element = scrolled(label, this.#inner);
    this.element.classList.add('rows');
    this.element.addEventListener('scroll', () => this.draw());
  }

  /** Shows other rows; `draw` draws them. */
  set rows(rows: readonly T[]) {
    this.#rows = rows;
    this.#inner.style.height = `${rows.length * this.#pixels}px`;
  }

  /** Scrolls until the row is in sight. */
  scrollTo(index: number): void {
    const top = index * this.#pixels;
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop || top > scrollTop + clientHeight - 2 * this.#pixels)
      this.element.scrollTop = Math.max(0, top - clientHeight / 2);
  }

  /** Draws the rows in sight anew. The one that had the focus, by its `data-row`, keeps it. */
  draw(): void {
    const { scrollTop, clientHeight } = this.element;
    const first = Math.max(0, Math.floor(scrollTop / this.#pixels) - ROWS_AROUND);
    const end = Math.ceil((scrollTop + clientHeight) / this.#pixels) + ROWS_AROUND;
    const { activeElement: active } = document;
    const focused = this.#inner.contains(active) ? active?.getAttribute('data-row') : null;
    const rows = this.#rows.slice(first, end).map((row, index) => {
      const element = this.#drawRow(row);
      element.style.top = `${(first + index) * this.#pixels}px`;
      return element;
    });
    this.#inner.replaceChildren(...rows);
    if (focused != null)
      this.#inner
        .querySelector<HTMLElement>(`[data-row="${focused}"]`)
        ?.focus({ preventScroll: true });
  }
}
