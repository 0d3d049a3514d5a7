/**
 * Reads a reply: programs, an answer, or neither. Programs of a reply run before its answer
 * counts. Its blocks are its programs; its `final` is an answer in one of the forms FINAL(text)
 * and FINAL_VAR(name). `parity` are settings in which we differ from seed 004, a published text
 * about such runs.
 */

import { getText, storeReply, withoutCalls } from '../conversation.js';
import type { CodeEvent, RunEventOf } from '../event.js';
import { go, ignore, type Next, nextId, type Same } from '../move-result.js';
import { parseReply } from '../parse-reply.js';
import type { Outcome, Reply, Run, RunIn } from '../state.js';
import { CUT_REPLY, noVariable, onlyFirstRan } from '../texts-for-model.js';
import { endRun } from './end-run.js';

export const NO_REPLY: Reply = { message: null, text: '', blocks: [], final: null };

type ReadReply = { readonly run: Run; readonly reply: Reply };

/**
 * Reads a reply once. The reply at the limit may be taken as text alone (parity limitAnswer). Its
 * programs all run, since no other reply follows. Of any other reply the first one runs: the model
 * wrote the rest without having seen what that prints (parity programs).
 */
const parse = (run: Run, event: RunEventOf<'ModelReplied'>): ReadReply => {
  const { parity, language } = run.settings;
  const message = event.message === null ? null : withoutCalls(event.message);
  const text = getText(message);
  const parsed = parseReply(text, parity, language);
  const textAlone = run.closing !== null && parity.limitAnswer === 'text';
  const isCut = event.stopReason === 'maxTokens';
  // an unclosed block may run, unless the reply was cut off
  const whole = parsed.blocks.filter(({ closed }) => closed === 'yes' || !isCut);
  const final = textAlone && parsed.final?.kind === 'variable' ? null : parsed.final;
  const onlyFirst = parity.programs === 'first' && run.closing === null;
  const blocks = textAlone ? [] : whole.map(({ code }) => code).slice(0, onlyFirst ? 1 : undefined);
  const notes = [
    ...run.notes,
    ...(onlyFirst && whole.length > 1 ? [onlyFirstRan(whole.length)] : []),
    ...(whole.length < parsed.blocks.length ? [CUT_REPLY] : []),
  ];
  return { run: { ...run, notes }, reply: { message, text, blocks, final } };
};

/** Takes a reply that begins the next iteration. */
export const takeReply = (
  state: RunIn<'INIT'> | RunIn<'EXECUTING'>,
  event: RunEventOf<'ModelReplied'>,
): Next<'PROMPTING'> =>
  go({ name: 'PROMPTING', ...parse(state.run, event), work: { kind: 'next' } });

export const asksForAnswer = ({ run }: RunIn<'EXECUTING'>): boolean => run.closing !== null;

/** Takes the reply to the last call, which begins no new iteration. */
export const takeLastReply = (
  state: RunIn<'EXECUTING'>,
  event: RunEventOf<'ModelReplied'>,
): Same<RunIn<'EXECUTING'>> => go(executing(parse(state.run, event)));

const executing = (readReply: ReadReply): RunIn<'EXECUTING'> => ({
  name: 'EXECUTING',
  ...readReply,
  started: 0,
  cells: [],
  answer: null,
  work: { kind: 'next' },
});

/** The reply of a plain call is its answer, as it stands. */
export const endPlain = (
  state: RunIn<'SHALLOW_CALL'>,
  event: RunEventOf<'ModelReplied'>,
): Next<'DONE'> => {
  const { run, reply } = parse(state.run, event);
  const outcome = { status: 'answered', answer: reply.text, by: 'reply', closing: null } as const;
  return endRun({ ...state, run: storeReply({ ...run, notes: [] }, reply) }, outcome);
};

// ---- PROMPTING ----

type Prompting = RunIn<'PROMPTING'>;
const isNext = ({ work }: Prompting | RunIn<'EXECUTING'>): boolean => work.kind === 'next';

/** A reply at the limit (`closing`) goes there without a program, too: EXECUTING ends the run. */
export const hasProgram = (state: Prompting): boolean =>
  isNext(state) && (state.reply.blocks.length > 0 || state.run.closing !== null);
/** Neither a program nor an answer: the iteration is wasted. */
export const hasNothing = (state: Prompting): boolean =>
  isNext(state) && state.reply.final === null;
export const execute = ({ run, reply }: Prompting): Next<'EXECUTING'> =>
  go(executing({ run, reply }));

export const givesAnswer = (state: Prompting): boolean =>
  isNext(state) && (state.reply.final?.kind === 'text' || state.reply.final?.kind === 'value');

/** An empty answer counts, unless the parity setting takes the whole reply instead. */
const chooseAnswer = ({ settings: { parity } }: Run, { text }: Reply, answer: string): string =>
  answer === '' && parity.emptyAnswer === 'wholeReply' ? text : answer;

/** The answer in the reply, or in the variable that it names; null if there is none. */
export const answerOfReply = (run: Run, reply: Reply): Outcome | null => {
  const { final } = reply;
  if (final === null || final.kind === 'variable') return null;
  return {
    status: 'answered',
    answer: chooseAnswer(run, reply, final.text),
    by: final.kind === 'text' ? 'final' : 'variable',
    closing: run.closing?.reason ?? null,
  };
};

/** The whole reply as the answer, if there is no other. */
export const wholeReply = (run: Run, { text }: Reply): Outcome => ({
  status: 'answered',
  answer: text,
  by: 'limit',
  closing: run.closing?.reason ?? null,
});

export const endWithFinal = (state: Prompting): Next<'DONE'> => {
  const { run, reply } = state;
  return endRun(
    { ...state, run: storeReply(run, reply) },
    answerOfReply(run, reply) ?? wholeReply(run, reply),
  );
};

// ---- FINAL_VAR ----

type Evaluating = Prompting | RunIn<'EXECUTING'>;

export const isReady = ({ run }: Evaluating): boolean => run.environment === 'ready';
export const namesVariable = (state: Prompting): boolean =>
  isNext(state) && isReady(state) && state.reply.final?.kind === 'variable';

export const readVariable = <S extends Evaluating>(state: S, _event: CodeEvent): Same<S> => {
  const [readId, run] = nextId(state.run, 'read');
  const { final } = state.reply;
  const variable = final?.kind === 'variable' ? final.name : '';
  const work = { kind: 'reading', readId, variable } as const;
  // Both states take a reading as their work; the spread keeps the rest of S.
  return go({ ...state, run, work } as S, { type: 'ReadVariable', readId, variable });
};

export const isStaleRead = (state: Evaluating, event: RunEventOf<'VariableRead'>): boolean =>
  state.work.kind !== 'reading' || state.work.readId !== event.readId || !isReady(state);
export const ignoreRead = <S extends Evaluating>(state: S): Same<S> =>
  ignore(state, 'stale: nobody waits for this variable');

/** Takes the value as the answer. If there is no such variable, a note tells the model. */
export const takeVariable = <S extends Evaluating>(
  state: S,
  event: RunEventOf<'VariableRead'>,
): Same<S> => {
  const { run, work } = state;
  const notes =
    event.value === null && work.kind === 'reading'
      ? [...run.notes, noVariable(work.variable)]
      : run.notes;
  const final = event.value === null ? null : ({ kind: 'value', text: event.value } as const);
  const reply = { ...state.reply, final };
  // Both states take `next` as their work; the spread keeps the rest of S.
  return go({ ...state, run: { ...run, notes }, reply, work: { kind: 'next' } } as S);
};
