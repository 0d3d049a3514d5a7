import type { Event } from '../../agent/event.js';
import type { Stepped } from '../../ports/session-input-output.js';
import { type Look, paint } from '../../terminal/paint-text.js';
import { joinSafe, makeSafe, type Safe, safe } from '../../terminal/safe-text.js';

const COMMAND_EVENTS: readonly Event['type'][] = [
  'CompactRequested',
  'RetryLast',
  'RetryNow',
  'ApproveBudget',
];

/** Says why the machine ignored a command; empty if it did not. */
export const refusalText = ({ event, diagnostics }: Stepped, look: Look): Safe =>
  COMMAND_EVENTS.includes(event.type)
    ? joinSafe(
        diagnostics.map(({ why }) => paint(look, 'yellow', safe`  not now: ${makeSafe(why)}`)),
        safe`\n`,
      )
    : safe``;
