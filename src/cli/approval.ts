import type { JudgedCall } from '../agent/call.js';
import type { ApprovalAnswer, ApprovalScope } from '../agent/event.js';

export type Answer = { readonly answer: ApprovalAnswer; readonly scope: ApprovalScope };

/**
 * What the user typed at a question: `y` once, `a` always for this shape of call, `s` for the session, `n` with a
 * reason that the model reads. Anything else is no answer, and the question stays.
 */
export const readAnswer = (typed: string): Answer | null => {
  const text = typed.trim();
  const allow = { kind: 'allow' } as const;
  if (/^y(es)?$/i.test(text)) return { answer: allow, scope: 'once' };
  if (/^a(lways)?$/i.test(text)) return { answer: allow, scope: 'shape' };
  if (/^s(ession)?$/i.test(text)) return { answer: allow, scope: 'session' };
  const refused = /^no?(?:[\s,:]+(.*))?$/is.exec(text);
  return refused === null
    ? null
    : { answer: { kind: 'deny', reason: refused[1]?.trim() ?? '' }, scope: 'once' };
};

export const choices = (call: JudgedCall): string =>
  `y once · a always this · s ${call.tool} for the session · n (and why)`;

/** What an answer allows from now on, and how it is taken back; empty of one that holds once. */
export const grantedText = (call: JudgedCall, scope: ApprovalScope, title: string): string => {
  if (scope === 'once') return '';
  const what = scope === 'session' ? `every ${call.tool}` : `${call.tool} ${title.split('\n')[0]}`;
  return `· allowed in this session: ${what} (/permissions)`;
};
