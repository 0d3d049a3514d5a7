/**
 * What `pawl ask` prints, from top to bottom: its JSON stream, which uses the agent's records where
 * they fit; its lines of progress with their costs; and its exit code.
 *
 * A question is answered by a tree of runs: a run executes programs of the model (cells), which
 * call models or further runs (sub-calls). `node` is the id of a run in the tree. A piece is one
 * prompt of a sub-call, usually about a part of the inputs.
 */

import { totalTokens } from '@pawl/agent/machine/settings';
import { knownCostUsd } from '@pawl/agent/machine/state';
import { groupDigits, plural } from '@pawl/agent/platform/text';
import type { Stepped } from '@pawl/agent/ports/session';
import type { AskRun } from '@pawl/ask/create-asker';
import type { AskTypes } from '@pawl/ask/ports';
import type { TreeAction } from '@pawl/ask/run/action';
import type { CellReport } from '@pawl/ask/run/cell-types';
import type { TreeEvent } from '@pawl/ask/run/event';
import type { Outcome } from '@pawl/ask/run/state';
import type { PolicyReason } from '@pawl/ask/run/stop-policies';
import { getLineage } from '@pawl/ask/tree/ledger';
import {
  countUnknownCalls,
  type Pieces,
  piecesOf,
  spentBy,
  type Tree,
} from '@pawl/ask/tree/tree-state';
import {
  formatSeconds,
  formatSpent,
  formatTokens,
  harmless,
  type Look,
  oneLine,
  paint,
} from '@pawl/terminal/paint';
import { joinSafe, makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { type PrintedLines, printLine } from '@pawl/terminal/step-lines';
import type { JsonRecord } from '../headless/record-schema.js';
import { endRecord, failureRecord, replyRecord, stateRecord } from '../headless/records.js';
import { type ExitCode, type ExitEnding, exitCodes, failureExits } from '../process/exit-codes.js';
import { pathsByRun } from '../sessions/session-text.js';

export type TreeStepped = Stepped<AskTypes>;

/** null for an event that the stream does not show. */
const eventRecord = (event: TreeEvent, seq: TreeStepped['seq']): JsonRecord | null => {
  const { node, at } = event;
  const where = { seq, at, node };
  switch (event.type) {
    case 'ModelReplied':
      return { ...replyRecord(event, seq, []), node }; // no calls: these models have no tools
    case 'ModelFailed':
      return { ...failureRecord(event, seq), node };
    case 'EnvironmentStarted':
      return { type: 'environment', node, phase: 'ready', variables: event.variables };
    case 'EnvironmentFailed':
      return { type: 'environment', node, phase: 'failed', message: event.message };
    case 'CellFinished': {
      const { status, stdout, stderr, variablesLost } = event.report;
      const printed = { stdout, stderr, variablesLost: variablesLost === 'yes' };
      return { type: 'cellFinished', ...where, cellId: event.cellId, status, ...printed };
    }
    case 'SubcallAsked': {
      const { cellId, ordinal, kind } = event;
      const characters = event.prompts.reduce((sum, prompt) => sum + prompt.length, 0);
      const prompts = event.prompts.length;
      return { type: 'subcall', ...where, cellId, ordinal, kind, prompts, characters };
    }
    default:
      return null;
  }
};

/** The answer, or why there is none; empty of an open or a cancelled run. */
export const outcomeText = (outcome: Outcome | null): string =>
  outcome !== null && 'message' in outcome ? outcome.message : getAnswer(outcome);

/** null for an action that the stream does not show. */
const actionRecord = (action: TreeAction): JsonRecord | null => {
  const { node } = action;
  switch (action.type) {
    case 'CallModel': {
      const { requestId, purpose, length } = action;
      // the first `length` messages of the conversation are sent
      return { type: 'request', requestId, purpose, messages: length, node };
    }
    case 'StartEnvironment':
      return { type: 'environment', node, phase: 'starting' };
    case 'CloseEnvironment':
      return { type: 'environment', node, phase: 'closed' };
    case 'RunCell':
      return { type: 'cellStarted', node, cellId: action.cellId, code: action.code };
    case 'DisplayWarning':
      return { type: 'warning', kind: action.kind, text: action.text, node };
    case 'ReportOutcome':
      return {
        type: 'outcome',
        node,
        status: action.outcome.status,
        text: outcomeText(action.outcome),
      };
    default:
      return null;
  }
};

/** Records of one step, in order: its event, the states that each run went through, its actions. */
export const createAskRecords = (stepped: TreeStepped): readonly JsonRecord[] => {
  const { event, seq, actions } = stepped;
  // one step of the tree may change several runs
  const moves = [...pathsByRun(stepped)].map(([node, edges]) => ({
    ...stateRecord(event, seq, edges),
    node,
  }));
  return [eventRecord(event, seq), ...moves, ...actions.map(actionRecord)].filter(
    (record) => record !== null,
  );
};

export type OpenedRun = {
  readonly run: AskRun;
  /** Path of the journal. */
  readonly journal: string;
  readonly workspace: string;
  readonly resumed: boolean;
};

/** The first records of the stream; the second has question, inputs and environment. */
export const openingRecords = ({
  run: { id: sessionId, settings, tornTail },
  journal,
  workspace,
  resumed,
}: OpenedRun): readonly JsonRecord[] => {
  const { model, question, environment, files } = settings;
  const inputs = settings.inputs.map(({ name, characters }, index) => {
    const { path = null, sha256 = '' } = files[index] ?? {};
    return { name, path: path ?? '', characters, sha256 };
  });
  return [
    { type: 'session', schema: 1, sessionId, workspace, model, journal, resumed, tornTail },
    { type: 'run', question, inputs, environment, note: null },
  ];
};

/** Whether a call of the tree may have cost more than it has reported. */
const isLowerBound = (tree: Tree): boolean =>
  spentBy(tree).atLeast === true || countUnknownCalls(tree) > 0;

/** Last record of the stream; `run` is null if none was opened. */
export const askResultRecord = (
  ending: ExitEnding,
  outcome: Outcome | null,
  run: Pick<AskRun, 'id' | 'state'> | null,
): JsonRecord => {
  const text = getAnswer(outcome);
  if (run === null) return endRecord(ending, text, null);
  const tree = run.state();
  const { reasons, ...counts } = piecesOf(tree.pieces);
  return {
    ...endRecord(ending, text, {
      sessionId: run.id,
      usage: spentBy(tree),
      costUsd: knownCostUsd(spentBy(tree)),
      ...(isLowerBound(tree) ? { costAtLeast: true } : {}),
    }),
    pieces: { ...counts, reasons: [...reasons] },
    unknownCalls: countUnknownCalls(tree),
  };
};

// Lines of progress on stderr.

type AskPrinter = (stepped: TreeStepped) => readonly PrintedLines[];

const DETAIL_LINES = 20;

const indent = (lines: readonly Safe[]): Safe =>
  joinSafe(
    lines.map((line) => safe`    ${line}`),
    safe`\n`,
  );

/** The first and last lines of a text, indented. */
const shorten = (text: string): Safe => {
  const lines = harmless(text).trimEnd().split('\n');
  const omitted = lines.length - DETAIL_LINES;
  if (omitted <= 0) return indent(lines);
  const half = DETAIL_LINES / 2;
  return indent([...lines.slice(0, half), safe`… ${omitted} more lines`, ...lines.slice(-half)]);
};

const plainLine = (text: Safe, detail = safe``): PrintedLines => ({
  kind: 'lines',
  text,
  detail,
  urgent: false,
});
const warningLine = (look: Look, text: string): PrintedLines =>
  printLine(look, 'yellow', safe`!`, text, true);

/** Indents runs below the root, and prefixes their id. */
const getMargin = (node: string): Safe => {
  const depth = getLineage(node).length - 1;
  return depth === 0 ? safe`` : safe`${safe`  `.repeat(depth)}${makeSafe(node)} `;
};

const spentText = ({ state }: Pick<TreeStepped, 'state'>): Safe => {
  const usage = spentBy(state);
  const cost = formatSpent(knownCostUsd(usage), usage);
  return safe`${formatTokens(totalTokens(usage))} tokens · ${cost}`;
};

type RunCell = Extract<TreeAction, { readonly type: 'RunCell' }>;

const tellProgram = ({ node, code }: RunCell, { state }: TreeStepped, look: Look): PrintedLines => {
  const run = state.nodes[node]?.run;
  const [iteration, most] = [(run?.iterations ?? 0) + 1, run?.iterationsMax ?? 0];
  const place = most > 0 ? safe`${iteration}/${most}` : safe`${iteration}`;
  const size = makeSafe(plural(code.trim().split('\n').length, 'line'));
  const text = safe`${getMargin(node)}${paint(look, 'cyan', safe`▸`)} ${place} a program of ${size}`;
  return plainLine(text, paint(look, 'dim', shorten(code)));
};

const cellEndWords: Readonly<Record<CellReport['status'], Safe>> = {
  ok: safe``,
  raised: safe`failed`,
  stopped: safe`was stopped`,
  died: safe`died, and its variables are lost`,
};

const tellCell = (
  node: string,
  report: CellReport,
  tookMs: number | null,
  look: Look,
): PrintedLines => {
  const { status, stdout, stderr } = report;
  const mark = status === 'ok' ? paint(look, 'green', safe`✓`) : paint(look, 'red', safe`✗`);
  const notes = [
    cellEndWords[status],
    status === 'ok' ? safe`` : oneLine(stderr, Math.max(20, look.columns - 30)),
    tookMs === null ? safe`` : formatSeconds(tookMs),
    makeSafe(`printed ${groupDigits(stdout.length)} characters`),
  ].filter((note) => note !== '');
  const printed = [stdout, stderr].filter((text) => text.trim() !== '').join('\n');
  const detail = printed === '' ? safe`` : paint(look, 'dim', shorten(printed));
  return plainLine(safe`${getMargin(node)}${mark} ${joinSafe(notes, safe` · `)}`, detail);
};

const tellAnswers = (
  { node, texts }: Extract<TreeAction, { readonly type: 'AnswerSubcall' }>,
  stepped: TreeStepped,
): PrintedLines => {
  // so does the text of a call without an answer; a model may write it, too
  const errors = texts.filter((text) => text.startsWith('Error: ')).length;
  const problem = errors === 0 ? safe`` : safe`, ${errors} with "Error: "`;
  return plainLine(
    safe`${getMargin(node)}  ← ${texts.length} answered${problem} · so far ${spentText(stepped)}`,
  );
};

/** What became of the variables when finished programs ran again in a new environment. */
const variablesText = {
  kept: null,
  changed: 'the environment was rebuilt, and some programs printed something else this time',
  lost: 'the environment could not be rebuilt: its variables are lost, and the model is told so',
} as const;

/** A printer for one run: pass it every step in order. */
export const createAskPrinter = (look: Look): AskPrinter => {
  const startedAt = new Map<string, number>();

  const tellEvent = ({ event }: TreeStepped): PrintedLines | null => {
    switch (event.type) {
      case 'EnvironmentStarted': {
        const text = variablesText[event.variables];
        return text === null ? null : warningLine(look, text);
      }
      case 'CellFinished': {
        const startMs = startedAt.get(event.cellId);
        const tookMs = startMs === undefined ? null : event.at - startMs;
        return tellCell(event.node, event.report, tookMs, look);
      }
      case 'SubcallAsked': {
        const { node, prompts, kind } = event;
        // `rlm`: each prompt gets a run of its own, which can execute programs
        const what = kind === 'rlm' ? safe`sub-runs` : safe`calls of models`;
        return plainLine(safe`${getMargin(node)}  → ${prompts.length} ${what}`);
      }
      default:
        return null;
    }
  };

  const tellAction = (action: TreeAction, stepped: TreeStepped): PrintedLines | null => {
    switch (action.type) {
      case 'StartEnvironment':
        // `past`: the programs that ran in an earlier environment
        return action.past.length === 0
          ? null
          : plainLine(
              safe`${getMargin(action.node)}· ${action.past.length} finished programs run again to restore their variables`,
            );
      case 'RunCell':
        startedAt.set(action.cellId, stepped.event.at);
        return tellProgram(action, stepped, look);
      case 'AnswerSubcall':
        return tellAnswers(action, stepped);
      case 'DisplayWarning':
        return warningLine(look, action.text);
      default:
        return null;
    }
  };

  return (stepped) =>
    [tellEvent(stepped), ...stepped.actions.map((action) => tellAction(action, stepped))].filter(
      (line) => line !== null,
    );
};

/** The last line: run id, tokens, cost. */
export const askSummary = (sessionId: string, state: TreeStepped['state']): Safe => {
  const unknown = countUnknownCalls(state);
  const more =
    unknown === 0
      ? safe``
      : safe` · and what ${unknown} ${unknown === 1 ? safe`call` : safe`calls`} cost that a crash cut off`;
  return safe`run ${makeSafe(sessionId)} · ${spentText({ state })}${more}`;
};

// Exit codes and reasons.

/** What stopped a run: exit code and reason, and why the model was asked for its answer. */
const stops: Readonly<Record<PolicyReason, readonly [ExitCode, string, string]>> = {
  usd: [exitCodes.budget, 'usdLimit', 'the money was used up'],
  tokens: [exitCodes.budget, 'tokensLimit', 'the tokens were used up'],
  unpriced: [exitCodes.budget, 'unpriced', 'a call had no known price'],
  time: [exitCodes.timeLimit, 'timeLimit', 'time was up'],
  iterations: [exitCodes.roundLimit, 'iterationsLimit', 'the iterations were used up'],
  repeated: [exitCodes.taskFailed, 'repeated', 'the model repeated the same program'],
  errors: [exitCodes.taskFailed, 'errors', 'too many programs in a row failed'],
  noProgress: [exitCodes.taskFailed, 'noProgress', 'its programs gave no new results'],
  policy: [exitCodes.taskFailed, 'policy', 'the stopping policy ended it'],
};

const MORE_MONEY = 'Raise the limit to continue: pawl ask --continue --max-usd, --max-tokens';

/** Ending of an answered run: a failure if any piece that a program asked about has no answer. */
const piecesEnding = (pieces: Pieces): ExitEnding => {
  const { refused, failed, reasons } = pieces;
  const missing = refused + failed;
  if (missing === 0) return { exit: exitCodes.done, reason: 'answer', message: '' };
  const causes = reasons.slice(0, 3).map(({ why, count }) => `${count} × ${why}`);
  const more = reasons.length > 3 ? ', …' : '';
  const message =
    `the answer lacks ${missing} ${missing === 1 ? 'piece' : 'pieces'} that a program asked ` +
    `about (${causes.join(', ')}${more})`;
  return refused > 0
    ? { exit: exitCodes.budget, reason: 'piecesRefused', message: `${message}. ${MORE_MONEY}` }
    : { exit: exitCodes.taskFailed, reason: 'piecesFailed', message };
};

/**
 * Ending of a finished run. A submitted answer counts, even after a limit. If the model was asked
 * for an answer at a limit and submitted none, its last words are printed, but the limit decides
 * the exit code. Missing pieces decide it likewise.
 */
export const outcomeEnding = (outcome: Outcome, pieces: Pieces): ExitEnding => {
  switch (outcome.status) {
    case 'answered': {
      // `closing`: the limit at which the model was asked for its answer
      if (outcome.by !== 'limit' || outcome.closing === null) return piecesEnding(pieces);
      const [exit, reason, why] = stops[outcome.closing];
      const asked = `the model submitted no answer; it was asked for one because ${why}`;
      return { exit, reason, message: `${asked}, and these are its words` };
    }
    case 'stopped': {
      const [exit, reason] = stops[outcome.reason];
      return { exit, reason, message: outcome.message };
    }
    case 'failed':
      return {
        exit: outcome.kind === 'environment' ? exitCodes.internal : failureExits[outcome.kind],
        reason: outcome.kind,
        message: outcome.message,
      };
    case 'cancelled':
      return { exit: exitCodes.interrupted, reason: 'cancelled', message: '' };
    default:
      return outcome satisfies never;
  }
};

/** Empty where there is none. */
export const getAnswer = (outcome: Outcome | null): string =>
  outcome?.status === 'answered' ? outcome.answer : '';
