/**
 * The syntax of JavaScript, TypeScript and of JSON with comments, for check-syntax.ts, which loads
 * this file with its parser on first use. Each function returns the first fault of a text in one
 * line; null if it has none.
 */

import { type ParserOptions, type ParserPlugin, parse, parseExpression } from '@babel/parser';

/** Babel's error: it says where. */
type PlacedError = { readonly message: string; readonly loc: { readonly line: number } };

const isPlaced = (error: unknown): error is PlacedError =>
  error instanceof SyntaxError && 'loc' in error && typeof error.loc === 'object';

const faultOf = (read: () => unknown): string | null => {
  try {
    read();
    return null;
  } catch (error) {
    if (!isPlaced(error)) throw error;
    const reason = error.message.replace(/\s*\(\d+:\d+\)$/, '');
    return `${reason.replace(/\.$/, '')}, in line ${error.loc.line}`;
  }
};

const LENIENT: ParserOptions = {
  sourceType: 'unambiguous',
  allowReturnOutsideFunction: true,
  allowAwaitOutsideFunction: true,
  allowSuperOutsideMethod: true,
  allowUndeclaredExports: true,
};

const dialectOf = (text: string, file: string): readonly ParserPlugin[] => {
  if (/\.[cm]?ts$/.test(file)) return [['typescript', { dts: /\.d\.[cm]?ts$/.test(file) }]];
  if (file.endsWith('.tsx')) return ['typescript', 'jsx'];
  return /@flow\b/.test(text.slice(0, 1_000)) ? ['flow', 'jsx'] : ['jsx'];
};

/** Both forms of decorators are in use; a text is fine if one of them can be read. */
export const checkScript = (text: string, file: string): string | null => {
  const dialect = dialectOf(text, file);
  const read = (decorators: 'decorators' | 'decorators-legacy'): string | null => {
    const plugins: ParserPlugin[] = [...dialect, decorators, 'decoratorAutoAccessors'];
    return faultOf(() => parse(text, { ...LENIENT, plugins }));
  };
  const fault = read('decorators-legacy');
  if (fault === null || !text.includes('@')) return fault;
  return read('decorators') === null ? null : fault;
};

/** JSON with comments and commas at ends: any expression of JavaScript is accepted. */
export const checkExpression = (text: string): string | null =>
  faultOf(() => parseExpression(text));
