/**
 * Finds the starts of commands in a plain text: one line of words, closed quotes and operators between commands. It
 * contains no compound command, no command made from a value, and nothing that shells and grammars read differently.
 * Most commands of a model are plain; for others the grammar is loaded, which takes 17 MB.
 *
 * 1. A text with any other character, word or operator is not plain. Nothing is guessed.
 * 2. It shares no code with read-commands.ts, so that the two check each other.
 */

const QUOTED = /'[ -&(-~]*'|"[ !#%-[\]-_a-~]*"/.source;
/** The complete name of a program or builtin. */
const NAME = /[A-Za-z_./][\w./:-]*(?![^ ;|&])/y;
const WORD = new RegExp(`(?:[\\w./:@%+,*?-]|${QUOTED})(?:[\\w./:@%+,*?=-]|${QUOTED})*`, 'y');
const REDIRECTION = /(?:2>&1|[12]?> ?\/dev\/null)(?![^ ;|&])/y;
const BLANKS = / */y;
const OPERATOR = /&&|\|\||[;|]/y;

/** Reserved words, and builtins whose arguments are declarations, tests or shell texts. */
const SPECIAL = new Set(
  'if then elif else fi for while until do done case esac in select function time coproc declare typeset local export readonly unset let test eval'.split(
    ' ',
  ),
);

/** Offsets at which the commands of a plain text begin; null if the text is not plain. */
export const plainStarts = (text: string): ReadonlySet<number> | null => {
  const starts = new Set<number>();
  let at = 0;
  const take = (pattern: RegExp): string | null => {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0] ?? null;
    at += found?.length ?? 0;
    return found;
  };
  for (;;) {
    take(BLANKS);
    const start = at;
    const name = take(NAME);
    if (name === null || SPECIAL.has(name)) return null;
    starts.add(start);
    while (take(BLANKS) !== '') if (take(REDIRECTION) === null && take(WORD) === null) break;
    if (at === text.length) return starts;
    if (take(OPERATOR) === null) return null;
  }
};
