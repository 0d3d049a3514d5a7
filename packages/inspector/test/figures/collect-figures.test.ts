import assert from 'node:assert/strict';
import test from 'node:test';
import { addUsage } from '@pawl/agent/machine/moves/request';
import { nothingSpent, type UsageTotals } from '@pawl/agent/machine/settings';
import { forAll, roam } from '../../../../test/kit/agent/random.js';
import { play } from '../../../../test/kit/agent/trace-player.js';
import { collectFigures } from '../../../../test/kit/inspector/collect-figures.js';
import { FigureCollector, type FigureStep } from '../../src/figures/collect-figures.js';
import { getCacheShare, type SessionFigures } from '../../src/figures/session-figures.js';

/** Figures of sessions that are written as traces (test/kit/agent/trace-player.ts), so that every time is known. */

const stepsOf = (trace: string): readonly FigureStep[] =>
  play(trace).steps.map(({ event, step }, index) => ({ seq: index + 1, event, ...step }));

const tell = (
  trace: string,
  parent: { sessionId: string; seq: number } | null = null,
): SessionFigures => collectFigures({ parent }, stepsOf(trace));

/** The spans as short lines: kind, name, from-to, how they ended if not well. */
const drawn = ({ spans }: SessionFigures): readonly string[] =>
  spans.map(({ kind, id, name, startMs, endMs, ending }) =>
    [kind, id, name, `${startMs}-${endMs}`, ending === 'done' ? '' : ending]
      .filter(Boolean)
      .join(' '),
  );

const SESSION = `! careful {"hooks":"never"}
> @1000 Start
> @2000 UserInput "rewrite it"
> @5000 LlmFailed req-1 overloaded "busy" tokens=50+0 cost=0.5
> @7000 TimerFired timer-1
> @9000 LlmCompleted req-2 calls read(c1) read(c2) edit(c3) bash(c4) tokens=100+10 cost=1
> @9000 ToolStarted batch-1 c1
> @9000 ToolStarted batch-1 c2
> @9500 ToolCompleted batch-1 c1 ok "one"
> @10000 ToolCompleted batch-1 c2 failed "two"
> @13000 ApprovalAnswered batch-1 c3 allow
> @13000 ToolStarted batch-1 c3
> @14000 ToolCompleted batch-1 c3 ok "three"
> @15000 ApprovalAnswered batch-1 c4 deny "no"
> @16000 LlmCompleted req-3 says "Done." tokens=200+20 cost=2
> @17000 UsageReported req-1 tokens=1+1 cost=9
`;

test('each moment and each dollar of a session is where it went', () => {
  const figures = tell(SESSION);
  assert.deepEqual(drawn(figures), [
    'idle user 0-1000',
    'request req-1 test/model 1000-4000',
    'retry timer-1 overloaded 4000-6000',
    'request req-2 test/model 6000-8000',
    'tool batch-1/c1 read 8000-8500',
    'tool batch-1/c2 read 8000-9000',
    'approval batch-1/c3 edit 8000-12000',
    'approval batch-1/c4 bash 8000-14000',
    'tool batch-1/c3 edit 12000-13000',
    'request req-3 test/model 14000-15000',
    'idle user 15000-16000 open',
  ]);
  const { waiting, streaming, between, compaction, hook, other, ...time } = figures.time;
  assert.deepEqual(time, {
    request: 6_000,
    retry: 2_000,
    tool: 2_000,
    approval: 4_000,
    idle: 2_000,
  });
  assert.equal(waiting + streaming + between + compaction + hook + other, 0);
  assert.deepEqual(
    figures.requests.map(({ id, attempt, ending, why, usage }) => [
      id,
      attempt,
      ending,
      why,
      usage?.costUsd,
    ]),
    [
      ['req-1', 1, 'failed', 'overloaded: busy', 0.5],
      ['req-2', 2, 'completed', 'toolUse', 1],
      ['req-3', 1, 'completed', 'end', 2],
    ],
  );
  assert.equal(
    figures.usage.costUsd,
    3.5,
    'usage that is reported twice counts once, as for limits',
  );
  assert.deepEqual(
    figures.tools.map(({ tool, calls, endings, totalMs, longestMs, approvalMs }) => [
      tool,
      calls,
      endings,
      [totalMs, longestMs, approvalMs],
    ]),
    [
      ['read', 2, { ok: 1, failed: 1 }, [1_500, 1_000, 0]],
      ['edit', 1, { ok: 1 }, [1_000, 1_000, 4_000]],
      ['bash', 1, { denied: 1 }, [0, 0, 6_000]],
    ],
  );
  const executing = figures.states.find(({ state }) => state === 'ExecutingTools');
  assert.deepEqual(executing, { state: 'ExecutingTools', entered: 1, totalMs: 6_000 });
});

const CRASHES = `> @1000 Start
> @1000 UserInput "run it"
> @3000 SettingsChanged {"maxRetries":1}
> @9000 SettingsChanged {"maxRetries":2}
> @9000 Resumed 2
> @9500 LlmCompleted req-1 calls bash(c1)
> @9500 ToolStarted batch-1 c1
> @12000 Resumed 3
> @12500 ToolCompleted batch-1 c1 ok "found again"
> @13000 LlmCompleted req-2 says "Done."
> @13000 ShutdownRequested
> @20000 Resumed 4
> @20100 ShutdownRequested
`;

test('time between processes is apart, and says where the crash was', () => {
  const figures = tell(`! {"hooks":"never"}\n${CRASHES}`);
  assert.deepEqual(
    figures.gaps.map(({ cause, seq, startMs, endMs, state, doing }) => [
      cause,
      seq,
      endMs - startMs,
      state,
      doing,
    ]),
    [
      ['crashed', 5, 6_000, 'CallingLlm', ['test/model']],
      ['crashed', 8, 2_500, 'ExecutingTools', ['bash a.ts']],
      ['closed', 12, 7_000, 'ShuttingDown', []],
    ],
  );
  assert.deepEqual(
    drawn(figures).filter((line) => !line.startsWith('idle')),
    [
      'request req-1 test/model 0-2000 interrupted',
      'between processes 2000-8000',
      'request req-1 test/model 8000-8500',
      'tool batch-1/c1 bash 8500-8500 interrupted',
      'between processes 8500-11000',
      'tool batch-1/c1 bash 11000-11500',
      'request req-2 test/model 11500-12000',
      'between processes 12000-19000',
    ],
  );
  assert.deepEqual(
    [figures.time.between, figures.time.request, figures.requests[0]?.sent],
    [15_500, 3_000, 2],
  );
  const inStates = figures.states.reduce((sum, { totalMs }) => sum + totalMs, 0);
  assert.equal(inStates, figures.elapsedMs - 15_500);
});

test('the gap of a fork is no crash, and a request that nobody ended stays open', () => {
  const trace = `> @0 Start\n> @0 UserInput "hi"\n> @60000 Resumed 2\n`;
  const figures = tell(trace, { sessionId: 'parent', seq: 2 });
  assert.deepEqual(
    figures.gaps.map(({ cause }) => cause),
    ['forked'],
  );
  const [request] = figures.requests;
  assert.deepEqual([request?.ending, request?.sent, request?.endSeq], ['open', 2, null]);
});

test('the journal says when a reply began, and nothing else is believed', () => {
  const steps = stepsOf(
    '> @0 Start\n> @100 UserInput "hi"\n> @1000 LlmCompleted req-1 says "hello"\n',
  );
  const withFirst = (firstPieceAt: number) =>
    collectFigures(
      { parent: null },
      steps.map((step) =>
        step.event.type === 'LlmCompleted'
          ? { ...step, event: { ...step.event, firstPieceAt } }
          : step,
      ),
    );
  const divided = withFirst(400);
  assert.deepEqual(
    [divided.time.waiting, divided.time.streaming, divided.time.request],
    [300, 600, 0],
  );
  assert.equal(divided.requests[0]?.firstPieceMs, 400);
  for (const odd of [-1e15, 1e15]) {
    const { time } = withFirst(odd);
    assert.ok(
      time.waiting + time.streaming === 900 && time.waiting * time.streaming === 0,
      String(odd),
    );
  }
});

test('deltas of a running session divide a reply; a live session reaches to now', () => {
  const steps = stepsOf(
    '> @0 Start\n> @0 UserInput "hi"\n> @300 TextDelta req-1 "a"\n> @400 TextDelta req-1 "b"\n',
  );
  const live = steps.map((step) => ({
    ...step,
    seq: step.event.type === 'TextDelta' ? null : step.seq,
  }));
  const collector = new FigureCollector({ parent: null });
  for (const step of live) collector.see(step);
  assert.deepEqual(drawn(collector.figures(1_000)), [
    'idle user 0-0',
    'waiting req-1 test/model 0-300',
    'streaming req-1 test/model 300-1000 open',
  ]);
  assert.deepEqual(drawn(collector.figures()).slice(1), [
    'waiting req-1 test/model 0-0',
    'streaming req-1 test/model 0-0 open',
  ]);
});

/** Milliseconds that a clock may jump between two events, also back. */
const JUMPS = [0, 7, 1_000, -500, 86_400_000, -86_400_000];

test('over any session, also with a clock that jumps: no negative time, and the sums are right', (t) => {
  forAll(t, 60, (walked) => {
    const walker = roam(walked);
    let at = 1_000_000_000;
    const steps = walker.events().flatMap((event, index): readonly FigureStep[] => {
      const step = walker.steps()[index + 1];
      at += JUMPS[(index * 7 + walked.rolls.length) % JUMPS.length] ?? 0;
      return step === undefined ? [] : [{ seq: index + 1, event: { ...event, at }, ...step }];
    });
    const figures = collectFigures({ parent: null }, steps);
    for (const { startMs, endMs } of [...figures.spans, ...figures.requests, ...figures.gaps])
      assert.ok(startMs >= 0 && endMs >= startMs && endMs <= figures.elapsedMs);
    const times = Object.values(figures.time);
    assert.ok(times.every((ms) => ms >= 0));
    assert.equal(
      times.reduce((sum, ms) => sum + ms, 0),
      figures.elapsedMs,
    );
    const between = figures.gaps.reduce((sum, { startMs, endMs }) => sum + endMs - startMs, 0);
    const inStates = figures.states.reduce((sum, { totalMs }) => sum + totalMs, 0);
    assert.equal(inStates + between, figures.elapsedMs);
    const parts = [
      ...figures.requests.flatMap(({ usage }) => (usage === null ? [] : [usage])),
      ...figures.spending.map(({ usage }) => usage),
    ];
    const { costUsd, ...counted } = parts.reduce<UsageTotals>(
      (sum, usage) => addUsage(sum, usage),
      nothingSpent,
    );
    const { costUsd: expected, ...sums } = figures.usage;
    assert.ok(Math.abs(costUsd + figures.hookUsage.costUsd - expected) < 1e-9);
    assert.equal(counted.inputTokens + figures.hookUsage.inputTokens, sums.inputTokens);
    assert.equal(counted.outputTokens + figures.hookUsage.outputTokens, sums.outputTokens);
  });
});

test('the cache share counts every token of the prompt', () => {
  assert.equal(getCacheShare({ inputTokens: 10, cacheReadTokens: 60, cacheWriteTokens: 30 }), 0.6);
  assert.equal(getCacheShare(nothingSpent), null);
});
