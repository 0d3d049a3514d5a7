/**
 * Rewrites a cell, a program of the model, so that later cells can declare the same names again,
 * as in a REPL: `let`, `const` and `class` at the top level become `var`. `Promise.all` over model
 * calls becomes a batch, one call with several prompts. Lines keep their numbers.
 */

import { type AnyNode, type CallExpression, type Expression, type Program, parse } from 'acorn';

type RewrittenCell =
  | { readonly status: 'ok'; readonly code: string }
  | { readonly status: 'failed'; readonly message: string; readonly line: number | null };

/** The rewritten cell, or its syntax error. */
export const rewriteCell = (code: string): RewrittenCell => {
  try {
    const cell = parseCell(code);
    const edits = [...cell.body.flatMap(editDeclaration), ...parallelEdits(cell)];
    // An edit at the end of a statement must precede one at the start of the next.
    return {
      status: 'ok',
      code: applyEdits(
        code,
        edits.toSorted((one, other) => one.start - other.start),
      ),
    };
  } catch (thrown) {
    return describeSyntaxError(thrown);
  }
};

const insert = (at: number, text: string): SourceEdit => ({ start: at, end: at, text });

/**
 * The edits that make a declaration repeatable; without a value a variable begins undefined anew.
 * Without a semicolon behind them, a bracket on the next line would continue the statement.
 */
const editDeclaration = (statement: AnyNode): readonly SourceEdit[] => {
  if (statement.type === 'ClassDeclaration' && statement.id) {
    return [insert(statement.start, `var ${statement.id.name} = `), insert(statement.end, ';')];
  }
  if (statement.type !== 'VariableDeclaration') return [];
  if (statement.kind !== 'let' && statement.kind !== 'const') return [];
  const { start, kind, declarations } = statement;
  const keyword = { start, end: start + kind.length, text: 'var' };
  const initializers = declarations
    .filter((one) => !one.init)
    .map((one) => insert(one.end, one === declarations.at(-1) ? ' = void 0;' : ' = void 0'));
  return [keyword, ...initializers];
};

const applyEdits = (code: string, edits: readonly SourceEdit[]): string => {
  const pieces: string[] = [];
  let at = 0;
  for (const { start, end, text } of edits) {
    pieces.push(code.slice(at, start), text);
    at = end;
  }
  return [...pieces, code.slice(at)].join('');
};

/** acorn throws a SyntaxError that ends with line and column: `Unexpected token (3:5)`. */
const describeSyntaxError = (thrown: unknown): RewrittenCell => {
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  const [, message = text, line] = /^(.*) \((\d+):\d+\)$/s.exec(text) ?? [];
  return { status: 'failed', message, line: line === undefined ? null : Number(line) };
};

const parseCell = (code: string): Program =>
  parse(code, { ecmaVersion: 'latest', sourceType: 'script', allowAwaitOutsideFunction: true });

// ---- Batches ----
//
// `Promise.all` over model calls becomes one batch, whose calls run in parallel. A single
// model call blocks the program, so without the rewrite the calls would run one after the other.
//
// Only two simple forms are rewritten: a list of calls, and `list.map(…)` with a function that only
// makes the call. All other code stays as it is, and runs correctly, but sequentially.

type SourceEdit = { readonly start: number; readonly end: number; readonly text: string };

type QueryName = 'llm_query' | 'rlm_query';
type Query = {
  readonly name: QueryName;
  readonly call: CallExpression;
  readonly prompt: Expression;
};

const isNode = (value: unknown): value is AnyNode =>
  typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string';

const getChildren = (node: AnyNode): readonly AnyNode[] =>
  Object.values(node).flat().filter(isNode);

/** Visits a tree; `visit` returns whether to go on below. No recursion: a long sum is a deep tree. */
const walk = (root: AnyNode, visit: (node: AnyNode) => boolean): void => {
  const nodes = [root];
  for (let node = nodes.pop(); node !== undefined; node = nodes.pop())
    if (visit(node)) for (const child of getChildren(node)) nodes.push(child);
};

const hasAwait = (root: AnyNode): boolean => {
  let isFound = false;
  walk(root, ({ type }) => {
    isFound ||= type === 'AwaitExpression' || type === 'YieldExpression';
    return !isFound;
  });
  return isFound;
};

/** The model call in a node; null unless it is a call with one argument, the prompt. */
const readQuery = (node: AnyNode | null | undefined): Query | null => {
  if (node?.type !== 'CallExpression' || node.callee.type !== 'Identifier') return null;
  const { name } = node.callee;
  const [prompt, ...others] = node.arguments;
  if (name !== 'llm_query' && name !== 'rlm_query') return null;
  if (prompt === undefined || prompt.type === 'SpreadElement' || others.length > 0) return null;
  return hasAwait(prompt) ? null : { name, call: node, prompt };
};

/** The returned expression of a function that does nothing else; null for other functions. */
const getReturned = (body: AnyNode): AnyNode | null => {
  if (body.type !== 'BlockStatement') return body;
  const [only, ...others] = body.body;
  return only?.type === 'ReturnStatement' && others.length === 0 ? (only.argument ?? null) : null;
};

/** Replaces `outer`, which only makes the call, by the prompt in parentheses. */
const keepPrompt = (outer: AnyNode, { prompt }: Query): readonly SourceEdit[] => [
  { start: outer.start, end: prompt.start, text: '(' },
  { start: prompt.end, end: outer.end, text: ')' },
];

type Batch = { readonly name: QueryName; readonly edits: readonly SourceEdit[] };

/** `[llm_query(a), llm_query(b)]` as `[(a), (b)]`. */
const listBatch = (node: AnyNode): Batch | null => {
  if (node.type !== 'ArrayExpression') return null;
  const queries = node.elements.map(readQuery).filter((query) => query !== null);
  const [first] = queries;
  const fits =
    queries.length === node.elements.length && queries.every(({ name }) => name === first?.name);
  if (first === undefined || !fits) return null;
  return { name: first.name, edits: queries.flatMap((query) => keepPrompt(query.call, query)) };
};

/** `list.map((x) => llm_query(x))` as `list.map((x) => (x))`. */
const mapBatch = (node: AnyNode): Batch | null => {
  if (node.type !== 'CallExpression' || node.callee.type !== 'MemberExpression') return null;
  const { property, computed } = node.callee;
  const [visit, ...others] = node.arguments;
  const isMap =
    !computed && property.type === 'Identifier' && property.name === 'map' && others.length === 0;
  if (!isMap || visit?.type !== 'ArrowFunctionExpression') return null;
  const outer = getReturned(visit.body);
  const query = readQuery(outer?.type === 'AwaitExpression' ? outer.argument : outer);
  if (outer === null || query === null) return null;
  const withoutAsync = visit.async
    ? [{ start: visit.start, end: visit.start + 'async'.length, text: '' }]
    : [];
  return { name: query.name, edits: [...withoutAsync, ...keepPrompt(outer, query)] };
};

const batchEdits = (node: AnyNode): readonly SourceEdit[] | null => {
  if (node.type !== 'CallExpression' || node.callee.type !== 'MemberExpression') return null;
  const { object, property } = node.callee;
  const [list, ...others] = node.arguments;
  const isAll =
    object.type === 'Identifier' && object.name === 'Promise' && property.type === 'Identifier';
  if (!isAll || property.name !== 'all' || list === undefined || others.length > 0) return null;
  const batch = listBatch(list) ?? mapBatch(list);
  if (batch === null) return null;
  return [
    { start: node.start, end: list.start, text: `Promise.resolve(${batch.name}_batched(` },
    ...batch.edits,
    { start: list.end, end: node.end, text: '))' },
  ];
};

/** The edits that rewrite such calls into batches. */
const parallelEdits = (cell: Program): readonly SourceEdit[] => {
  const edits: SourceEdit[] = [];
  walk(cell, (node) => {
    const batch = batchEdits(node);
    edits.push(...(batch ?? []));
    return batch === null;
  });
  return edits;
};
