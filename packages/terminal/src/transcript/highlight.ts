import { type Look, paint } from '../paint-text.js';
import { joinSafe, type Safe, safe } from '../safe-text.js';
import type { Style } from '../theme.js';

/**
 * Colours code by the features that languages share: comments, strings, numbers, keywords. It knows no grammars and is
 * sometimes wrong. In return it needs no import and works on unfinished code; libraries with grammars take 70 to 190 ms
 * to load and warm up.
 */
type Family = 'slash' | 'hash' | 'dash' | 'markup' | 'diff' | 'none';

const FAMILIES: Readonly<Record<Exclude<Family, 'slash'>, string>> = {
  hash: 'py python sh bash shell zsh fish console rb ruby yaml yml toml ini conf dockerfile make makefile perl pl r elixir ex nix cmake powershell ps1 graphql',
  dash: 'sql lua haskell hs elm ada vhdl',
  markup: 'html xml svg vue markup',
  diff: 'diff patch',
  none: 'text txt plain plaintext markdown md log output csv tsv mermaid tree',
};
const familyOf = new Map<string, Family>();
for (const [family, names] of Object.entries(FAMILIES)) {
  for (const name of names.split(' ')) familyOf.set(name, family as Family); // the keys are of that type
}

const COMMENTS: Readonly<Record<'slash' | 'hash' | 'dash' | 'markup', string>> = {
  slash: '\\/\\/.*|\\/\\*[\\s\\S]*?(?:\\*\\/|$)',
  hash: '(?<![\\w$&\\\\])#.*',
  dash: '--.*|\\/\\*[\\s\\S]*?(?:\\*\\/|$)',
  markup: '<!--[\\s\\S]*?(?:-->|$)',
};
const LONG_STRING = `"""[\\s\\S]*?(?:"""|$)|'''[\\s\\S]*?(?:'''|$)`;
const DOUBLE = `"(?:\\\\.|[^"\\\\\\n])*"`;
const SINGLE = `'(?:\\\\.|[^'\\\\\\n])*'`;
/** One quoted character, for languages where a lone quote means something else, such as a lifetime in Rust. */
const CHARACTER = `'(?:\\\\.[^'\\n]*|[^'\\\\\\n])'`;
const BACKTICK = '`(?:\\\\.|[^`\\\\])*`';
const NUMBER = '(?<![\\w$])\\d[\\w.]*';
const WORD = '[A-Za-z_$][\\w$]*';

const KEYWORDS = new Set(
  (
    'abstract and as assert async await begin break case catch class const continue debugger def default defer del delete ' +
    'do done elif else elsif end ensure enum esac except export extends extern fi final finally fn for foreach from func ' +
    'function global go goto if impl implements import in instanceof interface internal is lambda let local loop match mod ' +
    'module move mut namespace new nil none nonlocal not null of operator or override package pass private protected pub ' +
    'public raise readonly ref require rescue return satisfies select self static struct super switch template then this ' +
    'throw throws trait try type typealias typedef typeof undefined union unless unsafe until use using val var virtual ' +
    'void volatile when where while with yield true false True False None insert update into values create table alter ' +
    'drop index join left right inner outer on group by order having limit distinct primary key references int long short ' +
    'char bool boolean float double string unsigned echo set'
  ).split(' '),
);
/** Keywords of SQL are often written in capitals. */
const isKeyword = (word: string, family: Family): boolean =>
  KEYWORDS.has(word) || (family === 'dash' && KEYWORDS.has(word.toLowerCase()));

const scanners = new Map<string, RegExp>();

const scannerOf = (family: keyof typeof COMMENTS, language: string): RegExp => {
  const single = /^(rs|rust|ml|ocaml)$/.test(language) ? CHARACTER : SINGLE;
  const source = `(${COMMENTS[family]})|(${LONG_STRING}|${DOUBLE}|${single}|${BACKTICK})|(${NUMBER})|(${WORD})`;
  const known = scanners.get(source) ?? new RegExp(source, 'g');
  scanners.set(source, known);
  return known;
};

type Token = { readonly style: Style | null; readonly text: Safe };

const tokensOf = (code: Safe, family: keyof typeof COMMENTS, language: string): readonly Token[] => {
  const tokens: Token[] = [];
  let at = 0;
  for (const found of code.matchAll(scannerOf(family, language))) {
    const [{ length }, comment, string, number] = found;
    const text = code.slice(found.index, found.index + length);
    if (found.index > at) tokens.push({ style: null, text: code.slice(at, found.index) });
    at = found.index + length;
    if (comment !== undefined) tokens.push({ style: 'dim', text });
    else if (string !== undefined) tokens.push({ style: 'string', text });
    else if (number !== undefined) tokens.push({ style: 'number', text });
    else tokens.push({ style: isKeyword(text, family) ? 'keyword' : null, text });
  }
  return [...tokens, { style: null, text: code.slice(at) }];
};

const diffLine = (look: Look, line: Safe): Safe => {
  if (/^(\+\+\+|---) /.test(line)) return paint(look, 'dim', line);
  if (line.startsWith('+')) return paint(look, 'green', line);
  if (line.startsWith('-')) return paint(look, 'red', line);
  return line.startsWith('@@') ? paint(look, 'cyan', line) : line;
};

/** The coloured lines of `code`; unchanged for an unknown language. */
export const highlightCode = (look: Look, code: Safe, language: string): readonly Safe[] => {
  const name = (/^[\w+#-]+/.exec(language)?.[0] ?? '').toLowerCase();
  const family = name === '' ? 'none' : (familyOf.get(name) ?? 'slash');
  const lines = code.split('\n');
  if (look.colour === 'no' || family === 'none') return lines;
  if (family === 'diff') return lines.map((line) => diffLine(look, line));
  // Each line ends its own colours, because lines are wrapped and cut one by one.
  const coloured = tokensOf(code, family, name).map(({ style, text }) => {
    if (style === null) return text;
    const parts = text.split('\n').map((line) => paint(look, style, line));
    return joinSafe(parts, safe`\n`);
  });
  return joinSafe(coloured).split('\n');
};
