import type { JudgedCall } from '../agent/call.js';
import type { ApprovalAnswer, ApprovalScope } from '../agent/event.js';
import type { Grant } from '../agent/settings.js';
import { oneLine } from '../terminal/print.js';

const SHAPE_COLUMNS = 60;

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
  `y once · a always this · s ${call.tool} for the session · n (and why) · Escape stops`;

/** An answer of so few letters was meant for its question alone. */
const SHORT = 3;
export const isShort = (typed: string): boolean => typed.trim().length <= SHORT;

/** Why what was typed is no answer, and what would be one. */
export const noAnswer = (call: JudgedCall, typed: string): string => {
  if (typed.trim() === '') return choices(call);
  if (isShort(typed)) return `'${typed.trim()}' is no answer: ${choices(call)}`;
  return 'That is no answer. To refuse with these words put n before them; Escape stops the turn and keeps them.';
};

/** What was allowed for longer. */
export const grantText = (grant: Grant): string =>
  grant.scope === 'session' ? `every ${grant.tool}` : `${grant.tool} ${oneLine(grant.shape, SHAPE_COLUMNS)}`;

/** What an answer allows from now on, and how it is taken back; empty of one that holds once. */
export const grantedText = (call: JudgedCall, scope: ApprovalScope, title: string): string => {
  if (scope === 'once') return '';
  const what = scope === 'session' ? `every ${call.tool}` : `${call.tool} ${title.split('\n')[0]}`;
  return `· allowed (/permissions takes it back): ${what}`;
};
