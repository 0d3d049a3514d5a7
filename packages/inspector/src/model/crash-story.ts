/**
 * What a crash did, in order: what ran, what went on without the process, what the next process
 * found, and whether a call ran twice. Each sentence follows from entries of the journal.
 *
 * A call has one of three effects: `pure` calls only read, `probeable` ones change a file, which
 * the next process compares; `opaque` ones are commands, which run on without the process. A gap is
 * a time in which no process had the session open.
 */

import type { State } from '@pawl/agent/machine/state';
import type { ProcessGap, SessionFigures } from '../figures/session-figures.js';
import type { SentencePart } from './figure-text.js';
import type { SessionHistory } from './session-history.js';
import { type CallLife, callName } from './session-index.js';

export type StorySentence = {
  readonly label: 'Died' | 'Went on' | 'Opened again' | 'Found' | 'Twice?';
  readonly seq: number | null;
  readonly at: number | null;
  readonly text: readonly SentencePart[];
};

export type CrashStory = {
  /** The entry at which the session was opened again. */
  readonly seq: number;
  /** All of it in one line. */
  readonly summary: readonly SentencePart[];
  readonly sentences: readonly StorySentence[];
};

export const crashStories = (history: SessionHistory): readonly CrashStory[] => {
  const { figures } = history;
  return figures.gaps
    .filter(({ cause }) => cause === 'crashed')
    .map((gap) => tellStory(history, gap, describeRequest(history, figures, gap.seq)));
};

/** What became of the request to the model that was open; empty if none was. */
const describeRequest = (
  history: SessionHistory,
  { requests }: SessionFigures,
  seq: number,
): string => {
  const state = history.stateAt(seq - 1);
  if (state.name !== 'CallingLlm') return '';
  const request = requests.find(({ id }) => id === state.requestId);
  return request !== undefined && request.sent > 1
    ? 'The request to the model was sent again; its first reply was not in the journal.'
    : 'The request to the model was not sent again.';
};

/** `request`: the sentence about the request to the model; may be empty. */
const tellStory = (history: SessionHistory, gap: ProcessGap, request: string): CrashStory => {
  const { seq, state, startMs, endMs, doing } = gap;
  const diedAt = history.stepAt(seq - 1)?.event.at ?? null;
  const openedAt = history.stepAt(seq)?.event.at ?? null;
  const calls = openCalls(history, history.stateAt(seq - 1), seq);
  const running =
    doing.length === 0
      ? 'nothing was running, and nothing was lost'
      : `${doing.join(', ')} was running`;
  const gapMs = { ms: endMs - startMs };
  const found = calls.map((call): StorySentence => {
    return {
      label: hasGoneOn(call) ? 'Went on' : 'Found',
      seq: call.record.end?.seq ?? null,
      at: call.record.end?.at ?? null,
      text: [callName(call.record), ' ', ...describeFate(call), '.'],
    };
  });
  const requestFound: readonly StorySentence[] =
    request === '' ? [] : [{ label: 'Found', seq, at: openedAt, text: [request] }];
  const died: readonly SentencePart[] =
    diedAt === null
      ? ["Pawl's process died. "]
      : ["Pawl's process died after ", { clock: diedAt }, '. ']; // the last entry
  const [only] = calls;
  const fate: readonly SentencePart[] =
    only === undefined
      ? [request === '' ? running : request.replace(/\.$/, '')]
      : calls.flatMap((call, index) => [
          ...(index === 0 ? [] : ['; ']),
          `${callName(call.record)} `,
          ...describeFate(call),
        ]);
  return {
    seq,
    summary: [...died, ...fate, '. ', sayWhatRanTwice(calls)[0]],
    sentences: [
      {
        label: 'Died',
        seq: seq - 1,
        at: diedAt,
        text: [`The process ended in ${state}: ${running}.`],
      },
      {
        label: 'Opened again',
        seq,
        at: openedAt,
        text: ['By a new process, at most ', gapMs, ' later.'],
      },
      ...requestFound,
      ...found,
      { label: 'Twice?', seq: null, at: null, text: sayWhatRanTwice(calls) },
    ],
  };
};

/** A call that ran at the crash: how often it was started before it, and after. */
type OpenCall = {
  readonly record: CallLife;
  readonly before: number;
  readonly after: number;
};

/** The calls that ran before the entry `seq`. */
const openCalls = (history: SessionHistory, state: State, seq: number): readonly OpenCall[] => {
  if (state.name !== 'ExecutingTools') return [];
  return state.calls.flatMap(({ judged, status }) => {
    const record = history.index.call(state.batchId, judged.callId);
    if (record === undefined || (status !== 'running' && status !== 'starting')) return [];
    const before = record.starts.filter((start) => start.seq < seq).length;
    return [{ record, before, after: record.starts.length - before }];
  });
};

/** Endings of which nobody knows whether the effect happened. */
const UNKNOWN = ['lost', 'interrupted'];

/** Endings by the user or by a limit, in the next process. */
const ENDED_LATER = ['cancelled', 'timedOut'];

/** Whether a command ran on without the process, and its end is known. */
const hasGoneOn = ({ record: { end, effect }, before, after }: OpenCall): boolean =>
  effect === 'opaque' && end !== null && !UNKNOWN.includes(end.status) && before > 0 && after === 0;

/** What became of a call, without its name. */
const describeFate = (call: OpenCall): readonly SentencePart[] => {
  const { before, after } = call;
  const { end } = call.record;
  if (end === null) return [after > 0 ? 'was started again, and still runs' : 'is still open'];
  const when: readonly SentencePart[] = [` at `, { clock: end.at }];
  if (UNKNOWN.includes(end.status) && after === 0)
    return ['could not be followed: the model was told that its effect is unknown', ...when];
  if (after > 0)
    return before === 0
      ? [`had not begun; it was started then, and ended ${end.status}`, ...when]
      : [`was started again, and ended ${end.status}`, ...when];
  if (before === 0) return [`had not begun, and was not started: ${end.status}`, ...when];
  if (ENDED_LATER.includes(end.status))
    return [
      `${hasGoneOn(call) ? 'went on without the process, and ' : ''}was ${end.status}`,
      ...when,
    ];
  if (hasGoneOn(call))
    return [`went on without the process; its real result was found: ${end.status}`, ...when];
  return [`had its effect checked: ${end.status}`, ...when];
};

/** Whether a call ran twice, and how that is known. */
const sayWhatRanTwice = (calls: readonly OpenCall[]): readonly [claim: string, why: string] => {
  const again = calls.filter(({ before, after }) => before > 0 && after > 0);
  if (again.length === 0)
    return ['No call ran twice.', ' None that had started was started again.'];
  const names = again.map(({ record }) => callName(record)).join(', ');
  return again.every(({ record }) => record.effect === 'pure')
    ? [`Only what reads and changes nothing ran again: ${names}.`, '']
    : [`Started again: ${names}.`, ''];
};
