import { AppendList } from '@pawl/machine/kernel/append-list';
import type { OutsideAction } from '../action.js';
import type { AnsweredSubcall, CellReport, PastCell } from '../cell-types.js';
import type { RunEventOf } from '../event.js';
import type { Next, Same } from '../move-result.js';
import { go, ignore, nextId } from '../move-result.js';
import type { FinishedCell, Outcome, Run, RunIn, RunningCell } from '../state.js';
import { countRepeat, noRepeat } from '../stop-policies.js';
import { hear, tell } from '../text/conversation.js';
import { digestOf } from '../text/text-hash.js';
import { EMPTY_REPLY, iterationOver } from '../text/texts-for-model.js';
import { endRun } from './end-run.js';
import { decide } from './model-call.js';
import { answerOfReply, isReady, NO_REPLY, wholeReply } from './read-reply.js';

/** An iteration: runs the blocks of a reply in order, looks for an answer, and reports the results to the model. */

export type Executing = RunIn<'EXECUTING'>;

const answerStands = ({ answer, reply, started, run }: Executing): boolean =>
  answer !== null && (run.settings.parity.afterReady === 'skipped' || started === reply.blocks.length);

const hasBlock = (state: Executing): boolean =>
  state.started < state.reply.blocks.length && !answerStands(state);

/** True if the reply has nothing left to run or to look up. */
const isEvaluated = (state: Executing): boolean =>
  state.work.kind === 'next' &&
  (answerStands(state) || (!hasBlock(state) && state.reply.final?.kind !== 'variable'));

export const blockIsNext = (state: Executing): boolean =>
  state.work.kind === 'next' && isReady(state) && hasBlock(state);

/** The variable is read after the reply's code, which may have just set it. */
export const variableIsNext = (state: Executing): boolean =>
  state.work.kind === 'next' &&
  isReady(state) &&
  !hasBlock(state) &&
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

const printedBy = ({ stdout, stderr }: CellReport): string => digestOf([stdout, stderr]);

/** Adds the cell to the record. If variables were lost, the record starts anew, since it can't rebuild them. */
const remember = ({ past }: Run, cell: RunningCell, report: CellReport): AppendList<PastCell> =>
  report.variablesLost === 'yes'
    ? AppendList.empty()
    : past.append({
        cellId: cell.cellId,
        code: cell.code,
        status: report.status,
        printed: printedBy(report),
        subcalls: lastOfEach(cell.answered.toArray()),
      });

/** The last answer of each ordinal. There may be two if a resumed cell made another call. */
const lastOfEach = (subcalls: readonly AnsweredSubcall[]): readonly AnsweredSubcall[] => [
  ...new Map(subcalls.map((subcall) => [subcall.ordinal, subcall])).values(),
];

export const finishCell = (state: Executing, event: RunEventOf<'CellFinished'>): Same<Executing> => {
  const { work, run } = state;
  if (work.kind !== 'running') return ignoreCell(state);
  const { report, cellId } = event;
  const recorded = run.settings.parity.answerRecord === 'on' ? report.answer : null;
  const finished: Executing = {
    ...state,
    run: { ...run, past: remember(run, work, report) },
    cells: [...state.cells, { cellId, report }],
    // The first ready answer counts, even if later cells change the record.
    answer: state.answer ?? recorded,
    work: { kind: 'next' },
  };
  return work.open.length === 0
    ? go(finished)
    : go(finished, { type: 'StopSubcalls', cellId, ordinal: null });
};

// ---- An answer ----

const found = (state: Executing): Outcome | null => {
  const { answer, run, reply } = state;
  if (answer === null) return answerOfReply(run, reply);
  return { status: 'answered', answer, by: 'record', closing: run.closing?.reason ?? null };
};

export const answerIsFound = (state: Executing): boolean => isEvaluated(state) && found(state) !== null;
export const limitIsAnswered = (state: Executing): boolean =>
  isEvaluated(state) && state.run.closing?.reason === 'iterations';
export const closingIsAnswered = (state: Executing): boolean =>
  isEvaluated(state) && state.run.closing !== null;

/** Ends with the answer that was found, or else with the whole reply. */
export const endWithAnswer = (state: Executing): Next<'DONE'> => {
  const { run, reply } = state;
  return endRun({ ...state, run: hear(run, reply) }, found(state) ?? wholeReply(run, reply));
};

// ---- The iteration is over ----

export const iterationIsOver = (state: Executing): boolean => isEvaluated(state);

const outputOf = (cells: readonly FinishedCell[]): string =>
  digestOf(cells.flatMap(({ report }) => [report.stdout, report.stderr, JSON.stringify(report.variables)]));

const errorsAfter = (before: number, cells: readonly FinishedCell[]): number => {
  if (cells.length === 0) return before;
  return cells.some(({ report }) => report.status !== 'ok') ? before + 1 : 0;
};

/** Counts the iteration, and sends its results to the model in one message. */
export const closeIteration = (state: Executing): Next<'EXECUTING'> => {
  const { reply, cells } = state;
  const heard = hear(state.run, reply);
  const run: Run = {
    ...heard,
    iterations: heard.iterations + 1,
    errors: errorsAfter(heard.errors, cells),
    code: reply.blocks.length === 0 ? noRepeat : countRepeat(heard.code, digestOf(reply.blocks)),
    output: countRepeat(heard.output, outputOf(cells)),
    notes: reply.message === null ? [EMPTY_REPLY, ...heard.notes] : heard.notes,
  };
  const told = tell(run, 'note', iterationOver(run, cells));
  return go({ ...state, run: { ...told, notes: [] }, reply: NO_REPLY, started: 0, cells: [], work: decide });
};
