/**
 * The screen: the rows at its bottom that are redrawn, the plain form of it, and the modes of the
 * terminal.
 */

import type { HookPhase } from '@pawl/agent/machine/action';
import type { Settings } from '@pawl/agent/machine/settings';
import { knownCostUsd, type State } from '@pawl/agent/machine/state';
import { totalTokens } from '@pawl/agent/machine/usage';
import { type Clock, systemClock } from '@pawl/agent/platform/clock';
import {
  ASK_FOCUS,
  BEGIN_UPDATE,
  BELL,
  CLOSE_STYLES,
  countColumns,
  cutLine,
  ENABLE_CALLS,
  ENABLE_INPUT_MODES,
  END_UPDATE,
  ERASE_BELOW,
  ERASE_ROW,
  formatCost,
  formatSeconds,
  formatTokens,
  HIDE_CURSOR,
  moveDown,
  moveRight,
  moveUp,
  NEXT_ROW,
  notification,
  oneLine,
  RESTORE_CALLS,
  RESTORE_TERMINAL,
  ROW_START,
  SHOW_CURSOR,
  WRAP_OFF,
  WRAP_ON,
  windowSize,
  windowTitle,
} from './paint.js';
import { joinSafe, keepStyles, makeSafe, type Safe, safe } from './safe-text.js';
import { writeWindow } from './write.js';

/**
 * The rows at the bottom of the screen that are redrawn. Everything above them is scroll-back and
 * never changes.
 *
 * 1. Printed lines go above the area and into the terminal's own scroll-back. The screen is never
 *    cleared; only the rows from the area's first row to the end of the screen are erased.
 * 2. Each change is one write, in one synchronized update, with only the rows that differ. No
 *    difference, no write.
 * 3. At most one write per FRAME_MS. The last frame is always drawn.
 * 4. The area is lower than the screen, since rows outside of the screen can't be erased. Rows at
 *    its top are left out, never the rows around the cursor.
 * 5. Each row of the area takes one row of the screen, even if the terminal counts the width of a
 *    character differently: automatic wrapping is off while it is drawn.
 */
export type LiveArea = {
  /** Prints whole lines above the area. */
  print(text: Safe): void;
  /** A function is called only when the frame is drawn, so frames that are skipped cost nothing. */
  draw(frame: Frame | (() => Frame)): void;
  /**
   * Prints all pending lines and removes the area. The cursor is left at the start of an empty
   * line.
   */
  clear(): void;
};

type Size = { readonly columns: number; readonly rows: number };

/**
 * How the terminal rewraps rows that are too long after the window became narrower: all of them,
 * all except the row with the cursor, or none.
 */
export type Reflow = 'all' | 'aboveCursor' | 'none';

/** How known terminals rewrap. Environment variables tell which terminal it is. */
export const detectReflow = (environment: NodeJS.ProcessEnv): Reflow => {
  if (environment.XTERM_VERSION !== undefined || environment.STY !== undefined) return 'none';
  if (environment.TERM === 'linux') return 'none';
  return environment.TERM_PROGRAM === 'vscode' ? 'aboveCursor' : 'all';
};

type LiveAreaOptions = {
  write(text: Safe): void;
  size(): Size;
  readonly clock: Clock;
  readonly reflow: Reflow;
};

const FRAME_MS = 33;
/** Column of a hidden cursor. */
const NOWHERE = -1;
const EMPTY: Frame = { rows: [], cursor: null };

/** The rows of a frame that fit: those around the cursor, as near to the end as possible. */
const fit = ({ rows, cursor }: Frame, room: number): Frame => {
  const top = Math.max(0, Math.min(rows.length - room, cursor?.row ?? rows.length));
  return {
    rows: rows.slice(top, top + room),
    cursor: cursor === null ? null : { row: cursor.row - top, column: cursor.column },
  };
};

const vertical = (from: number, to: number): Safe => {
  if (from === to) return safe``;
  return to < from ? moveUp(from - to) : moveDown(to - from);
};

/** A row with a style reset at its end. Only styles may control the terminal here. */
const closed = (row: Safe): Safe => {
  const safeRow = keepStyles(row);
  return safeRow.includes('\u001b') ? safe`${safeRow}${CLOSE_STYLES}` : safeRow;
};

/** The drawn frame, and the window size at that time. */
type Shown = {
  readonly rows: readonly Safe[];
  readonly row: number;
  readonly column: number;
  readonly hidden: boolean;
  readonly size: Size;
};

/** Rows between the area's first row and the cursor after the window changed its size. */
const rowsAboveCursor = (
  { rows, row, column }: Shown,
  { columns }: Size,
  reflow: Reflow,
): number => {
  if (reflow === 'none') return row;
  const above = rows
    .slice(0, row)
    .reduce((sum, text) => sum + Math.max(1, Math.ceil(countColumns(text) / columns)), 0);
  return above + (reflow === 'all' ? Math.max(0, Math.floor(column / columns)) : 0);
};

/**
 * Escapes that turn `from` into `to`. The cursor only moves within existing rows; line feeds add
 * rows.
 */
const changeRows = (from: Shown, to: Frame): { readonly text: Safe; readonly row: number } => {
  const moves: Safe[] = [];
  let at = from.row;
  let last = Math.max(0, from.rows.length - 1);
  to.rows.forEach((row, index) => {
    if (from.rows[index] === row && index < from.rows.length) return;
    if (index > last) {
      moves.push(vertical(at, last), NEXT_ROW.repeat(index - last));
      last = index;
    } else moves.push(vertical(at, index));
    moves.push(ERASE_ROW, closed(row));
    at = index;
  });
  if (from.rows.length > to.rows.length) {
    // If all rows are gone the cursor stays in the first one.
    moves.push(vertical(at, to.rows.length), ERASE_BELOW);
    at = to.rows.length;
  }
  return { text: joinSafe(moves), row: at };
};

/**
 * Number of lines that are already on the screen as the area's first rows. They are not drawn
 * again.
 */
const alreadyShown = (lines: readonly Safe[], rows: readonly Safe[]): number => {
  const first = lines.findIndex((line, index) => line !== rows[index]);
  return first < 0 ? lines.length : first;
};

class DrawnArea implements LiveArea {
  readonly #options: LiveAreaOptions;
  #shown: Shown;
  #frame: Frame | (() => Frame) = EMPTY;
  #lines: readonly Safe[] = [];
  #drawnAt = Number.NEGATIVE_INFINITY;
  #cancelTimer: (() => void) | null = null;

  constructor(options: LiveAreaOptions) {
    this.#options = options;
    this.#shown = { rows: [], row: 0, column: 0, hidden: false, size: options.size() };
  }

  print(text: Safe): void {
    this.#lines = [...this.#lines, ...text.split('\n')];
    this.#soon(); // a frame drawn in the same tick writes them too
  }

  draw(frame: Frame | (() => Frame)): void {
    this.#frame = frame;
    if (this.#options.clock.now() - this.#drawnAt >= FRAME_MS) this.#flush();
    else this.#soon();
  }

  clear(): void {
    this.#frame = EMPTY;
    this.#flush();
  }

  #soon(): void {
    const { clock } = this.#options;
    const waitMs = Math.max(0, this.#drawnAt + FRAME_MS - clock.now());
    this.#cancelTimer ??= clock.after(waitMs, () => this.#flush());
  }

  #flush(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    const size = this.#options.size();
    const moved = this.#followWindow(size);
    const printed = this.#printLines();
    const change = joinSafe([moved, printed, this.#drawRows(size)]);
    if (change === '') return;
    this.#drawnAt = this.#options.clock.now();
    this.#options.write(safe`${BEGIN_UPDATE}${change}${END_UPDATE}`);
  }

  /**
   * After a change of the window's size: erases the area wherever it moved to. It is then drawn
   * again.
   */
  #followWindow(size: Size): Safe {
    const before = this.#shown;
    if (before.size.columns === size.columns && before.size.rows === size.rows) return safe``;
    this.#shown = { ...before, rows: [], row: 0, column: 0, size };
    if (before.rows.length === 0) return safe``;
    const up = Math.min(size.rows - 1, rowsAboveCursor(before, size, this.#options.reflow));
    return safe`${vertical(up, 0)}${ERASE_BELOW}`;
  }

  #printLines(): Safe {
    if (this.#lines.length === 0) return safe``;
    const shownLines = alreadyShown(this.#lines, this.#shown.rows);
    const rest = this.#lines.slice(shownLines);
    this.#lines = [];
    const room = this.#makeRoom(shownLines, rest.length === 0);
    return joinSafe([room, ...rest.map((line) => safe`${closed(line)}${NEXT_ROW}`)]);
  }

  /**
   * Moves to the row of the first new line. Rows that are already right become scroll-back
   * unchanged.
   */
  #makeRoom(shownLines: number, all: boolean): Safe {
    const { rows, row } = this.#shown;
    if (all && shownLines < rows.length) {
      this.#shown = { ...this.#shown, rows: rows.slice(shownLines), row: row - shownLines };
      return safe``;
    }
    this.#shown = { ...this.#shown, rows: [], row: 0, column: 0 };
    if (rows.length === 0) return ROW_START;
    return shownLines < rows.length
      ? safe`${vertical(row, shownLines)}${ERASE_BELOW}`
      : safe`${vertical(row, rows.length - 1)}${NEXT_ROW}`;
  }

  #drawRows(size: Size): Safe {
    const before = this.#shown;
    const next = typeof this.#frame === 'function' ? this.#frame() : this.#frame;
    const frame = fit(next, Math.max(1, size.rows - 1));
    const { text, row } = changeRows(before, frame);
    const hidden = frame.cursor === null && frame.rows.length > 0;
    const cursor = frame.cursor ?? { row, column: NOWHERE };
    const moves = text !== '' || row !== cursor.row || cursor.column !== before.column;
    const right = cursor.column > 0 ? moveRight(cursor.column) : safe``;
    const move =
      moves && frame.cursor !== null
        ? safe`${vertical(row, cursor.row)}${ROW_START}${right}`
        : safe``;
    const visible = hidden ? HIDE_CURSOR : SHOW_CURSOR;
    const change = hidden === before.hidden ? safe`` : visible;
    this.#shown = { rows: frame.rows, ...cursor, hidden, size };
    const rows = text === '' ? text : safe`${WRAP_OFF}${text}${WRAP_ON}`;
    return joinSafe([rows, move, change]);
  }
}

export const createLiveArea = (options: LiveAreaOptions): LiveArea => new DrawnArea(options);

/** Rows that already fit the width of the screen, and the cursor's place in them. */
export type Frame = {
  readonly rows: readonly Safe[];
  /** Counted from 0; null hides the cursor. */
  readonly cursor: { readonly row: number; readonly column: number } | null;
};

/**
 * Prints whole lines and redraws nothing. For screen readers (`--plain`) and terminals without
 * escapes (`TERM=dumb`).
 */
export const createPlainArea = (write: (text: Safe) => void): LiveArea => ({
  print: (text) => write(safe`${keepStyles(text)}\n`),
  draw: () => undefined,
  clear: () => undefined,
});

/** Longer than a stop signal needs. */
const STOPPING_MS = 100;

/** Takes the terminal over from the shell, and restores it however the program ends. */
export type Screen = {
  readonly area: LiveArea;
  size(): { readonly columns: number; readonly rows: number };
  take(): void;
  giveBack(): void;
  /** The title of the window, from now until the terminal is given back. Focus reports come too. */
  setTitle(title: Safe): void;
};

/** `plain`: whole lines, and no escapes. */
export const createScreen = (plain: boolean): Screen => {
  const size = () => windowSize(process.stdout.columns, process.stdout.rows);
  let isTaken = false;
  let title: Safe | null = null;
  const showTitle = (): Safe => (title === null ? safe`` : windowTitle(title, process.env));
  const set = (ours: boolean): void => {
    if (plain || isTaken === ours) return;
    isTaken = ours;
    try {
      process.stdin.setRawMode(ours);
    } catch {
      // the terminal is gone: there is no mode to set
    }
    const calls = ours ? safe`${ENABLE_CALLS}${showTitle()}` : RESTORE_CALLS;
    writeWindow(
      safe`${title === null ? safe`` : calls}${ours ? ENABLE_INPUT_MODES : RESTORE_TERMINAL}`,
    );
  };
  // Runs after an uncaught error too.
  process.on('exit', () => set(false));
  return {
    area: plain
      ? createPlainArea(writeWindow)
      : createLiveArea({
          write: writeWindow,
          size,
          clock: systemClock,
          reflow: detectReflow(process.env),
        }),
    size,
    take: () => set(true),
    giveBack: () => set(false),
    setTitle(next) {
      const begin = title === null ? ENABLE_CALLS : safe``;
      title = next;
      if (isTaken) writeWindow(safe`${begin}${showTitle()}`);
    },
  };
};

/**
 * Stops the whole job as Ctrl-Z does. SIGCONT takes the terminal again; a timer does so if no stop
 * happened.
 */
export const suspend = (screen: Screen, redraw: () => void): void => {
  screen.area.clear();
  screen.giveBack();
  process.kill(0, 'SIGTSTP');
  setTimeout(() => {
    screen.take();
    redraw();
  }, STOPPING_MS);
};

const stateText = (state: State, now: number): Safe => {
  switch (state.name) {
    case 'Ready':
    case 'WaitingForUserInput':
      return waitingText(state);
    case 'CallingLlm':
      return state.call.mode === 'draining'
        ? safe`stopping`
        : callingText(state.partial !== '', state.attempt);
    case 'Error':
      return safe`retrying in ${secondsLeft(state.dueAt - now)}s (Enter: now)`;
    case 'ExecutingTools':
      return toolsText(state);
    case 'PostToolsHook':
      return phaseWords[state.phase];
    case 'Compacting':
      return safe`summarising the conversation to free context`;
    case 'Rewinding':
      return safe`taking files back`;
    case 'ShuttingDown':
      return safe`closing`;
    default:
      return makeSafe(state.name);
  }
};

/** Whole seconds, so that the row changes once per second. */
const secondsLeft = (leftMs: number): number => Math.max(0, Math.ceil(leftMs / 1_000));

const phaseWords: Readonly<Record<HookPhase, Safe>> = {
  CheckingGitCommits: safe`checking commits`,
  RunningAutoformatters: safe`formatting`,
  AutoCommitting: safe`committing`,
};

const callingText = (streams: boolean, attempt: number): Safe => {
  const what = streams ? safe`answering` : safe`thinking`;
  return attempt > 1 ? safe`${what} (attempt ${attempt})` : what;
};

const toolsText = (state: Extract<State, { name: 'ExecutingTools' }>): Safe => {
  if (state.phase.mode === 'cancelling') return safe`stopping what runs`;
  if (state.calls.some((call) => call.status === 'awaitingApproval'))
    return safe`needs your answer`;
  const running = state.calls.filter(
    (call) => call.status === 'running' || call.status === 'starting',
  );
  return makeSafe(`running ${running.map((call) => call.judged.tool).join(', ')}`).trim();
};

const waitingText = (state: State): Safe => {
  if (state.name !== 'WaitingForUserInput') return safe`ready`;
  switch (state.reason.kind) {
    case 'cancelled':
      return safe`stopped`;
    case 'budget':
      return makeSafe(`limit reached: ${state.reason.dimension}`);
    case 'error':
      return safe`failed: /retry tries again`;
    default:
      return safe`ready`;
  }
};

/** Whether the session is working. */
export const isBusy = (state: State): boolean =>
  state.name !== 'Ready' && state.name !== 'WaitingForUserInput' && state.name !== 'ShuttingDown';

/** Whether time counts on the screen: something runs and doesn't wait for the user. */
export const isMoving = (state: State): boolean =>
  isBusy(state) &&
  !(
    state.name === 'ExecutingTools' &&
    state.calls.some((call) => call.status === 'awaitingApproval')
  );

const SPINNER = safe`⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏`;
/** Duration of one picture of the spinner. */
export const SPINNER_MS = 120;

const spinnerAt = (now: number): Safe => {
  const index = Math.floor(now / SPINNER_MS) % SPINNER.length;
  return SPINNER.slice(index, index + 1);
};

const costText = (state: State): Safe => {
  const { usd } = state.session.settings.limits;
  return usd !== 'unlimited'
    ? safe`${formatCost(knownCostUsd(state))} of $${makeSafe(usd.toFixed(2))}`
    : formatCost(knownCostUsd(state));
};

/** Less than a cent is not worth a word. */
const COLD_USD_MIN = 0.01;

const coldText = (usd: number | null): Safe =>
  usd === null || usd < COLD_USD_MIN ? safe`` : safe`cache may be cold: about ${formatCost(usd)}`;

const contextText = ({ session }: State): Safe => {
  const share = session.contextTokens / Math.max(1, session.settings.windowTokens);
  return safe`${Math.round(100 * share)}% of context`;
};

/** Characters per token: a rough mean for English and code. */
const SIGNS_A_TOKEN = 4;

/** Tokens of the session, plus an estimate for the reply that is streaming. */
const tokensText = ({ session: { usage } }: State, streamed: number): Safe => {
  const counted = totalTokens(usage);
  return streamed === 0
    ? safe`${formatTokens(counted)} tokens`
    : safe`~${formatTokens(counted + Math.ceil(streamed / SIGNS_A_TOKEN))} tokens`;
};

/** The keys that are useful in this state. */
const keysText = (state: State, typing: boolean): Safe => {
  if (isMoving(state))
    return typing
      ? safe`Enter: with the next step · Alt+Enter: after the turn`
      : safe`Escape stops`;
  // the text of the state already names /retry
  if (state.name === 'WaitingForUserInput' && state.reason.kind === 'error') return safe``;
  if (state.name === 'WaitingForUserInput' && state.reason.kind === 'budget')
    return safe`/budget raises it`;
  return typing || isBusy(state) ? safe`` : safe`/help`;
};

/** Shown only if commands run without a sandbox. */
const sandboxText = (sandbox: Settings['sandbox']): Safe => {
  if (sandbox === 'missing') return safe`no sandbox`;
  return sandbox === 'off' ? safe`sandbox off` : safe``;
};

const QUEUED_COLUMNS = 24;
const SEPARATOR = safe` · `;

type Part = {
  readonly text: Safe;
  /** Parts with a low rank stay longest in a narrow window. */
  readonly rank: number;
  readonly before?: Safe;
};

/**
 * `streamed`: UTF-16 units of the running reply. `typing`: whether the input line has text.
 * `servers`: MCP servers that the request waits for. `coldUsd`: what reading the conversation anew
 * would cost, once the provider may have forgotten it.
 */
type StatusInput = {
  readonly streamed: number;
  readonly typing: boolean;
  readonly servers?: readonly string[];
  readonly coldUsd?: number | null;
};

const NOTHING_SEEN: StatusInput = { streamed: 0, typing: false };

const serversText = (servers: readonly string[]): Safe =>
  safe`waiting for MCP server${servers.length > 1 ? safe`s` : safe``} ${makeSafe(servers.join(', '))}`;

/** The parts in the order of the row. */
const statusParts = (
  state: State,
  now: number,
  { streamed, typing, servers = [], coldUsd = null }: StatusInput,
): readonly Part[] => {
  const { queue, turn, settings } = state.session;
  const [first] = queue;
  return [
    { text: servers.length > 0 ? serversText(servers) : stateText(state, now), rank: 0 },
    { text: isBusy(state) ? formatSeconds(now - turn.startedAt) : safe``, rank: 1 },
    { text: queue.length > 0 ? safe`${queue.length} waiting` : safe``, rank: 2 },
    {
      text: cutLine(oneLine(first?.text ?? '', QUEUED_COLUMNS), QUEUED_COLUMNS),
      rank: 5,
      before: safe`: `,
    },
    { text: sandboxText(settings.sandbox), rank: 1.5 },
    { text: makeSafe(settings.model), rank: 8 },
    { text: tokensText(state, streamed), rank: 6 },
    { text: costText(state), rank: 3 },
    { text: coldText(coldUsd), rank: 2.5 },
    { text: contextText(state), rank: 4 },
    { text: keysText(state, typing), rank: 7 },
  ].filter((part) => part.text !== '');
};

const joined = (parts: readonly Part[]): Safe =>
  joinSafe(
    parts.map(({ text, before = SEPARATOR }, index) =>
      index === 0 ? text : safe`${before}${text}`,
    ),
  );

/** One row of at most `columns`: state, time of the turn, queue, model, tokens, cost, context. */
export const statusRow = (
  state: State,
  columns: number,
  now: number,
  seen: StatusInput = NOTHING_SEEN,
): Safe => {
  const spinner = isMoving(state) ? safe`${spinnerAt(now)} ` : safe``;
  let parts = statusParts(state, now, seen);
  while (parts.length > 1 && countColumns(spinner + joined(parts)) > columns) {
    const last = Math.max(...parts.map((part) => part.rank));
    parts = parts.filter((part) => part.rank !== last);
  }
  return cutLine(safe`${spinner}${joined(parts)}`, columns);
};

/** Time without the focus, or without a key where the focus is not known. */
const AWAY_MS = 5_000;
const QUIET_MS = 30_000;
/** The end of a shorter turn is not told. */
const LONG_TURN_MS = 20_000;
const NAME_COLUMNS = 40;

type NotifierParts = {
  readonly clock: Clock;
  write(text: Safe): void;
  setTitle(title: Safe): void;
  readonly environment: NodeJS.ProcessEnv;
};

const isAsking = (state: State): boolean =>
  state.name === 'ExecutingTools' &&
  state.calls.some(({ status }) => status === 'awaitingApproval');

/** One or two words that change rarely: a title is read in a list of many. */
const stateWord = (state: State): Safe => {
  if (isAsking(state)) return safe`needs your answer`;
  if (isBusy(state)) return safe`working`;
  const reason = state.name === 'WaitingForUserInput' ? state.reason.kind : 'done';
  if (reason === 'error') return safe`failed`;
  if (reason === 'budget') return safe`limit reached`;
  return reason === 'cancelled' ? safe`stopped` : safe`ready`;
};

/** `in` and `out` as the terminal reports it; `unknown` if it reports nothing. */
type Focus = 'in' | 'out' | 'unknown';

const FOCUS = /\u001b\[(?:([IO])|\?1004;[12]\$y)/g;
/** A report may arrive in pieces. */
const PENDING_MAX = 16;

/**
 * Calls the user who looks elsewhere: the title of the window has the state of the session, and a
 * bell and a notification of the desktop come once an answer is wanted, or a long turn has ended.
 *
 * 1. No call while the window has the focus. A terminal that reports the focus is believed; with
 *    any other one, a user who has pressed no key for a while looks elsewhere.
 * 2. One call for each question and each end of a turn.
 * 3. Names in it come from folders. They can't control the terminal: see `makeSafe`.
 */
export class Notifier {
  readonly #parts: NotifierParts;
  #name: Safe | null = null;
  #word = safe``;
  #focus: Focus = 'unknown';
  #pending = '';
  /** Since when the user looks elsewhere, as far as it is known. */
  #awayAt: number;
  #wasAsking = false;
  #wasBusy = false;
  /** What the user is to be called for; null if nothing. */
  #wanted: Safe | null = null;
  #cancel: (() => void) | null = null;

  constructor(parts: NotifierParts) {
    this.#parts = parts;
    this.#awayAt = parts.clock.now();
  }

  /** Begins. `name`: of the folder, as the title has it. */
  start(name: string, state: State): void {
    this.#name = oneLine(name, NAME_COLUMNS);
    this.#parts.write(ASK_FOCUS);
    this.#show(stateWord(state));
  }

  /** The raw input, with the terminal's reports. */
  receive(text: string): void {
    const input = this.#pending + text;
    let end = 0;
    for (const { 0: report, 1: letter, index } of input.matchAll(FOCUS)) {
      end = index + report.length;
      this.#setFocus(letter === 'O' ? 'out' : 'in');
    }
    // a key: whoever presses it looks here
    if (end < input.length) this.#awayAt = this.#parts.clock.now();
    this.#pending = input.slice(end).slice(-PENDING_MAX);
  }

  see(state: State): void {
    if (this.#name === null) return;
    const [asking, busy] = [isAsking(state), isBusy(state)];
    this.#show(stateWord(state));
    const { startedAt } = state.session.turn;
    const isLong = this.#parts.clock.now() - startedAt >= LONG_TURN_MS;
    const isCancelled = state.name === 'WaitingForUserInput' && state.reason.kind === 'cancelled';
    if (asking && !this.#wasAsking) this.ask();
    else if (this.#wasAsking && !asking) this.#stopCall();
    if (this.#wasBusy && !busy && isLong && !isCancelled && this.#focus !== 'in')
      this.#plan(this.#word);
    if (busy && !this.#wasBusy) this.#stopCall();
    this.#wasAsking = asking;
    this.#wasBusy = busy;
  }

  /** An answer is wanted. */
  ask(): void {
    if (this.#name !== null) this.#plan(safe`needs your answer`);
  }

  /** The session, or the program, ends. */
  stop(): void {
    this.#stopCall();
    this.#name = null;
  }

  #setFocus(focus: Focus): void {
    const wanted = this.#wanted;
    const wasOut = this.#focus === 'out';
    this.#focus = focus;
    if (focus === 'in') {
      // who comes back has seen it; who never left may still leave
      if (wasOut) this.#stopCall();
      return;
    }
    if (!wasOut) this.#awayAt = this.#parts.clock.now();
    if (wanted !== null) this.#plan(wanted);
  }

  #show(word: Safe): void {
    if (this.#name === null || word === this.#word) return;
    this.#word = word;
    this.#parts.setTitle(safe`${word} · ${this.#name} · pawl`);
  }

  #stopCall(): void {
    this.#wanted = null;
    this.#cancel?.();
    this.#cancel = null;
  }

  /** Calls once the user has been away for long enough; the end of a turn was seen by who looks. */
  #plan(word: Safe): void {
    this.#stopCall();
    this.#wanted = word;
    if (this.#focus === 'in') return;
    const { clock } = this.#parts;
    const waitMs = this.#awayAt + (this.#focus === 'out' ? AWAY_MS : QUIET_MS) - clock.now();
    if (waitMs <= 0) this.#call(word);
    else this.#cancel = clock.after(waitMs, () => this.#plan(word));
  }

  #call(word: Safe): void {
    this.#stopCall();
    const { write, environment } = this.#parts;
    const text = safe`${word} · ${this.#name ?? safe``}`;
    write(safe`${BELL}${notification(text, environment)}`);
  }
}
