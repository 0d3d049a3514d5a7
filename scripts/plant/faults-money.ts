/**
 * Faults with money under a limit in dollars: what is set aside, and what takes its place. Each
 * fault changes a text in one file of a copy of the machine. The explorer, which visits the states
 * of a configuration, has to notice it.
 */

import { explorer, type Fault } from './fault.js';

const file = 'packages/agent/src/machine/moves/budget.ts';
const requests = explorer('reserves');
/** A hook that asks twice is further off. */
const tools = explorer('reserves of tools', 1_500);

export const faultsInMoney: readonly Fault[] = [
  {
    name: 'money that is set aside counts as free',
    file,
    edits: [
      {
        from: 'limit * (1 - ROUNDING) - session.usage.costUsd - reservedUsd(session);',
        to: 'limit * (1 - ROUNDING) - session.usage.costUsd;',
      },
    ],
    why: 'a retry is paid with the money of the request whose cost is unknown',
    caughtBy: requests,
  },
  {
    name: 'a broken request without usage costs nothing',
    file,
    edits: [
      {
        from: "(error.sent === 'no' || refusals.has(error.kind))",
        to: "(error.sent !== 'no' || refusals.has(error.kind))",
      },
    ],
    why: 'its provider charges for it, and the session does not know',
    caughtBy: requests,
  },
  {
    name: 'a crash forgets what was set aside',
    file,
    edits: [
      {
        from: 'usage: { ...session.usage, costUsd: session.usage.costUsd + usd },',
        to: 'usage: { ...session.usage, costUsd: session.usage.costUsd },',
      },
    ],
    why: 'each crash allows one more request than the limit pays for',
    caughtBy: requests,
  },
  {
    name: 'the usage of a request counts twice',
    file,
    edits: [
      {
        from: `unaccounted: session.unaccounted.filter((open) => open !== id),
          reserved: withoutReservations(session, [id]),
          usage: addUsage(session.usage, counted),`,
        to: `reserved: withoutReservations(session, [id]),
          usage: addUsage(session.usage, counted),`,
      },
    ],
    why: 'a report that comes again uses up the limit',
    caughtBy: requests,
  },
  {
    name: 'usage that can’t be counted costs nothing',
    file,
    edits: [
      {
        from: 'if (usage.costUsd === null) return { ...usage, costUsd: held.usd };',
        to: 'if (usage.costUsd === null) return usage;',
      },
    ],
    why: 'a provider that reports nothing has no limit',
    caughtBy: requests,
  },
  {
    name: 'the second request of a hook takes the place of the first',
    file,
    edits: [
      {
        from: 'usd: (before?.usd ?? 0) + inputUsd + outputUsd,',
        to: 'usd: inputUsd + outputUsd,',
      },
    ],
    why: 'two requests leave, and the money of one is set aside',
    caughtBy: tools,
  },
  {
    name: 'a call that was stopped gives back what it may have spent',
    file,
    edits: [
      {
        from: 'return mayCost && findReservation(session, id) !== undefined',
        to: 'return mayCost && findReservation(session, id) === undefined',
      },
    ],
    why: 'its money is spent again',
    caughtBy: tools,
  },
];
