import { tokensOf } from '@pawl/agent/machine/values/usage';
import { groupDigits } from '@pawl/agent/platform/base/group-digits';
import type { TreeAction } from '@pawl/ask/run/action';
import type { CellReport } from '@pawl/ask/run/cell-types';
import { lineageOf } from '@pawl/ask/tree/run-ids';
import { spentBy, unknownCallsOf } from '@pawl/ask/tree/tree-state';
import {
  formatCost,
  formatSeconds,
  formatTokens,
  harmless,
  type Look,
  oneLine,
  paint,
  warningText,
} from '@pawl/terminal/paint-text';
import { joinSafe, makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { askCostOf, type TreeStepped } from './ask-records.js';

/** Progress lines of a `pawl ask` run on stderr. */

/** `detail` (a program or its output) is shown with --verbose only. `urgent` lines, the warnings, are always shown. */
export type AskLine = { readonly text: Safe; readonly detail: Safe; readonly urgent: boolean };
export type AskPrinter = (stepped: TreeStepped) => readonly AskLine[];

const DETAIL_LINES = 20;

const indent = (lines: readonly Safe[]): Safe =>
  joinSafe(
    lines.map((line) => safe`    ${line}`),
    safe`\n`,
  );

/** The first and last lines of a text, indented. */
const shorten = (text: string): Safe => {
  const lines = harmless(text).trimEnd().split('\n');
  const left = lines.length - DETAIL_LINES;
  if (left <= 0) return indent(lines);
  const half = DETAIL_LINES / 2;
  return indent([...lines.slice(0, half), safe`… ${left} more lines`, ...lines.slice(-half)]);
};

const says = (text: Safe, detail = safe``): AskLine => ({ text, detail, urgent: false });
const warns = (look: Look, text: string): AskLine => ({
  text: paint(look, 'yellow', warningText(text)),
  detail: safe``,
  urgent: true,
});

/** Indents runs below the root, and prefixes their id. */
const marginOf = (node: string): Safe => {
  const depth = lineageOf(node).length - 1;
  return depth === 0 ? safe`` : safe`${safe`  `.repeat(depth)}${makeSafe(node)} `;
};

const spentText = ({ state }: Pick<TreeStepped, 'state'>): Safe =>
  safe`${formatTokens(tokensOf(spentBy(state)))} tokens · ${formatCost(askCostOf(state))}`;

// ---- Cost of each sub-call ----

/** `usd` is null once the price of any call is unknown. */
type Cost = { readonly tokens: number; readonly usd: number | null };

const NO_COST: Cost = { tokens: 0, usd: 0 };

/** Keys `cell ordinal` of the sub-calls that a run belongs to: its own and its ancestors'. */
const subcallsOf = (node: string): readonly string[] =>
  lineageOf(node)
    .slice(0, -1)
    .map((child) => {
      const [slot = '', word = '', ...cell] = child.split('.').toReversed();
      return slot === '' ? '' : `${cell.toReversed().join('.')} ${word.replace(/~.*/, '')}`;
    });

/** Adds up the cost of all model calls below each sub-call. */
const createCosts = () => {
  const costs = new Map<string, Cost>();
  return {
    add({ event }: TreeStepped): void {
      if ((event.type !== 'ModelReplied' && event.type !== 'ModelFailed') || event.usage === null) return;
      const { costUsd } = event.usage;
      for (const key of subcallsOf(event.node)) {
        const before = costs.get(key) ?? NO_COST;
        const usd = before.usd === null || costUsd === null ? null : before.usd + costUsd;
        costs.set(key, { tokens: before.tokens + tokensOf(event.usage), usd });
      }
    },
    of: (cellId: string, ordinal: number): Cost => costs.get(`${cellId} ${ordinal}`) ?? NO_COST,
  };
};

type RunCell = Extract<TreeAction, { readonly type: 'RunCell' }>;

const tellProgram = ({ node, code }: RunCell, { state }: TreeStepped, look: Look): AskLine => {
  const run = state.nodes[node]?.run;
  const [iteration, most] = [(run?.iterations ?? 0) + 1, run?.iterationsMax ?? 0];
  const place = most > 0 ? safe`${iteration}/${most}` : safe`${iteration}`;
  const lines = code.trim().split('\n').length;
  const size = lines === 1 ? safe`1 line` : safe`${lines} lines`;
  const text = safe`${marginOf(node)}${paint(look, 'cyan', safe`▸`)} ${place} a program of ${size}`;
  return says(text, paint(look, 'dim', shorten(code)));
};

const endWords: Readonly<Record<CellReport['status'], Safe>> = {
  ok: safe``,
  raised: safe`failed`,
  stopped: safe`was stopped`,
  died: safe`died, and its variables are lost`,
};

const tellCell = (node: string, report: CellReport, tookMs: number | null, look: Look): AskLine => {
  const { status, stdout, stderr } = report;
  const mark = status === 'ok' ? paint(look, 'green', safe`✓`) : paint(look, 'red', safe`✗`);
  const notes = [
    endWords[status],
    status === 'ok' ? safe`` : oneLine(stderr, Math.max(20, look.columns - 30)),
    tookMs === null ? safe`` : formatSeconds(tookMs),
    makeSafe(`printed ${groupDigits(stdout.length)} characters`),
  ].filter((note) => note !== '');
  const printed = [stdout, stderr].filter((text) => text.trim() !== '').join('\n');
  const detail = printed === '' ? safe`` : paint(look, 'dim', shorten(printed));
  return says(safe`${marginOf(node)}${mark} ${joinSafe(notes, safe` · `)}`, detail);
};

const tellAnswers = (
  action: Extract<TreeAction, { readonly type: 'AnswerSubcall' }>,
  own: Cost,
  stepped: TreeStepped,
): AskLine => {
  const { node, texts } = action;
  const failed = texts.filter((text) => text.startsWith('Error: ')).length;
  const problem = failed === 0 ? safe`` : safe`, ${failed} failed`;
  return says(
    safe`${marginOf(node)}  ← ${texts.length} answered${problem} · ${formatTokens(own.tokens)} tokens · ${formatCost(own.usd)} (so far ${spentText(stepped)})`,
  );
};

const variablesText = {
  kept: null,
  changed: 'the environment was rebuilt, and some programs printed something else this time',
  lost: 'the environment could not be rebuilt: its variables are lost, and the model is told so',
} as const;

/** A printer for one run: pass it every step in order. */
export const createAskPrinter = (look: Look): AskPrinter => {
  const startedAt = new Map<string, number>();
  const costs = createCosts();

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
        const what = kind === 'rlm' ? safe`sub-runs` : safe`calls of models`;
        return says(safe`${marginOf(node)}  → ${prompts.length} ${what}`);
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
              safe`${marginOf(action.node)}· ${action.past.length} finished programs run again to restore their variables`,
            );
      case 'RunCell':
        startedAt.set(action.cellId, stepped.event.at);
        return tellProgram(action, stepped, look);
      case 'AnswerSubcall':
        return tellAnswers(action, costs.of(action.cellId, action.ordinal), stepped);
      case 'DisplayWarning':
        return warns(look, action.text);
      default:
        return null;
    }
  };

  return (stepped) => {
    costs.add(stepped);
    return [tellEvent(stepped), ...stepped.actions.map((action) => tellAction(action, stepped))].filter(
      (line) => line !== null,
    );
  };
};

/** The last line: run id, tokens, cost. */
export const askSummary = (sessionId: string, state: TreeStepped['state']): Safe => {
  const unknown = unknownCallsOf(state);
  const more =
    unknown === 0
      ? safe``
      : safe` · and what ${unknown} ${unknown === 1 ? safe`call` : safe`calls`} cost that a crash cut off`;
  return safe`run ${makeSafe(sessionId)} · ${spentText({ state })}${more}`;
};
