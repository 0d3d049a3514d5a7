import type { AskRun } from '../ask-api.js';
import type { Stepped } from '../needs.js';
import type { AskTypes } from '../needs-recursive.js';
import type { TreeAction } from '../recursive/action.js';
import type { TreeEvent } from '../recursive/event.js';
import type { Outcome } from '../recursive/state.js';
import { spentBy, type Tree } from '../recursive/tree-state.js';
import { answerOf } from './ask-endings.js';
import type { Ending } from './exit-codes.js';
import { pathsOf } from './path-line.js';
import type { JsonRecord } from './record-schema.js';
import { countsOf } from './records.js';

/** The JSON stream of `pawl ask`: the records of the agent where they fit, with the run that they are about. */

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

/** Where the step led, a record for each run that moved. */
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

/** The records of one step, in order: what happened, where it led, what follows from it. */
export const askRecordsOf = (stepped: TreeStepped): readonly JsonRecord[] => {
  const happened = recordOfEvent(stepped.event, stepped.seq);
  const follows = stepped.actions.map(recordOfAction).filter((item) => item !== null);
  return [...(happened === null ? [] : [happened]), ...movesOf(stepped), ...follows];
};

/** What the second line says. */
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
/** What was spent; null where the price of some call is unknown. */
export const askCostOf = (tree: Tree): number | null => {
  const { unpriced, costUsd } = spentBy(tree);
  return unpriced > 0 ? null : costUsd;
};

/** The last record of the stream. */
export const askResultRecord = (
  ending: Ending,
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
});
