import type { Event } from '@pawl/agent/machine/event';
import type { Usage } from '@pawl/agent/machine/settings';
import { settingsFrom } from '../../../test/kit/agent/trace-player.js';
import { eventsOf, StoredSession } from '../../../test/kit/inspector/stored-session.js';

/**
 * A prepared session for people who have never seen it: two failed requests, a call that waited nine minutes for its
 * approval, a request that was expensive since the provider's cache had expired meanwhile, and a crash. Always the same.
 */

const TRIAL = `! careful {"hooks":"mutating","formatter":"onChanges","autoCommit":"on","windowTokens":200000,"limits":{"usd":4}}
> @0 Start
> @3000 UserInput "Customers in New Zealand see invoices dated one day early. Find the cause, repair it, and add a test."
> @9000 LlmCompleted req-1 thinks "One day early in a zone east of Greenwich: a date is cut from a UTC string." says "I look for where dates are made." calls grep(c1 toISOString) read(c2 src/dates.ts) tokens=21400+160 cost=0.083
> @9010 ToolStarted batch-1 c1
> @9010 ToolStarted batch-1 c2
> @9060 ToolCompleted batch-1 c2 ok "export const dayOf = (at: Date): string => at.toISOString().slice(0, 10);"
> @9900 ToolCompleted batch-1 c1 ok "src/dates.ts:1: toISOString\\nsrc/invoice.ts:18: dayOf(new Date())"
> @12000 LlmFailed req-2 rateLimited "429: your limit of 40,000 input tokens a minute is reached" retryAfter=20000
> @32000 TimerFired timer-1
> @33100 LlmFailed req-3 unreachable "read ECONNRESET" jitter=0.4
> @35900 TimerFired timer-2
> @44000 LlmCompleted req-4 says "dayOf cuts the day out of a UTC time. I make it use the customer's zone." calls edit(c3 src/dates.ts) tokens=23600+310 cost=0.017
> @56200 ApprovalAnswered batch-2 c3 allow
> @56210 ToolStarted batch-2 c3
> @56290 ToolCompleted batch-2 c3 ok "1 replacement in src/dates.ts"
> @56900 HookCompleted hook-1 file=src/dates.ts dirty
> @57100 HookCompleted hook-2 dirty
> @57600 HookCompleted hook-3 commit="Date invoices in the customer's time zone"
> @66000 LlmCompleted req-5 says "Now the tests." calls bash(c4 npm test) tokens=24500+90 cost=0.011
> @626000 ApprovalAnswered batch-3 c4 allow
> @626010 ToolStarted batch-3 c4
> @657300 ToolCompleted batch-3 c4 failed "2 of 214 tests fail: statement.test.ts expects 2026-03-28, got 2026-03-29"
> @657900 HookCompleted hook-4 dirty
> @658000 HookCompleted hook-5 dirty
> @668000 LlmCompleted req-6 says "The statement has the same fault. I repair it too, and add a test for Auckland." calls edit(c5 src/statement.ts) write(c6 test/dates.test.ts) tokens=61800+420 cost=0.241
> @672000 ApprovalAnswered batch-4 c5 allow
> @672010 ToolStarted batch-4 c5
> @672080 ToolCompleted batch-4 c5 ok "1 replacement in src/statement.ts"
> @674400 ApprovalAnswered batch-4 c6 allow session
> @674410 ToolStarted batch-4 c6
> @674460 ToolCompleted batch-4 c6 ok "test/dates.test.ts is new: 22 lines"
> @674900 HookCompleted hook-6 file=src/statement.ts dirty
> @675000 HookCompleted hook-7 dirty
> @675400 HookCompleted hook-8 commit="Date statements in the customer's time zone"
> @683000 LlmCompleted req-7 says "I run the tests again." calls bash(c7 npm test) tokens=62900+70 cost=0.022
> @690000 ApprovalAnswered batch-5 c7 allow
> @690010 ToolStarted batch-5 c7
> @4290000 Resumed 2
> @4290900 ToolCompleted batch-5 c7 ok "216 tests pass."
> @4291200 HookCompleted hook-9 dirty
> @4291300 HookCompleted hook-10 dirty
> @4299000 LlmCompleted req-8 says "Invoices and statements are dated in the customer's time zone now. 216 tests pass, one of them for Auckland." tokens=63300+80 cost=0.024
> @4330000 ShutdownRequested
`;

/** How many tokens of a prompt came from the provider's cache; all others were written to it. */
const CACHED: Readonly<Record<string, number>> = {
  'req-4': 21_400,
  'req-5': 23_600,
  'req-7': 61_800,
  'req-8': 62_900,
};
const FIRST_PIECE_MS = 1_900;

const withCache = (requestId: string, usage: Usage): Usage => {
  const cacheReadTokens = CACHED[requestId] ?? 0;
  const fresh = 40;
  const cacheWriteTokens = usage.inputTokens - cacheReadTokens - fresh;
  return { ...usage, inputTokens: fresh, cacheReadTokens, cacheWriteTokens };
};

/** The input of a call as its tool has it. */
const withCommand = <
  T extends { readonly tool: string; readonly input: Readonly<Record<string, unknown>> },
>(
  call: T,
): T => (call.tool === 'bash' ? { ...call, input: { command: call.input.path } } : call);

/** What a trace can't say: commands, the share of the cache, and when a reply began. */
const asRecorded = (event: Event, sentAt: number): Event => {
  if (event.type !== 'LlmCompleted' || event.usage === null || event.message === null) return event;
  const { requestId, message, calls, usage } = event;
  const parts = message.parts.map((part) => (part.type === 'call' ? withCommand(part) : part));
  return {
    ...event,
    message: { ...message, parts },
    calls: calls.map((call) => ({
      ...withCommand(call),
      // What a command did can't be seen from its files.
      ...(call.tool === 'bash' ? { traits: { ...call.traits, effect: 'opaque' as const } } : {}),
      title: call.facts.shape.replace(/^\w+ /, ''),
    })),
    usage: withCache(requestId, usage),
    firstPieceAt: Math.min(event.at, sentAt + FIRST_PIECE_MS),
  };
};

const TRIAL_EVENTS = eventsOf(TRIAL).map((event, index, all) =>
  asRecorded(event, all[index - 1]?.at ?? event.at),
);
export const TRIAL_SEQ = TRIAL_EVENTS.length;

/** Stores the session `invoices`. */
export const storeTrial = async (folder: string): Promise<void> => {
  const stored = await StoredSession.create(
    folder,
    'invoices',
    settingsFrom(/^! (.*)$/m.exec(TRIAL)?.[1] ?? ''),
  );
  await stored.add(TRIAL_EVENTS);
  await stored.journal.close();
};
