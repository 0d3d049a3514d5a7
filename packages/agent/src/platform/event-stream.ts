/** Server-sent events: how a stream of them is written, and read. */

type EventHead = {
  readonly name?: string;
  /** From which a reader that comes again goes on. */
  readonly id?: number;
};

/** An event as it is sent; its data is JSON. */
export const eventText = (data: unknown, { name, id }: EventHead): string =>
  `${id === undefined ? '' : `id: ${id}\n`}${name === undefined ? '' : `event: ${name}\n`}` +
  `data: ${JSON.stringify(data)}\n\n`;

/** What the lines of a stream mean. */
export type EventLines = {
  /** Takes an event: its data, and its name or an empty text. `end`: nothing behind it is read. */
  event(text: string, name: string): 'more' | 'end';
  /** A line of data came, and perhaps more of its event follows. */
  data?(line: string): void;
  /** A comment came: whoever writes the stream is at work. */
  comment?(): void;
  /** A line `error: …` came, which some servers write in place of an event. */
  error?(text: string): void;
};

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;

/**
 * Splits the bytes of a server-sent event stream into its lines and events.
 *
 * - A line ends with LF, CR or CRLF. How the bytes are cut into chunks changes nothing.
 * - An event whose last line is not followed by an empty one has not come whole, and is none.
 */
export class EventParser {
  readonly #sink: EventLines;
  /** Beginning of the current line. */
  #pieces: Buffer[] = [];
  /** The name and the lines of data of the current event. */
  #name = '';
  #data: string[] = [];
  #isFirstLine = true;
  /** The last byte was a carriage return: a line feed after it ends the same line. */
  #isAfterReturn = false;

  constructor(sink: EventLines) {
    this.#sink = sink;
  }

  add(bytes: Uint8Array): 'more' | 'end' {
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (buffer.length === 0) return 'more';
    let start = this.#isAfterReturn && buffer[0] === LINE_FEED ? 1 : 0;
    this.#isAfterReturn = false;
    const find = (byte: number): number => {
      const index = buffer.indexOf(byte, start);
      return index === -1 ? buffer.length : index;
    };
    let [feed, carriage] = [find(LINE_FEED), find(CARRIAGE_RETURN)];
    while (start < buffer.length) {
      if (feed < start) feed = find(LINE_FEED);
      if (carriage < start) carriage = find(CARRIAGE_RETURN);
      const end = Math.min(feed, carriage);
      this.#pieces.push(buffer.subarray(start, end));
      if (end === buffer.length) return 'more';
      const isPair = carriage === end && feed === end + 1;
      this.#isAfterReturn = carriage === end && end + 1 === buffer.length;
      start = end + (isPair ? 2 : 1);
      if (this.#readLine(this.#takeLine()) === 'end') return 'end';
    }
    return 'more';
  }

  /** A line without its end can still be a comment, data or an error. */
  end(): void {
    const line = this.#takeLine();
    if (line !== '') this.#readLine(line);
  }

  #takeLine(): string {
    const line = this.#pieces.length === 1 ? this.#pieces[0] : Buffer.concat(this.#pieces);
    this.#pieces = [];
    const text = line?.toString('utf8') ?? '';
    const hasByteOrderMark = this.#isFirstLine && text.startsWith('\ufeff');
    this.#isFirstLine = false;
    return hasByteOrderMark ? text.slice(1) : text;
  }

  #readLine(line: string): 'more' | 'end' {
    if (line === '') return this.#endEvent();
    const [field = ''] = line.split(':', 1);
    const value = line.slice(field.length + (line[field.length + 1] === ' ' ? 2 : 1));
    if (field === '') this.#sink.comment?.();
    else if (field === 'event') this.#name = value;
    else if (field === 'error') this.#sink.error?.(value);
    else if (field === 'data') {
      this.#sink.data?.(value);
      this.#data.push(value);
    }
    return 'more';
  }

  #endEvent(): 'more' | 'end' {
    const [lines, name] = [this.#data, this.#name];
    [this.#data, this.#name] = [[], ''];
    return lines.length === 0 ? 'more' : this.#sink.event(lines.join('\n'), name);
  }
}
