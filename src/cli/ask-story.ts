import type { TreeAction } from '../recursive/action.js';
import type { CellReport } from '../recursive/cell.js';
import { lineageOf } from '../recursive/ids.js';
import { spentBy } from '../recursive/tree-state.js';
import {
  formatCost,
  formatSeconds,
  formatTokens,
  harmless,
  type Look,
  oneLine,
  paint,
  warningText,
} from '../terminal/print.js';
import { askCostOf, type TreeStepped } from './ask-records.js';

/** What a person is told of a run while it goes on. */

/** `detail` is what need not be shown: a program, or what it printed. `urgent`: also to one who wants no story. */
export type AskLine = { readonly text: string; readonly detail: string; readonly urgent: boolean };
export type AskStory = (stepped: TreeStepped) => readonly AskLine[];

const DETAIL_LINES = 20;

const indent = (text: string): string =>
  text
    .split('\n')
    .map((line) => `    ${line}`)
    .join('\n');

/** The first and last lines of a text, set in. */
const shorten = (text: string): string => {
  const lines = harmless(text).trimEnd().split('\n');
  const left = lines.length - DETAIL_LINES;
  if (left <= 0) return indent(lines.join('\n'));
  const half = DETAIL_LINES / 2;
  return indent([...lines.slice(0, half), `… ${left} more lines`, ...lines.slice(-half)].join('\n'));
};

const says = (text: string, detail = ''): AskLine => ({ text, detail, urgent: false });
const warns = (look: Look, text: string): AskLine => ({
  text: paint(look, 'yellow', harmless(warningText(text))),
  detail: '',
  urgent: true,
});

/** Runs below the root are set in, and named. */
const marginOf = (node: string): string => {
  const depth = lineageOf(node).length - 1;
  return depth === 0 ? '' : `${'  '.repeat(depth)}${node} `;
};

const spentText = ({ state }: Pick<TreeStepped, 'state'>): string => {
  const { inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens } = spentBy(state);
  const tokens = inputTokens + cacheReadTokens + cacheWriteTokens + outputTokens;
  return `${formatTokens(tokens)} tokens · ${formatCost(askCostOf(state))}`;
};

type RunCell = Extract<TreeAction, { readonly type: 'RunCell' }>;

const tellProgram = ({ node, code }: RunCell, { state }: TreeStepped, look: Look): AskLine => {
  const run = state.nodes[node]?.run;
  const [iteration, most] = [(run?.iterations ?? 0) + 1, run?.iterationsMax ?? 0];
  const place = most > 0 ? `${iteration}/${most}` : `${iteration}`;
  const lines = code.trim().split('\n').length;
  const text = `${marginOf(node)}${paint(look, 'cyan', '▸')} ${place} a program of ${lines} ${lines === 1 ? 'line' : 'lines'}`;
  return says(text, paint(look, 'dim', shorten(code)));
};

const endWords: Readonly<Record<CellReport['status'], string>> = {
  ok: '',
  raised: 'failed',
  stopped: 'was stopped',
  died: 'died, and its variables are lost',
};

const tellCell = (node: string, report: CellReport, tookMs: number | null, look: Look): AskLine => {
  const { status, stdout, stderr } = report;
  const mark = status === 'ok' ? paint(look, 'green', '✓') : paint(look, 'red', '✗');
  const notes = [
    endWords[status],
    status === 'ok' ? '' : oneLine(stderr, Math.max(20, look.columns - 30)),
    tookMs === null ? '' : formatSeconds(tookMs),
    `printed ${stdout.length.toLocaleString('en-US')} characters`,
  ].filter((note) => note !== '');
  const printed = [stdout, stderr].filter((text) => text.trim() !== '').join('\n');
  const detail = printed === '' ? '' : paint(look, 'dim', shorten(printed));
  return says(`${marginOf(node)}${mark} ${notes.join(' · ')}`, detail);
};

const tellAnswers = (
  action: Extract<TreeAction, { readonly type: 'AnswerSubcall' }>,
  stepped: TreeStepped,
): AskLine => {
  const { node, texts } = action;
  const failed = texts.filter((text) => text.startsWith('Error: ')).length;
  const problem = failed === 0 ? '' : `, ${failed} failed`;
  return says(`${marginOf(node)}  ← ${texts.length} answered${problem} · ${spentText(stepped)}`);
};

const variablesText = {
  kept: null,
  changed: 'the environment was built again, and some programs printed something else this time',
  lost: 'the environment could not be built again: its variables are lost, and the model is told so',
} as const;

/** Follows one tree and tells it. */
export const createAskStory = (look: Look): AskStory => {
  const startedAt = new Map<string, number>();

  const tellEvent = ({ event }: TreeStepped): AskLine | null => {
    switch (event.type) {
      case 'EnvironmentStarted': {
        const text = variablesText[event.variables];
        return text === null ? null : warns(look, text);
      }
      case 'CellFinished': {
        const began = startedAt.get(event.cellId);
        return tellCell(event.node, event.report, began === undefined ? null : event.at - began, look);
      }
      case 'SubcallAsked': {
        const { node, prompts, kind } = event;
        const what = kind === 'rlm' ? 'sub-runs' : 'calls of models';
        return says(`${marginOf(node)}  → ${prompts.length} ${what}`);
      }
      default:
        return null;
    }
  };

  const tellAction = (action: TreeAction, stepped: TreeStepped): AskLine | null => {
    switch (action.type) {
      case 'StartEnvironment':
        return action.past.length === 0
          ? null
          : says(
              `${marginOf(action.node)}· ${action.past.length} finished programs run again, to have their variables back`,
            );
      case 'RunCell':
        startedAt.set(action.cellId, stepped.event.at);
        return tellProgram(action, stepped, look);
      case 'AnswerSubcall':
        return tellAnswers(action, stepped);
      case 'DisplayWarning':
        return warns(look, action.text);
      default:
        return null;
    }
  };

  return (stepped) =>
    [tellEvent(stepped), ...stepped.actions.map((action) => tellAction(action, stepped))].filter(
      (line) => line !== null,
    );
};

/** The line at the end. */
export const askSummary = (sessionId: string, state: TreeStepped['state']): string =>
  `run ${sessionId} · ${spentText({ state })}`;
