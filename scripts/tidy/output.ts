/**
 * Nothing writes to a terminal but packages/terminal/src/write.ts, which makes texts safe. This
 * file finds the ways around it; `console` and `fork` are found by Biome.
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

/**
 * The only files that may write to the descriptors 1 and 2, and the only ones that may compose
 * control sequences.
 */
const WRITERS = new Set(['packages/terminal/src/write.ts']);
const COMPOSERS = new Set([
  'packages/terminal/src/paint.ts',
  'packages/terminal/src/safe-text.ts',
  'packages/terminal/src/keys.ts', // what comes from the keyboard
]);
const ADVICE = 'everything that is printed goes through packages/terminal/src/write.ts';

/** Members of a stream of the process that don't write to it. */
const LOOKED_AT = new Set(['isTTY', 'columns', 'rows', 'on', 'off', 'once']);
/** Functions that look at a stream and nothing else. */
const LOOKING = new Set(['detectLook']);
const STREAMS = new Set(['stdout', 'stderr']);
const WRITES = /^(write|writev|append|createWriteStream)/;
const TERMINALS = /^\/(dev\/(stdout|stderr|tty|fd\/[12])|proc\/[^/]+\/fd\/[12])$/;
/** They hand the child's stderr down to ours unless they are told otherwise. */
const LOUD_UNLESS_TOLD = new Set(['execSync', 'execFileSync']);

const literalOf = (node: unknown): unknown =>
  isNode(node) && node.type === 'Literal' ? node.value : undefined;

const isOutput = (node: unknown): boolean => literalOf(node) === 1 || literalOf(node) === 2;

const calleeOf = (node: Node): string =>
  isNode(node.callee) ? (nameOf(node.callee) ?? nameOf(node.callee.property) ?? '') : '';

const elementsOf = (list: unknown): readonly unknown[] => (Array.isArray(list) ? list : []);

/** `process.stdout`, and `process[name]`, which may be one. */
const isStream = (node: Node): boolean =>
  node.type === 'MemberExpression' &&
  nameOf(node.object) === 'process' &&
  (node.computed === true || STREAMS.has(nameOf(node.property) ?? ''));

const streamFault = (node: Node, parent: Node | null): string | null => {
  if (!isStream(node) || parent === null) return null;
  if (parent.type === 'MemberExpression' && LOOKED_AT.has(nameOf(parent.property) ?? ''))
    return null;
  return parent.type === 'CallExpression' && LOOKING.has(calleeOf(parent))
    ? null
    : 'a stream of the process';
};

/** `{ stdout } = process` in a declaration or a parameter, `import { stderr } from 'node:process'`. */
const boundFault = (node: Node, parent: Node | null): string | null => {
  const isOfProcess =
    (node.type === 'ObjectPattern' && nameOf(parent?.init ?? parent?.right) === 'process') ||
    (node.type === 'ImportDeclaration' && /^(node:)?process$/.test(stringOf(node.source) ?? ''));
  if (!isOfProcess) return null;
  return childrenOf(node).some((child) =>
    STREAMS.has(nameOf(child.key) ?? nameOf(child.imported) ?? ''),
  )
    ? 'a stream of the process'
    : null;
};

const callFault = (node: Node): string | null => {
  if (node.type === 'NewExpression' && calleeOf(node) === 'WriteStream')
    return 'a stream to a descriptor';
  if (node.type !== 'CallExpression') return null;
  const name = calleeOf(node);
  const [first, ...rest] = elementsOf(node.arguments);
  if (name === '_rawDebug') return name;
  if (WRITES.test(name) && (isOutput(first) || TERMINALS.test(stringOf(first) ?? '')))
    return `${name} to a descriptor of the process`;
  const saysWhere = rest.some(
    (one) => isNode(one) && childrenOf(one).some((child) => nameOf(child.key) === 'stdio'),
  );
  return LOUD_UNLESS_TOLD.has(name) && !saysWhere
    ? `${name} without stdio, which prints errors`
    : null;
};

const propertyFault = (node: Node): string | null => {
  if (node.type !== 'Property') return null;
  const key = nameOf(node.key);
  if (key === 'fd' && isOutput(node.value)) return 'a stream to a descriptor';
  if (key !== 'stdio' || !isNode(node.value)) return null;
  const given = [node.value, ...elementsOf(node.value.elements)];
  return given.some((one) => literalOf(one) === 'inherit' || isOutput(one))
    ? 'a child that inherits'
    : null;
};

const textIn = (node: Node): string => {
  if (node.type !== 'TemplateElement') return stringOf(node) ?? '';
  const { value } = node;
  const isText = typeof value === 'object' && value !== null && 'cooked' in value;
  return isText && typeof value.cooked === 'string' ? value.cooked : '';
};

/** Looking for an escape is no sequence; something has to follow it. */
const sequenceFault = (node: Node): string | null =>
  /\u001b[\s\S]|\u009b[\d?]|[\u0090\u009d]\d/.test(textIn(node))
    ? 'a control sequence: those that are sent stand in packages/terminal/src/paint.ts'
    : null;

/** All ways around the writer in a source of a package. */
export const outputFaults = (source: Source): readonly Fault[] => {
  const { file } = source;
  const faults: Fault[] = [];
  walk(source.program, (node, parent) => {
    const add = (text: string): void =>
      void faults.push({ file, line: source.lineOf(node.start), text });
    const sequence = COMPOSERS.has(file) ? null : sequenceFault(node);
    if (sequence !== null) add(sequence);
    if (WRITERS.has(file)) return;
    const found =
      streamFault(node, parent) ??
      boundFault(node, parent) ??
      callFault(node) ??
      propertyFault(node);
    if (found !== null) add(`${found}: ${ADVICE}`);
  });
  return faults;
};
