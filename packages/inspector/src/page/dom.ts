/** Makes elements. Texts only ever become text nodes and attributes: nothing of a session is read as HTML. */

type Child = Node | string | null;
type Attributes = Readonly<Record<string, string | number | boolean | null>>;

const SVG = 'http://www.w3.org/2000/svg';

/** Characters that would reorder the text around them stand as marks. */
const withoutReordering = (text: string): string =>
  text.replace(
    /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    (one) => `⟨U+${one.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`,
  );

const fill = <E extends Element>(element: E, attributes: Attributes, children: readonly Child[]): E => {
  for (const [name, value] of Object.entries(attributes))
    if (value !== null && value !== false) element.setAttribute(name, value === true ? '' : String(value));
  for (const child of children)
    if (child !== null) element.append(typeof child === 'string' ? withoutReordering(child) : child);
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
 * Gives a parent these children and touches only those that differ: what stays in its place is not laid out again, and
 * keeps what a reader opened in it.
 */
export const arrange = (parent: Element, children: readonly Element[]): void => {
  const wanted = new Set(children);
  for (const child of [...parent.children]) if (!wanted.has(child)) child.remove();
  let place = parent.firstElementChild;
  for (const child of children) {
    if (child === place) place = place.nextElementSibling;
    else parent.insertBefore(child, place);
  }
};

export const button = (label: string, attributes: Attributes, press: () => void): HTMLButtonElement => {
  const made = make('button', { type: 'button', ...attributes }, label);
  made.addEventListener('click', press);
  return made;
};

/** A link that goes to an entry of the journal. */
export const seqLink = (seq: number, go: (seq: number) => void, label = `#${seq}`): HTMLButtonElement =>
  button(label, { class: 'seq', title: `Go to entry ${seq}` }, () => go(seq));
