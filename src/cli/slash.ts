import type { InputMode } from '../agent/event.js';
import { closestTo } from './suggest.js';

/** What a submitted line asks for. */
export type Wish =
  | { readonly kind: 'say'; readonly text: string; readonly mode: InputMode }
  | { readonly kind: 'help' | 'cost' | 'compact' | 'retry' | 'quit' | 'nothing' }
  | { readonly kind: 'budget'; readonly amount: string }
  | { readonly kind: 'unknown'; readonly name: string; readonly close: string | undefined };

export const slashHelp: readonly (readonly [string, string])[] = [
  ['/help', 'this list'],
  ['/cost', 'tokens and money of this session'],
  ['/compact', 'summarise the conversation to make room'],
  ['/retry', 'send the last message again; while it waits to try again: now'],
  ['/later TEXT', 'say it after this turn (Alt+Enter does the same)'],
  ['/budget AMOUNT', 'raise the limit that stopped the turn'],
  ['/quit', 'end; the session can be resumed'],
];

export const keyHelp: readonly (readonly [string, string])[] = [
  ['Enter', 'send; while it works: with the next results'],
  ['Ctrl-J', 'a new line'],
  ['Escape, Ctrl-C', 'stop the turn; what waits comes back to be edited'],
  ['Ctrl-C twice, Ctrl-D', 'end'],
];

const simple = ['help', 'cost', 'compact', 'retry', 'quit'] as const;

/** A line that begins with a slash and a word is a wish to the terminal; a path like /etc/hosts is text. */
export const readWish = (typed: string, mode: InputMode): Wish => {
  const text = typed.trim();
  if (text === '') return { kind: 'nothing' };
  const found = /^\/([a-z]+)(?:\s+(.*))?$/s.exec(text);
  if (found === null) return { kind: 'say', text, mode };
  const [, name = '', rest = ''] = found;
  if (name === 'exit') return { kind: 'quit' };
  if (name === 'later')
    return rest === '' ? { kind: 'nothing' } : { kind: 'say', text: rest, mode: 'followUp' };
  if (name === 'budget') return { kind: 'budget', amount: rest.trim() };
  const kind = simple.find((known) => known === name);
  if (kind !== undefined) return { kind };
  return { kind: 'unknown', name, close: closestTo(name, [...simple, 'later', 'budget']) };
};
