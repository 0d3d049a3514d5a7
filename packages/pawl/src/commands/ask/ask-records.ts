import type { Stepped } from '@pawl/agent/ports/session-input-output';
import type { AskRun } from '@pawl/ask/api/asker-types';
import type { AskTypes } from '@pawl/ask/environment-and-journal-types';
import type { TreeAction } from '@pawl/ask/run/action';
import type { TreeEvent } from '@pawl/ask/run/event';
import type { Outcome } from '@pawl/ask/run/state';
import { piecesOf } from '@pawl/ask/tree/count-answered-pieces';
import { spentBy, type Tree, unknownCallsOf } from '@pawl/ask/tree/tree-state';
import type { ExitEnding } from '../../exit-codes.js';
import type { JsonRecord } from '../../headless/record-schema.js';
import { countsOf } from '../../headless/records.js';
import { pathsOf } from '../../sessions/show/step-path.js';
import { answerOf } from './ask-exit-codes.js';

/** The JSON stream of `pawl ask`. It uses the agent's records where they fit, with the id of the run in `node`. */

export type TreeStepped = Stepped<AskTypes>;
type Seq = TreeStepped['seq'];
type Replied = Extract<TreeEvent, { readonly type: 'ModelReplied' }>;

const replyRecord = (event: Replied, seq: Seq): JsonRecord => ({
  type: 'reply',
  seq,
  at: event.at,
  requestId: event.requestId,
  stopReason: event.stopReason,
  text: (event.message?.parts ?? []).flatMap((part) => (part.type === 'text' ? [part.text] : [])).join(''),
  calls: [],
  usage: countsOf(event.usage),
  costUsd: event.usage.costUsd,
  node: event.node,
});

const recordOfEvent = (event: TreeEvent, seq: Seq): JsonRecord | null => {
  const { node, at } = event;
  switch (event.type) {
    case 'ModelReplied':
      return replyRecord(event, seq);
    case 'ModelFailed': {
      const { kind, message, retryable, retryAfterMs } = event.error;
      const { requestId } = event;
      return { type: 'modelFailed', seq, at, requestId, kind, message, retryable, retryAfterMs, node };
    }
    case 'EnvironmentStarted':
      return { type: 'environment', node, phase: 'ready', variables: event.variables };
    case 'EnvironmentFailed':
      return { type: 'environment', node, phase: 'failed', message: event.message };
    case 'CellFinished': {
      const { status, stdout, stderr } = event.report;
      const variablesLost = event.report.variablesLost === 'yes';
      return {
        type: 'cellFinished',
        seq,
        at,
        node,
        cellId: event.cellId,
        status,
        stdout,
        stderr,
        variablesLost,
      };
    }
    case 'SubcallAsked': {
      const { cellId, ordinal, kind, prompts } = event;
      const characters = prompts.reduce((sum, prompt) => sum + prompt.length, 0);
      return { type: 'subcall', seq, at, node, cellId, ordinal, kind, prompts: prompts.length, characters };
    }
    default:
      return null;
  }
};

const outcomeText = (outcome: Outcome): string => {
  if (outcome.status === 'answered') return outcome.answer;
  return outcome.status === 'cancelled' ? '' : outcome.message;
};

const recordOfAction = (action: TreeAction): JsonRecord | null => {
  const { node } = action;
  switch (action.type) {
    case 'CallModel': {
      const { requestId, purpose, length } = action;
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
      return { type: 'outcome', node, status: action.outcome.status, text: outcomeText(action.outcome) };
    default:
      return null;
  }
};

/** One `state` record for each run that changed its state. */
const movesOf = (stepped: TreeStepped): readonly JsonRecord[] => {
  const { event, seq } = stepped;
  return [...pathsOf(stepped)].map(([node, edges]) => ({
    type: 'state',
    seq,
    at: event.at,
    event: event.type,
    path: edges.map((edge) => edge.to),
    state: edges.at(-1)?.to ?? '',
    node,
  }));
};

/** Records of one step, in order: its event, the states it went through, its actions. */
export const askRecordsOf = (stepped: TreeStepped): readonly JsonRecord[] => {
  const happened = recordOfEvent(stepped.event, stepped.seq);
  const follows = stepped.actions.map(recordOfAction).filter((item) => item !== null);
  return [...(happened === null ? [] : [happened]), ...movesOf(stepped), ...follows];
};

/** The second record of the stream: question, inputs, environment. */
export const runRecord = ({ settings, note }: AskRun): JsonRecord => ({
  type: 'run',
  question: settings.question,
  inputs: settings.inputs.map(({ name, characters }, index) => ({
    name,
    path: settings.files[index]?.path ?? '',
    characters,
    sha256: settings.files[index]?.sha256 ?? '',
  })),
  environment: settings.environment,
  note,
});
/** Cost of the whole tree in dollars; null if the price of any call is unknown. */
export const askCostOf = (tree: Tree): number | null => {
  const { unpriced, costUsd } = spentBy(tree);
  return unpriced > 0 ? null : costUsd;
};

const piecesRecord = (tree: Tree) => {
  const { reasons, ...counts } = piecesOf(tree.pieces);
  return { ...counts, reasons: [...reasons] };
};

/** Last record of the stream; `ended` is null if no run was opened. */
export const askResultRecord = (
  ending: ExitEnding,
  outcome: Outcome | null,
  ended: { readonly sessionId: string; readonly tree: Tree } | null,
): JsonRecord => ({
  type: 'result',
  ok: ending.exit === 0,
  reason: ending.reason,
  exit: ending.exit,
  message: ending.message,
  text: outcome === null ? '' : answerOf(outcome),
  sessionId: ended?.sessionId ?? null,
  usage: ended === null ? null : countsOf(spentBy(ended.tree)),
  costUsd: ended === null ? null : askCostOf(ended.tree),
  ...(ended === null ? {} : { pieces: piecesRecord(ended.tree), unknownCalls: unknownCallsOf(ended.tree) }),
});
