// biome-ignore-all lint/suspicious/noTemplateCurlyInString: shell texts, not ours

import { pick, type Random } from './random.js';

/** Ways to say a shell text differently, or to hide it in another one. What is hostile stays so, mostly. */

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

const insertAt = (text: string, index: number, piece: string): string =>
  text.slice(0, index) + piece + text.slice(index);

/** Where a word has a letter on both sides. */
const insideWord = (text: string, random: Random): number => {
  const places = [...text.matchAll(/(?<=[a-z])(?=[a-z])/g)].map(({ index }) => index);
  return places.length === 0 ? 0 : pick(places, random);
};

const atBlank = (text: string, piece: string, random: Random): string => {
  const places = [...text.matchAll(/ /g)].map(({ index }) => index);
  if (places.length === 0) return `${piece}${text}`;
  const index = pick(places, random);
  return text.slice(0, index) + piece + text.slice(index + 1);
};

type Mutation = (text: string, random: Random) => string;

const MUTATIONS: Readonly<Record<string, Mutation>> = {
  afterAllowed: (text) => `git status; ${text}`,
  afterSuccess: (text) => `ls && ${text}`,
  afterComment: (text) => `ls # nothing else\n${text}`,
  afterHereDocument: (text) => `cat <<'E'\n; # $(\nE\n${text}`,
  afterHereString: (text) => `cat <<< 'E' ; ${text}`,
  afterLongBlank: (text) => `ls${' '.repeat(300)};${text}`,
  afterNewlines: (text) => `ls\n\n\n${text}`,
  afterTab: (text) => `\t${text}`,
  afterReturn: (text) => `ls\r\n${text}\r\n`,
  beforeAllowed: (text) => `${text}\ngit status`,
  beforeComment: (text) => `${text} # only git status`,
  inSubshell: (text) => `(${text}\n)`,
  inGroup: (text) => `{ ${text}\n}`,
  inIf: (text) => `if true; then ${text}\nfi`,
  inElse: (text) => `if false; then ls; else\n${text}\nfi`,
  inLoop: (text) => `for one in 1; do\n${text}\ndone`,
  inCase: (text) => `case a in (b) ls;; (*)\n${text}\n;; esac`,
  inFunction: (text) => `run() {\n${text}\n}\nrun`,
  inSubstitution: (text) => `echo "$(${text}\n)"`,
  inBackquotes: (text) => `echo \`${text.replaceAll('\\', '\\\\').replaceAll('`', '\\`')}\``,
  inProcess: (text) => `cat <(${text}\n)`,
  inHereDocument: (text) => `cat <<E\n$(${text}\n)\nE`,
  inArithmetic: (text) => `echo $((1 + $(${text}\necho 1)))`,
  inDefault: (text) => `echo "\${none:-$(${text}\n)}"`,
  inCondition: (text) => `[[ -z $(${text}\n) ]]`,
  inAssignment: (text) => `one=$(${text}\n)`,
  inCoprocess: (text) => `coproc {\n${text}\n}\nwait`,
  inBackground: (text) => `{ ${text}\n} & wait`,
  inPipe: (text) => `ls | { ${text}\n}`,
  inEval: (text) => `eval ${quoted(text)}`,
  inBash: (text) => `bash -c ${quoted(text)}`,
  inTrap: (text) => `trap ${quoted(text)} EXIT`,
  inEnv: (text) => `env bash -c ${quoted(text)}`,
  inXargs: (text) => `echo x | xargs bash -c ${quoted(text)}`,
  inFind: (text) => `find . -exec bash -c ${quoted(text)} \\;`,
  inHereBash: (text) => `bash <<'EEE'\n${text}\nEEE`,
  timed: (text) => `time ${text}`,
  negated: (text) => `! ${text}`,
  quotedLetters: (text, random) =>
    insertAt(text, insideWord(text, random), pick(['""', "''", '\\'], random)),
  brokenLine: (text, random) => insertAt(text, insideWord(text, random), '\\\n'),
  brokenBlank: (text, random) => atBlank(text, ' \\\n ', random),
  tabBlank: (text, random) => atBlank(text, '\t', random),
  fieldBlank: (text, random) => atBlank(text, pick(['${IFS}', '$IFS', '$IFS$9'], random), random),
  oddBlank: (text, random) =>
    atBlank(text, pick(['\u00a0', '\u2003', '\u3000', '\u200b', '\v', '\f', '\r'], random), random),
  nestedQuotes: (text) => `ls "a'b" 'c"d' \\'; ${text}`,
  nestedBraces: (text) => `echo {a,b}{1..2} \${HOME:+x}; ${text}`,
  arithmeticFirst: (text) => `(( 1 << 2 )); ${text}`,
  shiftedHere: (text) => `cat <<-\tE\n\tE\n${text}`,
  twoHere: (text) => `cat <<A <<'B'\n$((1))\nA\n$(no\nB\n${text}`,
};

/** Every text by itself, then mutated, and mutated again, up to `count`, without doubles. */
export const mutated = (
  texts: readonly string[],
  count: number,
  random: Random,
): readonly string[] => {
  const found = new Set(texts);
  const ways = Object.values(MUTATIONS);
  for (const way of ways)
    for (let tries = 0; tries < 12 && found.size < count; tries++)
      found.add(way(pick(texts, random), random));
  while (found.size < count) {
    const once = pick(ways, random)(pick(texts, random), random);
    found.add(random() < 0.3 ? pick(ways, random)(once, random) : once);
  }
  return [...found];
};
