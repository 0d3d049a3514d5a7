/**
 * Values as JSON whose long texts are not stored again: a reference to the bytes of the journal stands in their place.
 *
 * A reference is a text that begins with NUL: its form, and offset and length of JSON in the journal. Other texts that begin
 * with NUL get another one before it.
 */
const MARK = '\u0000';

/** How the bytes are read. Most are ASCII, and need no decoder; those of a text without escapes need no parser either. */
const [JSON_FORM, ASCII_FORM, TEXT_FORM] = ['j', 'a', 't'];

const formOf = (json: string, bytes: number): string => {
  if (bytes !== json.length) return JSON_FORM;
  return json.startsWith('"') && !json.includes('\\') ? TEXT_FORM : ASCII_FORM;
};

/** A part of a journal that begins at byte `start`. */
export type JournalPart = { readonly bytes: Buffer; readonly start: number };

/** Shorter texts are stored again: a reference would save little. */
const TEXT_MIN = 200;
/** How far a text is looked for. Texts follow each other in a journal as in the conversation. */
const WINDOW_BYTES = 4 * 1024 * 1024;

/** Replaces long texts by references. Texts of later values stand behind those of values before. */
export class References {
  readonly #part: JournalPart;
  /** Where texts are looked for, and the end of the last one found. */
  #from = 0;
  #end = 0;

  constructor(part: JournalPart) {
    this.#part = part;
  }

  /** Offset in the journal after the last text found. */
  get next(): number {
    return this.#part.start + this.#end;
  }

  /** Replaces within a value, or the whole value if the journal holds its JSON. */
  replaceWhole(value: object): unknown {
    const replaced = this.#find(JSON.stringify(value)) ?? this.#within(value);
    this.#from = this.#end;
    return replaced;
  }

  replace(value: unknown): unknown {
    const replaced = this.#within(value);
    this.#from = this.#end;
    return replaced;
  }

  #within(value: unknown): unknown {
    if (typeof value === 'string') return this.#text(value);
    if (typeof value !== 'object' || value === null) return value;
    const fields: readonly unknown[] = Array.isArray(value) ? value : Object.values(value);
    const replaced = fields.map((field) => this.#within(field));
    // most values have no long text, and stay as they are
    if (replaced.every((field, index) => field === fields[index])) return value;
    if (Array.isArray(value)) return replaced;
    return Object.fromEntries(Object.keys(value).map((key, index) => [key, replaced[index]]));
  }

  #text(text: string): string {
    const found = text.length < TEXT_MIN ? null : this.#find(JSON.stringify(text));
    return found ?? (text.startsWith(MARK) ? MARK + text : text);
  }

  #find(json: string): string | null {
    if (json.length < TEXT_MIN) return null;
    const { bytes, start } = this.#part;
    const wanted = Buffer.from(json);
    const found = bytes.subarray(this.#from, this.#from + WINDOW_BYTES).indexOf(wanted);
    if (found < 0) return null;
    const offset = this.#from + found;
    this.#end = Math.max(this.#end, offset + wanted.length);
    return `${MARK}${formOf(json, wanted.length)}${start + offset}+${wanted.length}`;
  }
}

/** A buffer, or what reads one part after the other. */
type Bytes = { toString(encoding: BufferEncoding, start: number, end: number): string };

const readText = (text: string, journal: Bytes): unknown => {
  const form = text[1];
  if (form === MARK) return text.slice(1);
  const plus = text.indexOf('+');
  const start = Number(text.slice(2, plus));
  const end = start + Number(text.slice(plus + 1));
  if (form === TEXT_FORM) return journal.toString('latin1', start + 1, end - 1);
  return JSON.parse(journal.toString(form === ASCII_FORM ? 'latin1' : 'utf8', start, end));
};

/** Puts the texts back, within the value that is given. `journal` is the journal from its beginning. */
export const resolveReferences = (value: unknown, journal: Bytes): unknown => {
  if (typeof value === 'string') return value.startsWith(MARK) ? readText(value, journal) : value;
  if (typeof value !== 'object' || value === null) return value;
  const fields = value as Record<string, unknown>; // also an array's items
  for (const key of Object.keys(value)) {
    const field = fields[key];
    if (typeof field === 'object' || (typeof field === 'string' && field.startsWith(MARK)))
      fields[key] = resolveReferences(field, journal);
  }
  return value;
};
