/**
 * Sizes of files, functions and lines, and features of the language that we don't use.
 */

import { childrenOf, type Fault, isNode, type Node, nameOf, type Source, walk } from './source.js';
import { isTest } from './walls.js';

const EXAMPLE_LINES_MAX = 46;
/**
 * The agent's table must be readable from top to bottom: docs/decisions/0001-one-table.md.
 */
const TABLE_LINES_MAX = 525;
const FUNCTION_LINES_MAX = 70;
const COLUMNS_MAX = 100;

/** The most lines a file may have; null: no limit, a file is a subject. */
const linesMaxOf = (file: string): number | null => {
  if (file.startsWith('examples/')) return EXAMPLE_LINES_MAX;
  return file === 'packages/agent/src/machine/table.ts' ? TABLE_LINES_MAX : null;
};

const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression']);
/** Ways to skip a test. */
const SKIPPING = new Set(['skip', 'todo', 'only']);
const TESTS = new Set(['test', 'it', 'describe', 'suite']);

const linesOf = (text: string): number => text.replace(/\n$/, '').split('\n').length;

const skipsTest = (node: Node): boolean =>
  node.type === 'MemberExpression' &&
  TESTS.has(nameOf(node.object) ?? '') &&
  SKIPPING.has(nameOf(node.property) ?? '');

const skipsByOption = (node: Node, parent: Node | null, inTest: boolean): boolean =>
  inTest &&
  node.type === 'Property' &&
  parent?.type === 'ObjectExpression' &&
  SKIPPING.has(nameOf(node.key) ?? '') &&
  !(isNode(node.value) && node.value.value === false);

const isConst = (annotation: unknown): boolean =>
  isNode(annotation) &&
  annotation.type === 'TSTypeReference' &&
  nameOf(annotation.typeName) === 'const';

/**
 * `as` says more than the compiler knows: a comment in its statement or right above it says why
 * that is safe.
 */
const castFaults = (source: Source): readonly Fault[] => {
  const explained = new Set(
    source.comments.map(({ start, value }) => source.lineOf(start + value.length)),
  );
  const faults: Fault[] = [];
  const visit = (node: Node, statementLine: number): void => {
    const line = source.lineOf(node.start);
    const first = /(Statement|Declaration|Definition)$/.test(node.type) ? line : statementLine;
    if (node.type === 'TSAsExpression' && !isConst(node.typeAnnotation)) {
      const last = source.lineOf(node.end);
      const near = Array.from({ length: last - first + 2 }, (_, index) => first - 1 + index);
      if (!near.some((one) => explained.has(one))) {
        faults.push({
          file: source.file,
          line,
          text: "'as' without a comment that says why it is safe",
        });
      }
    }
    for (const child of childrenOf(node)) visit(child, first);
  };
  visit(source.program, 1);
  return faults;
};

const nodeFault = (source: Source, node: Node, parent: Node | null): string | null => {
  const inTest = isTest(source.file);
  if (node.type === 'TSEnumDeclaration') return 'no enum: a union of strings says it';
  if (node.type === 'TSAnyKeyword') return "no 'any': unknown, or the type that it is";
  if (node.type === 'ExportAllDeclaration') return "no 'export *': name what is exported";
  if (skipsTest(node) || skipsByOption(node, parent, inTest))
    return 'nothing is skipped: repair the test or remove it';
  if (!FUNCTIONS.has(node.type) || inTest) return null;
  const lines = source.lineOf(node.end) - source.lineOf(node.start) + 1;
  return lines > FUNCTION_LINES_MAX
    ? `function of ${lines} lines, at most ${FUNCTION_LINES_MAX}`
    : null;
};

/** Texts and patterns, which the formatter does not break. */
const isUnbroken = (node: Node): boolean =>
  node.type === 'TemplateLiteral' ||
  (node.type === 'Literal' && (node.regex !== undefined || typeof node.value === 'string'));

/** Lines that are too long although they hold nothing that can't be broken. */
const longLines = ({ file, text, program, lineOf }: Source): readonly Fault[] => {
  if (!/^(packages|restate\/src)/.test(file) || isTest(file)) return [];
  const unbroken = new Set<number>();
  walk(program, (node) => {
    if (!isUnbroken(node)) return;
    for (let line = lineOf(node.start); line <= lineOf(node.end); line += 1) unbroken.add(line);
  });
  return text.split('\n').flatMap((content, index) => {
    if ([...content].length <= COLUMNS_MAX || unbroken.has(index + 1)) return [];
    const problem = `${[...content].length} columns, at most ${COLUMNS_MAX}`;
    return [{ file, line: index + 1, text: problem }];
  });
};

/** Checks sizes and forbidden features of the language. */
export const shapeFaults = (source: Source): readonly Fault[] => {
  const { file, text } = source;
  const faults: Fault[] = [];
  const most = linesMaxOf(file);
  const lines = linesOf(text);
  if (most !== null && lines > most)
    faults.push({ file, line: most + 1, text: `${lines} lines, at most ${most}` });
  walk(source.program, (node, parent) => {
    const fault = nodeFault(source, node, parent);
    if (fault !== null) faults.push({ file, line: source.lineOf(node.start), text: fault });
  });
  for (const { value, start } of source.comments) {
    const word = /\b(TODO|FIXME|XXX|HACK)\b/.exec(value)?.[0];
    if (word !== undefined)
      faults.push({ file, line: source.lineOf(start), text: `${word}: do it, or file an issue` });
  }
  faults.push(...longLines(source));
  return file.startsWith('packages/') && !isTest(file)
    ? [...faults, ...castFaults(source)]
    : faults;
};
