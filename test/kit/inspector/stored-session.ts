import { fileJournals } from '../../../packages/agent/src/journal/file-store.js';
import { agentMachine } from '../../../packages/agent/src/journal/journaled-agent-machine.js';
import type { Event } from '../../../packages/agent/src/machine/event.js';
import { initialState, step } from '../../../packages/agent/src/machine/machine.js';
import type { Settings } from '../../../packages/agent/src/machine/settings.js';
import type { State } from '../../../packages/agent/src/machine/state.js';
import type { Header, Journal } from '../../../packages/agent/src/ports/journal.js';
import { play, settingsFrom } from '../agent/trace-player.js';

/** Sessions on disk as the runtime writes them, from events that a test chooses. */

export const STARTED_AT = Date.UTC(2026, 10, 23, 9, 30, 0);
const INSTRUCTIONS = 'You are Pawl, a coding agent.\nWork in /project.';
const TOOLS = JSON.stringify([
  { name: 'read', description: 'Reads a file.', inputSchema: { type: 'object' } },
]);

export class StoredSession {
  readonly journal: Journal;
  readonly header: Header;
  state: State;

  private constructor(journal: Journal, header: Header) {
    this.journal = journal;
    this.header = header;
    this.state = initialState(header.settings);
  }

  static async create(
    folder: string,
    sessionId: string,
    settings: Settings,
  ): Promise<StoredSession> {
    const store = fileJournals({ folder });
    const [instructions, tools] = await Promise.all(
      [INSTRUCTIONS, TOOLS].map((text) => store.blobs.put(text)),
    );
    const header: Header = {
      version: 1,
      sessionId,
      createdAt: STARTED_AT,
      workspace: settings.workspace,
      parent: null,
      machine: agentMachine.fingerprint,
      settings,
      instructions: instructions ?? '',
      tools: tools ?? '',
      prices: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 },
    };
    return new StoredSession(await store.create(header), header);
  }

  async add(events: readonly Event[]): Promise<void> {
    const drafts = events.map((event) => {
      this.state = step(this.state, event).state;
      return { event, state: this.state };
    });
    await this.journal.append(drafts);
  }
}

/** The events of a trace (test/kit/agent/trace-player.ts); its clock begins when the session does. */
export const eventsOf = (trace: string): readonly Event[] =>
  play(trace).steps.map(({ event }) => ({ ...event, at: event.at + STARTED_AT }));

/** Stores a trace as a session that no process has open. */
export const storeTrace = async (
  folder: string,
  sessionId: string,
  trace: string,
): Promise<void> => {
  const settings = settingsFrom(/^! (.*)$/m.exec(trace)?.[1] ?? '');
  const stored = await StoredSession.create(folder, sessionId, settings);
  await stored.add(eventsOf(trace));
  await stored.journal.close();
};

/** The last entry of `STORY`. */
export const STORY_SEQ = 36;

/** A session with everything in it that a reader may ask about. */
export const STORY = `! careful {"hooks":"mutating","formatter":"onChanges","autoCommit":"on","windowTokens":200000,"limits":{"usd":5}}
> @0 Start
> @2000 UserInput "The totals on the invoice page are off by a cent for some customers. Find out why and repair it."
> @5400 LlmFailed req-1 overloaded "the provider is overloaded (529)" jitter=0.4
> @6600 TimerFired timer-1
> @11800 LlmCompleted req-2 thinks "Rounding each line before the sum loses cents." says "I will look at how totals are added up." calls read(c1 src/invoice.ts) grep(c2 src) tokens=12400+310 cost=0.041
> @11810 ToolStarted batch-1 c1
> @11810 ToolStarted batch-1 c2
> @11850 ToolCompleted batch-1 c1 ok "export const total = (lines) => lines.map((line) => round(line.price * line.count)).reduce(sum);"
> @12900 ToolCompleted batch-1 c2 failed "src/legacy: permission denied"
> @19800 LlmCompleted req-3 says "Each line is rounded before the sum. I change it to round once." calls edit(c3 src/invoice.ts) bash(c4 npm) tokens=900+240 cost=0.012
> @63400 ApprovalAnswered batch-2 c3 allow
> @63410 ToolStarted batch-2 c3
> @63500 ToolCompleted batch-2 c3 ok "1 replacement in src/invoice.ts"
> @66900 ApprovalAnswered batch-2 c4 allow session
> @66910 ToolStarted batch-2 c4
> @81000 ToolCompleted batch-2 c4 failed "1 test fails: expected 19.99, got 20.00"
> @81700 HookCompleted hook-1 file=src/invoice.ts dirty
> @82300 HookCompleted hook-2 dirty
> @83100 HookCompleted hook-3 commit="Round totals once"
> @90100 UserInput "Also look at the credit notes." followUp
> @97200 LlmCompleted req-4 says "A test still expects the old total. I look at it." calls read(c5 test/invoice.test.ts) tokens=41000+180 cost=0.129
> @97210 ToolStarted batch-3 c5
> @97260 ToolCompleted batch-3 c5 ok "assert.equal(total([{ price: 6.663, count: 3 }]), 20);"
> @101000 CancelTurn
> @140000 UserInput "Go on, the expectation was wrong."
> @151000 LlmCompleted req-6 says "I correct the expectation." calls bash(c6 npm) tokens=1200+90 cost=0.01
> @151010 ToolStarted batch-4 c6
> @900000 Resumed 2
> @900400 ToolCompleted batch-4 c6 ok "All 48 tests pass."
> @900900 HookCompleted hook-4 dirty
> @901300 HookCompleted hook-5 dirty
> @901800 HookCompleted hook-6 commit="Expect the exact total"
> @908000 LlmCompleted req-7 says "Totals are rounded once now, and all tests pass." tokens=800+60 cost=0.009
> @950000 CompactRequested
> @958000 CompactionCompleted compaction-1 "The invoice total is rounded once; all tests pass." tokens=43000+400 cost=0.06
> @960000 ShutdownRequested
`;
