import { ASK_BACKGROUND } from './escapes.js';
import type { Safe } from './safe-text.js';

/** Background of the terminal. For `unknown` the colours must be readable on both. */
export type Background = 'light' | 'dark' | 'unknown';

/** Codes of Select Graphic Rendition. */
const SHARED = {
  dim: '2',
  bold: '1',
  italic: '3',
  underline: '4',
  struck: '9',
  red: '31',
  green: '32',
  yellow: '33',
  blue: '34',
  cyan: '36',
  heading: '36',
  link: '36',
  mark: '36',
  code: '36',
  keyword: '35',
  string: '32',
  number: '33',
} as const;

export type Style = keyof typeof SHARED;

/** The bright colours of the sixteen are unreadable on white; darker ones of the 256 replace them. */
const LIGHT: Partial<Record<Style, string>> = {
  green: '38;5;28',
  string: '38;5;28',
  yellow: '38;5;130',
  number: '38;5;130',
  cyan: '38;5;30',
  heading: '38;5;25',
  link: '38;5;25',
  mark: '38;5;30',
  code: '38;5;30',
};
/** The blue of the sixteen colours is unreadable on black. */
const DARK: Partial<Record<Style, string>> = { blue: '94', link: '94' };

const CHANGES: Readonly<Record<Background, Partial<Record<Style, string>>>> = {
  light: LIGHT,
  dark: DARK,
  unknown: {},
};

/** `sixteen` uses only codes that every colour terminal knows. */
export const codeOf = (style: Style, background: Background, depth: Depth = 'indexed'): string => {
  const changed = CHANGES[background][style];
  return changed === undefined || (depth === 'sixteen' && changed.includes(';')) ? SHARED[style] : changed;
};

/** Colour depth: 16, 256 or true colour. */
export type Depth = 'sixteen' | 'indexed' | 'true';

export const depthIn = (environment: NodeJS.ProcessEnv): Depth => {
  if (/^(truecolor|24bit)$/i.test(environment.COLORTERM ?? '') || environment.FORCE_COLOR === '3')
    return 'true';
  return /256/.test(environment.TERM ?? '') ? 'indexed' : 'sixteen';
};

/** Background colours: the user's prompt, changed lines of a diff, changed words in them. */
export type Backdrop = 'typed' | 'added' | 'addedWord' | 'removed' | 'removedWord';

type Backdrops = Readonly<Record<Backdrop, Readonly<Record<Exclude<Depth, 'sixteen'>, string>>>>;

const BACKDROPS: Readonly<Record<Exclude<Background, 'unknown'>, Backdrops>> = {
  dark: {
    typed: { true: '48;2;48;51;58', indexed: '48;5;237' },
    added: { true: '48;2;22;54;37', indexed: '48;5;22' },
    addedWord: { true: '48;2;38;100;64', indexed: '48;5;28' },
    removed: { true: '48;2;70;28;32', indexed: '48;5;52' },
    removedWord: { true: '48;2;130;46;52', indexed: '48;5;88' },
  },
  light: {
    typed: { true: '48;2;236;238;243', indexed: '48;5;255' },
    added: { true: '48;2;224;246;230', indexed: '48;5;194' },
    addedWord: { true: '48;2;164;226;184', indexed: '48;5;157' },
    removed: { true: '48;2;253;231;231', indexed: '48;5;224' },
    removedWord: { true: '48;2;247;184;188', indexed: '48;5;217' },
  },
};

/** null if text could become unreadable: on an unknown background, or with sixteen colours. */
export const backdropOf = (backdrop: Backdrop, background: Background, depth: Depth): string | null =>
  background === 'unknown' || depth === 'sixteen' ? null : BACKDROPS[background][backdrop][depth];

/** The code that ends only the style of `code`. */
export const endOf = (code: string): string => {
  const first = Number(code.split(';')[0]);
  if (first === 1 || first === 2) return '22';
  if (first === 3 || first === 4 || first === 7 || first === 9) return String(first + 20);
  return first >= 40 && first < 50 ? '49' : '39';
};

/** `COLORFGBG` is `foreground;background` (rxvt, Konsole), as numbers of the sixteen colours. */
export const backgroundIn = (environment: NodeJS.ProcessEnv): Background => {
  const last = environment.COLORFGBG?.split(';').at(-1) ?? '';
  if (!/^\d{1,2}$/.test(last)) return 'unknown';
  return Number(last) === 7 || Number(last) === 15 ? 'light' : 'dark';
};

const REPLY = /\u001b\]11;rgba?:([\da-f]{1,4})\/([\da-f]{1,4})\/([\da-f]{1,4})/i;
/** Longer than any reply, so that a reply in several pieces is still found. */
const KEPT = 64;
/** Threshold between dark and light, of 255. */
const MIDDLE = 128;

/** Judges a colour by its perceived brightness. */
const lightOf = (parts: readonly string[]): Background => {
  const [red = 0, green = 0, blue = 0] = parts.map(
    (part) => (Number.parseInt(part, 16) / (16 ** part.length - 1)) * 255,
  );
  return 0.299 * red + 0.587 * green + 0.114 * blue >= MIDDLE ? 'light' : 'dark';
};

/** The terminal's background. The answer may come late; rows drawn after it use it. */
export type BackgroundWatch = {
  /** Asks the terminal, unless the environment has the answer. */
  ask(): void;
  /** Looks for the terminal's reply in the keyboard input. The key reader removes the reply from it. */
  read(typed: string): void;
  known(): Background;
};

export const watchBackground = (
  environment: NodeJS.ProcessEnv,
  write: (text: Safe) => void,
): BackgroundWatch => {
  let known = backgroundIn(environment);
  let pending = '';
  return {
    ask() {
      if (known === 'unknown') write(ASK_BACKGROUND);
    },
    read(typed) {
      if (known !== 'unknown') return;
      pending = (pending + typed).slice(-KEPT);
      const found = REPLY.exec(pending);
      // The last number is complete only if another character follows.
      if (found === null || found.index + found[0].length === pending.length) return;
      known = lightOf(found.slice(1));
    },
    known: () => known,
  };
};
