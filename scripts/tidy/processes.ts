import { type Fault, isNode, type Node, nameOf, type Source, stringOf, walk } from './source.js';

/** The one file that starts processes, and the folder that judges programs. */
const STARTER = 'packages/agent/src/platform/programs/start-program.ts';
const JUDGE = 'packages/agent/src/platform/programs/';
const MODULE = /^(node:)?child_process$/;
const JUDGED = 'ProgramPath';
/** They start what the sandbox for commands has prepared: bubblewrap, or a program that they have found themselves. */
const PASSING_ON = new Set([
  'packages/agent/src/extensions/mcp/prepare-server.ts',
  'packages/agent/src/extensions/user-hooks/hook-program.ts',
  'packages/agent/src/command/shell/command-process.ts',
  'packages/agent/src/workspace/formatters/run-formatter.ts',
]);

/** `import type …`, or an import in which every name is a type. */
const importsTypesOnly = (node: Node): boolean => {
  const names = Array.isArray(node.specifiers) ? node.specifiers.filter(isNode) : [];
  return (
    node.importKind === 'type' || (names.length > 0 && names.every((name) => name.importKind === 'type'))
  );
};

const processFault = (node: Node, file: string): string | null => {
  const specifier = stringOf(node.source) ?? '';
  if (MODULE.test(specifier) && !importsTypesOnly(node) && file !== STARTER)
    return `processes are started in ${STARTER} only: use what it exports`;
  const type = isNode(node.typeAnnotation) ? node.typeAnnotation : null;
  const isClaim = node.type === 'TSAsExpression' && type !== null && nameOf(type.typeName) === JUDGED;
  return isClaim && !file.startsWith(JUDGE) && !PASSING_ON.has(file)
    ? `a ${JUDGED} comes from ${JUDGE} only: nobody else may say that a program is safe to start`
    : null;
};

/** Programs are named by paths that packages/agent/src/platform/programs/ has judged. For the sources of packages. */
export const processFaults = (source: Source): readonly Fault[] => {
  const faults: Fault[] = [];
  walk(source.program, (node) => {
    const text = processFault(node, source.file);
    if (text !== null) faults.push({ file: source.file, line: source.lineOf(node.start), text });
  });
  return faults;
};
