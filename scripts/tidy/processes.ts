/**
 * Processes are started in one place, with programs that were judged to be safe to start.
 */

import { type Fault, isNode, type Node, nameOf, type Source, stringOf, walk } from './source.js';

/** The one file that starts processes, and the files that judge programs. */
const STARTER = 'packages/agent/src/platform/start-program.ts';
const JUDGES: readonly string[] = ['packages/agent/src/platform/find-program.ts', STARTER];
const MODULE = /^(node:)?child_process$/;
const JUDGED = 'ProgramPath';
/**
 * They start what the sandbox for commands has prepared: bubblewrap, or a program that they have
 * found themselves.
 */
const PASSING_ON = new Set([
  'packages/agent/src/extensions/mcp/stdio-server.ts',
  'packages/agent/src/extensions/hooks/session-hooks.ts',
  'packages/agent/src/command/command.ts',
  'packages/agent/src/workspace/format-files.ts',
]);

/** `import type …`, or an import in which every name is a type. */
const importsTypesOnly = (node: Node): boolean => {
  const names = Array.isArray(node.specifiers) ? node.specifiers.filter(isNode) : [];
  return (
    node.importKind === 'type' ||
    (names.length > 0 && names.every((name) => name.importKind === 'type'))
  );
};

const processFault = (node: Node, file: string): string | null => {
  const specifier = stringOf(node.source) ?? '';
  if (MODULE.test(specifier) && !importsTypesOnly(node) && file !== STARTER)
    return `processes are started in ${STARTER} only: use what it exports`;
  const type = isNode(node.typeAnnotation) ? node.typeAnnotation : null;
  const isClaim =
    node.type === 'TSAsExpression' && type !== null && nameOf(type.typeName) === JUDGED;
  return isClaim && !JUDGES.includes(file) && !PASSING_ON.has(file)
    ? `a ${JUDGED} comes from ${JUDGES.join(' and ')} only: nobody else may say that a program is safe to start`
    : null;
};

/** Programs are named by paths that find-program.ts has judged. For the sources of packages. */
export const processFaults = (source: Source): readonly Fault[] => {
  const faults: Fault[] = [];
  walk(source.program, (node) => {
    const text = processFault(node, source.file);
    if (text !== null) faults.push({ file: source.file, line: source.lineOf(node.start), text });
  });
  return faults;
};
