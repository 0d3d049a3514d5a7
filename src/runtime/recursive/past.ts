import type { Environment, SubcallAnswerer } from '../../needs-recursive.js';
import type { PastCell } from '../../recursive/cell.js';
import { digestOf } from '../../recursive/digest.js';

/** How far an environment came back to what it was. */
export type Variables = 'kept' | 'changed' | 'lost';

export type PastLimits = { readonly deadlineMs: number; readonly signal: AbortSignal };

/** Runs a cell once more as it ran before; its calls are answered from the record, and nobody else is asked. */
const runAgain = async (
  environment: Environment,
  { cellId, code, status, printed, subcalls }: PastCell,
  { deadlineMs, signal }: PastLimits,
): Promise<Variables> => {
  const strayed = new AbortController();
  const answer: SubcallAnswerer = async ({ ordinal, kind, prompts }) => {
    const known = subcalls.find((subcall) => subcall.ordinal === ordinal);
    if (known?.kind === kind && known.prompts === digestOf(prompts)) return known.texts;
    strayed.abort();
    return prompts.map(() => 'Error: this was not asked before');
  };
  const either = AbortSignal.any([signal, strayed.signal]);
  const report = await environment.run({ cellId, code, deadlineMs, signal: either }, answer);
  if (strayed.signal.aborted || report.status !== status || report.variablesLost === 'yes') return 'lost';
  return digestOf([report.stdout, report.stderr]) === printed ? 'kept' : 'changed';
};

/**
 * Brings a fresh environment to where it was: runs the cells again in order, until one goes another way.
 *
 * After `lost` the environment is in a state that no run was ever in: it is not to be used.
 */
export const runPast = async (
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
