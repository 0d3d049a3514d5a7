/**
 * The reference of the library: every export of the package's three faces with its comment and its declaration, read off
 * the declarations that users get. `npm run update` writes it.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync } from 'oxc-parser';
import { isNode, type Node, nameOf } from './tidy/source.js';

const root = fileURLToPath(new URL('..', import.meta.url));

type Face = { readonly name: string; readonly entry: string; readonly page: string };

const faces: readonly Face[] = [
  { name: 'pawl', entry: 'index.d.ts', page: 'docs/reference/pawl.md' },
  { name: 'pawl/machine', entry: 'machine.d.ts', page: 'docs/reference/machine.md' },
  { name: 'pawl/testing', entry: 'testing/index.d.ts', page: 'docs/reference/testing.md' },
];

type Declared = {
  readonly name: string;
  readonly comment: string;
  readonly text: string;
  readonly isType: boolean;
};

type Parsed = {
  readonly text: string;
  readonly body: readonly Node[];
  readonly comments: readonly { readonly value: string; readonly start: number; readonly end: number }[];
};

const parse = (file: string): Parsed => {
  const text = readFileSync(file, 'utf8');
  const { program, comments } = parseSync(file, text);
  const tree: unknown = program;
  const body = isNode(tree) && Array.isArray(tree.body) ? tree.body.filter(isNode) : [];
  return { text, body, comments };
};

/** `/** … *\/` without its frame; lines of a paragraph joined, so that Markdown wraps them. */
const proseOf = (comment: string): string =>
  comment
    .replace(/^\*+/, '')
    .split('\n')
    .map((line) => line.replace(/^\s*\*? ?/, ''))
    .join('\n')
    .trim();

/** The name that a declaration gives to something; constants are declared one at a time. */
const declaredName = (declaration: Node): string | undefined => {
  const [first] = Array.isArray(declaration.declarations) ? declaration.declarations.filter(isNode) : [];
  return nameOf((first ?? declaration).id);
};

const isTypeOnly = ({ type }: Node): boolean =>
  type === 'TSTypeAliasDeclaration' || type === 'TSInterfaceDeclaration';

const find = (file: string, name: string): Declared => {
  const { text, body, comments } = parse(file);
  for (const statement of body) {
    const { declaration } = statement;
    if (!isNode(declaration) || declaredName(declaration) !== name) continue;
    const comment = comments.findLast(
      ({ end }) => end <= statement.start && text.slice(end, statement.start).trim() === '',
    );
    const shown = text.slice(statement.start, statement.end).replace(/^export (declare )?/, '');
    return {
      name,
      comment: comment === undefined ? '' : proseOf(comment.value),
      text: shown.replaceAll('    ', '  '),
      isType: isTypeOnly(declaration),
    };
  }
  throw new Error(`${path.relative(root, file)} declares no ${name}`);
};

const sourceOf = (statement: Node): string | null =>
  isNode(statement.source) && typeof statement.source.value === 'string' ? statement.source.value : null;

/** The exports of an entry point, which only re-exports names. */
const exportsOf = (folder: string, entry: string): readonly Declared[] => {
  const file = path.join(folder, entry);
  return parse(file).body.flatMap((statement) => {
    const source = sourceOf(statement);
    if (source === null || !Array.isArray(statement.specifiers)) return [];
    const target = path.join(path.dirname(file), source.replace(/\.js$/, '.d.ts'));
    return statement.specifiers
      .filter(isNode)
      .flatMap((specifier) => nameOf(specifier.exported) ?? [])
      .map((name) => find(target, name));
  });
};

/** Types and values may differ in the size of a letter only, which a heading's address does not tell. */
const headingOf = ({ name, isType }: Declared): string => (isType ? `type ${name}` : name);

const addressOf = (one: Declared): string => headingOf(one).toLowerCase().replaceAll(' ', '-');

const entryOf = (one: Declared): string => {
  const { comment, text } = one;
  return [
    `### ${headingOf(one)}`,
    '',
    ...(comment === '' ? [] : [comment, '']),
    '```typescript',
    text,
    '```',
    '',
  ].join('\n');
};

const pageOf = ({ name }: Face, declared: readonly Declared[]): string => {
  const sorted = declared.toSorted((one, other) => (one.name < other.name ? -1 : 1));
  const [values, types] = [sorted.filter((one) => !one.isType), sorted.filter((one) => one.isType)];
  const list = (some: readonly Declared[]): string =>
    some.map((one) => `[${one.name}](#${addressOf(one)})`).join(' · ');
  return [
    `# Reference: \`${name}\``,
    '',
    `Made from the declarations by \`npm run update\`. [The library](../library.md) says how things are used.`,
    '',
    `${list(values)}`,
    '',
    '## Functions and values',
    '',
    ...values.map(entryOf),
    ...(types.length === 0 ? [] : ['## Types', '', `${list(types)}`, '', ...types.map(entryOf)]),
  ].join('\n');
};

/** The pages by file. Emits the declarations into a temporary folder. */
export const referencePages = (): ReadonlyMap<string, string> => {
  const folder = mkdtempSync(path.join(tmpdir(), 'pawl-declarations-'));
  try {
    const compiler = path.join(root, 'node_modules', 'typescript', 'bin', 'tsc');
    const words = [compiler, '-p', path.join(root, 'tsconfig.types.json'), '--outDir', folder];
    const { stdout } = spawnSync(process.execPath, words, { cwd: root, encoding: 'utf8' });
    // type errors are reported by the type check and do not prevent declarations
    if (!existsSync(path.join(folder, 'index.d.ts')))
      throw new Error(`the declarations can't be emitted:\n${stdout}`);
    return new Map(faces.map((face) => [face.page, pageOf(face, exportsOf(folder, face.entry))]));
  } finally {
    rmSync(folder, { recursive: true });
  }
};
