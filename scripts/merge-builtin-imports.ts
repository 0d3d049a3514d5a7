/**
 * The sources of the program import modules of Node's some 400 times, and each import that is left
 * in the bundle is a call of `require` at each start. They become one import for each module.
 */

import { type ImportDeclaration, parse } from 'acorn';

const isMerged = ({ source, specifiers }: ImportDeclaration): boolean =>
  String(source.value).startsWith('node:') &&
  specifiers.length > 0 &&
  specifiers.every(({ type }) => type !== 'ImportNamespaceSpecifier');

/** The specifiers of an import, as text between braces. */
const namesIn = (text: string, { specifiers }: ImportDeclaration): readonly string[] =>
  specifiers.map((specifier) =>
    specifier.type === 'ImportSpecifier'
      ? text.slice(specifier.start, specifier.end)
      : `default as ${specifier.local.name}`,
  );

/** The text of an ES module with one import for each module of Node's, at its beginning. */
export const mergeBuiltinImports = (text: string): string => {
  const { body } = parse(text, { ecmaVersion: 'latest', sourceType: 'module' });
  const merged = body.filter((node) => node.type === 'ImportDeclaration').filter(isMerged);
  const names = new Map<string, string[]>();
  let rest = '';
  let end = 0;
  for (const declaration of merged) {
    const from = String(declaration.source.value);
    names.set(from, [...(names.get(from) ?? []), ...namesIn(text, declaration)]);
    rest += text.slice(end, declaration.start);
    end = declaration.end;
  }
  const imports = [...names].map(
    ([from, all]) => `import { ${all.join(', ')} } from ${JSON.stringify(from)};\n`,
  );
  return `${imports.join('')}${rest}${text.slice(end)}`;
};
