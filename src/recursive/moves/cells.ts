import { Log } from '../../kernel/log.js';
import type { OutsideAction } from '../action.js';
import type { AnsweredSubcall, CellReport, PastCell } from '../cell.js';
import { digestOf } from '../digest.js';
import type { On } from '../event.js';
import type { Next, Same } from '../move.js';
import { go, ignore, nextId } from '../move.js';
import { countRepeat, noRepeat } from '../policies.js';
import type { FinishedCell, In, Outcome, Run, RunningCell } from '../state.js';
import { hear, tell } from '../talk.js';
import { EMPTY_REPLY, iterationOver } from '../words.js';
import { decide } from './call.js';
import { endRun } from './end.js';
import { answerOfReply, isReady, NO_REPLY, wholeReply } from './reply.js';

/** An iteration: the blocks of a reply one by one, then its answer, then what came of it is told to the model. */

export type Executing = In<'EXECUTING'>;

const answerStands = ({ answer, reply, started, run }: Executing): boolean =>
  answer !== null && (run.settings.parity.afterReady === 'skipped' || started === reply.blocks.length);

const hasBlock = (state: Executing): boolean =>
  state.started < state.reply.blocks.length && !answerStands(state);

/** Nothing of the reply is left to run or to look up. */
const isEvaluated = (state: Executing): boolean =>
  state.work.kind === 'next' &&
  (answerStands(state) || (!hasBlock(state) && state.reply.final?.kind !== 'variable'));

export const blockIsNext = (state: Executing): boolean =>
  state.work.kind === 'next' && isReady(state) && hasBlock(state);

/** After the code of the reply, so that it may name what that code has just made. */
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
    answered: Log.empty(),
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

/** A cell does not run before its environment stands: what comes of it then is of before a crash. */
export const isOtherCell = (state: Executing, event: { readonly cellId: string }): boolean =>
  state.work.kind !== 'running' || state.work.cellId !== event.cellId || !isReady(state);
export const ignoreCell = (state: Executing): Same<Executing> =>
  ignore(state, 'stale: this cell is over, or never ran');

const printedBy = ({ stdout, stderr }: CellReport): string => digestOf([stdout, stderr]);

/** What was bound before is gone: nothing of it can be built again. */
const remember = ({ past }: Run, cell: RunningCell, report: CellReport): Log<PastCell> =>
  report.variablesLost === 'yes'
    ? Log.empty()
    : past.append({
        cellId: cell.cellId,
        code: cell.code,
        status: report.status,
        printed: printedBy(report),
        subcalls: lastOfEach(cell.answered.toArray()),
      });

/** One answer an ordinal: after a resume that went otherwise there may be two, of which the later counts. */
const lastOfEach = (subcalls: readonly AnsweredSubcall[]): readonly AnsweredSubcall[] => [
  ...new Map(subcalls.map((subcall) => [subcall.ordinal, subcall])).values(),
];

export const finishCell = (state: Executing, event: On<'CellFinished'>): Same<Executing> => {
  const { work, run } = state;
  if (work.kind !== 'running') return ignoreCell(state);
  const { report, cellId } = event;
  const recorded = run.settings.parity.answerRecord === 'on' ? report.answer : null;
  const finished: Executing = {
    ...state,
    run: { ...run, past: remember(run, work, report) },
    cells: [...state.cells, { cellId, report }],
    // What was ready first counts, whatever later cells make of the record.
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

/** With the answer that was found; where there is none, with the reply as it stands. */
export const endWithAnswer = (state: Executing): Next<'DONE'> => {
  const { run, reply } = state;
  return endRun({ ...state, run: hear(run, reply) }, found(state) ?? wholeReply(run, reply));
};

// ---- The iteration is over ----

export const iterationIsOver = isEvaluated;

const outputOf = (cells: readonly FinishedCell[]): string =>
  digestOf(cells.flatMap(({ report }) => [report.stdout, report.stderr, JSON.stringify(report.variables)]));

const errorsAfter = (before: number, cells: readonly FinishedCell[]): number => {
  if (cells.length === 0) return before;
  return cells.some(({ report }) => report.status !== 'ok') ? before + 1 : 0;
};

/** Counts it, and tells the model in one message what came of its reply. */
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
