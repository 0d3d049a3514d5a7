import { childrenOf, type Fault, isNode, type Node, nameOf, type Source, stringOf, walk } from './source.js';

/** The tools' names. Each stands in its own file, and in builtin.ts. */
const TOOL_NAMES = new Set(['read', 'edit', 'write', 'bash', 'search']);
/** A tool's name that is no other word: found wherever it stands alone in a string. */
const UNMISTAKABLE = 'bash';

/** The last name of `a.b.tool`, `tool`, or a key. */
const lastName = (node: unknown): string =>
  isNode(node) ? (nameOf(node) ?? nameOf(node.property) ?? nameOf(node.key) ?? nameOf(node.id) ?? '') : '';

const speaksOfTools = (node: unknown): boolean => /^tool(Name)?$|Tools?$|^tools$/.test(lastName(node));

/** `spawn('bash', …)` means the shell. */
const startsProgram = (parent: Node): boolean =>
  parent.type === 'CallExpression' && /^(spawn|exec)/.test(lastName(parent.callee));

/**
 * Whether a string stands where a tool is meant: compared with something named tool, a field `tool`, a case of a
 * switch over a tool, an entry of a list named tools. `read` and `write` are words of everyday life elsewhere.
 */
const meansTool = (literal: Node, parent: Node | null, ancestors: readonly Node[]): boolean => {
  if (parent === null) return false;
  if (literal.value === UNMISTAKABLE) return !startsProgram(parent);
  if (parent.type === 'BinaryExpression') return speaksOfTools(parent.left) || speaksOfTools(parent.right);
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
  if (file === 'src/tools/builtin.ts') return [];
  const faults: Fault[] = [];
  const visit = (node: Node, ancestors: readonly Node[]): void => {
    const name = stringOf(node) ?? '';
    const elsewhere = TOOL_NAMES.has(name) && file !== `src/tools/${name}.ts`;
    if (elsewhere && meansTool(node, ancestors.at(-1) ?? null, ancestors)) {
      const text = `the tool name '${name}' belongs into src/tools/${name}.ts and builtin.ts: ask for a trait`;
      faults.push({ file, line: source.lineOf(node.start), text });
    }
    for (const child of childrenOf(node)) visit(child, [...ancestors, node]);
  };
  visit(source.program, []);
  return faults;
};

const retries = (name: string): boolean => /retr(y|ies)/i.test(name) && !/retryAfter/i.test(name);

/** The edges to the world, where trying again would be easy. The runtime performs the machine's retry, the cli shows it. */
const isEdge = (file: string): boolean =>
  /^src\/(models|tools|journal|prompt|sandbox|workspace)\//.test(file);

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

/** One place that knows a tool's name; one place that retries. For the files of src/. */
export const oneOfEachFaults = (source: Source): readonly Fault[] => {
  const faults: Fault[] = [...toolNameFaults(source)];
  if (/^src\/(agent|kernel|recursive)\//.test(source.file)) return faults;
  walk(source.program, (node) => {
    const text = retryFault(node, source.file);
    if (text !== null) faults.push({ file: source.file, line: source.lineOf(node.start), text });
  });
  return faults;
};
