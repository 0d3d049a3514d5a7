import type { ApprovalAnswer, ApprovalScope } from '@pawl/agent/machine/event';
import type { Grant } from '@pawl/agent/machine/settings';
import { type ApprovalChoice, describeGrant, scopeOfAnswer } from '@pawl/agent/policy/approval-question';
import { oneLine } from '@pawl/terminal/paint-text';
import type { AnsweredQuestion } from '@pawl/terminal/questions/approval-questions';

const GRANT_COLUMNS = 100;

export type ScopedAnswer = { readonly answer: ApprovalAnswer; readonly scope: ApprovalScope };

const WORDS: Readonly<Record<string, ApprovalChoice['answer']>> = {
  y: 'once',
  yes: 'once',
  a: 'always',
  always: 'always',
  p: 'prefix',
  prefix: 'prefix',
  s: 'session',
  session: 'session',
};

export type TypedAnswer = { readonly answer: ApprovalChoice['answer']; readonly reason: string };

/** Reads `y`, `a`, `p`, `s`, or `n` and a reason; null for anything else. */
export const readAnswer = (typed: string): TypedAnswer | null => {
  const text = typed.trim();
  const answer = WORDS[text.toLowerCase()];
  if (answer !== undefined && Object.hasOwn(WORDS, text.toLowerCase())) return { answer, reason: '' };
  const refused = /^no?(?:[\s,:]+(.*))?$/is.exec(text);
  return refused === null ? null : { answer: 'no', reason: refused[1]?.trim() ?? '' };
};

/** The answer with its scope, as the machine takes it. */
export const scopedAnswer = (answered: AnsweredQuestion): ScopedAnswer =>
  answered.answer === 'no'
    ? { answer: { kind: 'deny', reason: answered.reason }, scope: 'once' }
    : { answer: { kind: 'allow' }, scope: scopeOfAnswer(answered.answer) };

/** A grant in one line. */
export const grantText = (grant: Grant, workspace = ''): string =>
  oneLine(describeGrant(grant, workspace), GRANT_COLUMNS);
