/**
 * Makes elements. Texts only ever become text nodes and attributes: nothing of a session is read as
 * HTML.
 */

import { firstCharacters } from '@pawl/agent/platform/text';
import { clockText, dayText } from '../model/figure-text.js';

type Child = Node | string | null;
type Attributes = Readonly<Record<string, string | number | boolean | null>>;

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

const fill = <E extends Element>(
  element: E,
  attributes: Attributes,
  children: readonly Child[],
): E => {
  for (const [name, value] of Object.entries(attributes))
    if (value !== null && value !== false)
      element.setAttribute(name, value === true ? '' : String(value));
  for (const child of children)
    if (child !== null) element.append(typeof child === 'string' ? visibleText(child) : child);
  return element;
};

export const make = <K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] => fill(document.createElement(tag), attributes, children);

export const draw = <K extends keyof SVGElementTagNameMap>(
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
): HTMLButtonElement => {
  const element = make('button', { type: 'button', ...attributes }, label);
  element.addEventListener('click', press);
  return element;
};

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

  /** The elements of a value. `path` is its name for later calls. */
  draw(name: string, value: unknown, path: string): HTMLElement {
    if (typeof value !== 'object' || value === null) return row(name, leaf(value));
    const known = this.#drawn.get(path);
    if (known?.value === value) return known.element;
    const element = this.#branch(name, value, path);
    this.#drawn.set(path, { value, element });
    return element;
  }

  #branch(name: string, source: object, path: string): HTMLElement {
    const value = plain(source);
    const children = getChildren(value);
    if (children.length === 0) return row(name, leaf(value));
    const details = make(
      'details',
      { class: 'json-branch' },
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
    details.addEventListener('toggle', () => {
      if (details.open) {
        this.#open.add(path);
        addChildren();
      } else this.#open.delete(path);
    });
    if (this.#open.has(path)) {
      details.open = true;
      addChildren();
    }
    return details;
  }
}

/** Further children of a value are only counted. */
const CHILDREN_AT_ONCE = 200;

/** The value as JSON has it: the machine's shared lists become arrays. */
const plain = (value: object): unknown =>
  'toJSON' in value && typeof value.toJSON === 'function' ? value.toJSON() : value;

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
  const clock = at > 1e12 && at < 1e13 ? `${dayText(at)}${clockText(at).slice(5)}` : null;
  const key = make('span', { class: 'key' }, name);
  return make('div', { class: 'json-row', 'data-clock': clock }, key, ': ', value);
};

// ---- Commands to copy ----

/**
 * A command for the shell, with a button that copies it. Where the clipboard is closed to the page,
 * it is selected.
 */
export const copyCommand = (command: string, about: string): HTMLElement => {
  const code = make('code', { tabindex: 0 }, command);
  const status = make('span', { class: 'faint', role: 'status' });
  const copy = button('Copy', { 'aria-label': `Copy ${command}` }, () => {
    navigator.clipboard?.writeText(command).then(
      () => {
        status.textContent = 'copied';
      },
      () => select(code),
    ) ?? select(code);
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

const select = (element: HTMLElement): void => {
  const range = document.createRange();
  range.selectNodeContents(element);
  getSelection()?.removeAllRanges();
  getSelection()?.addRange(range);
};

// ---- Long lists ----

/** Rows that are drawn above and below those in sight. */
const ROWS_AROUND = 12;

/** The first row to draw of a long list of equal rows, and the one after the last. */
export const rowsInSight = (
  { scrollTop, clientHeight }: HTMLElement,
  rowPixels: number,
): readonly [first: number, end: number] => [
  Math.max(0, Math.floor(scrollTop / rowPixels) - ROWS_AROUND),
  Math.ceil((scrollTop + clientHeight) / rowPixels) + ROWS_AROUND,
];

/** Scrolls such a list until the row is in sight. */
export const scrollToRow = (list: HTMLElement, index: number, rowPixels: number): void => {
  const top = index * rowPixels;
  const { scrollTop, clientHeight } = list;
  if (top < scrollTop || top > scrollTop + clientHeight - 2 * rowPixels)
    list.scrollTop = Math.max(0, top - clientHeight / 2);
};
