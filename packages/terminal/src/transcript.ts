/**
 * What the user sees of a session above the input line. interactive/view.ts of packages/pawl
 * passes each step to `Transcript`.
 *
 * From top to bottom: `Transcript`; prompts that wait; hints below an error; a streamed answer,
 * whose finished blocks are printed once; reasoning; running calls; the to-do list; and the line
 * below an ended turn. Printed rows never change, since a terminal keeps them in its history.
 * `Safe` is text that can't control the terminal.
 */

import type { Action } from '@pawl/agent/machine/action';
import { messagesOf } from '@pawl/agent/machine/conversation';
import type { FailureKind, QueuedInput } from '@pawl/agent/machine/event';
import { toldUsage } from '@pawl/agent/machine/moves/request';
import { totalTokens, type UsageTotals, usageSince } from '@pawl/agent/machine/settings';
import { isBusy, isIgnored, knownCostUsd, type State, turnRuns } from '@pawl/agent/machine/state';
import { providerOfModel } from '@pawl/agent/models/provider-table';
import { describeGrant } from '@pawl/agent/policy/approval-question';
import { callTitle } from '@pawl/agent/policy/judged-call';
import type { Stepped } from '@pawl/agent/ports/session';
import { clearPart, createBlocks, renderMarkdown } from './markdown.js';
import {
  cutLine,
  fitWords,
  formatSeconds,
  formatSpent,
  formatTokens,
  harmless,
  type Look,
  lineSign,
  oneLine,
  paint,
  paintTyped,
  type Style,
  shortened,
  wrapWords,
} from './paint.js';
import { createRewoundNotes } from './rewind-words.js';
import { joinSafe, makeSafe, type Safe, safe } from './safe-text.js';
import {
  createJudgedCalls,
  heldNote,
  type JudgedCalls,
  RETRACTED,
  resumedNote,
  type ToolResult,
} from './step-lines.js';
import { callRows } from './tool-call-rows.js';

/** Rows of a summary that are shown before Ctrl-O. */
const SUMMARY_ROWS = 8;
/** A call with more rows gets an empty line after it. */
const LARGE_ROWS = 4;
const CUT_OFF = '(cut off here)';

/**
 * Kinds of entries. An empty line separates entries of different kinds, and the blocks of an
 * answer.
 */
type EntryKind = 'answer' | 'call' | 'note';

/**
 * The visible history of a session. Finished entries are printed once and never change; `rows`
 * shows the unfinished ones.
 *
 * 1. All text of an answer is printed once: block by block, the last block when the answer ends.
 * 2. If a reply is retracted after a part of it was printed, a note says that this part does not
 *    count.
 * 3. `rows` depends only on the steps so far and on the time.
 */
export class Transcript {
  readonly #look: Look;
  readonly #workspace: string;
  /** All tool calls of the session by their ids, to name them later. */
  readonly #calls: JudgedCalls;
  readonly #running: RunningCalls;
  readonly #answer: AnswerStream;
  readonly #reasoning: ReasoningRow;
  readonly #turnEnds: TurnSummaries = createTurnSummaries();
  /** Words about rewinds: the user takes a part of the session back. */
  readonly #rewinds = createRewoundNotes();
  #state: State | null = null;
  /** The kind of the last printed entry; `end`: an empty line follows it in any case. */
  #last: EntryKind | 'end' = 'end';
  /** The tool calls of one reply are a batch. This is that of the last result. */
  #batchId = '';
  /** Whether the current reply has text. */
  #hasAnswer = false;
  /** UTF-16 units of the current reply, including reasoning and tool calls. */
  #streamed = 0;
  /** What `expand` prints. */
  #folded: readonly Safe[] = [];
  /** The model's to-do list; empty if nothing is open. */
  #list: readonly Safe[] = [];
  /** Lines that this step prints. */
  #lines: Safe[] = [];

  constructor(look: Look, workspace: string) {
    this.#look = look;
    this.#workspace = workspace;
    this.#calls = createJudgedCalls(workspace);
    this.#running = createRunningCalls(look, this.#calls, workspace);
    this.#answer = createAnswerStream(look);
    this.#reasoning = createReasoningRow(look);
  }

  /**
   * Starts from an existing state: that of a resumed session. `turnStart`: the state before its
   * turn; null if it is not known.
   */
  startFrom(state: State, turnStart: State | null = null): void {
    this.#state = state;
    this.#turnEnds.startFrom(state, turnStart);
  }

  /** UTF-16 units of the current reply that are not in any usage report yet. */
  get streamed(): number {
    return this.#streamed;
  }

  /** Adds reasoning of the current reply. Its deltas are not in the journal, but its text is. */
  addReasoning(text: string): void {
    this.#reasoning.add(text);
  }

  /** Processes a step. Returns the lines to print; empty for none. */
  see(stepped: Stepped): Safe {
    const { event, actions, path } = stepped;
    this.#lines = [];
    const before = this.#state;
    this.#state = stepped.state;
    if (isIgnored(stepped)) return safe``;
    this.#count(stepped);
    this.#calls.see(stepped);
    this.#running.see(stepped);
    // The caller prints prompts: an empty line separates one from all that follows.
    if (event.type === 'UserInput') this.#last = 'end';
    if (event.type === 'ReasoningDelta') this.addReasoning(event.text);
    for (const action of actions) {
      if (action.type === 'RetractPartial') this.#dropAnswer();
      if (action.type === 'DisplayText') this.#stream(action.text);
    }
    // `path`: the changes of the state in this step
    const leavesModel = path.some((edge) => edge.from === 'CallingLlm' && edge.to !== 'CallingLlm');
    // A reply that was cut off by the end of the program is requested again, not continued.
    if (leavesModel || event.type === 'Resumed') {
      this.#endReasoning();
      this.#endAnswer(stepped);
    }
    const resumed = resumedNote(stepped);
    if (resumed !== '') this.#putNote('dim', '·', resumed);
    for (const action of actions) this.#putAction(action, stepped);
    this.#putStart(stepped);
    if (before !== null) this.#putCompaction(before, stepped);
    if (before !== null) this.#putRewind(before, stepped);
    if (before !== null) this.#putGrants(before, stepped);
    this.#putTurnEnd(stepped);
    // Other terminals have rows for them; of a resumed session the start tells them.
    const isTold = this.#look.plain !== 'yes' || event.type === 'Resumed';
    const held = isTold ? '' : heldNote(stepped);
    if (held !== '') this.#putNote('dim', '·', held);
    if (before !== null && textsLeavingQueue(before, stepped).length > 0) this.#last = 'end';
    return joinSafe(this.#lines, safe`\n`);
  }

  /** The unfinished entries as rows of at most `columns`, with an empty row below. */
  rows(columns: number, now: number): readonly Safe[] {
    if (this.#look.plain === 'yes') return [];
    const state = this.#state;
    const running = state === null ? [] : this.#running.rows(state, columns, now);
    return [
      ...lastRows([
        ...this.#apart('note', this.#reasoning.rows(columns)),
        ...this.#apart('answer', this.#answer.live(columns)),
        ...this.#apart('call', running),
      ]),
      ...this.#listRows(columns),
      safe``,
    ];
  }

  /**
   * The full text of the calls and reasoning that were folded last. A second call returns nothing.
   */
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

  /** The rows of an entry, with an empty line before them if one separates it from the last one. */
  #apart(kind: EntryKind, rows: readonly Safe[]): readonly Safe[] {
    const follows = kind === this.#last && kind !== 'answer';
    return rows.length === 0 || follows ? rows : [safe``, ...rows];
  }

  /** Adds an entry to the lines that this step prints. */
  #put(kind: EntryKind, rows: readonly Safe[]): void {
    this.#lines.push(...this.#apart(kind, rows));
    if (rows.length > 0) this.#last = kind;
  }

  #putNote(style: Style, sign: '·' | '!' | ' ', message: string): void {
    const mark = sign === ' ' ? safe` ` : lineSign(this.#look, sign);
    const rows = wrapWords(harmless(message), this.#look.columns - 2);
    this.#put(
      'note',
      rows.map((row, index) =>
        paint(this.#look, style, safe`${index === 0 ? mark : safe` `} ${row}`),
      ),
    );
  }

  /** Adds text of the answer, and prints the blocks that it finishes. */
  #stream(text: string): void {
    this.#endReasoning();
    this.#hasAnswer = true;
    for (const block of this.#answer.add(text)) this.#put('answer', block);
  }

  /** The reasoning is over: prints its one line. */
  #endReasoning(): void {
    const ended = this.#reasoning.end();
    if (ended === null) return;
    this.#folded = ended.whole;
    this.#put('note', [ended.row]);
  }

  /** Drops the answer so far; says of what was printed that it does not count. */
  #dropAnswer(): void {
    this.#endReasoning();
    this.#hasAnswer = false;
    if (this.#answer.drop() === 'yes') this.#putNote('dim', '·', RETRACTED);
  }

  /** The model's reply is over: prints the rest of the answer. */
  #endAnswer({ event }: Stepped): void {
    if (!this.#hasAnswer) return;
    this.#hasAnswer = false;
    for (const block of this.#answer.finish()) this.#put('answer', block);
    if (event.type !== 'LlmCompleted') this.#putNote('dim', '·', CUT_OFF);
  }

  #putAction(action: Action, stepped: Stepped): void {
    if (action.type === 'DisplayToolResult') this.#putResult(action, stepped);
    if (action.type === 'DisplayWarning') this.#putNote('yellow', '!', action.text);
    // The live area shows queued messages; a rewind has its own line.
    if (action.type === 'DisplayNotice' && action.kind !== 'queued' && action.kind !== 'rewound') {
      for (const line of action.text.split('\n')) this.#putNote('dim', '·', line);
      if (action.summary !== undefined) this.#summarise(action.summary);
    }
    if (action.type !== 'DisplayError') return;
    this.#putNote('red', '!', action.text);
    const hint = hintFor(stepped.state);
    if (hint !== '') this.#putNote('dim', ' ', hint);
  }

  /** Says what a summary freed and cost. */
  #putCompaction(before: State, { event, state }: Stepped): void {
    if (event.type !== 'CompactionCompleted') return;
    const [was, is] = [before.session, state.session];
    const tokens = safe`${formatTokens(was.contextTokens)} tokens became ${formatTokens(is.contextTokens)}`;
    const used = usageSince(was.usage, is.usage);
    const price = knownCostUsd(used);
    const cost =
      price === null ? safe`its price is unknown` : safe`it cost ${formatSpent(price, used)}`;
    this.#putNote('dim', '·', safe`${tokens} · ${cost}`);
  }

  /** Says what a rewind took back. */
  #putRewind(before: State, stepped: Stepped): void {
    if (stepped.event.type !== 'RewindRequested' && before.name !== 'Rewinding') return;
    this.#rewinds.startFrom(before); // it has not seen the steps since the last rewind
    const rewound = this.#rewinds.see(stepped);
    if (rewound !== '') this.#putNote('dim', '·', rewound);
  }

  /** Prints the start of the summary that replaced the messages. `expand` has the rest. */
  #summarise(summary: string): void {
    const rows = wrapWords(harmless(summary).trim(), this.#look.columns - 2);
    const more = rows.length - SUMMARY_ROWS;
    const shown = more > 0 ? [...rows.slice(0, SUMMARY_ROWS), safe`… ${more} more`] : rows;
    const quoted = (all: readonly Safe[]) =>
      all.map((row) => paint(this.#look, 'dim', safe`${lineSign(this.#look, '│')} ${row}`));
    this.#put('note', quoted(shown));
    this.#folded = more > 0 ? quoted(rows) : [];
  }

  /** Prints an ended call. Its whole output is for `expand`. */
  #putResult(result: ToolResult, { event }: Stepped): void {
    const { callId, batchId } = result;
    if (this.#batchId !== batchId) this.#folded = [];
    this.#batchId = batchId;
    const call = this.#calls.get(callId);
    // `list`: the result of the call is a to-do list
    if (call?.traits.shown === 'list' && result.status === 'ok')
      this.#list = openTodos(result.text);
    const title = this.#calls.title(result);
    const tookMs = this.#running.tookMs(callId, event.at);
    const { rows, whole } = callRows(result, { call, title, tookMs }, this.#look);
    this.#put('call', rows);
    // An empty line follows a large entry.
    if (rows.length > LARGE_ROWS) this.#last = 'end';
    this.#folded = [...this.#folded, ...whole];
  }

  /** Counts the text of the current reply. */
  #count(stepped: Stepped): void {
    const { event } = stepped;
    const isDelta =
      event.type === 'TextDelta' ||
      event.type === 'ReasoningDelta' ||
      event.type === 'ToolCallDelta';
    if (isDelta) this.#streamed += event.text.length;
    if (beginsReply(stepped)) this.#streamed = 0;
  }

  /** Names the calls that an answer allows from now on: a grant is such a lasting permission. */
  #putGrants(before: State, { event, state: { session } }: Stepped): void {
    if (event.type !== 'ApprovalAnswered') return;
    for (const grant of session.grants.filter((each) => !before.session.grants.includes(each))) {
      const text = `${lineSign(this.#look, '·')} allowed (/permissions revokes it): ${describeGrant(grant, this.#workspace)}`;
      this.#put('note', [paint(this.#look, 'dim', oneLine(text, this.#look.columns - 1))]);
    }
  }

  #putTurnEnd(stepped: Stepped): void {
    const line = this.#turnEnds.see(stepped);
    // A horizontal rule means nothing to a screen reader.
    if (line === null || this.#look.plain === 'yes') return;
    this.#lines.push(safe``, paint(this.#look, 'dim', line));
    this.#last = 'end';
  }

  /** A plain terminal prints one line when a call starts. */
  #putStart({ event }: Stepped): void {
    if (this.#look.plain !== 'yes' || event.type !== 'ToolStarted') return;
    const call = this.#calls.get(event.callId);
    if (call !== undefined)
      this.#put('call', [
        safe`${lineSign(this.#look, '▸')} ${makeSafe(`${call.tool} ${callTitle(call, this.#workspace)}`)}`,
      ]);
  }
}

// ---- Prompts ----

/** The queued texts that leave the queue in this step. */
const textsLeavingQueue = (before: State, { state }: Stepped): readonly QueuedInput[] => {
  const { queue } = state.session;
  return before.session.queue.filter(
    ({ inputId }) => !queue.some((item) => item.inputId === inputId),
  );
};

/** Prompts of the user, each printed once it is sent: one that waits may still be taken back. */
export type SentPrompts = {
  /**
   * Call before the event of a prompt is seen. `shown`: the prompt as it is printed; empty if it is
   * printed already.
   */
  typed(text: string, shown: Safe): void;
  /** The prompts that this step sends. */
  see(before: State, stepped: Stepped): readonly Safe[];
};

export const createSentPrompts = (look: Look): SentPrompts => {
  const typed: { readonly text: string; readonly shown: Safe }[] = [];
  const waiting = new Map<string, Safe>();
  /** The prompt of an event, whose text may have more: a skill, or the output of a command. */
  const take = (text: string): Safe | undefined => {
    const whole = typed.findIndex((one) => text.trim() === one.text.trim());
    const index = whole < 0 ? typed.findIndex((one) => text.includes(one.text.trim())) : whole;
    return index < 0 ? undefined : typed.splice(index, 1)[0]?.shown;
  };
  return {
    typed: (text, shown) => void typed.push({ text, shown }),
    see(before, stepped) {
      const { event, actions, state } = stepped;
      const { queue } = state.session;
      const shown = event.type === 'UserInput' ? take(event.text) : undefined;
      const last = queue.length > before.session.queue.length ? queue.at(-1) : undefined;
      if (last !== undefined && shown !== undefined) waiting.set(last.inputId, shown);
      const isTakenBack =
        event.type === 'EditQueue' || actions.some(({ type }) => type === 'RestoreQueue');
      const sent = isTakenBack ? [] : textsLeavingQueue(before, stepped);
      return [
        ...sent.map(
          ({ inputId, text }) => waiting.get(inputId) ?? paintTyped(look, shortened(text)),
        ),
        ...(last === undefined && shown !== undefined ? [shown] : []),
      ].filter((text) => text !== '');
    },
  };
};

/**
 * Limits of the unfinished entries. Only their last rows are shown, so that each delta (a piece of
 * a streamed reply) redraws little.
 */
const LIVE_ROWS = 14;
const LIVE_BYTES = 2_400;

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

// ---- Hints below an error ----

const hints: Readonly<Record<FailureKind, string>> = {
  rateLimited: 'Too many requests: wait a little, then /retry.',
  overloaded: 'The provider is overloaded: wait a little, then /retry.',
  unreachable: 'Check the network and the base URL, then /retry.',
  timeout: 'It took too long: /retry tries again.',
  contextOverflow: 'The conversation is too large for the model: /compact, then /retry.',
  auth: 'Leave with Ctrl-D, set the key, then pawl --continue.',
  badRequest: '/model changes the model.',
  quotaExhausted: 'The account has no credit left: add some or choose another /model, then /retry.',
  refused: 'Try other words.',
  malformed: '/retry tries again; if it fails again, choose another /model.',
  input: 'Your text is not lost: Up brings it back.',
  tools: '/retry asks the model again.',
  compaction: '/compact tries again.',
};

/** The environment variable that holds the key of the model's provider. */
const keyName = ({ session }: State): string =>
  providerOfModel(session.settings.model)?.keyVariables[0] ?? 'the key';

/**
 * Once a reply came, the provider refuses not the settings but something that the conversation got
 * since, and would again.
 */
const REFUSED_AGAIN =
  'The same is sent each time: /rewind takes back what was refused, /compact replaces it by a summary, /model changes the model.';

const hintFor = (state: State): string => {
  if (state.name !== 'WaitingForUserInput' || state.reason.kind !== 'error') return '';
  const { error } = state.reason;
  const wasAccepted = messagesOf(state.session.conversation).some(
    ({ role }) => role === 'assistant',
  );
  if (error === 'badRequest' && wasAccepted) return REFUSED_AGAIN;
  return hints[error].replace('set the key', `set ${keyName(state)}`);
};

// ---- A streamed answer ----

/** The rows of a block (a paragraph, a list, a piece of code), at least one. */
type Block = readonly Safe[];

/**
 * Lays out a streamed answer. Each finished block is returned once, as rows; `live` shows the
 * unfinished block.
 *
 * Returned rows are final: later text can't change them.
 */
type AnswerStream = {
  /** Adds text. Returns the rows of the blocks that it finishes. */
  add(text: string): readonly Block[];
  /** Rows of the unfinished block. */
  live(columns: number): readonly Safe[];
  /** Ends the answer. Returns the rows of the unfinished block. */
  finish(): readonly Block[];
  /** Drops the unfinished block. `yes`: earlier blocks of this answer were already returned. */
  drop(): 'yes' | 'no';
};

/** Characters of an unfinished block to lay out; more than a screen holds. */
const BLOCK_UNITS_MAX = 6_000;

/** The end of a long block. A code block keeps its opening line. */
const endOfBlock = (text: string): string => {
  if (text.length <= BLOCK_UNITS_MAX) return text;
  const from = text.indexOf('\n', text.length - BLOCK_UNITS_MAX) + 1;
  const opening = /^ {0,3}(?:`{3,}|~{3,})[^\n]*\n/.exec(text)?.[0] ?? '';
  return opening + text.slice(from > 0 ? from : -BLOCK_UNITS_MAX);
};

const createAnswerStream = (look: Look): AnswerStream => {
  const blocks = createBlocks();
  let hasText = false;
  let hasRows = false;
  const renderBlocks = (texts: readonly string[]): readonly Block[] => {
    const rendered = texts
      .map((text) => renderMarkdown(look, text, look.columns, 'printed'))
      .filter((rows) => rows.length > 0);
    hasRows ||= rendered.length > 0;
    return rendered;
  };
  const takeRest = (): string => {
    const rest = hasText ? blocks.take() : '';
    hasText = false;
    return rest;
  };
  return {
    add(text) {
      hasText ||= text !== '';
      return renderBlocks(blocks.add(text));
    },
    live(columns) {
      if (!hasText) return [];
      // `clearPart` leaves out a last line whose meaning is still open, such as a single `#`.
      const rest = clearPart(endOfBlock(blocks.rest()));
      return renderMarkdown(look, rest, columns, 'streaming');
    },
    finish() {
      const rest = takeRest();
      const rendered = rest === '' ? [] : renderBlocks([rest]);
      hasRows = false;
      return rendered;
    },
    drop() {
      takeRest();
      const shown = hasRows;
      hasRows = false;
      return shown ? 'yes' : 'no';
    },
  };
};

// ---- Reasoning ----

/** The model's reasoning: its last rows while it streams, one line afterwards. */
type ReasoningRow = {
  add(text: string): void;
  rows(columns: number): readonly Safe[];
  /** Ends the reasoning: its one line, and its whole text. null without reasoning. */
  end(): { readonly row: Safe; readonly whole: readonly Safe[] } | null;
};

const REASONING_ROWS = 2;

/** For its length only: the columns before the first words. */
const TITLE = '· thought: ';

const createReasoningRow = (look: Look): ReasoningRow => {
  let text = '';
  return {
    add(more) {
      text += more;
    },
    rows(columns) {
      const end = text
        .slice(-columns * (REASONING_ROWS + 2))
        .replace(/\s+/g, ' ')
        .trim();
      if (end === '') return [];
      return fitWords(makeSafe(end), columns - 2)
        .slice(-REASONING_ROWS)
        .map((row) => paint(look, 'dim', safe`│ ${row}`));
    },
    end() {
      const whole = harmless(text).trim();
      text = '';
      if (whole === '') return null;
      return {
        // the first words, without the Markdown marks of reasoning summaries
        row: paint(
          look,
          'dim',
          safe`${lineSign(look, '·')} thought: ${oneLine(whole.replace(/[*_`#]+/g, ''), Math.max(8, look.columns - TITLE.length - 3))}`,
        ),
        whole: wrapWords(whole, look.columns - 2).map((row) =>
          paint(look, 'dim', safe`${lineSign(look, '│')} ${row}`),
        ),
      };
    },
  };
};

/** Whether nothing of the current reply has come yet, or none is streamed. */
const beginsReply = ({ state, actions }: Stepped): boolean =>
  state.name !== 'CallingLlm' || actions.some(({ type }) => type === 'SendLlmRequest');

// ---- Running calls ----

/** The running calls, each with its last line of output. */
type RunningCalls = {
  see(stepped: Stepped): void;
  rows(state: State, columns: number, now: number): readonly Safe[];
  /** Time since the start of a call; null if its start was not seen. */
  tookMs(callId: string, now: number): number | null;
};

/** Characters of output to keep for each running call. */
const OUTPUT_UNITS_MAX = 2_000;
/** Further calls are only counted. */
const CALLS_MAX = 8;

const lastLine = (text: string): Safe =>
  harmless(text)
    .split('\n')
    .findLast((line) => line.trim() !== '') ?? safe``;

const createRunningCalls = (look: Look, calls: JudgedCalls, workspace: string): RunningCalls => {
  const startedAt = new Map<string, number>();
  const output = new Map<string, string>();
  /**
   * The tool that the model is writing calls of, with their characters so far. The deltas do not
   * tell two calls of one tool apart.
   */
  let written: { readonly tool: string; readonly length: number } | null = null;

  const runningCallRows = (callId: string, columns: number, now: number): readonly Safe[] => {
    const call = calls.get(callId);
    if (call === undefined) return [];
    const startMs = startedAt.get(callId);
    const time = startMs === undefined ? safe`` : formatSeconds(now - startMs);
    const tool = makeSafe(call.tool);
    const title = oneLine(callTitle(call, workspace), columns - tool.length - time.length - 4);
    const lastOutput = lastLine(output.get(callId) ?? '');
    return [
      cutLine(
        safe`${paint(look, 'cyan', safe`▸`)} ${paint(look, 'bold', tool)} ${title} ${paint(look, 'dim', time)}`,
        columns,
      ),
      ...(lastOutput === '' ? [] : [paint(look, 'dim', cutLine(safe`    ${lastOutput}`, columns))]),
    ];
  };

  return {
    see(stepped) {
      const { event } = stepped;
      if (event.type === 'ToolCallDelta') {
        const before = written?.tool === event.tool ? written.length : 0;
        written = { tool: event.tool, length: before + event.text.length };
      }
      if (beginsReply(stepped)) written = null;
      // A new reply: the calls of the last one have ended.
      if (event.type === 'LlmCompleted') {
        startedAt.clear();
        output.clear();
      }
      if (event.type === 'ToolStarted') startedAt.set(event.callId, event.at);
      if (event.type === 'ToolProgress') {
        output.set(
          event.callId,
          ((output.get(event.callId) ?? '') + event.text).slice(-OUTPUT_UNITS_MAX),
        );
      }
    },
    rows(state, columns, now) {
      if (written !== null) {
        const text = safe`▸ ${makeSafe(written.tool)} … ${written.length} characters`;
        return [paint(look, 'dim', cutLine(text, columns))];
      }
      if (state.name !== 'ExecutingTools') return [];
      const running = state.calls.filter(
        (call) => call.status === 'running' || call.status === 'starting',
      );
      const more = running.length - CALLS_MAX;
      const rows = running
        .slice(0, CALLS_MAX)
        .flatMap((call) => runningCallRows(call.judged.callId, columns, now));
      return more > 0 ? [...rows, paint(look, 'dim', safe`  … ${more} more`)] : rows;
    },
    tookMs(callId, now) {
      const startMs = startedAt.get(callId);
      return startMs === undefined ? null : now - startMs;
    },
  };
};

// ---- The model's to-do list, above the input line ----

const TODOS_MAX = 5;
const TODO_COLUMNS_MAX = 70;

const isDone = (line: string): boolean => line.startsWith('[x]');

/**
 * Lines of a to-do list: a heading with counts, then one item per line with a mark in brackets.
 * Empty if all are done.
 */
const openTodos = (text: string): readonly Safe[] => {
  const lines = (harmless(text).split('\n\n')[0] ?? safe``).trimEnd().split('\n');
  return lines.slice(1).some((line) => !isDone(line)) ? lines : [];
};

/** Open items, from the one in progress on. Finished items are only counted. */
const todoRows = (
  look: Look,
  [head = safe``, ...items]: readonly Safe[],
  columns: number,
): readonly Safe[] => {
  if (items.length === 0) return [];
  const open = items.filter((line) => !isDone(line));
  const more = open.length - TODOS_MAX;
  const current = open.findIndex((line) => line.startsWith('[>]'));
  const first = Math.max(0, Math.min(current, more));
  const shown = open.slice(first, first + TODOS_MAX);
  const rows = [head, ...shown, ...(more > 0 ? [safe`… ${more} more`] : [])];
  return rows.map((row, index) => {
    const text = cutLine(index === 0 ? row : safe`  ${row}`, Math.min(columns, TODO_COLUMNS_MAX));
    return row.startsWith('[>]') ? text : paint(look, 'dim', text);
  });
};

// ---- The end of a turn ----

/** The line below an ended turn: its duration and cost. */
type TurnSummaries = {
  /** Starts from an existing state, and the state before its turn, if that is known. */
  startFrom(state: State, turnStart: State | null): void;
  /** The line if this step ended a turn, otherwise null. */
  see(stepped: Stepped): Safe | null;
};

/** States that lead from a turn to its end. */
const ENDS: readonly string[] = ['EndOfTurn', 'Cancelled', 'BudgetExceeded', 'Failed'];

/** A turn's number, and what was used before it: null if its beginning is not known. */
type TurnStart = {
  readonly turn: number;
  readonly at: number;
  readonly usage: UsageTotals | null;
};

const createTurnSummaries = (): TurnSummaries => {
  let start: TurnStart | null = null;
  /** The time of the last step if only an answer of the user was missing then; null otherwise. */
  let askedAt: number | null = null;
  /** How long in this turn only an answer was missing. */
  let waitedMs = 0;
  return {
    startFrom(state, turnStart) {
      const isUnknown = turnStart === null && turnRuns(state);
      const usage = isUnknown ? null : (turnStart ?? state).session.usage;
      start = { ...turnStartIn(state), usage };
    },
    see(stepped) {
      const { event, path, state } = stepped;
      if (askedAt !== null) waitedMs += event.at - askedAt;
      askedAt = waitsForAnswer(state) ? event.at : null;
      const ended = path.some(
        ({ from, to }) => to === 'WaitingForUserInput' && ENDS.includes(from),
      );
      // The time between two runs of the program is no time of the turn: no line says it.
      const line =
        ended && start !== null && event.type !== 'Resumed'
          ? turnSummary(start, stepped, waitedMs)
          : null;
      // A step can end one turn and begin the next. The new turn has spent nothing yet.
      if (start?.turn !== state.session.counters.turn) {
        start = turnStartIn(state);
        waitedMs = 0;
      }
      return line;
    },
  };
};

const turnStartIn = (state: State): TurnStart => ({
  turn: state.session.counters.turn,
  at: state.session.turn.startedAt,
  usage: state.session.usage,
});

/** `waitedMs`: how long nothing ran because the user was asked. */
const turnSummary = (start: TurnStart, { event, state }: Stepped, waitedMs: number): Safe => {
  // without a known beginning nothing is told of the turn
  const used = usageSince(start.usage ?? toldUsage(state), toldUsage(state));
  const about = used.estimated ? safe`about ` : safe``;
  const tokens = totalTokens(used);
  // where the price of a call is unknown, the line names no cost
  const costUsd = state.session.usage.unpriced > 0 ? 0 : used.costUsd;
  const parts = [
    formatSeconds(event.at - start.at - waitedMs),
    waitedMs < WAIT_MS_MIN ? safe`` : safe`${formatSeconds(waitedMs)} for your answers`,
    tokens > 0 ? safe`${about}${formatTokens(tokens)} tokens` : safe``,
    costUsd > 0 ? formatSpent(costUsd, used) : safe``,
  ].filter((part) => part !== '');
  return safe`─── ${joinSafe(parts, safe` · `)} ───`;
};

/** A shorter wait is not named. */
const WAIT_MS_MIN = 1_000;

/** Whether only the user's answer is missing. */
const waitsForAnswer = (state: State): boolean =>
  state.name === 'ExecutingTools' &&
  state.calls.some(({ status }) => status === 'awaitingApproval') &&
  !state.calls.some(({ status }) => status === 'running' || status === 'starting');
