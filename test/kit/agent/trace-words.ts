import type { CallOutcome } from '../../../packages/agent/src/machine/call.js';
import type { Usage } from '../../../packages/agent/src/machine/settings.js';
import type { JudgedCall } from '../../../packages/agent/src/policy/judged-call.js';

/** The words of an event line, taken from the left; what nobody takes is a mistake of the author. */
export class Words {
  readonly #line: string;
  readonly #left: string[];

  constructor(line: string) {
    this.#line = line;
    this.#left = [...line.matchAll(WORD)].map(([word]) => word);
  }

  /** For mistakes in what the author wrote. */
  mistake(what: string): Error {
    return new Error(
      `${what} in the line "${this.#line}"; trace-events.ts lists what can be written`,
    );
  }

  next(what: string): string {
    const word = this.#left.shift();
    if (word === undefined) throw this.mistake(`${what} is missing`);
    return word;
  }

  /** A quoted text. */
  text(): string {
    const word = this.next('a quoted text');
    if (!word.startsWith('"')) throw this.mistake(`${word} is not a quoted text`);
    return unquoted(word);
  }

  number(): number {
    const word = this.next('a number');
    if (word.trim() === '' || Number.isNaN(Number(word)))
      throw this.mistake(`${word} is not a number`);
    return Number(word);
  }

  one<T extends string>(choices: readonly T[]): T {
    const word = this.next(choices.join(' or '));
    const choice = choices.find((candidate) => candidate === word);
    if (choice === undefined) throw this.mistake(`${word} is none of ${choices.join(', ')}`);
    return choice;
  }

  /** Whether the next word is this one; it is taken if so. */
  flag(word: string): boolean {
    if (this.#left[0] !== word) return false;
    this.#left.shift();
    return true;
  }

  isAtEnd(): boolean {
    return this.#left.length === 0;
  }

  /** The value of the next word if it is `name=value`, quoted or not. */
  option(name: string): string | undefined {
    const word = this.#left[0];
    if (word === undefined || !word.startsWith(`${name}=`)) return undefined;
    this.#left.shift();
    return unquoted(word.slice(name.length + 1));
  }

  /** Words that look like `tool(callId path)`. */
  calls(): readonly JudgedCall[] {
    const calls: JudgedCall[] = [];
    for (let word = this.#left[0]; word?.endsWith(')') === true; word = this.#left[0]) {
      calls.push(callOf(word));
      this.#left.shift();
    }
    if (calls.length === 0) throw this.mistake('a call like read(c1) is missing');
    return calls;
  }

  end(): void {
    if (this.#left.length > 0) throw this.mistake(`"${this.#left.join(' ')}" is not understood`);
  }
}

/** A quoted text with or without a name, an object to the end of the line, a call, or anything without a space. */
const WORD = /(?:\w+=)?"(?:[^"\\]|\\.)*"|\{.*\}$|\w+!?\([^)]*\)|\S+/g;

const unquoted = (word: string): string => {
  if (!word.startsWith('"')) return word;
  const text: unknown = JSON.parse(word);
  return String(text);
};

const READING = ['read', 'grep', 'explore'];
const CHANGING = ['edit', 'write', 'bash', 'patch'];
/** Not named among the tools that there are. */
const ASKING = ['ask', 'plan'];

/** `edit(c1 b.ts)`: paths are relative to the workspace, a.ts if there is none; `edit!(c1)` has a bad argument. */
const callOf = (word: string): JudgedCall => {
  const [, tool = '', bang = '', callId = '', path = 'a.ts'] =
    /^(\w+)(!?)\(([\w-]+)(?: ([^)]+))?\)$/.exec(word) ?? [];
  const mutating = CHANGING.includes(tool);
  const isKnown = mutating || READING.includes(tool) || ASKING.includes(tool);
  const invalid = { kind: 'invalid', field: 'path', why: 'must be a string' } as const;
  return {
    callId,
    tool,
    input: { path },
    verdict: !isKnown
      ? { kind: 'noSuchTool', known: [...READING, ...CHANGING] }
      : bang === '!'
        ? invalid
        : { kind: 'ok' },
    traits: {
      effect: mutating ? 'probeable' : 'pure',
      parallelSafe: !mutating,
      mutating,
      deadlineMs: 120_000,
      ...(tool === 'patch' ? { previews: 'yes' } : {}),
      ...(tool === 'explore' ? { spends: 'yes' } : {}),
      ...(tool === 'ask' ? { asks: 'question' } : {}),
      ...(tool === 'plan' ? { asks: 'plan' } : {}),
    },
    facts: {
      argv: [],
      paths: [path.startsWith('/') ? path : `/project/${path}`],
      hosts: [],
      shape: `${tool} ${path}`,
    },
  };
};

/** `tokens=100+10 cost=0.01`: tokens read and written, and the price, `?` where nobody knows it. */
export const usageOr = <T>(words: Words, none: T): Usage | T => {
  const tokens = words.option('tokens');
  const cost = words.option('cost');
  if (tokens === undefined && cost === undefined) return none;
  const [read = '100', written = '10'] = (tokens ?? '100+10').split('+');
  return {
    inputTokens: Number(read),
    outputTokens: Number(written),
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    costUsd: cost === '?' ? null : Number(cost ?? '0.01'),
  };
};

/** What a reply costs that does not say so. */
export const usualUsage: Usage = {
  inputTokens: 100,
  outputTokens: 10,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  costUsd: 0.01,
};

/** `ok "text"` or `failed "text"` and the like. */
export const outcomeOf = (words: Words): CallOutcome => {
  const status = words.one(['ok', 'failed', 'timedOut', 'cancelled', 'lost'] as const);
  const text = words.text();
  const diff = words.option('diff');
  const picture = words.option('picture');
  const usage = usageOr(words, null);
  return {
    status,
    text,
    ...(diff === undefined ? {} : { diff }),
    ...(picture === undefined
      ? {}
      : { images: [{ mediaType: 'image/png', sha256: picture } as const] }),
    ...(usage === null ? {} : { usage }),
  };
};
