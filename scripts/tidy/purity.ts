/**
 * The machines, the policy and the projections are pure: they know no time, no chance and no
 * world.
 */

import { type Fault, type Node, nameOf, type Source, walk } from './source.js';

/** Names that bring time, chance or the world into the pure core. */
const IMPURE = new Set([
  ...[
    'Date',
    'process',
    'fetch',
    'console',
    'crypto',
    'performance',
    'globalThis',
    'require',
    'Buffer',
  ],
  ...['setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask', 'Promise', 'structuredClone'],
]);
/** The parts of the machine kit that drive a machine, and may await and throw. */
const DRIVERS = new Set([
  'packages/machine/src/builder/drive.ts',
  'packages/machine/src/builder/builder.ts',
]);
const DRIVING = new Set(['Promise', 'async', 'await', 'throw']);

const isPure = (file: string): boolean =>
  /^packages\/(machine\/src|agent\/src\/(machine|policy(?!\/shell))|ask\/src\/(run|tree)|verify\/src\/(exploration|projections))\//.test(
    file,
  );

/** A name that stands for a value or a type here, and not for a field of something. */
const isReference = (parent: Node | null, field: string): boolean => {
  if (parent === null) return false;
  if (field === 'property') return parent.computed === true;
  if (field === 'key') return parent.computed === true;
  return true;
};

const impureWord = (node: Node, parent: Node | null, field: string): string | null => {
  if (node.type === 'ThrowStatement') return 'throw';
  if (node.type === 'AwaitExpression') return 'await';
  if (node.type === 'ForOfStatement' && node.await === true) return 'await';
  if (node.async === true) return 'async';
  if (
    node.type === 'MemberExpression' &&
    nameOf(node.object) === 'Math' &&
    nameOf(node.property) === 'random'
  ) {
    return 'Math.random';
  }
  const name = nameOf(node);
  return name !== undefined && IMPURE.has(name) && isReference(parent, field) ? name : null;
};

/**
 * The machines, the policy and the projections know no time, no chance, no world, and throw
 * nothing.
 */
export const purityFaults = (source: Source): readonly Fault[] => {
  if (!isPure(source.file)) return [];
  const faults: Fault[] = [];
  walk(source.program, (node, parent, field) => {
    const word = impureWord(node, parent, field);
    if (word === null || (DRIVERS.has(source.file) && DRIVING.has(word))) return;
    faults.push({
      file: source.file,
      line: source.lineOf(node.start),
      text: `'${word}' in the pure core`,
    });
  });
  return faults;
};
