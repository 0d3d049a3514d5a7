/** Finds headers, keys and strings in the text of a valid TOML file, and the line of each key. */

type Parse = (text: string) => Readonly<Record<string, unknown>>;

/** Strings, including multi-line ones; comments; brackets; line ends; any other text. */
const TOKEN =
  /"""(?:[^\\]|\\[\s\S])*?"{3,5}|'''[\s\S]*?'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|#[^\n]*|[[\]{}\n]|[^"'#[\]{}\n]+/g;
const HEADER = /^\[\[?((?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\]"'\n])*)\]/;
const ASSIGNMENT = /^((?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^="'\n])*)=/;
const BARE = /^[\w-]+(\.[\w-]+)*$/;

/** A table header, or a key with its value, on one or more lines. `at`: its index in the text. */
type Statement = { readonly text: string; readonly line: number; readonly at: number };

const splitStatements = (text: string): readonly Statement[] => {
  const statements: Statement[] = [];
  let line = 1;
  let depth = 0; // open brackets
  let start: { readonly at: number; readonly line: number } | null = null;
  const end = (at: number): void => {
    if (start !== null) statements.push({ ...start, text: text.slice(start.at, at) });
    start = null;
  };
  for (const { 0: token, index } of text.matchAll(TOKEN)) {
    const isBlank = token.trim() === '' || token.startsWith('#');
    if (token === '\n' && depth === 0) end(index);
    else if (start === null && !isBlank) start = { at: index + token.search(/\S/), line };
    if (token === '[' || token === '{') depth += 1;
    if (token === ']' || token === '}') depth -= 1;
    for (let at = token.indexOf('\n'); at >= 0; at = token.indexOf('\n', at + 1)) line += 1;
  }
  end(text.length);
  return statements;
};

/** The names in a key. The parser decodes quoted ones. */
const keyNames = (written: string, parse: Parse): readonly string[] => {
  const key = written.trim();
  if (BARE.test(key)) return key.split('.');
  const names: string[] = [];
  // gives a table in a table for each name
  let at: unknown = parse(`${key} = 0`);
  while (typeof at === 'object' && at !== null) {
    const [entry] = Object.entries(at);
    if (entry === undefined) break;
    names.push(entry[0]);
    at = entry[1];
  }
  return names;
};

/**
 * A table header or a key: its names from the top of the file, and where its text begins and ends.
 */
export type TomlStatement = {
  readonly kind: 'table' | 'key';
  readonly names: readonly string[];
  readonly start: number;
  readonly end: number;
};

/** All headers and keys of a valid text, in order. */
export const findStatements = (text: string, parse: Parse): readonly TomlStatement[] => {
  let table: readonly string[] = [];
  return splitStatements(text).flatMap(({ text: statement, at }): readonly TomlStatement[] => {
    const range = { start: at, end: at + statement.length };
    const header = HEADER.exec(statement)?.[1];
    if (header !== undefined) {
      table = keyNames(header, parse);
      return [{ kind: 'table', names: table, ...range }];
    }
    const key = ASSIGNMENT.exec(statement)?.[1];
    return key === undefined
      ? []
      : [{ kind: 'key', names: [...table, ...keyNames(key, parse)], ...range }];
  });
};

/** Whether there is a comment between two places, of which the first begins a statement. */
export const hasComment = (
  text: string,
  { start, end }: Pick<TomlStatement, 'start' | 'end'>,
): boolean => [...text.slice(start, end).matchAll(TOKEN)].some(([token]) => token.startsWith('#'));

/** Where the strings in the value of a key begin and end. */
export const findStrings = (
  text: string,
  { start, end }: TomlStatement,
): readonly { readonly start: number; readonly end: number }[] => {
  const statement = text.slice(start, end);
  const from = ASSIGNMENT.exec(statement)?.[0].length ?? 0;
  return [...statement.slice(from).matchAll(TOKEN)]
    .filter(([token]) => /^["']/.test(token))
    .map(({ 0: token, index }) => ({
      start: start + from + index,
      end: start + from + index + token.length,
    }));
};

/** A key with its first line, and the keys below it. */
type KeyNode = { readonly line: number; readonly below: Map<string, KeyNode> };

const walkTo = (from: KeyNode, names: readonly string[], line: number): KeyNode => {
  let node = from;
  for (const name of names) {
    const known = node.below.get(name);
    const next = known ?? { line, below: new Map() };
    if (known === undefined) node.below.set(name, next);
    node = next;
  }
  return node;
};

/**
 * Returns a function from a key to its first line. A key in an inline table has the line where that
 * table starts.
 */
export const findLines = (text: string, parse: Parse): ((names: readonly string[]) => number) => {
  const top: KeyNode = { line: 1, below: new Map() };
  let table = top;
  for (const { text: statement, line } of splitStatements(text)) {
    const header = HEADER.exec(statement)?.[1];
    const key = ASSIGNMENT.exec(statement)?.[1];
    if (header !== undefined) table = walkTo(top, keyNames(header, parse), line);
    else if (key !== undefined) walkTo(table, keyNames(key, parse), line);
  }
  return (names) => {
    let node = top;
    for (const name of names) node = node.below.get(name) ?? node;
    return node.line;
  };
};
