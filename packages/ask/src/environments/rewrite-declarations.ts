import { type AnyNode, type Program, parse } from 'acorn';
import { parallelEdits, type SourceEdit } from './rewrite-promise-all.js';

/**
 * Rewrites a cell so that later cells can declare the same names again, as in a REPL: `let`, `const` and `class` at the
 * top level become `var`. `Promise.all` over model calls becomes a batch (rewrite-promise-all.ts). Lines keep their numbers.
 */

export type Redeclared =
  | { readonly status: 'ok'; readonly code: string }
  | { readonly status: 'failed'; readonly message: string; readonly line: number | null };

const insert = (at: number, text: string): SourceEdit => ({ start: at, end: at, text });

const editsOf = (statement: AnyNode): readonly SourceEdit[] => {
  if (statement.type === 'ClassDeclaration' && statement.id) {
    // Without the semicolon, a bracket on the next line would continue this statement.
    return [insert(statement.start, `var ${statement.id.name} = `), insert(statement.end, ';')];
  }
  if (statement.type !== 'VariableDeclaration') return [];
  if (statement.kind !== 'let' && statement.kind !== 'const') return [];
  const { start, kind, declarations } = statement;
  const keyword = { start, end: start + kind.length, text: 'var' };
  const bare = declarations.filter((one) => !one.init).map((one) => insert(one.end, ' = void 0'));
  return [keyword, ...bare];
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
const failureOf = (thrown: unknown): Redeclared => {
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  const [, message = text, line] = /^(.*) \((\d+):\d+\)$/s.exec(text) ?? [];
  return { status: 'failed', message, line: line === undefined ? null : Number(line) };
};

const parseCell = (code: string): Program =>
  parse(code, { ecmaVersion: 'latest', sourceType: 'script', allowAwaitOutsideFunction: true });

/** Makes the top-level declarations of a cell repeatable, or returns its syntax error. */
export const redeclare = (code: string): Redeclared => {
  try {
    const cell = parseCell(code);
    const edits = [...cell.body.flatMap(editsOf), ...parallelEdits(cell)];
    // An edit at the end of a statement must precede one at the start of the next.
    return {
      status: 'ok',
      code: applyEdits(
        code,
        edits.toSorted((one, other) => one.start - other.start),
      ),
    };
  } catch (thrown) {
    return failureOf(thrown);
  }
};
