/** One place that knows a tool's name. */

import {
  childrenOf,
  type Fault,
  isNode,
  type Node,
  nameOf,
  type Source,
  stringOf,
} from './source.js';

/** The tools' names. Each stands in its own file, and in builtin-tools.ts. */
const TOOL_NAMES = new Set([
  'read',
  'list',
  'find',
  'search',
  'edit',
  'write',
  'bash',
  'todo',
  'fetch',
]);
/** A tool's name that is no other word: found wherever it stands alone in a string. */
const UNMISTAKABLE = 'bash';

/** The last name of `a.b.tool`, `tool`, or a key. */
const lastName = (node: unknown): string =>
  isNode(node)
    ? (nameOf(node) ?? nameOf(node.property) ?? nameOf(node.key) ?? nameOf(node.id) ?? '')
    : '';

const speaksOfTools = (node: unknown): boolean =>
  /^tool(Name)?$|Tools?$|^tools$/.test(lastName(node));

/** `spawn('bash', …)` and `find('bash')` mean the shell. */
const startsProgram = (parent: Node): boolean =>
  parent.type === 'CallExpression' && /^(spawn|exec|find)/.test(lastName(parent.callee));

/**
 * Whether a string stands where a tool is meant: compared with something named tool, a field
 * `tool`, a case of a switch over a tool, an entry of a list named tools. `read` and `write` are
 * words of everyday life elsewhere.
 */
const meansTool = (literal: Node, parent: Node | null, ancestors: readonly Node[]): boolean => {
  if (parent === null) return false;
  if (literal.value === UNMISTAKABLE) return !startsProgram(parent);
  if (parent.type === 'BinaryExpression')
    return speaksOfTools(parent.left) || speaksOfTools(parent.right);
  if (parent.type === 'Property') return speaksOfTools(parent);
  if (parent.type === 'SwitchCase') {
    const decision = ancestors.at(-2);
    return decision !== undefined && speaksOfTools(decision.discriminant);
  }
  return (
    parent.type === 'ArrayExpression' &&
    ancestors.some((node) => node.type.startsWith('Var') && speaksOfTools(node))
  );
};

/** One place that knows a tool's name. For the sources of packages. */
export const toolNameFaults = (source: Source): readonly Fault[] => {
  const { file } = source;
  if (file === 'packages/agent/src/tools/builtin-tools.ts') return [];
  const faults: Fault[] = [];
  const ancestors: Node[] = [];
  const visit = (node: Node): void => {
    const name = stringOf(node) ?? '';
    const elsewhere = TOOL_NAMES.has(name) && file !== `packages/agent/src/tools/${name}.ts`;
    if (elsewhere && meansTool(node, ancestors.at(-1) ?? null, ancestors)) {
      const text = `the tool name '${name}' belongs into packages/agent/src/tools/${name}.ts and builtin-tools.ts: ask for a trait`;
      faults.push({ file, line: source.lineOf(node.start), text });
    }
    ancestors.push(node);
    for (const child of childrenOf(node)) visit(child);
    ancestors.pop();
  };
  visit(source.program);
  return faults;
};
