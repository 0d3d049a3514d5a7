/**
 * The reference of the library: every export of the package's three faces (entry points) with its
 * comment and its declaration, read off the declarations that users get. scripts/papers.ts puts it
 * into the package.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parseSync } from 'oxc-parser';
import { isNode, type Node, nameOf } from './tidy/source.js';

type Face = { readonly name: string; readonly entry: string; readonly page: string };

const faces: readonly Face[] = [
  { name: 'pawl', entry: 'pawl/src/index.d.ts', page: 'docs/reference/pawl.md' },
  { name: 'pawl/machine', entry: 'pawl/src/machine.d.ts', page: 'docs/reference/machine.md' },
  { name: 'pawl/testing', entry: 'pawl/src/testing.d.ts', page: 'docs/reference/testing.md' },
];

type Declared = {
  readonly name: string;
  readonly comment: string;
  readonly text: string;
  readonly isType: boolean;
  readonly file: string;
};

type Parsed = {
  readonly text: string;
  readonly body: readonly Node[];
  readonly comments: readonly {
    readonly value: string;
    readonly start: number;
    readonly end: number;
  }[];
};

const parse = (file: string): Parsed => {
  const text = readFileSync(file, 'utf8');
  const { program, comments } = parseSync(file, text);
  const tree: unknown = program;
  const body = isNode(tree) && Array.isArray(tree.body) ? tree.body.filter(isNode) : [];
  return { text, body, comments };
};

/** `/** … *\/` without its frame; lines of a paragraph joined, so that Markdown wraps them. */
const toProse = (comment: string): string =>
  comment
    .replace(/^\*+/, '')
    .split('\n')
    .map((line) => line.replace(/^\s*\*? ?/, ''))
    .join('\n')
    .trim();

/** The name that a declaration gives to something; constants are declared one at a time. */
const declaredName = (declaration: Node): string | undefined => {
  const [first] = Array.isArray(declaration.declarations)
    ? declaration.declarations.filter(isNode)
    : [];
  return nameOf((first ?? declaration).id);
};

const isTypeOnly = ({ type }: Node): boolean =>
  type === 'TSTypeAliasDeclaration' || type === 'TSInterfaceDeclaration';

const withoutComments = (text: string): string => text.replace(/\/\*[\s\S]*?\*\//g, '');

/** `import("./file.js").Name`, as the compiler writes a type that the file does not import. */
const INLINE = /import\("([^"]+)"\)\.(\w+)/g;

/** The declaration of a name in a file, exported or not; null where the file has none. */
const findIn = (file: string, name: string): Declared | null => {
  const { text, body, comments } = parse(file);
  for (const statement of body) {
    const declaration = isNode(statement.declaration) ? statement.declaration : statement;
    if (declaredName(declaration) !== name) continue;
    const comment = comments.findLast(
      ({ end }) => end <= statement.start && text.slice(end, statement.start).trim() === '',
    );
    const shown = text.slice(statement.start, statement.end).replace(/^(export )?(declare )?/, '');
    return {
      name,
      comment: comment === undefined ? '' : toProse(comment.value),
      text: shown.replaceAll('    ', '  '),
      isType: isTypeOnly(declaration),
      file,
    };
  }
  return null;
};

/** The names that a statement exports from another file. */
const exportedNames = (statement: Node): readonly string[] =>
  sourceOf(statement) !== null && Array.isArray(statement.specifiers)
    ? statement.specifiers.filter(isNode).flatMap(({ exported }) => nameOf(exported) ?? [])
    : [];

/** The declaration behind a name of a file, which may export it from another one. */
const find = (file: string, name: string): Declared => {
  const found = findIn(file, name);
  if (found !== null) return found;
  const source = parse(file).body.find((statement) => exportedNames(statement).includes(name));
  const target = source === undefined ? null : sourceOf(source);
  if (target === null) throw new Error(`${file} declares no ${name}`);
  return find(path.join(path.dirname(file), target.replace(/\.js$/, '.d.ts')), name);
};

const resolveBeside = (file: string, source: string): string | null =>
  source.startsWith('.') ? path.join(path.dirname(file), source.replace(/\.js$/, '.d.ts')) : null;

type Address = { readonly file: string; readonly name: string };

/** Where the names that a file imports are declared. Names of packages are not followed. */
const importsOf = (file: string): ReadonlyMap<string, Address> => {
  const found = new Map<string, Address>();
  for (const statement of parse(file).body) {
    const source = sourceOf(statement);
    const target = source === null ? null : resolveBeside(file, source);
    if (target === null || !Array.isArray(statement.specifiers)) continue;
    for (const specifier of statement.specifiers.filter(isNode)) {
      const local = nameOf(specifier.local);
      const name = nameOf(specifier.imported);
      if (local !== undefined && name !== undefined) found.set(local, { file: target, name });
    }
  }
  return found;
};

/** The types of this project that a declaration names. */
const typesNamedBy = ({ file, text }: Declared): readonly Declared[] => {
  const code = withoutComments(text);
  const imports = importsOf(file);
  const inline = [...code.matchAll(INLINE)].flatMap(([, source = '', name = '']) => {
    const target = resolveBeside(file, source);
    return target === null ? [] : (findIn(target, name) ?? []);
  });
  const names = new Set(code.replace(INLINE, '').match(/\b[A-Z]\w*\b/g));
  const others = [...names].flatMap((name) => {
    const address = imports.get(name) ?? { file, name };
    return findIn(address.file, address.name) ?? [];
  });
  return [...inline, ...others].filter((one) => one.isType || one.text.startsWith('class '));
};

/**
 * All types that declarations name, and those that these name, without the declarations themselves.
 */
const typesBehind = (declared: readonly Declared[]): readonly Declared[] => {
  // two files may declare the same type, word for word
  const seen = new Map(declared.map((one) => [one.text, one]));
  for (const one of seen.values())
    for (const named of typesNamedBy(one)) if (!seen.has(named.text)) seen.set(named.text, named);
  return [...seen.values()].slice(declared.length);
};

const sourceOf = (statement: Node): string | null =>
  isNode(statement.source) && typeof statement.source.value === 'string'
    ? statement.source.value
    : null;

/** The name that a statement declares and exports. */
const ownExport = (statement: Node): readonly string[] => {
  const name = isNode(statement.declaration) ? declaredName(statement.declaration) : undefined;
  return statement.type === 'ExportNamedDeclaration' && name !== undefined ? [name] : [];
};

/** The exports of an entry point: its own, and those of other files. */
const exportsOf = (folder: string, entry: string): readonly Declared[] => {
  const file = path.join(folder, entry);
  return parse(file).body.flatMap((statement) =>
    [...ownExport(statement), ...exportedNames(statement)].map((name) => find(file, name)),
  );
};

/**
 * Types and values may differ in the size of a letter only, which a heading's address does not
 * tell.
 */
const headingOf = ({ name, isType }: Declared): string => (isType ? `type ${name}` : name);

const addressOf = (one: Declared): string => headingOf(one).toLowerCase().replaceAll(' ', '-');

const entryOf = (one: Declared): string => {
  const { comment, text } = one;
  return [
    `### ${headingOf(one)}`,
    '',
    ...(comment === '' ? [] : [comment, '']),
    '```typescript',
    text.replace(INLINE, '$2'),
    '```',
    '',
  ].join('\n');
};

const byName = (declared: readonly Declared[]): readonly Declared[] =>
  declared.toSorted((one, other) => (one.name < other.name ? -1 : 1));

const linksTo = (declared: readonly Declared[], page = ''): string =>
  declared.map((one) => `[${one.name}](${page}#${addressOf(one)})`).join(' · ');

/** Types that are no exports of a page: those of `elsewhere` are linked, the others explained. */
const namedPart = (
  declared: readonly Declared[],
  elsewhere: readonly Declared[],
): readonly string[] => {
  const isElsewhere = new Set(elsewhere.map(({ file, name }) => `${file} ${name}`));
  const named = byName(typesBehind(declared));
  const others = named.filter(({ file, name }) => isElsewhere.has(`${file} ${name}`));
  const own = named.filter((one) => !others.includes(one));
  return [
    ...(others.length === 0
      ? []
      : ['## Types of `pawl/machine`', '', linksTo(others, 'machine.md'), '']),
    ...(own.length === 0
      ? []
      : [
          '## Types without an export',
          '',
          'Named above; a field of an exported type gives each of them.',
          '',
        ]),
    ...own.map(entryOf),
  ];
};

const pageOf = (
  { name }: Face,
  declared: readonly Declared[],
  elsewhere: readonly Declared[],
): string => {
  const sorted = byName(declared);
  const [values, types] = [sorted.filter((one) => !one.isType), sorted.filter((one) => one.isType)];
  return [
    `# Reference: \`${name}\``,
    '',
    `Made from the declarations. [The library](../build/library.md) says how things are used.`,
    '',
    `${linksTo(values)}`,
    '',
    '## Functions and values',
    '',
    ...values.map(entryOf),
    ...(types.length === 0 ? [] : ['## Types', '', `${linksTo(types)}`, '', ...types.map(entryOf)]),
    ...namedPart(declared, elsewhere),
  ].join('\n');
};

/** The pages by file. `folder` has the declarations of `emitDeclarations`. */
export const referencePages = (folder: string): ReadonlyMap<string, string> => {
  const machine = exportsOf(folder, 'pawl/src/machine.d.ts');
  return new Map(
    faces.map((face) => {
      const isMachine = face.entry === 'pawl/src/machine.d.ts';
      return [face.page, pageOf(face, exportsOf(folder, face.entry), isMachine ? [] : machine)];
    }),
  );
};
