/**
 * A plugin of Stryker that makes no mutants of code which the compiler proves unreachable: the
 * default case of a switch with `satisfies never`.
 */

import { PluginKind } from '@stryker-mutator/api/plugin';

/** The used part of a node of the syntax tree. */
type Node = {
  readonly type: string;
  readonly test?: Node | null;
  readonly consequent?: Node | readonly Node[];
  readonly argument?: Node | null;
  readonly expression?: Node;
  readonly typeAnnotation?: Node;
};

const isNever = (node: Node | null | undefined): boolean =>
  node?.type === 'TSSatisfiesExpression' && node.typeAnnotation?.type === 'TSNeverKeyword';

/** `default: return x satisfies never;` */
const isImpossible = ({ type, test, consequent }: Node): boolean => {
  if (type !== 'SwitchCase' || test !== null || !Array.isArray(consequent)) return false;
  const [only, more] = consequent as readonly Node[];
  return more === undefined && isNever(only?.argument ?? only?.expression);
};

const neverReached = {
  // Stryker hands over Babel's paths without saying so in its types.
  shouldIgnore: ({ node }: { readonly node: Node }): string | undefined =>
    isImpossible(node) ? 'the compiler proves that this is never reached' : undefined,
};

export const strykerPlugins = [
  { kind: PluginKind.Ignore, name: 'never-reached', value: neverReached },
];
