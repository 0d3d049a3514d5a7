/** Text as a hostile repository, tool or model would write it; the same for the same seed. */
export type Hostile = {
  /** About so many characters. */
  text(length: number): string;
  /** For a name of a file or a folder: no slash, no NUL, at most 200 bytes. */
  name(): string;
  /** Characters given so far. */
  given(): number;
};

/** Real sequences with an effect: title, clipboard, hyperlink, colours, cursor, modes, other screen, reports, devices. */
const SEQUENCES = [
  '\u001b]0;owned\u0007',
  '\u001b]2;owned\u001b\\',
  '\u001b]52;c;cHduZWQ=\u0007',
  '\u001b]8;;http://evil.example\u001b\\click\u001b]8;;\u001b\\',
  '\u001b]4;1;rgb:ff/ff/ff\u0007',
  '\u001b]10;#ff0000\u0007',
  '\u001b]1337;SetUserVar=a=b\u0007',
  '\u001bP$q"p\u001b\\',
  '\u001bP+q544e\u001b\\',
  '\u001b_Ga=T;AAAA\u001b\\',
  '\u001b^private\u001b\\',
  '\u001bXstring\u001b\\',
  '\u001b[2J\u001b[H',
  '\u001b[31;1mred',
  '\u001b[0m',
  '\u001b[?25l',
  '\u001b[?1049h',
  '\u001b[?2004l',
  '\u001b[?1000h',
  '\u001b[9999A\u001b[2K',
  '\u001b[3J',
  '\u001b[6n',
  '\u001b[c',
  '\u001b[21t',
  '\u001b[5i',
  '\u001bc',
  '\u001b7\u001b8',
  '\u001b(0',
  '\u001b#8',
  '\u001b]11;?\u0007',
  '\u009b31m',
  '\u009d0;owned\u009c',
  '\u0090q\u009c',
  '\u0084\u0085\u0088\u008d\u009a',
  '\r\u0008\u000b\u000c\u000e\u000f\u0007\u0005\u007f',
  'safe.txt\u202egpj.exe\u202c',
  '\u2066\u2067\u2068\u2069\u200e\u200f\u061c',
  'pass\u200bword\u2060\ufeff\u00ad\u180e',
  '\u{e0001}\u{e0041}\u{e007f}',
  'a\u2028b\u2029c',
  '\ud800',
  '\udfff',
  'x\ufe0f\u{e0100}\u115f\u3164',
  '\ue0b0\u{f0000}\uffff\ufff9',
];
/** What means something to what lays text out, or stands in ordinary text. */
const PLAIN = [
  ...[
    '\n',
    '\n\n',
    ' ',
    '    ',
    '\t',
    '```\n',
    '# ',
    '- ',
    '> ',
    '| a | b |\n',
    '[x](y)',
    '**',
    '`',
    '$',
    '"',
    "'",
  ],
  ...[
    'word ',
    'Zürich ',
    '東京',
    'مرحبا ',
    'שלום ',
    '👩‍🚀',
    '❤️',
    'e\u0301',
    '@@ -1 +1 @@\n',
    '+a\n',
    '-b\n',
    '\\',
    '\u001b',
  ],
];

/** Lone surrogates as files hold them: replaced. */
export const wellFormed = (text: string): string => Buffer.from(text).toString('utf8');

/** Mulberry32. */
const randomFrom = (seed: number) => {
  let state = seed;
  return (below: number): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
};

export const createHostile = (seed: number): Hostile => {
  const random = randomFrom(seed);
  let given = 0;
  const one = (): string => {
    const kind = random(10);
    if (kind < 5) return SEQUENCES[random(SEQUENCES.length)] ?? '';
    if (kind < 8) return PLAIN[random(PLAIN.length)] ?? '';
    if (kind < 9) return String.fromCharCode(random(0x180));
    const whole = SEQUENCES[random(SEQUENCES.length)] ?? '';
    return whole.slice(0, random(whole.length) + 1); // begun, and never ended
  };
  const text = (length: number): string => {
    let made = '';
    while (made.length < length) made += one();
    given += made.length;
    return made;
  };
  return {
    text,
    name() {
      let name = `n${random(1_000_000)}`;
      for (;;) {
        const next = wellFormed(one()).replace(/[/\0]/g, '_');
        if (Buffer.byteLength(name + next) > 200) break;
        name += next;
      }
      given += name.length;
      return name;
    },
    given: () => given,
  };
};
