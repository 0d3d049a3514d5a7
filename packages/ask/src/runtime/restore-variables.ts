import type { Environment, SubcallAnswerer } from '../environment-and-journal-types.js';
import type { PastCell } from '../run/cell-types.js';
import { digestOf, digestOfCall } from '../run/text/text-hash.js';

/** How far a rerun restored the variables of an environment. */
export type Variables = 'kept' | 'changed' | 'lost';

export type PastLimits = { readonly deadlineMs: number; readonly signal: AbortSignal };

/** Runs a cell again; its sub-calls are answered from the record, without new model calls. */
const runAgain = async (
  environment: Environment,
  { cellId, code, status, printed, subcalls }: PastCell,
  { deadlineMs, signal }: PastLimits,
): Promise<Variables> => {
  const strayed = new AbortController();
  const answer: SubcallAnswerer = async (subcall) => {
    const { ordinal, kind, prompts } = subcall;
    const known = subcalls.find((past) => past.ordinal === ordinal);
    if (known?.kind === kind && known.prompts === digestOfCall(subcall)) return known.texts;
    strayed.abort();
    return prompts.map(() => 'Error: this was not asked before');
  };
  const either = AbortSignal.any([signal, strayed.signal]);
  const report = await environment.run({ cellId, code, deadlineMs, signal: either }, answer);
  if (strayed.signal.aborted || report.status !== status || report.variablesLost === 'yes') return 'lost';
  return digestOf([report.stdout, report.stderr]) === printed ? 'kept' : 'changed';
};

/**
 * Restores a new environment: runs the recorded cells again in order, until one differs from its record.
 *
 * After `lost` the environment is in an undefined state and must be replaced.
 */
export const restoreVariables = async (
  environment: Environment,
  past: readonly PastCell[],
  limits: PastLimits,
): Promise<Variables> => {
  let variables: Variables = 'kept';
  for (const cell of past) {
    const came = await runAgain(environment, cell, limits);
    if (came === 'lost') return 'lost';
    if (came === 'changed') variables = 'changed';
  }
  return variables;
};
