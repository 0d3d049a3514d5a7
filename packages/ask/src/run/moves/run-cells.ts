/**
 * An iteration: runs the blocks (programs) of a reply in order, each as a cell, looks for an
 * answer, and reports the results to the model. `parity` are settings in which we differ from seed
 * 004, a published text about such runs.
 *
 * table.ts names the guards and moves. It asks the guards of EXECUTING in its order, and later ones
 * rely on it that earlier ones said no: a closing reply may have an answer, too.
 */

import { AppendList } from '@pawl/machine/kernel/append-list';
import type { OutsideAction } from '../action.js';
import type { AnsweredSubcall, CellReport, OpenSubcall, PastCell } from '../cell-types.js';
import { addUserText, storeReply } from '../conversation.js';
import type { RunEventOf } from '../event.js';
import { go, ignore, type Next, nextId, type Same } from '../move-result.js';
import type { FinishedCell, Outcome, Run, RunIn, RunningCell } from '../state.js';
import { countRepeat, noRepeat } from '../stop-policies.js';
import { digestCall, digestTexts } from '../text-hash.js';
import { EMPTY_REPLY, iterationOver } from '../texts-for-model.js';
import { endRun } from './end-run.js';
import { firstDecision } from './model-call.js';
import { answerOfReply, isReady, NO_REPLY, wholeReply } from './read-reply.js';

export type Executing = RunIn<'EXECUTING'>;

/** Whether an answer is set, and no further block of the reply may run. */
const answerStands = ({ answer, reply, started, run }: Executing): boolean =>
  answer !== null &&
  (run.settings.parity.afterReady === 'skipped' || started === reply.blocks.length);

const mayRunBlock = (state: Executing): boolean =>
  state.started < state.reply.blocks.length && !answerStands(state);

/** Whether nothing of the reply is left to run or to look up: the iteration is over. */
export const isEvaluated = (state: Executing): boolean =>
  state.work.kind === 'next' &&
  (answerStands(state) || (!mayRunBlock(state) && state.reply.final?.kind !== 'variable'));

export const blockIsNext = (state: Executing): boolean =>
  state.work.kind === 'next' && isReady(state) && mayRunBlock(state);

/** The variable is read after the reply's code, which may have just set it. */
export const variableIsNext = (state: Executing): boolean =>
  state.work.kind === 'next' &&
  isReady(state) &&
  !mayRunBlock(state) &&
  !answerStands(state) &&
  state.reply.final?.kind === 'variable';

export const runBlock = (state: Executing): Next<'EXECUTING'> => {
  const [cellId, run] = nextId(state.run, 'cell');
  const code = state.reply.blocks[state.started] ?? '';
  const work: RunningCell = {
    kind: 'running',
    cellId,
    code,
    asked: 0,
    differed: 0,
    open: [],
    answered: AppendList.empty(),
  };
  return go({ ...state, run, started: state.started + 1, work }, runCell(run, work));
};

export const runCell = (run: Run, { cellId, code }: RunningCell): OutsideAction => ({
  type: 'RunCell',
  cellId,
  code,
  deadlineMs: run.settings.cellDeadlineMs,
});

// ---- A cell ends ----

/** True for an event of another cell, or of before a crash (the environment is not ready yet). */
export const isOtherCell = (state: Executing, event: { readonly cellId: string }): boolean =>
  state.work.kind !== 'running' || state.work.cellId !== event.cellId || !isReady(state);
export const ignoreCell = (state: Executing): Same<Executing> =>
  ignore(state, 'stale: this cell is over, or never ran');

/**
 * Adds the cell to the record. If variables were lost, the record starts anew, since it can't
 * rebuild them.
 */
const remember = ({ past }: Run, cell: RunningCell, report: CellReport): AppendList<PastCell> =>
  report.variablesLost === 'yes'
    ? AppendList.empty()
    : past.append({
        cellId: cell.cellId,
        code: cell.code,
        status: report.status,
        printed: digestTexts([report.stdout, report.stderr]),
        subcalls: lastOfEach(cell.answered.toArray()),
      });

/** The last answer of each ordinal. There may be two if a resumed cell sent another call. */
const lastOfEach = (subcalls: readonly AnsweredSubcall[]): readonly AnsweredSubcall[] => [
  ...new Map(subcalls.map((subcall) => [subcall.ordinal, subcall])).values(),
];

export const finishCell = (
  state: Executing,
  event: RunEventOf<'CellFinished'>,
): Same<Executing> => {
  const { work, run } = state;
  if (work.kind !== 'running') return ignoreCell(state);
  const { report, cellId } = event;
  const recordAnswer = run.settings.parity.answerRecord === 'on' ? report.answer : null;
  const finished: Executing = {
    ...state,
    run: { ...run, past: remember(run, work, report) },
    cells: [...state.cells, { cellId, report }],
    // The first ready answer counts, even if later cells change the record.
    answer: state.answer ?? recordAnswer,
    work: { kind: 'next' },
  };
  return work.open.length === 0
    ? go(finished)
    : go(finished, { type: 'StopSubcalls', cellId, ordinal: null });
};

// ---- An answer ----

const findAnswer = (state: Executing): Outcome | null => {
  const { answer, run, reply } = state;
  if (answer === null) return answerOfReply(run, reply);
  return { status: 'answered', answer, by: 'record', closing: run.closing?.reason ?? null };
};

export const answerIsFound = (state: Executing): boolean =>
  isEvaluated(state) && findAnswer(state) !== null;

/** The model was asked for its answer (`closing`), and this reply is all that comes. */
export const isClosingReply = (state: Executing): boolean =>
  isEvaluated(state) && state.run.closing !== null;
/** The same, because all iterations were used up. */
export const isReplyAtLimit = (state: Executing): boolean =>
  isEvaluated(state) && state.run.closing?.reason === 'iterations';

/** Ends with the answer, or else with the whole reply. */
export const endWithAnswer = (state: Executing): Next<'DONE'> => {
  const { run, reply } = state;
  return endRun(
    { ...state, run: storeReply(run, reply) },
    findAnswer(state) ?? wholeReply(run, reply),
  );
};

// ---- The iteration is over ----

const digestOutput = (cells: readonly FinishedCell[]): string =>
  digestTexts(
    cells.flatMap(({ report }) => [report.stdout, report.stderr, JSON.stringify(report.variables)]),
  );

/** Iterations in a row with a failed cell. */
const errorsAfter = (before: number, cells: readonly FinishedCell[]): number => {
  if (cells.length === 0) return before;
  return cells.some(({ report }) => report.status !== 'ok') ? before + 1 : 0;
};

/**
 * Counts the iteration, and sends its results to the model in one message. Without cells its output
 * is empty: several of these are the same output, too (`noProgress`).
 */
export const closeIteration = (state: Executing): Next<'EXECUTING'> => {
  const { reply, cells } = state;
  const heard = storeReply(state.run, reply);
  const run: Run = {
    ...heard,
    iterations: heard.iterations + 1,
    errors: errorsAfter(heard.errors, cells),
    code: reply.blocks.length === 0 ? noRepeat : countRepeat(heard.code, digestTexts(reply.blocks)),
    output: countRepeat(heard.output, digestOutput(cells)),
    notes: reply.message === null ? [EMPTY_REPLY, ...heard.notes] : heard.notes,
  };
  const next = { ...addUserText(run, 'note', iterationOver(run, cells)), notes: [] };
  return go({ ...state, run: next, reply: NO_REPLY, started: 0, cells: [], work: firstDecision });
};

// ---- Sub-calls of a cell to models ----
//
// 1. Each sub-call is answered once while its cell runs, and its answer is recorded.
// 2. A cell that reruns after a crash repeats its calls. A recorded call is answered from the
//    record, an open call is awaited (`awaited` of OpenSubcall), and a call that differs from
//    before starts anew, with another `word` in the ids of its children.

type SubcallAsked = RunEventOf<'SubcallAsked'>;

const isSame = (known: OpenSubcall | AnsweredSubcall, event: SubcallAsked): boolean =>
  known.kind === event.kind && known.prompts === digestCall(event);

const answeredBefore = (
  { answered }: RunningCell,
  ordinal: number,
): AnsweredSubcall | undefined => {
  // A cell that awaits each call has its answers in order. Otherwise the list is searched.
  const likely = answered.at(ordinal - 1);
  if (likely?.ordinal === ordinal) return likely;
  return answered.toArray().findLast((subcall) => subcall.ordinal === ordinal);
};

const openBefore = ({ open }: RunningCell, ordinal: number): OpenSubcall | undefined =>
  open.find((subcall) => subcall.ordinal === ordinal);

const findRecorded = ({ work }: Executing, event: SubcallAsked): AnsweredSubcall | null => {
  if (work.kind !== 'running' || event.ordinal > work.asked) return null;
  const known = answeredBefore(work, event.ordinal);
  return known !== undefined && isSame(known, event) ? known : null;
};

export const isRecorded = (state: Executing, event: SubcallAsked): boolean =>
  findRecorded(state, event) !== null;

export const answerFromRecord = (state: Executing, event: SubcallAsked): Same<Executing> => {
  const { cellId, ordinal } = event;
  return go(state, {
    type: 'AnswerSubcall',
    cellId,
    ordinal,
    texts: findRecorded(state, event)?.texts ?? [],
  });
};

const findUnderWay = ({ work }: Executing, event: SubcallAsked): OpenSubcall | null => {
  if (work.kind !== 'running' || event.ordinal > work.asked) return null;
  const known = openBefore(work, event.ordinal);
  return known !== undefined && isSame(known, event) ? known : null;
};
export const isUnderWay = (state: Executing, event: SubcallAsked): boolean =>
  findUnderWay(state, event) !== null;

/** Marks an open call as awaited again, if the cell was restarted. */
export const waitForAnswer = (state: Executing, event: SubcallAsked): Same<Executing> => {
  const known = findUnderWay(state, event);
  const { work } = state;
  if (work.kind !== 'running' || known === null || known.awaited === 'yes') {
    return ignore(state, 'this sub-call is under way: its answer comes when it is there');
  }
  const open = work.open.map((one) => (one === known ? { ...one, awaited: 'yes' as const } : one));
  return go({ ...state, work: { ...work, open } });
};

/** Drops the record of an ordinal, which belongs to an earlier execution of the cell. */
const withoutOrdinal = (cell: RunningCell, ordinal: number): RunningCell => ({
  ...cell,
  differed: cell.differed + 1,
  open: cell.open.filter((subcall) => subcall.ordinal !== ordinal),
  answered: AppendList.from(
    cell.answered.toArray().filter((subcall) => subcall.ordinal !== ordinal),
  ),
});

export const startSubcall = (state: Executing, event: SubcallAsked): Same<Executing> => {
  if (state.work.kind !== 'running') return ignoreCell(state);
  const { cellId, ordinal, kind, prompts } = event;
  const isNew = ordinal > state.work.asked;
  const cell = isNew ? { ...state.work, asked: ordinal } : withoutOrdinal(state.work, ordinal);
  const subcall: OpenSubcall = {
    ordinal,
    kind,
    prompts: digestCall(event),
    slots: prompts.length,
    awaited: 'yes',
  };
  const asked = { ...state, work: { ...cell, open: [...cell.open, subcall] } };
  const named = event.model === undefined ? {} : { model: event.model };
  const start = { type: 'StartSubcall', cellId, ordinal, kind, prompts, ...named } as const;
  // The children of the call that it replaces keep their ids: they may still report usage.
  return isNew
    ? go(asked, { ...start, word: String(ordinal) })
    : go(
        asked,
        { type: 'StopSubcalls', cellId, ordinal },
        { ...start, word: `${ordinal}~${cell.differed}` },
      );
};

export const isOpen = ({ work }: Executing, event: RunEventOf<'SubcallAnswered'>): boolean =>
  work.kind === 'running' &&
  work.cellId === event.cellId &&
  openBefore(work, event.ordinal) !== undefined;

export const takeAnswer = (
  state: Executing,
  event: RunEventOf<'SubcallAnswered'>,
): Same<Executing> => {
  const { work } = state;
  const { cellId, ordinal, texts } = event;
  const subcall = work.kind === 'running' ? openBefore(work, ordinal) : undefined;
  if (work.kind !== 'running' || subcall === undefined) return ignoreAnswer(state);
  const { kind, prompts } = subcall;
  const open = work.open.filter((other) => other !== subcall);
  const answered = work.answered.append({ ordinal, kind, prompts, texts });
  const known: Executing = { ...state, work: { ...work, open, answered } };
  return subcall.awaited === 'yes'
    ? go(known, { type: 'AnswerSubcall', cellId, ordinal, texts })
    : go(known);
};

export const ignoreAnswer = (state: Executing): Same<Executing> =>
  ignore(state, 'stale: no cell waits for this sub-call');
