/**
 * Parsed sources, as the rules of tidy look at them: files, syntax trees, and walks through them.
 */

import { parseSync } from 'oxc-parser';

/** A broken rule: where (`file:line`) and what to do about it. */
export type Fault = { readonly file: string; readonly line: number; readonly text: string };

/** A node of the syntax tree (ESTree with TypeScript's nodes), looked at loosely. */
export type Node = { readonly type: string; readonly start: number; readonly end: number } & {
  readonly [field: string]: unknown;
};

type Range = { readonly start: number; readonly end: number };

export type Import = { readonly specifier: string; readonly start: number };

/** A parsed file. `file` is relative to the root, with slashes. */
export type Source = {
  readonly file: string;
  readonly text: string;
  readonly program: Node;
  /** The text with blanks in place of comments and of what stands in strings. */
  readonly code: string;
  readonly imports: readonly Import[];
  readonly comments: readonly { readonly value: string; readonly start: number }[];
  readonly lineOf: (offset: number) => number;
};

/** A node, its parent, and the field of the parent in which it stands. */
export type Look = (node: Node, parent: Node | null, field: string) => void;

export const isNode = (value: unknown): value is Node =>
  // Any object can be asked for a field.
  typeof value === 'object' &&
  value !== null &&
  typeof (value as { type?: unknown }).type === 'string';

/** The nodes right below, in the order of the text. */
export const childrenOf = (node: Node): readonly Node[] => {
  const found: Node[] = [];
  for (const name in node) {
    const value = node[name];
    if (Array.isArray(value)) {
      for (const one of value) if (isNode(one)) found.push(one);
    } else if (isNode(value)) found.push(value);
  }
  return found;
};

const visit = (node: Node, look: Look, parent: Node | null, field: string): void => {
  look(node, parent, field);
  for (const name in node) {
    const value = node[name];
    if (Array.isArray(value)) {
      for (const child of value) if (isNode(child)) visit(child, look, node, name);
    } else if (isNode(value)) visit(value, look, node, name);
  }
};

/** Shows every node once, parents first. */
export const walk = (top: Node, look: Look): void => visit(top, look, null, '');

/** The text of an identifier, or of a key that is one; undefined of anything else. */
export const nameOf = (value: unknown): string | undefined =>
  isNode(value) && value.type === 'Identifier' && typeof value.name === 'string'
    ? value.name
    : undefined;

/** The value of a string literal; undefined of anything else. */
export const stringOf = (value: unknown): string | undefined =>
  isNode(value) && value.type === 'Literal' && typeof value.value === 'string'
    ? value.value
    : undefined;

const lineFinder = (text: string): ((offset: number) => number) => {
  const ends = [...text.matchAll(/\n/g)].map((match) => match.index);
  return (offset) => {
    let low = 0;
    let high = ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((ends[middle] ?? 0) < offset) low = middle + 1;
      else high = middle;
    }
    return low + 1;
  };
};

/** `import`, `export … from`, `import()` of a literal and `import('…')` in types. */
const importsOf = (program: Node): readonly Import[] => {
  const found: Import[] = [];
  walk(program, (node) => {
    const specifier = stringOf(node.source);
    if (specifier !== undefined) found.push({ specifier, start: node.start });
  });
  return found;
};

const isText = (node: Node): boolean =>
  node.type === 'TemplateElement' || (node.type === 'Literal' && typeof node.value === 'string');

/** The text with blanks in place of comments and of what stands in strings. */
const blank = (text: string, program: Node, comments: readonly Range[]): string => {
  const ranges: Range[] = [...comments];
  walk(program, (node) => {
    if (isText(node) && node.end - node.start > 2)
      ranges.push({ start: node.start + 1, end: node.end - 1 });
  });
  const pieces: string[] = [];
  let end = 0;
  for (const range of ranges.toSorted((one, other) => one.start - other.start)) {
    const hidden = text.slice(range.start, range.end).replace(/[^\n]/g, ' ');
    pieces.push(text.slice(end, range.start), hidden);
    end = range.end;
  }
  return [...pieces, text.slice(end)].join('');
};

/** Throws where the file does not parse. */
export const parse = (file: string, text: string): Source => {
  const { program, comments, errors } = parseSync(file, text, { preserveParens: false });
  const [first] = errors;
  if (first) throw new Error(`${file}: ${first.message}`);
  // The parser's own types name each node; the rules here look at fields only, with a check at
  // each.
  const tree = program as unknown as Node;
  return {
    file,
    text,
    program: tree,
    code: blank(text, tree, comments),
    imports: importsOf(tree),
    comments,
    lineOf: lineFinder(text),
  };
};
