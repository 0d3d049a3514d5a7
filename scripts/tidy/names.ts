/**
 * Rules about names: of files, of exported types, and words that say too little.
 */

import path from 'node:path';
import { type Fault, isNode, nameOf, type Source, walk } from './source.js';

/** File names are kebab-case. */
export const nameFaults = ({ file }: Source): readonly Fault[] => {
  const name = path.posix.basename(file).replace(/(\.test|\.d)?\.ts$/, '');
  return /^[a-z0-9]+(-[a-z0-9]+)*$/.test(name)
    ? []
    : [{ file, line: 1, text: 'file names are kebab-case' }];
};

const TYPES = new Set(['TSTypeAliasDeclaration', 'TSInterfaceDeclaration', 'ClassDeclaration']);

/**
 * Each exported type has a name of its own, so that a reader who sees the name knows which is
 * meant. For the sources of packages.
 */
export const typeNameFaults = (sources: readonly Source[]): readonly Fault[] => {
  const firstFiles = new Map<string, string>();
  const faults: Fault[] = [];
  for (const { file, program, lineOf } of sources) {
    walk(program, (node) => {
      const type =
        node.type === 'ExportNamedDeclaration' && isNode(node.declaration)
          ? node.declaration
          : null;
      const name = type !== null && TYPES.has(type.type) ? nameOf(type.id) : undefined;
      if (name === undefined) return;
      const first = firstFiles.get(name);
      if (first === undefined) firstFiles.set(name, file);
      else
        faults.push({
          file,
          line: lineOf(node.start),
          text: `'${name}' is also a type of ${first}`,
        });
    });
  }
  return faults;
};

/** Participles and pictures that stand where a noun belongs, or make prose of a comment. */
const VAGUE = /\b(given|kept|wanted|told|made|said|begun|life|order|own|found|left)\b/g;
/** `textOf` says how a value is made of another, not what it is. */
const OF_NAME = /^[a-z]\w*Of$/;

/** Ceilings that are only ever lowered. */
const VAGUE_PER_1000_LINES_MAX = 12;
/** So many say nothing about the style of a tree. */
const VAGUE_FREE = 20;
const OF_NAMES_MAX = 20;

const isFunctionNode = (node: unknown): boolean => isNode(node) && /Function/.test(node.type);

const findOfNames = ({ program }: Source): readonly string[] => {
  const names: string[] = [];
  walk(program, (node) => {
    const isFunction =
      node.type === 'FunctionDeclaration' ||
      (node.type === 'VariableDeclarator' && isFunctionNode(node.init));
    const name = isFunction ? nameOf(node.id) : undefined;
    if (name !== undefined && OF_NAME.test(name)) names.push(name);
  });
  return names;
};

/** How often the sources say a thing by a vague word, or name a function after what it takes. */
export const vagueWordFaults = (sources: readonly Source[]): readonly Fault[] => {
  const lines = sources.reduce((sum, { text }) => sum + text.split('\n').length, 0);
  const vague = sources.reduce((sum, { text }) => sum + (text.match(VAGUE)?.length ?? 0), 0);
  const names = sources.flatMap(findOfNames);
  const fault = (text: string): Fault => ({ file: 'packages', line: 1, text });
  const isVague = vague > VAGUE_FREE && (1000 * vague) / lines > VAGUE_PER_1000_LINES_MAX;
  return [
    ...(isVague
      ? [
          fault(
            `${((1000 * vague) / lines).toFixed(1)} of the words of ${VAGUE.source} in 1,000 lines`,
          ),
        ]
      : []),
    ...(names.length > OF_NAMES_MAX
      ? [fault(`${names.length} functions named xOf, at most ${OF_NAMES_MAX}`)]
      : []),
  ];
};
