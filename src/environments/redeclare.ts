import { type AnyNode, type Program, parse } from 'acorn';

/**
 * Cells are one long program, in which a name may be declared again: what `let`, `const` and `class` declare at the top
 * level of a cell becomes a `var`, as in a REPL. Lines stay where they are.
 */

export type Redeclared =
  | { readonly status: 'ok'; readonly code: string }
  | { readonly status: 'failed'; readonly message: string; readonly line: number | null };

type Edit = { readonly start: number; readonly end: number; readonly text: string };

const insert = (at: number, text: string): Edit => ({ start: at, end: at, text });

const editsOf = (statement: AnyNode): readonly Edit[] => {
  if (statement.type === 'ClassDeclaration' && statement.id) {
    // With a semicolon, since the next line may begin with a bracket.
    return [insert(statement.start, `var ${statement.id.name} = `), insert(statement.end, ';')];
  }
  if (statement.type !== 'VariableDeclaration') return [];
  if (statement.kind !== 'let' && statement.kind !== 'const') return [];
  const { start, kind, declarations } = statement;
  const keyword = { start, end: start + kind.length, text: 'var' };
  const bare = declarations.filter((one) => !one.init).map((one) => insert(one.end, ' = void 0'));
  return [keyword, ...bare];
};

const applyEdits = (code: string, edits: readonly Edit[]): string => {
  const pieces: string[] = [];
  let at = 0;
  for (const { start, end, text } of edits) {
    pieces.push(code.slice(at, start), text);
    at = end;
  }
  return [...pieces, code.slice(at)].join('');
};

/** acorn throws a SyntaxError that ends with the place: `Unexpected token (3:5)`. */
const failureOf = (thrown: unknown): Redeclared => {
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  const [, message = text, line] = /^(.*) \((\d+):\d+\)$/s.exec(text) ?? [];
  return { status: 'failed', message, line: line === undefined ? null : Number(line) };
};

const parseCell = (code: string): Program =>
  parse(code, { ecmaVersion: 'latest', sourceType: 'script', allowAwaitOutsideFunction: true });

/** The code of a cell with its top-level declarations repeatable, or what is wrong with its syntax. */
export const redeclare = (code: string): Redeclared => {
  try {
    return { status: 'ok', code: applyEdits(code, parseCell(code).body.flatMap(editsOf)) };
  } catch (thrown) {
    return failureOf(thrown);
  }
};
