/**
 * Characters that may make a text look like another: controls, invisible characters, direction marks, lookalike letters,
 * long runs of blanks. They are shown beside a question and never decide by themselves.
 */
export type OddCharacter = {
  /** `U+202E`. */
  readonly code: string;
  readonly name: string;
  /** Number of occurrences; for blanks the length of the longest run. */
  readonly count: number;
};

/** Shortest suspicious run of blanks: it pushes the rest out of sight. */
const BLANKS_MIN = 16;
/** Maximum number of listed kinds; the last entry counts the rest. */
const KINDS_MAX = 20;

const ASCII = /^[\n -~]*$/;
const BLANKS = / {16,}/g;
const ODD =
  /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Zs}\p{M}\p{Default_Ignorable_Code_Point}\u2800\ufffc]/u;
const RIGHT_TO_LEFT = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;
const ORDINARY = new Set(['\n', ' ']);

/** Letters that look like Latin ones. */
const LOOK_ALIKE =
  /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}\p{Script=Coptic}\p{Script=Lisu}\uff01-\uff5e\u{1d400}-\u{1d7ff}\u2010-\u2015\u2215\u2044\u0131\u0269\u217c\u01c0]/u;
const WORD = /[^\s"'`|&;<>()$=,:]+/g;
const LATIN = /[A-Za-z]/;

const NAMES: Readonly<Record<number, string>> = {
  0: 'NUL',
  9: 'tab',
  13: 'carriage return',
  27: 'escape',
  127: 'delete',
  160: 'no-break space',
  173: 'soft hyphen',
  1564: 'right-to-left mark',
  8203: 'zero-width space',
  8204: 'zero-width non-joiner',
  8205: 'zero-width joiner',
  8206: 'left-to-right mark',
  8207: 'right-to-left mark',
  8232: 'line separator',
  8233: 'paragraph separator',
  8234: 'left-to-right embedding',
  8235: 'right-to-left embedding',
  8236: 'end of embedding',
  8237: 'left-to-right override',
  8238: 'right-to-left override',
  8294: 'left-to-right isolate',
  8295: 'right-to-left isolate',
  8296: 'isolate',
  8297: 'end of isolate',
  10240: 'blank pattern',
  65279: 'zero-width no-break space',
};

const nameOf = (character: string): string => {
  const point = character.codePointAt(0) ?? 0;
  const known = NAMES[point];
  if (known !== undefined) return known;
  if (point < 32 || (point >= 0x80 && point < 0xa0)) return 'control character';
  if (point >= 0xe0000 && point <= 0xe007f) return 'tag character';
  if (/\p{Cs}/u.test(character)) return 'half of a character';
  if (/\p{Zs}/u.test(character)) return 'unusual blank';
  if (/\p{M}/u.test(character)) return 'combining sign';
  return /[\p{Co}\p{Cn}]/u.test(character) ? 'character without a meaning' : 'invisible character';
};

const codeOf = (character: string): string =>
  `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;

const count = (found: Map<string, OddCharacter>, character: string, name: string): void => {
  const code = codeOf(character);
  found.set(code, { code, name, count: (found.get(code)?.count ?? 0) + 1 });
};

/** Suspicious characters of a text, in order of appearance. */
export const oddCharactersIn = (text: string): readonly OddCharacter[] => {
  const found = new Map<string, OddCharacter>();
  let longest = 0;
  for (const [run] of text.matchAll(BLANKS)) longest = Math.max(longest, run.length);
  if (longest >= BLANKS_MIN) found.set('blanks', { code: 'U+0020', name: 'run of blanks', count: longest });
  if (ASCII.test(text)) return [...found.values()];
  for (const character of text) {
    if (ORDINARY.has(character) || (character >= '!' && character <= '~')) continue;
    if (ODD.test(character)) count(found, character, nameOf(character));
    else if (RIGHT_TO_LEFT.test(character)) count(found, character, 'letter that is written right to left');
  }
  for (const [word] of text.matchAll(WORD)) {
    if (!LATIN.test(word)) continue;
    for (const letter of word) if (LOOK_ALIKE.test(letter)) count(found, letter, 'looks like a common sign');
  }
  const all = [...found.values()];
  if (all.length <= KINDS_MAX) return all;
  const rest = all.slice(KINDS_MAX - 1);
  return [...all.slice(0, KINDS_MAX - 1), { code: '…', name: 'others', count: rest.length }];
};
