import type { DeclaredPrompt } from './offered-prompts-and-resources.js';

/**
 * The arguments of a prompt from the words behind its name.
 *
 * 1. Words are separated by spaces; quotes keep spaces together. The last argument takes all the words that are left.
 * 2. `name=value` gives an argument by its name.
 */

const WORD = /(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|(\S+))\s*/gs;

type Word = { readonly text: string; readonly at: number };

const wordsIn = (text: string): readonly Word[] =>
  [...text.matchAll(WORD)].map(({ 1: double, 2: single, 3: bare, index }) => ({
    text: double?.replace(/\\(.)/gs, '$1') ?? single ?? bare ?? '',
    at: index,
  }));

const usageOf = ({ declaredName, arguments: all }: DeclaredPrompt): string =>
  [`/${declaredName}`, ...all.map(({ name, required }) => (required ? `<${name}>` : `[${name}]`))].join(' ');

/** Throws if an argument is missing. Words for none stay in the message, which begins with the typed line. */
export const argumentsFor = (prompt: DeclaredPrompt, words: string): Readonly<Record<string, string>> => {
  const typed = words.trim();
  const given = new Map<string, string>();
  const plain: Word[] = [];
  for (const word of wordsIn(typed)) {
    const name = prompt.arguments.find((one) => word.text.startsWith(`${one.name}=`))?.name;
    if (name === undefined) plain.push(word);
    else given.set(name, word.text.slice(name.length + 1));
  }
  const byName = given.size;
  const open = prompt.arguments.filter(({ name }) => !given.has(name));
  const takesRest = open.length > 0 && byName === 0;
  for (const [index, { name }] of open.entries()) {
    const word = plain[index];
    if (word === undefined) break;
    const isRest = takesRest && index === open.length - 1 && plain.length > open.length;
    given.set(name, isRest ? typed.slice(word.at) : word.text);
  }
  const missing = prompt.arguments.filter(({ name, required }) => required && !given.has(name));
  if (missing.length > 0) throw new Error(`it is written as ${usageOf(prompt)}`);
  return Object.fromEntries(given);
};
