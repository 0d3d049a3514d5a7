import { AppendList } from '@pawl/machine/kernel/append-list';
import type { AnsweredSubcall, OpenSubcall } from '../cell-types.js';
import type { RunEventOf } from '../event.js';
import type { Same } from '../move-result.js';
import { go, ignore } from '../move-result.js';
import type { RunningCell } from '../state.js';
import { digestOfCall } from '../text/text-hash.js';
import { type Executing, ignoreCell } from './run-cells.js';

/**
 * Sub-calls of a cell to models.
 *
 * 1. Each sub-call is answered once while its cell runs, and its answer is recorded.
 * 2. A cell that reruns after a crash repeats its calls. A recorded call is answered from the record, an open call is
 *    awaited, and a call that differs from before is made anew.
 */

type Asked = RunEventOf<'SubcallAsked'>;

const isSame = (known: OpenSubcall | AnsweredSubcall, event: Asked): boolean =>
  known.kind === event.kind && known.prompts === digestOfCall(event);

const answeredBefore = ({ answered }: RunningCell, ordinal: number): AnsweredSubcall | undefined => {
  // A cell that awaits each call has its answers in order. Otherwise the list is searched.
  const likely = answered.at(ordinal - 1);
  if (likely?.ordinal === ordinal) return likely;
  return answered.toArray().findLast((subcall) => subcall.ordinal === ordinal);
};

const openBefore = ({ open }: RunningCell, ordinal: number): OpenSubcall | undefined =>
  open.find((subcall) => subcall.ordinal === ordinal);

const recorded = ({ work }: Executing, event: Asked): AnsweredSubcall | null => {
  if (work.kind !== 'running' || event.ordinal > work.asked) return null;
  const known = answeredBefore(work, event.ordinal);
  return known !== undefined && isSame(known, event) ? known : null;
};

export const isRecorded = (state: Executing, event: Asked): boolean => recorded(state, event) !== null;

export const answerFromRecord = (state: Executing, event: Asked): Same<Executing> => {
  const { cellId, ordinal } = event;
  return go(state, {
    type: 'AnswerSubcall',
    cellId,
    ordinal,
    texts: recorded(state, event)?.texts ?? [],
  });
};

const underWay = ({ work }: Executing, event: Asked): OpenSubcall | null => {
  if (work.kind !== 'running' || event.ordinal > work.asked) return null;
  const known = openBefore(work, event.ordinal);
  return known !== undefined && isSame(known, event) ? known : null;
};
export const isUnderWay = (state: Executing, event: Asked): boolean => underWay(state, event) !== null;

/** Marks an open call as awaited again, if the cell was restarted. */
export const waitForAnswer = (state: Executing, event: Asked): Same<Executing> => {
  const known = underWay(state, event);
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
  answered: AppendList.from(cell.answered.toArray().filter((subcall) => subcall.ordinal !== ordinal)),
});

export const startSubcall = (state: Executing, event: Asked): Same<Executing> => {
  if (state.work.kind !== 'running') return ignoreCell(state);
  const { cellId, ordinal, kind, prompts } = event;
  const isNew = ordinal > state.work.asked;
  const cell = isNew ? { ...state.work, asked: ordinal } : withoutOrdinal(state.work, ordinal);
  const subcall: OpenSubcall = {
    ordinal,
    kind,
    prompts: digestOfCall(event),
    slots: prompts.length,
    awaited: 'yes',
  };
  const asked = { ...state, work: { ...cell, open: [...cell.open, subcall] } };
  const named = event.model === undefined ? {} : { model: event.model };
  const start = { type: 'StartSubcall', cellId, ordinal, kind, prompts, ...named } as const;
  // The first children's ids stay reserved, since their calls may still report usage.
  return isNew
    ? go(asked, { ...start, word: String(ordinal) })
    : go(asked, { type: 'StopSubcalls', cellId, ordinal }, { ...start, word: `${ordinal}~${cell.differed}` });
};

export const isOpen = ({ work }: Executing, event: RunEventOf<'SubcallAnswered'>): boolean =>
  work.kind === 'running' && work.cellId === event.cellId && openBefore(work, event.ordinal) !== undefined;

export const takeAnswer = (state: Executing, event: RunEventOf<'SubcallAnswered'>): Same<Executing> => {
  const { work } = state;
  const { cellId, ordinal, texts } = event;
  const subcall = work.kind === 'running' ? openBefore(work, ordinal) : undefined;
  if (work.kind !== 'running' || subcall === undefined) return ignoreAnswer(state);
  const { kind, prompts } = subcall;
  const open = work.open.filter((other) => other !== subcall);
  const answered = work.answered.append({ ordinal, kind, prompts, texts });
  const known: Executing = { ...state, work: { ...work, open, answered } };
  return subcall.awaited === 'yes' ? go(known, { type: 'AnswerSubcall', cellId, ordinal, texts }) : go(known);
};

export const ignoreAnswer = (state: Executing): Same<Executing> =>
  ignore(state, 'stale: no cell waits for this sub-call');
