import type { PanelName } from './page-state.js';

/** The keys of the page. */

export type KeyCommand =
  | 'first'
  | 'last'
  | 'next'
  | 'previous'
  | 'pin'
  | 'search'
  | 'larger'
  | 'smaller'
  | 'help';

export type KeyAction =
  | { readonly kind: 'step'; readonly by: number }
  | { readonly kind: KeyCommand }
  | { readonly kind: 'panel'; readonly name: PanelName };

export const KEY_WORDS: readonly (readonly [string, string])[] = [
  ['← →', 'previous, next event; with Shift ten'],
  ['Page Up, Page Down', 'a hundred events'],
  ['Home, End', 'first event; last event, and follow'],
  ['n, p', 'next, previous error, retry, approval, … (chosen beside the buttons)'],
  ['/', 'search; Enter goes to the next hit'],
  ['d', 'pin this state to compare others with it'],
  ['+ −', 'larger, smaller chart; the smallest is the whole chart'],
  ['1 … 8', 'machine, conversation, step, state, changes, request, time and money, events'],
  ['?', 'these keys'],
];

const ACTIONS: Readonly<Record<string, KeyAction>> = {
  Home: { kind: 'first' },
  End: { kind: 'last' },
  PageUp: { kind: 'step', by: -100 },
  PageDown: { kind: 'step', by: 100 },
  n: { kind: 'next' },
  p: { kind: 'previous' },
  d: { kind: 'pin' },
  '/': { kind: 'search' },
  '?': { kind: 'help' },
  '+': { kind: 'larger' },
  '-': { kind: 'smaller' },
  1: { kind: 'panel', name: 'machine' },
  2: { kind: 'panel', name: 'conversation' },
  3: { kind: 'panel', name: 'step' },
  4: { kind: 'panel', name: 'state' },
  5: { kind: 'panel', name: 'changes' },
  6: { kind: 'panel', name: 'request' },
  7: { kind: 'panel', name: 'time' },
  8: { kind: 'panel', name: 'events' },
};

/** Keys that fields, lists and scrolled regions use themselves. */
const isTaken = (target: EventTarget | null, key: string): boolean => {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement && target.type === 'range')
    return /^(Arrow|Page|Home|End)/.test(key);
  if (target.matches('input, select, textarea')) return true;
  if (target.matches('[role="tab"]') && key.startsWith('Arrow')) return true;
  return target.matches('[role="region"]') && /^(Page|Home|End)/.test(key);
};

/** What a key does; null if it is not ours. */
export const actionOf = (event: KeyboardEvent): KeyAction | null => {
  if (event.ctrlKey || event.metaKey || event.altKey || isTaken(event.target, event.key)) return null;
  const steps = event.shiftKey ? 10 : 1;
  if (event.key === 'ArrowLeft') return { kind: 'step', by: -steps };
  if (event.key === 'ArrowRight') return { kind: 'step', by: steps };
  return ACTIONS[event.key] ?? null;
};
