import type { Action } from '../agent/action.js';
import type { FailureKind, State } from '../agent/state.js';
import type { Stepped } from '../needs.js';
import { type Answer, createAnswer } from './answer.js';
import { type Calls, createCalls, titleOf } from './calls.js';
import { foldCall, type ToolResult } from './folded.js';
import { listRows, openList } from './open-list.js';
import { harmless, type Look, paint } from './print.js';
import { createRunning, type Running } from './running.js';
import { isBusy } from './status.js';
import type { Style } from './theme.js';
import { createThought, type Thought } from './thought.js';
import { wrapWords } from './width.js';

/** What is unfinished is shown from its end, so that a delta rewrites little. */
const LIVE_ROWS = 14;
const LIVE_BYTES = 2_400;

const hints: Readonly<Record<FailureKind, string>> = {
  rateLimited: 'Too many requests: wait a little, then /retry.',
  overloaded: 'The provider has too much to do: wait a little, then /retry.',
  unreachable: 'Look at the network or the base URL, then /retry.',
  timeout: 'It took too long: /retry.',
  contextOverflow: 'The conversation is larger than the model can read: /compact, then /retry.',
  auth: 'A key is set in the shell: end with Ctrl-D, set it, go on with pawl --continue.',
  badRequest: '/model takes another model; /retry tries again.',
  quotaExhausted: 'The account has nothing left: fill it up or take another /model, then /retry.',
  refused: 'Say it in other words.',
  malformed: '/retry tries again; if it fails again take another /model.',
  input: 'What you typed was not lost: Up brings it back.',
  tools: '/retry asks the model again.',
  compaction: '/compact tries again.',
};

const hintFor = (state: State): string =>
  state.name === 'WaitingForUserInput' && state.reason.kind === 'error' ? hints[state.reason.error] : '';

/** The last rows that may be shown at once. */
const lastRows = (rows: readonly string[]): readonly string[] => {
  let bytes = 0;
  let first = rows.length;
  while (first > 0 && rows.length - first < LIVE_ROWS) {
    bytes += Buffer.byteLength(rows[first - 1] ?? '');
    if (bytes > LIVE_BYTES && first < rows.length) break;
    first -= 1;
  }
  return rows.slice(first);
};

const SUMMARY_ROWS = 8;
const CUT_OFF = '(cut off here)';
const VOID = '(that reply broke off: what stands above does not count)';

/** What is printed. Between things of different kinds there is an empty line, and so between blocks of an answer. */
type Kind = 'answer' | 'call' | 'note';

/**
 * What is seen of a session: what is finished goes above, once, and is never changed; what is not can be looked at.
 *
 * 1. All text of an answer is printed once: as finished blocks, or when the answer ends.
 * 2. What was printed of an answer that does not count is said not to count.
 * 3. `rows` depends on what was seen and on the time alone.
 */
export class Scroll {
  readonly #look: Look;
  readonly #workspace: string;
  readonly #calls: Calls;
  readonly #running: Running;
  readonly #answer: Answer;
  readonly #thought: Thought;
  #state: State | null = null;
  #last: Kind | 'input' = 'input';
  #batchId = '';
  /** Text of the running reply has come. */
  #answers = false;
  #folded: readonly string[] = [];
  /** What is to be done, as the model last wrote it down. */
  #list: readonly string[] = [];
  #lines: string[] = [];

  constructor(look: Look, workspace: string) {
    this.#look = look;
    this.#workspace = workspace;
    this.#calls = createCalls(workspace);
    this.#running = createRunning(look, this.#calls, workspace);
    this.#answer = createAnswer(look);
    this.#thought = createThought(look);
  }

  /** Lines that are finished by this step, to be printed above; empty for none. */
  see(stepped: Stepped): string {
    const { event, actions, path } = stepped;
    this.#lines = [];
    this.#state = stepped.state;
    this.#calls.see(stepped);
    this.#running.see(stepped);
    if (event.type === 'UserInput') this.#last = 'input';
    if (event.type === 'ReasoningDelta') this.#thought.add(event.text, event.at);
    for (const action of actions) {
      if (action.type === 'DisplayText') this.#stream(action.text, event.at);
    }
    if (path.some((edge) => edge.from === 'CallingLlm' && edge.to !== 'CallingLlm')) {
      this.#endThought(event.at);
      this.#endAnswer(stepped);
    }
    for (const action of actions) this.#tell(action, stepped);
    this.#tellStart(stepped);
    return this.#lines.join('\n');
  }

  /** What is unfinished, as rows of at most `columns`, and an empty one below it. */
  rows(columns: number, now: number): readonly string[] {
    if (this.#look.plain === 'yes') return [];
    const state = this.#state;
    const running = state === null ? [] : this.#running.rows(state, columns, now);
    return [
      ...lastRows([
        ...this.#apart('note', this.#thought.rows(columns)),
        ...this.#apart('answer', this.#answer.live(columns)),
        ...this.#apart('call', running),
      ]),
      ...this.#listRows(columns),
      '',
    ];
  }

  /** The last calls and thoughts that were folded, in full; empty for none, and after they were given once. */
  expand(): string {
    const whole = this.#folded.join('\n');
    this.#folded = [];
    return whole;
  }

  /** In sight while something goes on. */
  #listRows(columns: number): readonly string[] {
    if (this.#state === null || !isBusy(this.#state)) return [];
    const rows = listRows(this.#look, this.#list, columns);
    return rows.length === 0 ? [] : ['', ...rows];
  }

  #apart(kind: Kind, rows: readonly string[]): readonly string[] {
    const near = kind === this.#last && kind !== 'answer';
    return rows.length === 0 || near ? rows : ['', ...rows];
  }

  #put(kind: Kind, rows: readonly string[]): void {
    this.#lines.push(...this.#apart(kind, rows));
    if (rows.length > 0) this.#last = kind;
  }

  #say(style: Style, mark: string, said: string): void {
    const rows = wrapWords(harmless(said), this.#look.columns - 2);
    this.#put(
      'note',
      rows.map((row, index) => paint(this.#look, style, `${index === 0 ? mark : ' '} ${row}`)),
    );
  }

  #stream(text: string, at: number): void {
    this.#endThought(at);
    this.#answers = true;
    for (const block of this.#answer.add(text)) this.#put('answer', block);
  }

  #endThought(at: number): void {
    const ended = this.#thought.end(at);
    if (ended === null) return;
    this.#folded = ended.whole;
    this.#put('note', [ended.row]);
  }

  #endAnswer({ event, actions }: Stepped): void {
    if (!this.#answers) return;
    this.#answers = false;
    if (actions.some((action) => action.type === 'RetractPartial')) {
      if (this.#answer.drop() === 'yes') this.#say('dim', '·', VOID);
      return;
    }
    for (const block of this.#answer.finish()) this.#put('answer', block);
    if (event.type !== 'LlmCompleted') this.#say('dim', '·', CUT_OFF);
  }

  #tell(action: Action, stepped: Stepped): void {
    if (action.type === 'DisplayToolResult') this.#fold(action, stepped);
    if (action.type === 'DisplayWarning') this.#say('yellow', '!', action.text);
    // What waits stands in the status.
    if (action.type === 'DisplayNotice' && action.kind !== 'queued') {
      for (const line of action.text.split('\n')) this.#say('dim', '·', line);
      if (action.summary !== undefined) this.#summarise(action.summary);
    }
    if (action.type !== 'DisplayError') return;
    this.#say('red', '!', action.text);
    const hint = hintFor(stepped.state);
    if (hint !== '') this.#say('dim', ' ', hint);
  }

  /** The beginning of what stands for the messages from now on; the rest can be had in full. */
  #summarise(summary: string): void {
    const rows = wrapWords(harmless(summary).trim(), this.#look.columns - 2);
    const left = rows.length - SUMMARY_ROWS;
    const shown = left > 0 ? [...rows.slice(0, SUMMARY_ROWS), `… ${left} more`] : rows;
    const quoted = (all: readonly string[]) => all.map((row) => paint(this.#look, 'dim', `│ ${row}`));
    this.#put('note', quoted(shown));
    this.#folded = left > 0 ? quoted(rows) : [];
  }

  #fold(result: ToolResult, { state, event }: Stepped): void {
    const { callId, batchId } = result;
    if (this.#batchId !== batchId) this.#folded = [];
    this.#batchId = batchId;
    const call = this.#calls.get(callId);
    if (call?.traits.shown === 'list' && result.status === 'ok') this.#list = openList(result.text);
    const title = this.#calls.title(callId, state);
    const tookMs = this.#running.tookMs(callId, event.at);
    const { rows, whole } = foldCall(result, { call, title, tookMs }, this.#look);
    this.#put('call', rows);
    this.#folded = [...this.#folded, ...whole];
  }

  /** Where nothing is drawn again a call that runs leaves a line. */
  #tellStart({ event }: Stepped): void {
    if (this.#look.plain !== 'yes' || event.type !== 'ToolStarted') return;
    const call = this.#calls.get(event.callId);
    if (call !== undefined) this.#put('call', [harmless(`▸ ${call.tool} ${titleOf(call, this.#workspace)}`)]);
  }
}
