import type { Action } from '../agent/action.js';
import type { JudgedCall } from '../agent/call.js';
import type { Stepped } from '../needs.js';
import { createCalls } from '../terminal/calls.js';
import { formatSeconds, harmless, type Look, oneLine, paint, paintDiff } from '../terminal/print.js';
import type { Style } from '../terminal/theme.js';

/** What a person sees of a step: streamed text, or whole lines. */
export type Piece =
  | { readonly kind: 'stream'; readonly text: string }
  /** `detail` is what need not be shown: a diff, the end of an output, or empty. `urgent`: also to one who wants no story. */
  | { readonly kind: 'lines'; readonly text: string; readonly detail: string; readonly urgent: boolean }
  /** The text that was streamed since the last whole line is void. */
  | { readonly kind: 'retract' };

/** Lines of output shown below a call that did not end well, or whose output is all there is to see. */
const OUTPUT_LINES = 6;

const tail = (text: string): string => {
  const lines = harmless(text).trimEnd().split('\n');
  const left = lines.length - OUTPUT_LINES;
  return (left > 0 ? [`… ${left} more lines`, ...lines.slice(-OUTPUT_LINES)] : lines).join('\n');
};

const indent = (text: string): string =>
  text
    .split('\n')
    .map((line) => `    ${line}`)
    .join('\n');

type Result = Extract<Action, { readonly type: 'DisplayToolResult' }>;

export type Story = (stepped: Stepped) => readonly Piece[];

/** What is known of a call by the time its result comes; `tookMs` is null of one that was not seen to start. */
type Known = {
  readonly call: JudgedCall | undefined;
  readonly title: string;
  readonly tookMs: number | null;
};

/** What whoever started the program must know even if they want no story: it was not allowed, or it may have happened. */
const URGENT: readonly string[] = ['denied', 'lost'];

const tellResult = (action: Result, { call, title, tookMs }: Known, look: Look): Piece => {
  const good = action.status === 'ok';
  const mark = good ? paint(look, 'green', '✓') : paint(look, 'red', '✗');
  const head = `${mark} ${paint(look, 'bold', action.tool)} ${oneLine(title, Math.max(20, look.columns - 30))}`;
  const urgent = URGENT.includes(action.status);
  if (!good && tookMs === null) return tellUnseen(action, head, urgent, look);
  const notes = [...(good ? [] : [action.status]), ...(tookMs === null ? [] : [formatSeconds(tookMs)])];
  const text = `${head} ${paint(look, 'dim', notes.join(' '))}`.trimEnd();
  if (action.diff !== null)
    return { kind: 'lines', text, detail: indent(paintDiff(look, action.diff)), urgent };
  const shown = !good || (call?.traits.mutating ?? false) ? action.text : '';
  const detail = shown.trim() === '' ? '' : paint(look, 'dim', indent(tail(shown)));
  return { kind: 'lines', text, detail, urgent };
};

/** A call that never ran, or ran when nobody looked: its first line says why. */
const tellUnseen = (action: Result, head: string, urgent: boolean, look: Look): Piece => {
  const [why = '', ...more] = harmless(action.text).trimEnd().split('\n');
  const detail = more.length === 0 ? '' : paint(look, 'dim', indent(tail(more.join('\n'))));
  return { kind: 'lines', text: `${head.trimEnd()} · ${paint(look, 'dim', why)}`, detail, urgent };
};

const says = (look: Look, style: Style, mark: string, said: string, urgent: boolean): Piece => ({
  kind: 'lines',
  text: paint(look, style, `${mark} ${harmless(said)}`),
  detail: '',
  urgent,
});

/** The summary is shown whole: it is all that the model still knows of what it replaces. */
const tellSummary = (text: string, summary: string, look: Look): Piece => ({
  kind: 'lines',
  text: paint(look, 'dim', `· ${harmless(text)}`),
  detail: paint(look, 'dim', indent(harmless(summary).trim())),
  urgent: true,
});

/** What is not about a call. */
const tellPlain = (action: Action, look: Look): Piece | null => {
  switch (action.type) {
    case 'DisplayText':
      return { kind: 'stream', text: harmless(action.text) };
    case 'RetractPartial':
      return { kind: 'retract' };
    case 'DisplayError':
      return says(look, 'red', '!', action.text, true);
    case 'DisplayWarning':
      return says(look, 'yellow', '!', action.text, true);
    case 'DisplayNotice':
      if (action.summary !== undefined) return tellSummary(action.text, action.summary, look);
      // one thing a line: commits, files
      return says(look, 'dim', '·', action.text.replaceAll('\n', '\n· '), action.kind !== 'queued');
    default:
      return null;
  }
};

/** Follows one session and tells it: what each step means for a reader. */
export const createStory = (look: Look, workspace: string): Story => {
  const calls = createCalls(workspace);
  const startedAt = new Map<string, number>();

  const knownOf = (callId: string, { event, state }: Stepped): Known => {
    const began = startedAt.get(callId);
    const tookMs = began === undefined ? null : event.at - began;
    return { call: calls.get(callId), title: calls.title(callId, state), tookMs };
  };

  return (stepped) => {
    const { event, actions } = stepped;
    calls.see(stepped);
    if (event.type === 'LlmCompleted') startedAt.clear();
    if (event.type === 'ToolStarted') startedAt.set(event.callId, event.at);
    return actions
      .map((action) =>
        action.type === 'DisplayToolResult'
          ? tellResult(action, knownOf(action.callId, stepped), look)
          : tellPlain(action, look),
      )
      .filter((piece) => piece !== null);
  };
};

/** Text and detail as they are printed below each other. */
export const wholeOf = (piece: Extract<Piece, { readonly kind: 'lines' }>): string =>
  piece.detail === '' ? piece.text : `${piece.text}\n${piece.detail}`;
