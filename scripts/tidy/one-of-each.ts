/**
 * One place that knows a tool's name and the fields of its input; one place that retries.
 */

import {
  childrenOf,
  type Fault,
  isNode,
  type Node,
  nameOf,
  type Source,
  stringOf,
  walk,
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
/**
 * Fields of the tools' inputs. A tool gives its title, summary and preview itself, so that nobody
 * else reads them.
 */
const INPUT_FIELDS = new Set([
  ...['path', 'edits', 'content', 'oldText', 'newText', 'glob', 'pattern', 'url', 'items'],
  ...['command', 'timeoutMs', 'background', 'jobAction', 'jobId'],
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

const toolNameFaults = (source: Source): readonly Fault[] => {
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

/** `input.path`, `call.input.command`: of a call, wherever it is. */
const inputFieldFault = (node: Node, file: string): string | null => {
  if (node.type !== 'MemberExpression' || file.startsWith('packages/agent/src/tools/')) return null;
  const field = nameOf(node.property) ?? '';
  if (lastName(node.object) !== 'input' || !INPUT_FIELDS.has(field)) return null;
  return `'input.${field}' is a field of a tool: ask the tool for a title, a summary, a preview or a fact`;
};

const retries = (name: string): boolean => /retr(y|ies)/i.test(name) && !/retryAfter/i.test(name);

/**
 * The edges to the world, where trying again would be easy. The runtime performs the machine's
 * retry, the cli shows it.
 */
const isEdge = (file: string): boolean =>
  /^packages\/agent\/src\/(models|tools|journal|session\/prompt|command\/sandbox|workspace)\//.test(
    file,
  );

/** A function that tries again, or a library that is allowed to. */
const retryFault = (node: Node, file: string): string | null => {
  if (isEdge(file) && node.type === 'CallExpression' && retries(lastName(node.callee))) {
    return `'${lastName(node.callee)}': nobody retries but the machine`;
  }
  if (node.type !== 'Property' || !/^max_?retries$/i.test(lastName(node))) return null;
  return isNode(node.value) && node.value.value === 0
    ? null
    : 'nobody retries but the machine: maxRetries is 0';
};

/** One place that knows a tool's name; one place that retries. For the sources of packages. */
export const oneOfEachFaults = (source: Source): readonly Fault[] => {
  const faults: Fault[] = [...toolNameFaults(source)];
  walk(source.program, (node) => {
    const text = inputFieldFault(node, source.file);
    if (text !== null) faults.push({ file: source.file, line: source.lineOf(node.start), text });
  });
  // the pure parts can't try again themselves, and the machine's own retry is among them
  if (
    /^packages\/(machine\/src|agent\/src\/(machine|policy(?!\/shell))|ask\/src\/(run|tree)|verify\/src\/(exploration|projections))\//.test(
      source.file,
    )
  )
    return faults;
  walk(source.program, (node) => {
    const text = retryFault(node, source.file);
    if (text !== null) faults.push({ file: source.file, line: source.lineOf(node.start), text });
  });
  return faults;
};
