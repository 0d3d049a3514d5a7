import { relative } from 'node:path';
import type { Action } from '../agent/action.js';
import type { JudgedCall } from '../agent/call.js';
import type { Stepped } from '../needs.js';
import { formatSeconds, harmless, type Look, oneLine, paint, paintDiff, type Style } from './print.js';

/** What a person sees of a step: streamed text, or whole lines. */
export type Piece =
  | { readonly kind: 'stream'; readonly text: string }
  /** `detail` is what need not be shown: a diff, the end of an output, or empty. `urgent`: also to one who wants no story. */
  | { readonly kind: 'lines'; readonly text: string; readonly detail: string; readonly urgent: boolean }
  /** The text that was streamed since the last whole line is void. */
  | { readonly kind: 'retract' };

/** Lines of output shown below a call that did not end well, or whose output is all there is to see. */
const OUTPUT_LINES = 6;

/** What a call is about, in a few words: the command, or the files, or what it said itself. */
export const titleOf = (call: JudgedCall, workspace: string): string => {
  const { argv, paths, shape } = call.facts;
  if (argv.length > 0) return argv.join(' ');
  const near = paths.map((path) => relative(workspace, path)).filter((path) => path !== '');
  const words = Object.values(call.input).filter((value) => typeof value === 'string');
  const wanted = words.filter((word) => !near.includes(word) && !paths.includes(word));
  const said = call.traits.mutating && near.length > 0 ? near : [...wanted.slice(0, 1), ...near];
  return said.length > 0 ? said.join(' ') : shape;
};

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

/** What is known of a call by the time its result comes. */
type Known = { readonly call: JudgedCall | undefined; readonly tookMs: number | null };

const tellResult = (action: Result, { call, tookMs }: Known, look: Look, workspace: string): Piece => {
  const title = call === undefined ? '' : titleOf(call, workspace);
  const good = action.status === 'ok';
  const mark = good ? paint(look, 'green', '✓') : paint(look, 'red', '✗');
  const head = `${mark} ${paint(look, 'bold', action.tool)} ${oneLine(title, Math.max(20, look.columns - 30))}`;
  const notes = [...(good ? [] : [action.status]), ...(tookMs === null ? [] : [formatSeconds(tookMs)])];
  const text = `${head} ${paint(look, 'dim', notes.join(' '))}`.trimEnd();
  if (action.diff !== null) {
    return { kind: 'lines', text, detail: indent(paintDiff(look, action.diff)), urgent: false };
  }
  const shown = !good || (call?.traits.mutating ?? false) ? action.text : '';
  const detail = shown.trim() === '' ? '' : paint(look, 'dim', indent(tail(shown)));
  return { kind: 'lines', text, detail, urgent: false };
};

const says = (look: Look, style: Style, mark: string, said: string, urgent: boolean): Piece => ({
  kind: 'lines',
  text: paint(look, style, `${mark} ${harmless(said)}`),
  detail: '',
  urgent,
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
      return says(look, 'dim', '·', action.text, action.kind !== 'queued');
    default:
      return null;
  }
};

/** Follows one session and tells it: what each step means for a reader. */
export const createStory = (look: Look, workspace: string): Story => {
  const calls = new Map<string, JudgedCall>();
  const startedAt = new Map<string, number>();

  const remember = ({ event, state }: Stepped): void => {
    if (event.type === 'LlmCompleted') for (const call of event.calls) calls.set(call.callId, call);
    if (event.type === 'Resumed' && state.name === 'ExecutingTools') {
      for (const call of state.calls) calls.set(call.judged.callId, call.judged);
    }
    if (event.type === 'ToolStarted') startedAt.set(event.callId, event.at);
  };

  const knownOf = (callId: string, at: number): Known => {
    const began = startedAt.get(callId);
    return { call: calls.get(callId), tookMs: began === undefined ? null : at - began };
  };

  return (stepped) => {
    remember(stepped);
    const { at } = stepped.event;
    return stepped.actions
      .map((action) =>
        action.type === 'DisplayToolResult'
          ? tellResult(action, knownOf(action.callId, at), look, workspace)
          : tellPlain(action, look),
      )
      .filter((piece) => piece !== null);
  };
};

/** Text and detail as they are printed below each other. */
export const wholeOf = (piece: Extract<Piece, { readonly kind: 'lines' }>): string =>
  piece.detail === '' ? piece.text : `${piece.text}\n${piece.detail}`;
