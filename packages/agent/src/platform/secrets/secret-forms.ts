/**
 * The forms in which a secret appears in texts: verbatim, escaped and encoded.
 *
 * 1. Values that are too short or too plain are not searched: `true`, `1234`, a word or a path would be replaced
 *    everywhere.
 * 2. Covers forms that occur by accident: JSON, URLs, base64, hex. It does not stop someone who hides a secret on
 *    purpose.
 */

const LENGTH_MIN = 8;
const DISTINCT_MIN = 5;
/** Plain words and numbers are ordinary text unless they have at least this many characters. */
const PLAIN_LENGTH_MIN = 20;
/** Line lengths of `base64` and `openssl`. */
const LINE_LENGTHS = [76, 64];
/** Shorter parts of a secret are not searched. */
const PIECE_MIN = 16;

/** An ordinary word, possibly followed by a short number. */
const PLAIN_WORD = /^(?:[A-Z]+|[A-Za-z][a-z]*(?:[A-Z][a-z]{2,})*)?\d{0,4}$/;

/** Whether a value can be searched for: it is long enough and not ordinary text. */
export const isDistinctive = (value: string): boolean => {
  if (value.length < LENGTH_MIN || new Set(value).size < DISTINCT_MIN) return false;
  const isNumber = /^[\d\s.,:/-]+$/.test(value);
  const isPlain = isNumber || value.split(/[-_./:\s]+/).every((word) => PLAIN_WORD.test(word));
  return !isPlain || (value.length >= PLAIN_LENGTH_MIN && !value.includes('/'));
};

/**
 * Base64 forms of a value at each offset within three bytes, without the characters that neighbouring bytes influence.
 */
const base64Forms = (value: string): readonly string[] => {
  const bytes = Buffer.from(value);
  const whole = bytes.toString('base64');
  const inside = [0, 1, 2].map((before) => {
    const encoded = Buffer.concat([Buffer.alloc(before), bytes])
      .toString('base64')
      .replace(/=+$/, '');
    const start = before === 0 ? 0 : before + 1;
    const isWhole = (before + bytes.length) % 3 === 0;
    return encoded.slice(start, isWhole ? undefined : -1);
  });
  const lines = LINE_LENGTHS.flatMap((length) =>
    whole.length <= length ? [] : (whole.match(new RegExp(`.{1,${length}}`, 'g')) ?? []),
  );
  const standard = [whole, whole.replace(/=+$/, ''), ...inside, ...lines];
  return [...standard, ...standard.map((form) => form.replaceAll('+', '-').replaceAll('/', '_'))];
};

const escaped = (value: string): readonly string[] => {
  const url = encodeURIComponent(value);
  const json = JSON.stringify(value).slice(1, -1);
  const form = new URLSearchParams([['', value]]).toString().slice(1);
  return [
    url,
    url.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
    form,
    json,
    json.replaceAll('/', '\\/'),
  ];
};

/** The lines of a value such as a private key, which may appear indented, quoted or in part. */
const linesOf = (value: string): readonly string[] =>
  value.includes('\n') ? value.split(/\r?\n/).map((line) => line.trim()) : [];

/** All forms to search for; none if the value is not distinctive. */
export const formsOf = (value: string): readonly string[] => {
  if (!isDistinctive(value)) return [];
  const hex = Buffer.from(value).toString('hex');
  const written = [value, ...escaped(value), hex, hex.toUpperCase()];
  const pieces = [...base64Forms(value), ...linesOf(value)].filter(
    (piece) =>
      piece.length >= Math.min(PIECE_MIN, value.length) && !/^-----/.test(piece) && isDistinctive(piece),
  );
  return [...new Set([...written, ...pieces])];
};
