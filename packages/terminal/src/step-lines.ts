/**
 * Steps of a session as printed lines, without redrawing, as headless runs print them.
 *
 * `Safe` is text that can't control the terminal.
 */

import type { Action } from '@pawl/agent/machine/action';
import { isIgnored, type State } from '@pawl/agent/machine/state';
import { callTitle, isReadingCommand, type JudgedCall } from '@pawl/agent/policy/judged-call';
import type { Stepped } from '@pawl/agent/ports/session';
import {
  formatSeconds,
  harmless,
  type Look,
  oneLine,
  paint,
  paintDiff,
  type Style,
} from './paint.js';
import { joinSafe, makeSafe, type Safe, safe } from './safe-text.js';

/** A step as printed text: streamed text, or whole lines. */
type PrintedPiece =
  | { readonly kind: 'stream'; readonly text: Safe }
  | PrintedLines
  /** The text since the last whole line does not count. */
  | { readonly kind: 'retract' };

/** Words for a text that was printed and does not count. */
export const RETRACTED = '(the text of the reply above does not count)';

/**
 * `detail`, possibly empty: a diff, or the end of an output. `urgent` lines are printed even in
 * quiet mode.
 */
export type PrintedLines = {
  readonly kind: 'lines';
  readonly text: Safe;
  readonly detail: Safe;
  readonly urgent: boolean;
};

type StepPrinter = (stepped: Stepped) => readonly PrintedPiece[];

/** Turns the steps of one session into printed text. */
export const createStepPrinter = (look: Look, workspace: string): StepPrinter => {
  const calls = createJudgedCalls(workspace);
  const startedAt = new Map<string, number>();

  const getKnownCall = (result: ToolResult, { event }: Stepped): KnownCall => {
    const { callId } = result;
    const startMs = startedAt.get(callId);
    const tookMs = startMs === undefined ? null : event.at - startMs;
    return { call: calls.get(callId), title: calls.title(result), tookMs };
  };

  return (stepped) => {
    if (isIgnored(stepped)) return [];
    const { event, actions } = stepped;
    calls.see(stepped); // remembers the calls of a new reply
    if (event.type === 'LlmCompleted') startedAt.clear();
    if (event.type === 'ToolStarted') startedAt.set(event.callId, event.at);
    const resumed = resumedNote(stepped);
    const again = resumed === '' ? [] : [printLine(look, 'dim', safe`·`, resumed, true)];
    const held = heldNote(stepped);
    const waiting = held === '' ? [] : [printLine(look, 'dim', safe`·`, held, true)];
    const pieces = actions
      .map((action) =>
        action.type === 'DisplayToolResult'
          ? printResult(action, getKnownCall(action, stepped), look)
          : printAction(action, look),
      )
      .filter((piece) => piece !== null);
    return [...again, ...pieces, ...waiting];
  };
};

/** Text, with the detail below it. */
export const withDetail = (piece: PrintedLines): Safe =>
  piece.detail === '' ? piece.text : safe`${piece.text}\n${piece.detail}`;

/** Lines of output shown below a call that failed or changed something. */
const OUTPUT_LINES = 6;

/** The last lines, indented. */
const lastLines = (lines: readonly Safe[]): Safe => {
  const more = lines.length - OUTPUT_LINES;
  return indent(more > 0 ? [safe`… ${more} more lines`, ...lines.slice(-OUTPUT_LINES)] : lines);
};

const textLines = (text: string): readonly Safe[] => harmless(text).trimEnd().split('\n');

const indent = (lines: readonly Safe[]): Safe =>
  joinSafe(
    lines.map((line) => safe`    ${line}`),
    safe`\n`,
  );

/** The call of a result. `tookMs` is null if its start was not seen. */
export type KnownCall = {
  readonly call: JudgedCall | undefined;
  readonly title: string;
  readonly tookMs: number | null;
};

/** Results that are printed even in quiet mode: the call was denied, or may have run. */
const URGENT: readonly string[] = ['denied', 'lost'];

/** Whether users see the output of a call: it may change something, or it is a command. */
export const showsOutput = (call: JudgedCall | undefined): boolean =>
  call !== undefined && (call.traits.mutating || isReadingCommand(call));

const printResult = (
  action: ToolResult,
  { call, title, tookMs }: KnownCall,
  look: Look,
): PrintedPiece => {
  const good = action.status === 'ok';
  const mark = good ? paint(look, 'green', safe`✓`) : paint(look, 'red', safe`✗`);
  const head = safe`${mark} ${paint(look, 'bold', makeSafe(action.tool))} ${oneLine(title, Math.max(20, look.columns - 30))}`;
  const urgent = URGENT.includes(action.status);
  if (!good && tookMs === null) return printUnseenResult(action, head, urgent, look);
  const notes = [
    ...(good ? [] : [makeSafe(action.status)]),
    ...(tookMs === null ? [] : [formatSeconds(tookMs)]),
  ];
  const text = safe`${head} ${paint(look, 'dim', joinSafe(notes, safe` `))}`.trimEnd();
  if (action.diff !== null)
    return { kind: 'lines', text, detail: indent(paintDiff(look, action.diff)), urgent };
  // the output of a call that only reads is for the model, unless it is a command
  const shown = !good || showsOutput(call) ? action.text : '';
  const detail = shown.trim() === '' ? safe`` : paint(look, 'dim', lastLines(textLines(shown)));
  return { kind: 'lines', text, detail, urgent };
};

/**
 * A call that never ran, or that ran before the session was resumed. The first line of its result
 * says why.
 */
const printUnseenResult = (
  action: ToolResult,
  head: Safe,
  urgent: boolean,
  look: Look,
): PrintedPiece => {
  const [why = safe``, ...more] = textLines(action.text);
  const detail = more.length === 0 ? safe`` : paint(look, 'dim', lastLines(more));
  return {
    kind: 'lines',
    text: safe`${head.trimEnd()} · ${paint(look, 'dim', why)}`,
    detail,
    urgent,
  };
};

/** A line with a mark, such as `!`. */
export const printLine = (
  look: Look,
  style: Style,
  mark: Safe,
  message: string,
  urgent: boolean,
): PrintedLines => ({
  kind: 'lines',
  text: paint(look, style, safe`${mark} ${harmless(message)}`),
  detail: safe``,
  urgent,
});

/** The whole summary: it is all that the model still knows of the replaced messages. */
const printSummary = (text: string, summary: string, look: Look): PrintedPiece => ({
  kind: 'lines',
  text: paint(look, 'dim', safe`· ${harmless(text)}`),
  detail: paint(look, 'dim', indent(textLines(summary.trimStart()))),
  urgent: true,
});

/** Actions other than results of calls. */
const printAction = (action: Action, look: Look): PrintedPiece | null => {
  switch (action.type) {
    case 'DisplayText':
      return { kind: 'stream', text: harmless(action.text) };
    case 'RetractPartial':
      return { kind: 'retract' };
    case 'DisplayError':
      return printLine(look, 'red', safe`!`, action.text, true);
    case 'DisplayWarning':
      return printLine(look, 'yellow', safe`!`, action.text, true);
    case 'DisplayNotice':
      if (action.summary !== undefined) return printSummary(action.text, action.summary, look);
      // One thing per line: commits, files.
      return printLine(
        look,
        'dim',
        safe`·`,
        action.text.replaceAll('\n', '\n· '),
        action.kind !== 'queued',
      );
    default:
      return null;
  }
};

/** The action that shows the result of a call. */
export type ToolResult = Extract<Action, { readonly type: 'DisplayToolResult' }>;

/**
 * Remembers the calls of a session, so that later lines can name them. A call is judged once the
 * policy has decided whether it may run.
 */
export type JudgedCalls = {
  see(stepped: Stepped): void;
  get(callId: string): JudgedCall | undefined;
  /**
   * Title of an ended call; empty in older journals for calls that ended in the step that resumed
   * the session.
   */
  title(result: ToolResult): string;
};

export const createJudgedCalls = (workspace: string): JudgedCalls => {
  const calls = new Map<string, JudgedCall>();
  return {
    see({ event, state }) {
      if (event.type === 'LlmCompleted')
        for (const call of event.calls) calls.set(call.callId, call);
      if (event.type === 'Resumed' && state.name === 'ExecutingTools') {
        for (const { judged } of state.calls) calls.set(judged.callId, judged);
      }
    },
    get: (callId) => calls.get(callId),
    title({ title, callId }) {
      const call = calls.get(callId);
      return title ?? (call === undefined ? '' : callTitle(call, workspace));
    },
  };
};

/**
 * Says which work a resumed session repeats. Empty for other steps, and if the session had nothing
 * to do.
 */
export const resumedNote = ({ event, actions, state }: Stepped): string => {
  if (event.type !== 'Resumed') return '';
  for (const action of actions) {
    if (action.type === 'SendLlmRequest')
      return 'the program ended before the model answered: the request is sent again';
    if (action.type === 'StartCompaction')
      return 'the program ended during a summary of the conversation: the summary is made again';
    if (action.type === 'RunHook')
      return 'the program ended after the tools had run: the turn continues from there';
    if (action.type === 'RestoreFiles')
      return 'the program ended while files were taken back: the rest is taken back now';
    if (action.type === 'ScheduleTimer' && state.name === 'Error')
      return 'the program ended while it waited to retry: the wait continues';
  }
  return state.name === 'ExecutingTools'
    ? 'the program ended while tools were running: the turn continues from there'
    : '';
};

/** Says that texts wait for the user's next message; empty if none do. */
export const heldText = ({ session: { queue } }: State): string => {
  const [wait, them] = queue.length === 1 ? ['waits', 'it'] : ['wait', 'them'];
  return queue.length === 0
    ? ''
    : `${queue.length} of your texts ${wait}; your next message sends ${them} too`;
};

/** The same where a step comes to rest, or a session is resumed at rest; empty for other steps. */
export const heldNote = ({ event, path, state }: Stepped): string =>
  (event.type === 'Resumed' || path.at(-1)?.to === 'WaitingForUserInput') &&
  state.name === 'WaitingForUserInput'
    ? heldText(state)
    : '';
