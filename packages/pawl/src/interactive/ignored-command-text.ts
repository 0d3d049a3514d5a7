import type { Event } from '@pawl/agent/machine/event';
import type { Stepped } from '@pawl/agent/ports/session-input-output';
import { type Look, paint } from '@pawl/terminal/paint-text';
import { joinSafe, makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';

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
