// biome-ignore-all lint/suspicious/noTemplateCurlyInString: shell texts, not ours

import { pick, type Random } from './random.js';

/** Random texts of the pieces that shells are made of: most are nonsense, some are read by bash in ways nobody thought of. */

const PIECES =
  `git status|curl x|ls|echo a|;|&|&&|\\|\\||\\||\\|&|\\n|$(|)|(|<(|>(|\`|'|"|$'|$"|{|}|((|))|$((|[[|]]|[[ a =~ |[|]|<<E\\n|<<'E'\\n|\\nE\\n|<<<|
#| #|\\\\|\\\\\\n|\\r|\\t| |  |$x|$1|"$@"|\${x|\${x:-|\${x@P}|\${!x}|x=|x+=|x=(|x=(a)|x=([a]=|a[|]=|if |; then |; fi|for i in 1|; do |; done|case x in |;; |esac|) |
*|function f |f()|f|eval |! |time |coproc |~|*|?|{a,b}|{curl,x}|2>&1|> /dev/null|< README.md|>&|&>/dev/null|curl|\\x63url|\\\\x63url|bash -c |xargs |
env |exec |command |test |true|false|-|--|=|,|..|:|@|!|%|^|/|.|1|0|é|\\u00a0`
    .split(/(?<!\\)\|/)
    .map((piece) =>
      piece
        .replace(/^\n/, '')
        .replaceAll('\\n', '\n')
        .replaceAll('\\r', '\r')
        .replaceAll('\\t', '\t')
        .replaceAll('\\|', '|'),
    )
    .map((piece) => piece.replaceAll('\\u00a0', '\u00a0').replaceAll('\\\\', '\\'))
    .filter((piece) => piece !== '');

const words = (random: Random): string =>
  pick(
    [
      'git status',
      'ls',
      'ls -l',
      'echo a',
      'cat README.md',
      'grep a b',
      'npm test',
      'curl x',
      'evil',
      'true',
    ],
    random,
  );

/** A text that bash can read, mostly: the grammar, walked at random. */
const grammatical = (random: Random, depth: number): string => {
  if (depth <= 0) return words(random);
  const inner = (): string => grammatical(random, depth - 1);
  const made = [
    () =>
      `${inner()}${pick(['; ', ' && ', ' || ', ' | ', '\n', ' & ', ';', '|'], random)}${inner()}`,
    () => `(${inner()})`,
    () => `{ ${inner()}; }`,
    () => `if ${inner()}; then ${inner()}; fi`,
    () => `for i in a b; do ${inner()}; done`,
    () => `for i in a # '\ndo ${inner()}; done # '; do :; done`,
    () => `if false; then ls; else ${inner()}; fi`,
    () => `[[ a ]] && ${inner()} && [[ b ]]`,
    () => `cat <<-E\n\ta\n\tE\n${inner()}\nE\n`,
    () => `case a in a) ${inner()};; esac`,
    () => `echo "$(${inner()})"`,
    () => `echo $(${inner()})`,
    () => `ls "a\${b:-$(${inner()})}"`,
    () => `cat <(${inner()})`,
    () => `cat <<E\na $(${inner()})\nE\n`,
    () => `cat <<'E'\na $(${inner()})\nE\n`,
    () => `cat <<E; ${inner()}\na\nE\n`,
    () => `ls "$(cat <<'E'\n${inner()}\nE\n)"`,
    () => `ls $(cat <<E\na\nE)\n${inner()}\nE\n`,
    () => `ls "$(cat <<'E'\nE)"\n${inner()}\nE\n)"`,
    () => `${inner()} | ${pick(['cat', 'head -n 2', 'wc -l', 'cat x', 'sort -o x'], random)}`,
    () => `f() { ${inner()}; }; f`,
    () => `bash -c '${inner().replaceAll("'", "'\\''")}'`,
    () => `eval '${inner().replaceAll("'", "'\\''")}'`,
    () => `x=$(${inner()}) ${inner()}`,
    () => `echo $((1 + $(${inner()}; echo 1)))`,
    () => `[[ a = $(${inner()}) ]]`,
    () => `ls 'a\n${inner()}' # ${inner()}`,
    () => `ls "a # b"; ${inner()}`,
    () => `! ${inner()}`,
    () => `${inner()} > /dev/null 2>&1`,
    () => `echo a{b,c} \\; ${inner()}`,
    () => `echo 'it'\\''s'; ${inner()}`,
    () => `echo \\\n ${inner()}`,
  ];
  return pick(made, random)();
};

const soup = (random: Random): string =>
  Array.from({ length: 2 + Math.floor(random() * 10) }, () => pick(PIECES, random)).join('');

/** A grammatical text with a piece put in, taken out or doubled somewhere. */
const damaged = (random: Random): string => {
  const text = grammatical(random, 2);
  const at = Math.floor(random() * text.length);
  const end = Math.min(text.length, at + Math.floor(random() * 4));
  return (
    text.slice(0, at) +
    pick([pick(PIECES, random), '', text.slice(at, end).repeat(2)], random) +
    text.slice(end)
  );
};

export const fuzzed = (count: number, random: Random): readonly string[] =>
  Array.from({ length: count }, () =>
    pick(
      [soup, damaged, (any: Random) => grammatical(any, 1 + Math.floor(any() * 3))],
      random,
    )(random),
  );

/** Of quotes, escapes, braces and patterns, but without a mark that runs a command. */
const WORD_PIECES = [
  ...["$'", "'", '"', '$', '\\', '\\\\', '\\\n', '\\c', '\\n', '\\E', '\\"', "\\'", ' ', 'é'],
  ...[
    '\\x',
    '\\X',
    '\\u',
    '\\U',
    '\\0',
    '\\1',
    '0',
    '7',
    '41',
    '062',
    'e9',
    '0041',
    '1F600',
    'd800',
  ],
  ...['00110000', 'a', '{', '}', ',', '{a,b}', '*', '?', '[', ']', '!', '~', '=', ':', '#'],
];

const wordText = (random: Random): string => {
  const quote = pick(['', "$'", '"'], random);
  const inside = Array.from({ length: 1 + Math.floor(random() * 9) }, () =>
    pick(WORD_PIECES, random),
  );
  return `f ${quote}${inside.join('')}${quote.slice(-1)}`;
};

/** Commands `f` with a few words that are hard to read. */
export const wordTexts = (count: number, random: Random): readonly string[] =>
  Array.from({ length: count }, () => wordText(random));

const brokenText = (random: Random): string => {
  const text = grammatical(random, 2);
  const at = Math.floor(random() * text.length);
  return `${text.slice(0, at)}\\\n${text.slice(at)}`;
};

/** Grammatical texts with an escaped line break somewhere, also in a reserved word. */
export const brokenTexts = (count: number, random: Random): readonly string[] =>
  Array.from({ length: count }, () => brokenText(random));
