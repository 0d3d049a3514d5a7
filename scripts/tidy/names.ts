import path from 'node:path';
import { type Fault, isNode, type Node, nameOf, type Source, walk } from './source.js';

/** Words that say nothing to a reader, and what to write. Names of libraries are theirs. */
const BANNED: Readonly<Record<string, string>> = {
  ctx: 'a whole word',
  msg: 'message',
  req: 'request',
  res: 'response',
  opts: 'options',
  util: 'a noun',
  utils: 'a noun',
  helper: 'a verb',
  helpers: 'a verb',
  manager: 'the noun it manages',
};
/** Banned as a whole name only. */
const BANNED_WHOLE: Readonly<Record<string, string>> = { data: 'what it holds' };

const wordsOf = (name: string): readonly string[] =>
  name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/);

/** Why a name may not be ours; null of a good one. */
const nameFault = (name: string): string | null => {
  const whole = Object.hasOwn(BANNED_WHOLE, name) ? BANNED_WHOLE[name] : undefined;
  if (whole !== undefined) return `'${name}': say ${whole}`;
  const word = wordsOf(name).find((one) => Object.hasOwn(BANNED, one));
  return word === undefined ? null : `'${name}': say ${BANNED[word]}, not ${word}`;
};

/** The names that a pattern binds: `{ a, b: [c], ...d }` binds a, c and d. */
const bound = (pattern: unknown): readonly Node[] => {
  if (!isNode(pattern)) return [];
  if (pattern.type === 'Identifier') return [pattern];
  const inner = [
    pattern.left,
    pattern.argument,
    pattern.parameter,
    pattern.type === 'Property' ? pattern.value : null,
  ];
  const lists = [pattern.properties, pattern.elements].flatMap((list) => (Array.isArray(list) ? list : []));
  return [...inner, ...lists].flatMap(bound);
};

const DECLARES = new Set([
  'FunctionDeclaration',
  'ClassDeclaration',
  'TSTypeAliasDeclaration',
  'TSInterfaceDeclaration',
]);
const MEMBERS = new Set([
  'PropertyDefinition',
  'MethodDefinition',
  'TSPropertySignature',
  'TSMethodSignature',
]);

/** The names that a node declares: ours to choose. Fields count where the file describes our own values. */
const declared = (node: Node, withFields: boolean): readonly Node[] => {
  if (node.type === 'VariableDeclarator' || DECLARES.has(node.type)) return bound(node.id);
  if (node.type === 'CatchClause') return bound(node.param);
  if (node.type === 'ImportSpecifier')
    return nameOf(node.local) === nameOf(node.imported) ? [] : bound(node.local);
  if (MEMBERS.has(node.type)) return withFields && node.computed !== true ? bound(node.key) : [];
  return Array.isArray(node.params) && node.type !== 'TSTypeParameterInstantiation'
    ? node.params.flatMap(bound)
    : [];
};

const fileFault = (file: string): string | null => {
  const name = path.posix.basename(file).replace(/(\.test|\.d)?\.ts$/, '');
  if (!/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name)) return 'file names are kebab-case';
  return nameFault(name);
};

/** Names that we declare are whole words of the house. Fields of a wire that others defined (models/, tests) are exempt. */
export const nameFaults = (source: Source): readonly Fault[] => {
  const { file } = source;
  const withFields = file.startsWith('packages/') && !file.startsWith('packages/agent/src/models/');
  const faults: Fault[] = [];
  const badFile = fileFault(file);
  if (badFile !== null) faults.push({ file, line: 1, text: badFile });
  walk(source.program, (node) => {
    for (const name of declared(node, withFields)) {
      const text = nameFault(nameOf(name) ?? '');
      if (text !== null) faults.push({ file, line: source.lineOf(name.start), text });
    }
  });
  return faults;
};

const TYPES = new Set(['TSTypeAliasDeclaration', 'TSInterfaceDeclaration', 'ClassDeclaration']);

/** Each exported type has a name of its own, so that a reader who sees the name knows which is meant. For the sources of packages. */
export const typeNameFaults = (sources: readonly Source[]): readonly Fault[] => {
  const firstOf = new Map<string, string>();
  const faults: Fault[] = [];
  for (const { file, program, lineOf } of sources) {
    walk(program, (node) => {
      const type =
        node.type === 'ExportNamedDeclaration' && isNode(node.declaration) ? node.declaration : null;
      const name = type !== null && TYPES.has(type.type) ? nameOf(type.id) : undefined;
      if (name === undefined) return;
      const first = firstOf.get(name);
      if (first === undefined) firstOf.set(name, file);
      else faults.push({ file, line: lineOf(node.start), text: `'${name}' is also a type of ${first}` });
    });
  }
  return faults;
};
