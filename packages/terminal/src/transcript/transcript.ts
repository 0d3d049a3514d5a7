import type { Action } from '@pawl/agent/machine/action';
import type { State } from '@pawl/agent/machine/state';
import { titleOf } from '@pawl/agent/machine/values/call-title';
import type { FailureKind } from '@pawl/agent/machine/values/failure-origin';
import { describeGrant } from '@pawl/agent/policy/approval-question';
import type { Stepped } from '@pawl/agent/ports/session-input-output';
import { harmless, type Look, oneLine, paint } from '../paint-text.js';
import { joinSafe, makeSafe, type Safe, safe } from '../safe-text.js';
import { isBusy } from '../status-row.js';
import type { Style } from '../theme.js';
import { wrapWords } from '../width.js';
import { type AnswerStream, createAnswerStream } from './answer-stream.js';
import { createJudgedCalls, type JudgedCalls, type ToolResult } from './known-calls.js';
import { createReasoningRow, type ReasoningRow } from './reasoning-row.js';
import { resumedNote } from './resumed-note.js';
import { createRunningCalls, type RunningCalls } from './running-calls.js';
import { openTodos, todoRows } from './todo-rows.js';
import { callRows } from './tool-call-row.js';
import { createTurnSummaries, type TurnSummaries } from './turn-summary.js';

/** Limits of the unfinished part. Only its last rows are shown, so that each delta redraws little. */
const LIVE_ROWS = 14;
const LIVE_BYTES = 2_400;

const hints: Readonly<Record<FailureKind, string>> = {
  rateLimited: 'Too many requests: wait a little, then /retry.',
  overloaded: 'The provider is overloaded: wait a little, then /retry.',
  unreachable: 'Check the network and the base URL, then /retry.',
  timeout: 'It took too long: /retry tries again.',
  contextOverflow: 'The conversation is too large for the model: /compact, then /retry.',
  auth: 'Keys are set in the shell: leave with Ctrl-D, set the key, then pawl --continue.',
  badRequest: '/retry tries again; /model changes the model.',
  quotaExhausted: 'The account has no credit left: add some or choose another /model, then /retry.',
  refused: 'Try other words.',
  malformed: '/retry tries again; if it fails again, choose another /model.',
  input: 'Your text is not lost: Up brings it back.',
  tools: '/retry asks the model again.',
  compaction: '/compact tries again.',
};

const hintFor = (state: State): string =>
  state.name === 'WaitingForUserInput' && state.reason.kind === 'error' ? hints[state.reason.error] : '';

/** The last rows within the limits. */
const lastRows = (rows: readonly Safe[]): readonly Safe[] => {
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
/** A call with more rows gets an empty line after it. */
const LARGE_ROWS = 4;
const CUT_OFF = '(cut off here)';
const VOID = '(the reply broke off: its text above does not count)';

/** Kinds of entries. An empty line separates entries of different kinds, and the blocks of an answer. */
type EntryKind = 'answer' | 'call' | 'note';

/**
 * The visible history of a session. Finished entries are printed once and never change; `rows` shows the unfinished ones.
 *
 * 1. All text of an answer is printed once: block by block, the last block when the answer ends.
 * 2. If a reply is retracted after a part of it was printed, a note says that this part does not count.
 * 3. `rows` depends only on the steps so far and on the time.
 */
export class Transcript {
  readonly #look: Look;
  readonly #workspace: string;
  readonly #calls: JudgedCalls;
  readonly #running: RunningCalls;
  readonly #answer: AnswerStream;
  readonly #thought: ReasoningRow;
  readonly #turnEnds: TurnSummaries = createTurnSummaries();
  #state: State | null = null;
  #last: EntryKind | 'end' = 'end';
  #batchId = '';
  /** Whether the current reply has text. */
  #answers = false;
  /** UTF-16 units of the current reply, including reasoning and tool calls. */
  #streamed = 0;
  #folded: readonly Safe[] = [];
  #list: readonly Safe[] = [];
  #lines: Safe[] = [];

  constructor(look: Look, workspace: string) {
    this.#look = look;
    this.#workspace = workspace;
    this.#calls = createJudgedCalls(workspace);
    this.#running = createRunningCalls(look, this.#calls, workspace);
    this.#answer = createAnswerStream(look);
    this.#thought = createReasoningRow(look);
  }

  /** Starts from an existing state: that of a resumed session. */
  startFrom(state: State): void {
    this.#state = state;
    this.#turnEnds.startFrom(state);
  }

  /** UTF-16 units of the current reply that are not in any usage report yet. */
  get streamed(): number {
    return this.#streamed;
  }

  /** Processes a step. Returns the lines to print; empty for none. */
  see(stepped: Stepped): Safe {
    const { event, actions, path } = stepped;
    this.#lines = [];
    const before = this.#state;
    this.#state = stepped.state;
    this.#count(stepped);
    this.#calls.see(stepped);
    this.#running.see(stepped);
    if (event.type === 'UserInput') this.#last = 'end';
    if (event.type === 'ReasoningDelta') this.#thought.add(event.text);
    for (const action of actions) {
      if (action.type === 'DisplayText') this.#stream(action.text);
    }
    const left = path.some((edge) => edge.from === 'CallingLlm' && edge.to !== 'CallingLlm');
    // A reply that was cut off by the end of the program is requested again, not continued.
    if (left || event.type === 'Resumed') {
      this.#endThought();
      this.#endAnswer(stepped);
    }
    const resumed = resumedNote(stepped);
    if (resumed !== '') this.#say('dim', safe`·`, resumed);
    for (const action of actions) this.#tell(action, stepped);
    this.#tellStart(stepped);
    if (before !== null) this.#tellGrants(before, stepped);
    this.#tellTurnEnd(stepped);
    return joinSafe(this.#lines, safe`\n`);
  }

  /** The unfinished entries as rows of at most `columns`, with an empty row below. */
  rows(columns: number, now: number): readonly Safe[] {
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
      safe``,
    ];
  }

  /** The full text of the calls and reasoning that were folded last. A second call returns nothing. */
  expand(): Safe {
    const whole = joinSafe(this.#folded, safe`\n`);
    this.#folded = [];
    return whole;
  }

  /** The to-do list is visible while the session works. */
  #listRows(columns: number): readonly Safe[] {
    if (this.#state === null || !isBusy(this.#state)) return [];
    const rows = todoRows(this.#look, this.#list, columns);
    return rows.length === 0 ? [] : [safe``, ...rows];
  }

  #apart(kind: EntryKind, rows: readonly Safe[]): readonly Safe[] {
    const near = kind === this.#last && kind !== 'answer';
    return rows.length === 0 || near ? rows : [safe``, ...rows];
  }

  #put(kind: EntryKind, rows: readonly Safe[]): void {
    this.#lines.push(...this.#apart(kind, rows));
    if (rows.length > 0) this.#last = kind;
  }

  #say(style: Style, mark: Safe, said: string): void {
    const rows = wrapWords(harmless(said), this.#look.columns - 2);
    this.#put(
      'note',
      rows.map((row, index) => paint(this.#look, style, safe`${index === 0 ? mark : safe` `} ${row}`)),
    );
  }

  #stream(text: string): void {
    this.#endThought();
    this.#answers = true;
    for (const block of this.#answer.add(text)) this.#put('answer', block);
  }

  #endThought(): void {
    const ended = this.#thought.end();
    if (ended === null) return;
    this.#folded = ended.whole;
    this.#put('note', [ended.row]);
  }

  #endAnswer({ event, actions }: Stepped): void {
    if (!this.#answers) return;
    this.#answers = false;
    if (actions.some((action) => action.type === 'RetractPartial')) {
      if (this.#answer.drop() === 'yes') this.#say('dim', safe`·`, VOID);
      return;
    }
    for (const block of this.#answer.finish()) this.#put('answer', block);
    if (event.type !== 'LlmCompleted') this.#say('dim', safe`·`, CUT_OFF);
  }

  #tell(action: Action, stepped: Stepped): void {
    if (action.type === 'DisplayToolResult') this.#fold(action, stepped);
    if (action.type === 'DisplayWarning') this.#say('yellow', safe`!`, action.text);
    // The status row shows queued messages.
    if (action.type === 'DisplayNotice' && action.kind !== 'queued') {
      for (const line of action.text.split('\n')) this.#say('dim', safe`·`, line);
      if (action.summary !== undefined) this.#summarise(action.summary);
    }
    if (action.type !== 'DisplayError') return;
    this.#say('red', safe`!`, action.text);
    const hint = hintFor(stepped.state);
    if (hint !== '') this.#say('dim', safe` `, hint);
  }

  /** Prints the start of the summary that replaced the messages. `expand` has the rest. */
  #summarise(summary: string): void {
    const rows = wrapWords(harmless(summary).trim(), this.#look.columns - 2);
    const left = rows.length - SUMMARY_ROWS;
    const shown = left > 0 ? [...rows.slice(0, SUMMARY_ROWS), safe`… ${left} more`] : rows;
    const quoted = (all: readonly Safe[]) => all.map((row) => paint(this.#look, 'dim', safe`│ ${row}`));
    this.#put('note', quoted(shown));
    this.#folded = left > 0 ? quoted(rows) : [];
  }

  #fold(result: ToolResult, { event }: Stepped): void {
    const { callId, batchId } = result;
    if (this.#batchId !== batchId) this.#folded = [];
    this.#batchId = batchId;
    const call = this.#calls.get(callId);
    if (call?.traits.shown === 'list' && result.status === 'ok') this.#list = openTodos(result.text);
    const title = this.#calls.title(result);
    const tookMs = this.#running.tookMs(callId, event.at);
    const { rows, whole } = callRows(result, { call, title, tookMs }, this.#look);
    this.#put('call', rows);
    // An empty line follows a large entry.
    if (rows.length > LARGE_ROWS) this.#last = 'end';
    this.#folded = [...this.#folded, ...whole];
  }

  #count({ event, actions, state }: Stepped): void {
    const delta =
      event.type === 'TextDelta' || event.type === 'ReasoningDelta' || event.type === 'ToolCallDelta';
    if (delta) this.#streamed += event.text.length;
    if (state.name !== 'CallingLlm' || actions.some(({ type }) => type === 'SendLlmRequest'))
      this.#streamed = 0;
  }

  #tellGrants(before: State, { event, state: { session } }: Stepped): void {
    if (event.type !== 'ApprovalAnswered') return;
    for (const grant of session.grants.filter((each) => !before.session.grants.includes(each))) {
      const text = `· allowed (/permissions revokes it): ${describeGrant(grant, this.#workspace)}`;
      this.#put('note', [paint(this.#look, 'dim', oneLine(text, this.#look.columns - 1))]);
    }
  }

  #tellTurnEnd(stepped: Stepped): void {
    const line = this.#turnEnds.see(stepped);
    // A horizontal rule means nothing to a screen reader.
    if (line === null || this.#look.plain === 'yes') return;
    this.#lines.push(safe``, paint(this.#look, 'dim', line));
    this.#last = 'end';
  }

  /** A plain terminal prints one line when a call starts. */
  #tellStart({ event }: Stepped): void {
    if (this.#look.plain !== 'yes' || event.type !== 'ToolStarted') return;
    const call = this.#calls.get(event.callId);
    if (call !== undefined) this.#put('call', [makeSafe(`▸ ${call.tool} ${titleOf(call, this.#workspace)}`)]);
  }
}
