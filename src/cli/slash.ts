import type { InputMode } from '../agent/event.js';
import { closestTo } from './suggest.js';

/** What a submitted line asks for. */
export type Wish =
  | { readonly kind: 'say'; readonly text: string; readonly mode: InputMode }
  | { readonly kind: 'help' | 'cost' | 'compact' | 'retry' | 'quit' | 'nothing' }
  | { readonly kind: 'budget'; readonly amount: string }
  /** Looks like a command and is none: nothing is sent. */
  | { readonly kind: 'refused'; readonly why: string };

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
  ['Ctrl-Z', 'back to the shell; fg goes on'],
];

const simple = ['help', 'cost', 'compact', 'retry', 'quit'] as const;

const commandList = slashHelp.map(([name]) => name).join(', ');

const noCommand = (name: string): Wish => {
  const close = closestTo(name, [...simple, 'later', 'budget']);
  const meant = close === undefined ? '' : ` Did you mean /${close}?`;
  return { kind: 'refused', why: `There is no /${name}.${meant} There are ${commandList}.` };
};

/** A line that begins with a slash and a word is a wish to the terminal; a path like /etc/hosts is text. */
export const readWish = (typed: string, mode: InputMode): Wish => {
  const text = typed.trim();
  if (text === '') return { kind: 'nothing' };
  const found = /^\/([\w-]*)(?:\s+(.*))?$/s.exec(text);
  if (found === null) return { kind: 'say', text, mode };
  const [, written = '', rest = ''] = found;
  const lower = written.toLowerCase();
  const name = lower === 'exit' ? 'quit' : lower;
  if (name === 'budget') return { kind: 'budget', amount: rest.trim() };
  if (name === 'later') {
    return rest === ''
      ? { kind: 'refused', why: 'What is to be said later? /later TEXT' }
      : { kind: 'say', text: rest, mode: 'followUp' };
  }
  const kind = simple.find((known) => known === name);
  if (kind === undefined) return noCommand(name);
  return rest === '' ? { kind } : { kind: 'refused', why: `/${kind} takes no words: write it alone.` };
};
