/**
 * Puts arguments into the text of a command: `$ARGUMENTS` is all of them, `$1` to `$9` are single ones. Nothing is run,
 * whatever the text says: a `!` before a command is only text.
 */

/** Words of the arguments; quotes hold a word with blanks together. */
const wordsOf = (given: string): readonly string[] =>
  [...given.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, bare]) => double ?? single ?? bare ?? '',
  );

/** One pass: an argument that looks like `$1` stays as it is. Text without a place for the arguments gets them below. */
export const expandArguments = (body: string, given: string): string => {
  const words = wordsOf(given);
  let isUsed = false;
  const text = body.replace(/\$(ARGUMENTS\b|[1-9](?!\d))/g, (_, which: string) => {
    isUsed = true;
    return which === 'ARGUMENTS' ? given : (words[Number(which) - 1] ?? '');
  });
  return isUsed || given === '' ? text : `${text.trimEnd()}\n\nArguments: ${given}`;
};
