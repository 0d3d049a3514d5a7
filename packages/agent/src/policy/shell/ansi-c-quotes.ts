import { unclear } from './cursor.js';

const SIMPLE: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  e: '\x1b',
  E: '\x1b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\\': '\\',
  "'": "'",
  '"': '"',
  '?': '?',
};

const numbered: readonly (readonly [pattern: RegExp, base: number])[] = [
  [/^x([\da-f]{1,2})/i, 16],
  [/^u([\da-f]{1,4})/i, 16],
  [/^U([\da-f]{1,8})/i, 16],
  [/^([0-7]{1,3})/, 8],
];

const ESCAPE = /\\([\s\S])/g;

/** The value of the text between `$'` and `'`. Refuses NUL, bytes outside of ASCII and unknown escapes. */
export const decodeAnsiC = (raw: string): string => {
  let value = '';
  let at = 0;
  ESCAPE.lastIndex = 0;
  for (let found = ESCAPE.exec(raw); found !== null; found = ESCAPE.exec(raw)) {
    value += raw.slice(at, found.index);
    const rest = raw.slice(found.index + 1);
    const [digits, base] = numbered
      .map(([pattern, its]) => [pattern.exec(rest), its] as const)
      .find(([match]) => match !== null) ?? [null, 0];
    if (digits !== null) {
      const code = Number.parseInt(digits[1] ?? '', base);
      const isText = code < 0x80 || (/^u/i.test(rest) && code <= 0x10ffff);
      if (code === 0 || !isText) throw unclear("$'…' produces a byte that is not a character");
      value += String.fromCodePoint(code);
      at = found.index + 1 + digits[0].length;
    } else {
      const meant = SIMPLE[found[1] ?? ''];
      if (meant === undefined) throw unclear(`$'…' has the escape \\${found[1]}`);
      value += meant;
      at = found.index + 2;
    }
    ESCAPE.lastIndex = at;
  }
  return value + raw.slice(at);
};
