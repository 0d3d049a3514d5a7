import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import type { JsonObject } from '@pawl/machine/kernel/shape';
import type { Given } from '../../../../test/kit/agent/given.js';
import * as g from '../../../../test/kit/agent/given.js';
import { begun, forAll, roam } from '../../../../test/kit/agent/random.js';
import { eventFrom } from '../../../../test/kit/agent/trace-events.js';
import { settingsFrom } from '../../../../test/kit/agent/trace-player.js';
import { talkLines } from '../../../../test/kit/agent/trace-shown.js';
import { faultsOf, walk } from '../../../../test/kit/agent/walker.js';
import type { CallOutcome } from '../../src/machine/call.js';
import { carrySession, stateFrom } from '../../src/machine/carried-session.js';
import { estimateTokens, messagesOf } from '../../src/machine/conversation.js';
import {
  type CarriedCall,
  type CarriedSession,
  type Event,
  modelReply,
  type On,
} from '../../src/machine/event.js';
import { initialState, stateBefore, step } from '../../src/machine/machine.js';
import type { Message } from '../../src/machine/message.js';
import { toldUsage } from '../../src/machine/moves/request.js';
import { collectPastFiles, ranUntil } from '../../src/machine/seen-files.js';
import type { State } from '../../src/machine/state.js';
import type { HookVerdicts, JudgedCall } from '../../src/policy/judged-call.js';

/** A session that is read from its events alone, compared with what the machine made of the same events. */

/** An event that every session needs, and that changes none. */
const missedAt = (at: number): Event => ({ ...g.rewound('rewind-none'), at });

/** A carrier beside a machine that has missed something. */
const carrierOf = (): ReturnType<typeof carrySession> => {
  const carrier = carrySession('test/model');
  carrier.see(missedAt(0), false);
  return carrier;
};

/** A machine that has missed the end of its events. */
const carriedFrom = (events: readonly Event[]): CarriedSession => {
  const carrier = carrySession('test/model');
  for (const event of events) carrier.see(event, true);
  carrier.see(missedAt(events.at(-1)?.at ?? 0), false);
  return carrier.missed(events.length) ?? assert.fail('an event was missed');
};

test('ids that are used after an upgrade were never used before', () => {
  const events: readonly Event[] = [{ type: 'UserInput', at: 1, text: 'first', mode: 'steer' }];
  const session = { ...carriedFrom(events), work: { kind: 'request' }, idsFrom: 40 } as const;
  const state = stateFrom(begun({}), session);
  const { actions } = step(state, { type: 'Resumed', at: 2, epoch: 1 });
  assert.deepEqual(
    actions.flatMap((action) => (action.type === 'SendLlmRequest' ? [action.requestId] : [])),
    ['req-41'],
  );
});

test('a second Resumed of the same opening changes nothing, whatever it carries', () => {
  const upgrade = { from: 1, to: 2, session: carriedFrom([]) };
  const opened = step(begun({}), { type: 'Resumed', at: 2, epoch: 1, upgrade });
  const again = step(opened.state, { type: 'Resumed', at: 3, epoch: 1, upgrade });
  assert.equal(again.state, opened.state);
  assert.equal(again.diagnostics.length, 1);
});

/** The events of a walk. */
const eventsOf = (...given: readonly Given[]): readonly Event[] => {
  const walker = walk(begun({}));
  walker.send(...given);
  return walker.events();
};

test('a conversation is taken back once the files are, and if it leads to one', () => {
  const turns = [g.begin, g.input('one'), g.says('First.'), g.input('two'), g.says('Second.')];
  const rewound = (kept: number, ...later: readonly Event[]): number => {
    const conversation = { kept, messages: [], contextTokens: 0 };
    const events = [...eventsOf(...turns), { ...g.rewind('plan-1'), conversation }, ...later];
    return carriedFrom(events).messages.length;
  };
  const counts = [rewound(2), rewound(2, g.rewound()), rewound(9, g.rewound())];
  assert.deepEqual(counts, [4, 2, 4]);
});

// ---- Cases: the events as traces write them, and what is read from them ----

type Line = string | Event;

const eventsIn = (...lines: readonly Line[]): readonly Event[] => {
  let clock = 0;
  return lines.map((line) => {
    const event = typeof line === 'string' ? eventFrom(line, clock) : line;
    clock = event.at;
    return event;
  });
};

const callLine = ({ judged, startedAt, ended }: CarriedCall): string => {
  if (ended === undefined) return `${judged.callId} runs since ${startedAt}`;
  const { status, ran, at, text } = ended;
  return `${judged.callId} ${status} at ${at}, ${ran ? 'ran' : 'never ran'}: ${text}`;
};

/** Its messages, its queue and its work, a line each. */
const linesOf = (session: CarriedSession): readonly string[] => {
  const { queue, work } = session;
  return [
    ...talkLines(stateFrom(begun({}), session)),
    ...queue.map(({ inputId, text, mode }) => `${inputId} ${mode}: ${text}`),
    ...(work.kind === 'calls' ? [work.batchId, ...work.calls.map(callLine)] : [work.kind]),
  ];
};

type Cases = Readonly<Record<string, { events: readonly Line[]; read: readonly string[] }>>;

const testCases = (cases: Cases): void => {
  for (const [name, { events, read }] of Object.entries(cases))
    test(name, () => assert.deepEqual(linesOf(carriedFrom(eventsIn(...events))), read));
};

const GO = 'UserInput "go"';
const MISSING = 'failed "not run: the journal does not say why"';
const INTERRUPTED = 'failed "interrupted while running, effects unknown"';

testCases({
  'a text that the user takes back is gone, one that was sent is not': {
    events: [GO, 'UserInput "no"', 'EditQueue', 'LlmCompleted req-1 says "A."', 'UserInput "on"'],
    read: ['user: "go"', 'assistant: "A."', 'user: "on"', 'nothing'],
  },
  'an edit of the queue adds no blank text, and each text once': {
    events: [
      GO,
      'UserInput "b"',
      'EditQueue input-2 steer "c" input-2 steer "d" input-1 steer " "',
    ],
    read: ['user: "go" | "c"', 'nothing'],
  },
  'a request that was in flight ends, its text stays': {
    events: [GO, 'TextDelta req-1 "We"'],
    read: ['user: "go"', 'nothing'],
  },
  'so does a call that has not started, and a retry': {
    events: [GO, 'LlmFailed req-1 overloaded "busy"', 'LlmCompleted req-2 calls read(c1) stop=end'],
    read: ['user: "go"', 'assistant: read(c1)', `user: c1 ${MISSING}`, 'nothing'],
  },
  'a call that runs is carried, those beside it that wait never run': {
    events: [
      GO,
      'LlmCompleted req-1 calls bash(c1) bash(c2) edit(c3)',
      '@1 ToolStarted batch-1 c1',
      '@2 ToolStarted batch-1 c1',
      '@3 ToolCompleted batch-1 c2 ok "first"',
      '@4 ToolCompleted batch-1 c2 failed "second"',
      '@5 ToolStarted batch-1 c2',
      'UserInput "more"',
    ],
    read: [
      'user: "go"',
      'assistant: bash(c1) | bash(c2) | edit(c3)',
      'input-2 steer: more',
      'batch-1',
      'c1 runs since 1',
      'c2 ok at 3, ran: first',
      'c3 cancelled at 5, never ran: not run: the journal does not say why',
    ],
  },
  'one that the user has cancelled is not': {
    events: [
      GO,
      'LlmCompleted req-1 calls bash(c1)',
      'ToolStarted batch-1 c1',
      'CancelTurn',
      'UserInput "stay"',
    ],
    read: ['user: "go"', 'assistant: bash(c1)', `user: c1 ${INTERRUPTED} | "stay"`, 'nothing'],
  },
  'a refusal with calls answers them': {
    events: [GO, 'LlmCompleted req-1 calls read(c1) stop=refusal'],
    read: [
      'user: "go"',
      'assistant: read(c1)',
      'user: c1 failed "not run: the reply ended with refusal"',
      'nothing',
    ],
  },
  'a call that the user cancels before its start never runs, unless it reports all the same': {
    events: [
      GO,
      'LlmCompleted req-1 calls bash(c1) bash(c2) bash(c3) bash(c4)',
      '@1 CancelTool batch-1 c1',
      '@2 CancelTool batch-1 c2',
      '@3 ToolStarted batch-1 c2',
      '@4 CancelTool batch-1 c3',
      '@5 ToolCompleted batch-1 c3 ok "3"',
      '@6 ApprovalAnswered batch-1 c4 deny "no"',
    ],
    read: [
      'user: "go"',
      'assistant: bash(c1) | bash(c2) | bash(c3) | bash(c4)',
      'batch-1',
      'c1 cancelled at 1, never ran: not run: cancelled by user',
      'c2 runs since 3',
      'c3 ok at 5, ran: 3',
      'c4 denied at 6, never ran: refused by user: no',
    ],
  },
  'tools that fail answer their calls, those of another batch do not': {
    events: [
      GO,
      'LlmCompleted req-1 calls bash(c1) bash(c2)',
      'ToolStarted batch-1 c1',
      'ToolsFailed batch-0 "too late"',
      'ToolsFailed batch-1 "no disk"',
    ],
    read: [
      'user: "go"',
      'assistant: bash(c1) | bash(c2)',
      `user: c1 ${INTERRUPTED} | c2 failed "not run: no disk"`,
      'nothing',
    ],
  },
  'what came of a cancelled reply stays, whole if it came whole': {
    events: [
      GO,
      'TextDelta req-1 "We"',
      'CancelTurn',
      'LlmFailed req-1 overloaded "busy"',
      'UserInput "again"',
      'TextDelta req-2 "The"',
      'CancelTurn',
      'LlmCompleted req-2 says "The end."',
      'UserInput "last"',
      'TextDelta req-3 " "',
      'CancelTurn',
    ],
    read: [
      'user: "go"',
      'assistant (cut): "We"',
      'user: "again"',
      'assistant: "The end."',
      'user: "last"',
      'nothing',
    ],
  },
  'a reply that says nothing is none, a reply to nothing begins the conversation': {
    events: ['LlmCompleted req-1 says ""', 'LlmCompleted req-2 says "Hello."'],
    read: ['user: note "[The turn went on here.]"', 'assistant: "Hello."', 'nothing'],
  },
  'the reply after calls that ended without an event answers what waits': {
    events: [
      GO,
      'LlmCompleted req-1 calls bash(c1)',
      'UserInput "more"',
      'UserInput "then" followUp',
      'LlmCompleted req-2 calls read(c2)',
      'ToolStarted batch-2 c2',
    ],
    read: [
      'user: "go"',
      'assistant: bash(c1)',
      `user: c1 ${MISSING} | "more"`,
      'assistant: read(c2)',
      'input-3 followUp: then',
      'batch-2',
      'c2 runs since 0',
    ],
  },
  'notes of hooks stand behind the results': {
    events: [
      GO,
      'LlmCompleted req-1 calls edit(c1)',
      'HookCompleted hook-2 note="nothing is open"',
      'ToolCompleted batch-1 c1 ok "1"',
      'HookCompleted hook-3 note="a.ts was formatted"',
    ],
    read: [
      'user: "go"',
      'assistant: edit(c1)',
      'user: c1 ok "1" | note "a.ts was formatted"',
      'nothing',
    ],
  },
  'what comes late in a closed session changes nothing': {
    events: [
      GO,
      'TextDelta req-1 "We"',
      'ShutdownRequested',
      'UserInput "more"',
      'LlmCompleted req-1 calls bash(c1)',
      'CompactionCompleted compaction-1 "short"',
    ],
    read: ['user: "go"', 'assistant (cut): "We"', 'user: "more"', 'closed'],
  },
  'a shutdown tells how running calls have ended, but for those that it has stopped': {
    events: [
      GO,
      'LlmCompleted req-1 calls bash(c1) bash(c2) bash(c3)',
      'ToolStarted batch-1 c1',
      'ToolStarted batch-1 c2',
      {
        type: 'ShutdownRequested',
        at: 9,
        outcomes: [
          { batchId: 'batch-1', callId: 'c1', outcome: { status: 'failed', text: 'full' } },
          { batchId: 'batch-1', callId: 'c2', outcome: { status: 'cancelled', text: 'half' } },
        ],
      },
    ],
    read: [
      'user: "go"',
      'assistant: bash(c1) | bash(c2) | bash(c3)',
      `user: c1 failed "failed: full" | c2 ${INTERRUPTED} | c3 failed "not run: session closed"`,
      'closed',
    ],
  },
  'a summary replaces all but the results and the calls before them': {
    events: [
      GO,
      'LlmCompleted req-1 says "Done."',
      'UserInput "more"',
      'LlmCompleted req-2 calls bash(c1)',
      'UserInput "now"',
      'CompactionCompleted compaction-1 "They went."',
    ],
    read: [
      'user: summary "They went."',
      'assistant: bash(c1)',
      `user: c1 ${MISSING} | "now"`,
      'nothing',
    ],
  },
  'a summary that comes while a call runs comes too late': {
    events: [
      GO,
      'LlmCompleted req-1 calls bash(c1)',
      'ToolStarted batch-1 c1',
      'CompactionCompleted compaction-1 "They went."',
    ],
    read: ['user: "go"', 'assistant: bash(c1)', 'batch-1', 'c1 runs since 0'],
  },
  'a rewind answers the calls that have not started': {
    events: [
      GO,
      'LlmCompleted req-1 calls bash(c1)',
      'RewindRequested r-1 0 plan=p',
      'Rewound r-1',
    ],
    read: ['user: "go"', 'assistant: bash(c1)', `user: c1 ${MISSING}`, 'nothing'],
  },
});

const IMAGE = { mediaType: 'image/png', sha256: 'a'.repeat(64) } as const;
const NOTED: HookVerdicts = [{ hook: 'guard', decision: 'allow', note: 'seen' }];
const OBJECTS: HookVerdicts = [{ hook: 'guard', decision: 'deny', reason: 'too big' }];

/** A reply with calls that the trace language does not know. */
const replyWith = (...calls: readonly JudgedCall[]): Event => ({
  ...modelReply({ requestId: 'req-1', at: 0, model: 'test/model', calls }),
});
const outcomeOf = (callId: string, outcome: CallOutcome): Event => ({
  type: 'ToolCompleted',
  at: 3,
  batchId: 'batch-1',
  callId,
  outcome,
});
const ok = { status: 'ok', text: 'done' } as const;

test('images of the user and of calls that ended well go with their texts', () => {
  const typed = { type: 'UserInput', at: 0, text: 'look', mode: 'steer', images: [IMAGE] } as const;
  const events = eventsIn(
    typed,
    replyWith(g.grep('c1'), g.grep('c2'), g.grep('c3')),
    outcomeOf('c1', { ...ok, images: [IMAGE] }),
    outcomeOf('c2', { ...ok, status: 'failed', images: [IMAGE] }),
  );
  const { messages } = carriedFrom([...events, outcomeOf('c3', ok)]);
  assert.deepEqual(
    messages.flatMap(({ parts }) => parts.map((part) => ('images' in part ? part.images : null))),
    [[IMAGE], null, null, null, [IMAGE], null, null],
  );
  const running = eventsIn('ToolStarted batch-1 c3');
  const queued = carriedFrom([...events, ...running, typed, typed]).queue;
  assert.deepEqual(queued[0], { inputId: 'input-2', text: 'look', mode: 'steer', images: [IMAGE] });
  const items = queued.map(({ inputId }) => ({ inputId, text: 'see', mode: 'followUp' as const }));
  const added = { inputId: 'input-9', text: 'new', mode: 'steer' as const };
  const edit: Event = { type: 'EditQueue', at: 0, items: [...items, added] };
  assert.deepEqual(carriedFrom([...events, ...running, typed, typed, edit]).queue, [
    ...items.map((item) => ({ ...item, images: [IMAGE] })),
    added,
  ]);
});

test('what hooks said of a call stands in its result', () => {
  const { messages } = carriedFrom(
    eventsIn(
      GO,
      replyWith({ ...g.grep('c1'), hooks: NOTED }, { ...g.grep('c2'), hooks: OBJECTS }),
      outcomeOf('c1', { ...ok, hooks: OBJECTS }),
      'CancelTurn',
    ),
  );
  assert.deepEqual(
    messages.at(-1)?.parts.map((part) => 'text' in part && part.text),
    [
      'done\n[hook guard] objects: too big\n[hook guard] seen',
      'not run: the journal does not say why',
    ],
  );
});

test('a call that did nothing has not run, although it started', () => {
  const events = eventsIn(
    GO,
    replyWith(g.edit('c1'), g.edit('c2')),
    outcomeOf('c1', { status: 'cancelled', text: '', ran: 'no' }),
  );
  const read = carriedFrom([...events, ...eventsIn('ToolStarted batch-1 c2')]);
  assert.deepEqual(linesOf(read).slice(-2), [
    'c1 cancelled at 3, never ran: not run: cancelled by user',
    'c2 runs since 0',
  ]);
});

test('input of an old journal that is nested too deep is dropped, the call stays', () => {
  const deep = Array.from({ length: 300 }).reduce<JsonObject>((inner) => ({ inner }), {});
  const calls = [{ ...g.edit('c1'), input: deep }, g.edit('c2')];
  const started = 'ToolStarted batch-1 c2';
  const { messages, work } = carriedFrom(eventsIn(GO, replyWith(...calls), started));
  const inputs = messages.at(-1)?.parts.map((part) => 'input' in part && part.input);
  assert.deepEqual(inputs, [{}, { path: 'a.ts' }]);
  assert.deepEqual(work.kind === 'calls' && work.calls.map(({ judged }) => judged), [
    { ...g.edit('c1'), input: {} },
    g.edit('c2'),
  ]);
});

test('a reply with other calls than those that were checked is none', () => {
  const [c1, c2] = [g.grep('c1'), g.grep('c2')];
  const reply = replyWith(c1, c2) as On<'LlmCompleted'>;
  const twice = replyWith(c1, c1);
  for (const calls of [[], [c1], [c2, c1], [c1, c2, g.grep('c3')]])
    assert.deepEqual(linesOf(carriedFrom(eventsIn(GO, { ...reply, calls }))), [
      'user: "go"',
      'nothing',
    ]);
  assert.deepEqual(linesOf(carriedFrom(eventsIn(GO, twice))), ['user: "go"', 'nothing']);
});

test('what was spent is counted once for each id, whoever reports it', () => {
  const spent = g.usage(1, 1);
  const call = { ...ok, usage: g.usage(2, 0) };
  const unpriced = 'UsageReported hook-9 tokens=0+0 cost=?';
  const events = eventsIn(
    GO,
    'LlmFailed req-1 overloaded "busy" tokens=1+0 cost=1',
    'LlmCompleted req-2 calls explore(c1) tokens=10+0 cost=1',
    outcomeOf('c1', call),
    'HookCompleted hook-1 tokens=100+0 cost=1',
    'CompactionCompleted compaction-1 "short" tokens=1000+0 cost=1',
    'CompactionFailed compaction-2 "no" tokens=10000+0 cost=1',
    'UsageReported req-3 tokens=100000+0 cost=1',
    unpriced,
  );
  const again = [
    ...['req-1', 'req-2', 'batch-1/c1', 'hook-1', 'compaction-1', 'compaction-2', 'req-3'].map(
      (id) => g.reports(id, spent),
    ),
    ...eventsIn(unpriced, 'HookCompleted hook-2', 'CompactionFailed compaction-3 "no"'),
  ];
  assert.deepEqual(carriedFrom([...events, ...again]).usage, {
    inputTokens: 111_111,
    outputTokens: 1,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    costUsd: 8,
    unpriced: 1,
    atLeast: true,
  });
});

const upgradedTo = (session: CarriedSession, at = session.at): On<'Resumed'> => ({
  type: 'Resumed',
  at,
  epoch: 1,
  upgrade: { from: 1, to: 2, session },
});

const usageAfter = (...lines: readonly Line[]): CarriedSession =>
  carriedFrom(eventsIn(GO, ...lines));

test('work that may have cost something and has not said what makes the sum a lower bound', () => {
  const stopped = { status: 'cancelled', text: '' } as const;
  const explores: Line = 'LlmCompleted req-1 calls explore(c1)';
  const starts: Line = 'ToolStarted batch-1 c1';
  const unknown: Readonly<Record<string, readonly Line[]>> = {
    'req-1': ['LlmFailed req-1 timeout "cut off"'],
    'req-2': ['TextDelta req-2 "We"'],
    'req-3': [
      'ReasoningDelta req-3 "Hm"',
      'LlmFailed req-4 timeout "cut off"',
      g.reports('req-4', g.usage()),
    ],
    'req-5': ['RequestMeasured req-5'],
    'compaction-1': ['CompactionFailed compaction-1 "no"'],
    'batch-1/c1': [explores, starts, outcomeOf('c1', stopped)],
  };
  for (const [id, lines] of Object.entries(unknown)) {
    const carried = usageAfter(...lines);
    assert.deepEqual(carried.unaccounted, [id]);
    const { state } = step(begun({}), upgradedTo(carried));
    assert.equal(toldUsage(state).atLeast, true, id);
    // no report can come from a process that has ended
    for (const resumed of ['Resumed 2', upgradedTo(carried)] as const) {
      const { usage, unaccounted } = usageAfter(...lines, resumed);
      assert.deepEqual([usage.atLeast, unaccounted], [true, undefined], id);
    }
  }
  const known: readonly (readonly Line[])[] = [
    ['LlmFailed req-1 auth "no key"'],
    ['TextDelta req-1 "We"', 'LlmCompleted req-1 says "We."', 'TextDelta req-1 "late"'],
    ['RequestMeasured hook-1', 'HookCompleted hook-1'],
    [explores, starts, outcomeOf('c1', ok)],
    ['LlmCompleted req-1 calls bash(c1)', starts, outcomeOf('c1', stopped)],
    [explores, outcomeOf('c1', { ...stopped, ran: 'no' })],
  ];
  for (const lines of known) {
    const { usage, unaccounted } = usageAfter(...lines);
    assert.deepEqual([usage.atLeast, unaccounted], [undefined, undefined], String(lines[0]));
  }
});

test('a call that runs and spends is counted by the later machine', () => {
  const carried = usageAfter('LlmCompleted req-1 calls explore(c1)', 'ToolStarted batch-1 c1');
  assert.deepEqual([carried.usage.atLeast, carried.unaccounted], [undefined, undefined]);
  const { state } = step(begun({}), upgradedTo(carried));
  assert.equal(toldUsage(state).atLeast, undefined);
  const spent = outcomeOf('c1', { ...ok, usage: g.usage(2) });
  assert.equal(step(state, spent).state.session.usage.costUsd, carried.usage.costUsd + 2);
  // an upgrade after the upgrade carries it, too
  const again = carriedFrom([upgradedTo(carried), ...eventsIn('Resumed 2')]);
  assert.deepEqual(again, carried);
});

test('money that was set aside counts as spent only if the usage never came', () => {
  const aside = (id: string) => ({ id, usd: 4, outputUsd: 1, outputTokens: 9, sent: null });
  const session = { ...begun({}).session, reserved: ['req-1', 'req-2'].map(aside) };
  const carried = usageAfter('LlmCompleted req-1 says "A." cost=1', 'TextDelta req-2 "We"');
  const { state } = step({ ...begun({}), session } as State, upgradedTo(carried));
  assert.deepEqual([state.session.usage.costUsd, state.session.reserved], [5, []]);
});

test('ids go on above those of the entries and of the inputs; the time is that of the last', () => {
  const carrier = carrierOf();
  for (const event of eventsIn('@4 UserInput "a"', 'UserInput "b"', '@7 UserInput "c"'))
    carrier.see(event, true);
  assert.deepEqual(
    [1, 9].map((seq) => carrier.missed(seq)?.idsFrom),
    [3, 9],
  );
  assert.equal(carrier.missed(1)?.at, 7);
});

test('a machine has missed something if it does not take what the conversation or a call needs', () => {
  const needed: readonly Line[] = [
    'LlmCompleted req-1 says "Done."',
    'ToolStarted batch-1 c1',
    'ToolCompleted batch-1 c1 ok ""',
    'CompactionCompleted compaction-1 "short"',
    'RewindRequested r-1 0 kept=0',
    'Rewound r-1',
  ];
  const others: readonly Line[] = [
    'LlmCompleted req-1 unreadable',
    'LlmFailed req-1 auth "no key"',
    GO,
    'Resumed 2',
  ];
  const hasMissed = (taken: boolean, ...lines: readonly Line[]): boolean => {
    const carrier = carrySession('test/model');
    for (const event of eventsIn(...lines)) carrier.see(event, taken);
    return carrier.missed(1) !== null;
  };
  for (const line of needed) {
    assert.ok(hasMissed(false, line), String(line));
    assert.ok(hasMissed(false, line, GO), String(line));
    assert.ok(!hasMissed(true, line), String(line));
  }
  for (const line of others) assert.ok(!hasMissed(false, line), String(line));
});

const CALLS = carriedFrom(
  eventsIn(
    GO,
    'LlmCompleted req-1 calls teleport(c1) bash(c2) bash(c3)',
    '@5 ToolStarted batch-1 c2',
    'UserInput "more"',
  ),
);
const DONE = carriedFrom(eventsIn(GO, 'LlmCompleted req-1 says "Done."'));
const back = { kind: 'rewind', rewindId: 'r-1', to: 7, plan: 'p' } as const;
const conversation = { kept: 0, messages: [], contextTokens: 10 };

/** A session for each kind of work; those of requests and rewinds stand in journals of before. */
const CARRIED: readonly CarriedSession[] = [
  DONE,
  carriedFrom(eventsIn(GO, 'UserInput "more"', 'ShutdownRequested')),
  { ...carriedFrom(eventsIn(GO, 'UserInput "more"')), work: { kind: 'request' } },
  CALLS,
  { ...DONE, work: { ...back, conversation } },
  { ...DONE, work: back },
];

test('a session that an upgrade carries is carried on by the next one', () => {
  for (const session of CARRIED) {
    const { kind } = session.work;
    assert.deepEqual(JSON.parse(JSON.stringify(session)), session, kind);
    const anew = kind === 'calls' ? session : { ...session, work: { kind: 'nothing' } };
    assert.deepEqual(carriedFrom([upgradedTo(session)]), anew, kind);
    // what came before the upgrade is in it, or gone
    const before = eventsIn('UserInput "lost"', 'UserInput "too"', 'TextDelta req-1 "We"');
    assert.deepEqual(carriedFrom([...before, upgradedTo(session)]).messages, anew.messages, kind);
  }
});

test('what follows an upgrade is read from the session that it carries', () => {
  const [, , request, calls, rewind] = CARRIED;
  assert.ok(request !== undefined && calls !== undefined && rewind !== undefined);
  const after = (session: CarriedSession, ...lines: readonly Line[]) =>
    carriedFrom([upgradedTo(session), ...eventsIn(...lines)]);
  const typed = after({ ...calls, idsFrom: 40 }, 'UserInput "a"', 'UserInput "b"');
  assert.deepEqual(
    typed.queue.map(({ inputId }) => inputId),
    ['input-2', 'input-41', 'input-42'],
  );
  assert.equal(typed.idsFrom, 42);
  const [c1, c3] = [
    'c1 failed "no such tool: teleport; available: read, grep, explore, edit, write, bash, patch"',
    `c3 ${MISSING}`,
  ];
  assert.deepEqual(linesOf(after(calls, 'ToolCompleted batch-1 c2 ok "2"')).slice(2), [
    `user: ${c1} | c2 ok "2" | ${c3} | "more"`,
    'nothing',
  ]);
  assert.deepEqual(linesOf(after(rewind, 'Rewound r-1')), ['nothing']);
  assert.deepEqual(linesOf(after(request, 'LlmCompleted req-9 says "Now."')), [
    'user: "go" | "more"',
    'assistant: "Now."',
    'nothing',
  ]);
});

test('after an upgrade the machine has missed nothing, but for what it misses then', () => {
  const carrier = carrierOf();
  const [nothing] = CARRIED;
  assert.ok(nothing !== undefined);
  carrier.see({ type: 'Resumed', at: 0, epoch: 1, upgrade: { from: 1, to: 2 } }, false);
  assert.notEqual(carrier.missed(1), null);
  carrier.see(upgradedTo(nothing), false);
  assert.equal(carrier.missed(1), null);
  for (const event of eventsIn('ToolStarted batch-1 c1')) carrier.see(event, false);
  assert.notEqual(carrier.missed(1), null);
});

test('a later machine goes on with a turn of its own', () => {
  const settings = { limits: { timeMs: 60_000 } };
  const before = begun(settings);
  const [nothing, , request, calls] = CARRIED.map((session) => ({
    ...session,
    at: 5,
    idsFrom: 40,
  }));
  assert.ok(nothing !== undefined && request !== undefined && calls !== undefined);
  const timeLimit = { timerId: 'timer-40', dueAt: 60_005, delayMs: 60_000 };
  for (const [session, limit] of [
    [request, timeLimit],
    [calls, timeLimit],
    [nothing, null],
  ] as const) {
    const { turn, counters, ...others } = stateFrom(before, session).session;
    assert.deepEqual(turn, {
      ...before.session.turn,
      turnId: 'turn-40',
      startedAt: 5,
      timeLimit: limit,
    });
    assert.deepEqual(new Set(Object.values(counters)), new Set([40]));
    assert.deepEqual(others.contextTokens, estimateTokens(session.messages));
    const { unaccounted, notes, emptyReplies, mayCompact } = others;
    assert.deepEqual([unaccounted, notes, emptyReplies, mayCompact], [[], [], 0, 'yes']);
  }
  const unlimited = begun({ limits: { timeMs: 'unlimited' } });
  assert.equal(stateFrom(unlimited, request).session.turn.timeLimit, null);
});

/** The call that waits as earlier versions carried it: it can still run. */
const withWaitingCall = (session: CarriedSession): CarriedSession => {
  const { work } = session;
  if (work.kind !== 'calls') return session;
  const calls = work.calls.map(({ ended, ...call }) =>
    ended === undefined || ended.status === 'cancelled' ? call : { ...call, ended },
  );
  return { ...session, work: { ...work, calls } };
};

test('a later machine goes on with the work', () => {
  const states = CARRIED.map((session) => {
    const { session: _, ...state } = stateFrom(begun({}), withWaitingCall(session));
    return state;
  });
  const [nothing, closed, request, calls, rewind, files] = states;
  const waits = { name: 'WaitingForUserInput', reason: { kind: 'resumed' }, next: 'rest' };
  assert.deepEqual([nothing, closed], [waits, { name: 'ShuttingDown' }]);
  assert.equal(request?.name, 'CallingLlm');
  const judged = (tool: string, id: string) =>
    eventsIn(`LlmCompleted req-1 calls ${tool}(${id})`).flatMap((event) =>
      event.type === 'LlmCompleted' ? event.calls : [],
    )[0];
  const text = 'no such tool: teleport; available: read, grep, explore, edit, write, bash, patch';
  assert.deepEqual(calls, {
    name: 'ExecutingTools',
    batchId: 'batch-1',
    calls: [
      {
        judged: judged('teleport', 'c1'),
        requestedAt: 0,
        status: 'noSuchTool',
        ran: false,
        startedAt: null,
        completedAt: 0,
        outcome: { failed: true, text },
      },
      {
        judged: judged('bash', 'c2'),
        requestedAt: 0,
        status: 'running',
        allowed: 'byUser',
        startedAt: 5,
        graceTimerId: null,
      },
      { judged: judged('bash', 'c3'), requestedAt: 0, status: 'queued', allowed: 'notYet' },
    ],
    phase: { mode: 'running' },
  });
  const conversation = { kept: 0, messages: [], contextTokens: 10 };
  const rewinding = { name: 'Rewinding', rewindId: 'r-1', to: 7, plan: 'p' };
  assert.deepEqual([rewind, files], [{ ...rewinding, conversation }, rewinding]);
});

test('a call that has ended keeps its images in a later machine', () => {
  const events = eventsIn(
    GO,
    replyWith(g.grep('c1'), g.grep('c2')),
    outcomeOf('c1', { ...ok, images: [IMAGE] }),
    'ToolStarted batch-1 c2',
  );
  const state = stateFrom(begun({}), carriedFrom(events));
  assert.ok(state.name === 'ExecutingTools');
  assert.deepEqual(
    state.calls.map((call) => 'outcome' in call && call.outcome),
    [{ failed: false, text: 'done', images: [IMAGE] }, false],
  );
});

test('an upgrade replaces the state by its session, once for each opening', () => {
  const [nothing] = CARRIED;
  assert.ok(nothing !== undefined);
  const state = begun({});
  const upgrade = upgradedTo(nothing);
  assert.deepEqual(stateBefore(state, upgrade), stateFrom(state, nothing));
  const opened = step(state, { type: 'Resumed', at: 0, epoch: 1 }).state;
  for (const [before, event] of [
    [opened, upgrade],
    [state, { ...upgrade, upgrade: { from: 1, to: 2 } }],
    [state, { type: 'Resumed', at: 0, epoch: 1 }],
    [state, g.cancel],
  ] as const)
    assert.equal(stateBefore(before, event), before);
});

// ---- What the events tell of files ----

const seen = (path: string, sha256: string) => ({ seen: [{ path, sha256 }] });

const FILES: readonly Event[] = [
  { type: 'ToolStarted', at: 1, batchId: 'batch-1', callId: 'c1', before: 'b1', after: 'a1' },
  { type: 'ToolStarted', at: 2, batchId: 'batch-1', callId: 'c2', before: 'b2' },
  { type: 'ToolStarted', at: 3, batchId: 'batch-1', callId: 'c3' },
  outcomeOf('c1', { ...ok, ...seen('/a', 'a1') }),
  outcomeOf('c2', ok),
  { ...(g.eventOf(g.hookDone(seen('/b', 'b1')), begun({})) as On<'HookCompleted'>), at: 5 },
];

test('what calls and hooks have read and written is known, the last look counts', () => {
  const collector = collectPastFiles();
  assert.deepEqual(collector.past(), {
    lastAt: null,
    hashes: new Map(),
    batchId: null,
    seen: new Map(),
  });
  for (const event of FILES) collector.see(event);
  const past = collector.past();
  assert.deepEqual(past, {
    lastAt: 5,
    hashes: new Map([
      ['c1', { before: 'b1', after: 'a1' }],
      ['c2', { before: 'b2' }],
    ]),
    batchId: 'batch-1',
    seen: new Map([
      ['/a', { path: '/a', sha256: 'a1', lines: [{ by: 'c1', first: 1 }] }],
      ['/b', { path: '/b', sha256: 'b1', lines: [] }],
    ]),
  });
  // only calls of the last batch can still run
  const later = collectPastFiles(past);
  later.see({ type: 'ToolStarted', at: 6, batchId: 'batch-2', callId: 'c4', before: 'b4' });
  later.see({
    type: 'ShutdownRequested',
    at: 7,
    outcomes: [
      { batchId: 'batch-2', callId: 'c4', outcome: { ...ok, ...seen('/a', 'a2') } },
      { batchId: 'batch-2', callId: 'c5', outcome: ok },
    ],
  });
  later.see(g.shutdown);
  assert.deepEqual(later.past(), {
    lastAt: g.NOW,
    hashes: new Map([['c4', { before: 'b4' }]]),
    batchId: 'batch-2',
    seen: new Map([
      ['/a', { path: '/a', sha256: 'a2', lines: [{ by: 'c4', first: 1 }] }],
      ['/b', { path: '/b', sha256: 'b1', lines: [] }],
    ]),
  });
  assert.equal(past.hashes.size, 2, 'the files of before stay as they were');
  assert.equal(past.seen.get('/a')?.sha256, 'a1');
});

test('lines that a call has shown are known until a later call has its id', () => {
  const collector = collectPastFiles();
  const lines = [{ by: 'c1', first: 1, last: 20 }];
  const part = { path: '/a', sha256: 'a1', lines };
  collector.see(outcomeOf('c1', { ...ok, seen: [part] }));
  const whole = { path: '/b', sha256: 'b1' };
  collector.see(outcomeOf('c2', { ...ok, seen: [whole] }));
  // a formatter of an earlier version does not say which lines: those that were shown before
  const formatted = g.eventOf(g.hookDone(seen('/b', 'b2')), begun({})) as On<'HookCompleted'>;
  collector.see({ ...formatted, at: 5 });
  const linesOf = (path: string) => collector.past().seen.get(path)?.lines;
  assert.deepEqual([linesOf('/a'), linesOf('/b')], [lines, [{ by: 'c2', first: 1 }]]);
  collector.see({ type: 'ToolStarted', at: 6, batchId: 'batch-2', callId: 'c2' });
  assert.deepEqual([linesOf('/a'), linesOf('/b')], [lines, []]);
});

test('a session ran until its last event, or until the settings of the next opening changed', () => {
  const changed = { type: 'SettingsChanged', at: 9, patch: {} } as const;
  assert.equal(ranUntil(g.begin), g.NOW);
  assert.equal(ranUntil(changed), 9);
  assert.equal(ranUntil({ ...changed, stoppedAt: 0 }), 0);
  const resumed = { type: 'Resumed', at: 9, epoch: 1, stoppedAt: 4 } as const;
  assert.equal(ranUntil(resumed), 9);
});

// ---- Beside the machine: the golden traces, then random walks ----

/**
 * Traces in which a turn ends with a reply, and its conversation is another one after these events:
 * a limit ends a turn without an event of its own, a text typed meanwhile stands before a reply, a
 * late reply is stored, a result was shortened.
 */
const DIFFERENT: readonly string[] = [
  'a-turn-ends-at-the-limit 7',
  'another-model-takes-over 15',
  'facts-that-come-too-late-during-a-call 26',
  'facts-that-come-too-late-while-files-are-taken-back 21',
  'facts-that-come-too-late-while-waiting 7',
  'facts-that-come-too-late-while-waiting 8',
  'money-is-set-aside 23',
  'money-is-set-aside 26',
  'settings-and-limits-change-meanwhile 35',
  'the-first-question-is-too-long 6',
  'typed-while-the-machine-works 10',
];

/** The parts of the messages, without notes of the machine, and why a call did not run. */
const shownParts = (session: CarriedSession | State['session']): readonly unknown[] => {
  const messages = 'messages' in session ? session.messages : messagesOf(session.conversation);
  return messages.flatMap(({ role, parts }) =>
    parts.flatMap((part): readonly unknown[] => {
      if ('origin' in part && part.origin === 'note') return [];
      const isUnsaid = part.type === 'result' && part.failed;
      return [{ role, ...part, ...(isUnsaid ? { text: '' } : {}) }];
    }),
  );
};

const FOLDER = new URL('../../../../test/traces/', import.meta.url);

/** The events of a trace, each with the state after it. */
const stepsOf = (file: string): readonly { readonly event: Event; readonly state: State }[] => {
  const lines = readFileSync(new URL(file, FOLDER), 'utf8').split('\n');
  const settings = lines.find((line) => line.startsWith('! '))?.slice(2) ?? '';
  let state: State = initialState(settingsFrom(settings));
  let clock = 0;
  return lines
    .filter((line) => line.startsWith('> '))
    .map((line) => {
      const event = eventFrom(line.slice(2), clock);
      clock = event.at;
      ({ state } = step(state, event));
      return { event, state };
    });
};

test('a session whose turn has ended with a reply is the one that the machine holds', () => {
  const differ = readdirSync(FOLDER)
    .filter((name) => name.endsWith('.trace'))
    .flatMap((file) => {
      const carrier = carrierOf();
      return stepsOf(file).flatMap(({ event, state }, index) => {
        carrier.see(event, true);
        if (event.type !== 'LlmCompleted' || state.name !== 'WaitingForUserInput') return [];
        const session = carrier.missed(index + 1) ?? assert.fail('an event was missed');
        const read = [shownParts(session), session.queue, session.usage];
        const { queue, usage } = state.session;
        const isEqual = isDeepStrictEqual(read, [shownParts(state.session), queue, usage]);
        return isEqual ? [] : [`${file.replace('.trace', '')} ${index + 1}`];
      });
    });
  assert.deepEqual(differ.sort(), DIFFERENT);
});

const asConversation = ({ messages, work }: CarriedSession): readonly Message[] => {
  if (work.kind !== 'calls') return messages;
  const results = work.calls.map(({ judged }) => ({
    type: 'result' as const,
    callId: judged.callId,
    tool: judged.tool,
    failed: false,
    text: 'result',
  }));
  return [...messages, { role: 'user', parts: results }];
};

const typedIn = (messages: readonly Message[]): readonly string[] =>
  messages.flatMap(({ parts }) =>
    parts.flatMap((part) => ('text' in part ? (part.text.match(/text-\d+\./g) ?? []) : [])),
  );

const heldBy = ({ session }: State): readonly string[] => [
  ...typedIn(messagesOf(session.conversation)),
  ...session.queue.map(({ text }) => text),
];

test('every session that is read from its events is valid for a strict provider, and goes on', (t) => {
  forAll(t, 150, (walked) => {
    const walker = roam(walked);
    for (let length = 1; length <= walker.events().length; length += 7) {
      const carried = carriedFrom(walker.events().slice(0, length));
      assert.deepEqual(faultsOf(asConversation(carried)), []);
      const before = walker.steps()[length]?.state ?? begun({});
      const resumed: Event = {
        type: 'Resumed',
        at: g.NOW * 2,
        epoch: before.session.epoch + 1,
        upgrade: { from: 1, to: 2, session: carried },
      };
      const { state, diagnostics, actions } = step(before, resumed);
      assert.deepEqual(diagnostics, []);
      const sent = actions.some(({ type }) => type === 'SendLlmRequest');
      const isOpen = state.name === 'ExecutingTools';
      assert.deepEqual(isOpen ? [] : faultsOf(messagesOf(state.session.conversation)), []);
      assert.ok(!sent || state.session.conversation.open !== null);
      const wire: unknown = JSON.parse(JSON.stringify(resumed));
      assert.deepEqual(step(before, wire as Event).diagnostics, []);
    }
  });
});

test('a session that is read from its events has every text that the user typed', (t) => {
  forAll(t, 150, (walked) => {
    const walker = roam(walked);
    const { messages, queue } = carriedFrom(walker.events());
    const held = new Set([...typedIn(messages), ...queue.map(({ text }) => text)]);
    // What a summary replaced is gone, and so is what the user took back, or out of the queue.
    const removes = walker
      .events()
      .some(({ type }) => ['CompactionCompleted', 'EditQueue', 'RewindRequested'].includes(type));
    const last = walker.steps().at(-1)?.state;
    if (removes || last === undefined) return;
    for (const text of heldBy(last)) assert.ok(held.has(text), `${text} was lost`);
  });
});
