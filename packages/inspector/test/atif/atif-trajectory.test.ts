import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { messagesOf } from '@pawl/agent/machine/conversation';
import type { Event } from '@pawl/agent/machine/event';
import { initialState, step } from '@pawl/agent/machine/machine';
import type { State } from '@pawl/agent/machine/state';
import { presetRules } from '@pawl/agent/policy/presets';
import * as g from '../../../../test/kit/agent/given.js';
import { begun, forAll, roam } from '../../../../test/kit/agent/random.js';
import type { SettingsPatch } from '../../../../test/kit/agent/settings.js';
import { play, settingsFrom } from '../../../../test/kit/agent/trace-player.js';
import { walk } from '../../../../test/kit/agent/walker.js';
import { trajectoryFaults } from '../../../../test/kit/atif/trajectory-faults.js';
import { isDeep } from '../../../../test/tier.js';
import type { Trajectory, TrajectoryMetrics, TrajectoryStep } from '../../src/atif-trajectory.js';
import {
  exportPlayed,
  type PlayedSession,
  playSession,
  type Situation,
  startHeader,
} from './session-player.js';

const SESSIONS = isDeep ? 200 : 60;

const played = Array.from({ length: SESSIONS }, (_, index) =>
  playSession(index + 1, `session-${index + 1}`),
);

type Spent = { tokens: readonly number[]; costUsd: number; unpriced: boolean };

/** All usage that a trajectory shows: of its steps, and under `extra` of compactions, calls, hooks. */
const shownUsage = ({ steps, extra }: Trajectory): Spent => {
  const all = [
    ...steps.flatMap(({ metrics, extra: more }) => [metrics, more?.usage]),
    ...steps.flatMap(({ observation }) => observation?.results.map((one) => one.extra?.usage)),
    ...(Array.isArray(extra.other_usage) ? extra.other_usage : []),
  ].filter((one): one is TrajectoryMetrics => one !== undefined);
  const sum = (amount: (one: TrajectoryMetrics) => number): number =>
    all.reduce((total, one) => total + amount(one), 0);
  return {
    tokens: [
      sum((one) => one.prompt_tokens),
      sum((one) => one.completion_tokens),
      sum((one) => one.cached_tokens),
      sum((one) => Number(one.extra?.cache_write_tokens ?? 0)),
    ],
    costUsd: sum((one) => one.cost_usd ?? 0),
    unpriced: all.some((one) => one.cost_usd === undefined),
  };
};

const checkMetrics = (trajectory: Trajectory, { session: { usage } }: State): void => {
  const { final_metrics: totals } = trajectory;
  const prompt = usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
  const tokens = [prompt, usage.outputTokens, usage.cacheReadTokens, usage.cacheWriteTokens];
  assert.deepEqual(
    [
      totals.total_prompt_tokens,
      totals.total_completion_tokens,
      totals.total_cached_tokens,
      totals.extra?.cache_write_tokens,
    ],
    tokens,
  );
  assert.equal(totals.total_cost_usd, usage.unpriced > 0 ? undefined : usage.costUsd);
  const shown = shownUsage(trajectory);
  assert.deepEqual(shown.tokens, tokens);
  const assumed = Number(totals.extra?.assumed_cost_usd ?? 0);
  // A usage without a price may count with what was set aside for it.
  if (assumed === 0) assert.equal(shown.unpriced, usage.unpriced > 0);
  // The sums are taken in different orders.
  if (usage.unpriced === 0)
    assert.ok(Math.abs(shown.costUsd + assumed - usage.costUsd) < 1e-6, `${shown.costUsd}`);
};

const textOf = ({ message }: Pick<TrajectoryStep, 'message'>): string =>
  typeof message === 'string'
    ? message
    : message.map((part) => (part.type === 'text' ? part.text : '')).join('');

/** Everything that stands in the conversation now stands in the steps since the last summary. */
const checkContext = ({ steps }: Trajectory, { session }: State): void => {
  const from = steps.findLastIndex(
    ({ source, extra }) =>
      source === 'system' &&
      extra?.compaction !== undefined &&
      !('failed' in Object(extra.compaction)),
  );
  const since = steps.slice(Math.max(0, from));
  const messages = messagesOf(session.conversation);
  const open = session.conversation.open === null ? -1 : messages.length - 1;
  for (const [index, message] of messages.entries())
    for (const part of message.parts) {
      if (part.type === 'call')
        assert.ok(
          since.some(({ tool_calls: calls }) =>
            calls?.some(({ tool_call_id: id }) => id === part.callId),
          ),
          `the call ${part.callId} is in no step`,
        );
      if (part.type === 'result') {
        const results = since.flatMap(({ observation }) => observation?.results ?? []);
        const own = results.filter(({ source_call_id: id }) => id === part.callId);
        assert.ok(
          own.some(({ content = '' }) => textOf({ message: content }) === part.text),
          `the result of ${part.callId} is not with its call`,
        );
      }
      if (part.type === 'text' && index !== open)
        assert.ok(
          since.some((step) => textOf(step).includes(part.text)),
          `the text "${part.text}" is in no step`,
        );
    }
};

const checkPlayed = (session: PlayedSession): void => {
  const trajectory = exportPlayed(session);
  assert.deepEqual(trajectoryFaults(JSON.parse(JSON.stringify(trajectory))), []);
  checkMetrics(trajectory, session.state);
  checkContext(trajectory, session.state);
  for (const task of session.tasks.values()) checkMetrics(exportPlayed(task), task.state);
};

test(`${SESSIONS} sessions satisfy every rule of ATIF, and their metrics equal the journal's`, () => {
  for (const session of played) checkPlayed(session);
  const wanted = new Set<Situation>([
    ...(['compaction', 'compaction failed', 'task', 'crash', 'crash in a batch', 'retry'] as const),
    ...(['closed and resumed', 'late usage', 'picture', 'denied', 'cancelled', 'fork'] as const),
    ...(['unknown price', 'hook that costs'] as const),
  ]);
  for (const session of played) for (const situation of session.met) wanted.delete(situation);
  assert.deepEqual([...wanted], []);
});

/** A session of these events, as if the runtime had written them. */
const sessionFrom = (first: State, events: readonly Event[]): PlayedSession => {
  const { settings } = first.session;
  return {
    header: { ...startHeader('walk', false), settings },
    entries: events.map((event, index) => ({ seq: index + 1, event })),
    state: events.reduce((state, event) => step(state, event).state, first),
    tasks: new Map(),
    met: new Set(),
  };
};

test('events that answer nothing, twice or late, give trajectories that are right as well', (t) => {
  forAll(t, 150, (walked) => {
    const session = sessionFrom(begun(walked.settings), roam(walked).events());
    const trajectory = exportPlayed(session);
    assert.deepEqual(trajectoryFaults(JSON.parse(JSON.stringify(trajectory))), []);
    checkMetrics(trajectory, session.state);
  });
});

test('a request that has usage was sent, though a policy stopped it afterwards', () => {
  const walker = walk(begun({}));
  const usage = g.usage(0.1);
  walker.send(g.begin, g.input('one'));
  walker.send({ type: 'UsageReported', at: g.NOW, usageId: 'req-1', usage });
  walker.send({ type: 'PolicyStopped', at: g.NOW, requestId: 'req-1', why: 'enough' });
  const trajectory = exportPlayed(sessionFrom(begun({}), walker.events()));
  assert.deepEqual(trajectoryFaults(JSON.parse(JSON.stringify(trajectory))), []);
  assert.equal(trajectory.steps.at(-1)?.llm_call_count, 1);
});

test('so do the golden traces', () => {
  const folder = new URL('../../../../test/traces/', import.meta.url);
  for (const name of readdirSync(folder).filter((one) => one.endsWith('.trace'))) {
    const trace = readFileSync(new URL(name, folder), 'utf8');
    const settings = settingsFrom(/^! (.*)$/m.exec(trace)?.[1] ?? '');
    const events = play(trace).steps.map(({ event }) => event);
    const session = sessionFrom(initialState(settings), events);
    const trajectory = exportPlayed(session);
    assert.deepEqual(trajectoryFaults(JSON.parse(JSON.stringify(trajectory))), [], name);
    checkMetrics(trajectory, session.state);
    checkContext(trajectory, session.state);
  }
});

test('what is taken back stays as it was, and what comes again follows as a copy', () => {
  const walker = walk(begun({}));
  walker.send(g.begin, g.input('one'), g.says('First.'), g.input('two'), g.says('Second.'));
  const messages = messagesOf(walker.state().session.conversation);
  const back = { kept: 2, messages: [], contextTokens: 0 };
  const forward = { kept: 2, messages: messages.slice(2), contextTokens: 0 };
  walker.send({ ...g.rewind('plan-1'), conversation: back }, g.rewound());
  walker.send({ ...g.rewind(), direction: 'forward', conversation: forward });
  // a journal is read from JSON: the messages that come again are other objects
  const events = walker.events().map((event): Event => JSON.parse(JSON.stringify(event)));
  const session = sessionFrom(begun({}), events);
  checkPlayed(session);
  assert.deepEqual(
    exportPlayed(session)
      .steps.slice(1)
      .map(({ source, message, is_copied_context, extra }) => [
        source,
        message,
        is_copied_context ?? false,
        extra?.rewind ?? null,
      ]),
    [
      ['user', 'one', false, null],
      ['agent', 'First.', false, null],
      ['user', 'two', false, null],
      ['agent', 'Second.', false, null],
      [
        'system',
        'The user went to entry 0 of the session: conversation and files.',
        false,
        { to: 0, removed_messages: 2, changed_files: 0 },
      ],
      [
        'system',
        'The user went to entry 0 of the session: conversation.',
        false,
        { to: 0, removed_messages: 0 },
      ],
      ['user', 'two', true, null],
      ['agent', 'Second.', true, null],
    ],
  );
});

type Example = {
  readonly name: string;
  readonly settings?: SettingsPatch;
  readonly given: readonly g.Given[];
  readonly expected: (steps: readonly TrajectoryStep[], trajectory: Trajectory) => unknown;
  readonly then: unknown;
};

const lastReply = (steps: readonly TrajectoryStep[]): TrajectoryStep =>
  steps.findLast(({ source }) => source === 'agent') ?? assert.fail('no reply');
const resultsIn = (step: TrajectoryStep): readonly unknown[] =>
  (step.observation?.results ?? []).map(({ source_call_id: id, content, extra }) => [
    id,
    content,
    extra?.status,
  ]);

const crash: g.Given = ({ session }) => ({
  type: 'Resumed',
  at: g.NOW,
  epoch: session.epoch + 1,
  stoppedAt: g.NOW,
});

test('a fork that is opened with other settings has no crash; a crash after it is one', () => {
  const walker = walk(begun({}));
  walker.send(g.begin, g.input('one'), g.says('First.'));
  const seq = walker.events().length;
  walker.send(g.change({ model: 'test/other' }), crash, crash);
  const session = sessionFrom(begun({}), walker.events());
  const header = { ...session.header, parent: { sessionId: 'parent', seq } };
  const { resumes } = exportPlayed({ ...session, header }).extra;
  assert.deepEqual(
    (resumes as readonly { readonly cause: string }[]).map(({ cause }) => cause),
    ['forked', 'crashed'],
  );
});

const examples: readonly Example[] = [
  {
    name: 'a request that failed counts with the one that repeats it',
    given: [g.begin, g.input('hi'), g.fails({ usage: g.usage(1) }), g.rings(), g.says('yes')],
    expected: (steps) => {
      const { llm_call_count: count, metrics, extra } = lastReply(steps);
      const attempts = JSON.stringify(extra?.attempts);
      return [count, metrics?.cost_usd, /overloaded/.test(attempts)];
    },
    then: [2, 1, true],
  },
  {
    name: 'a request that the policy held back was no call',
    settings: { userPolicy: 'ask' },
    given: [g.begin, g.input('hi'), g.policyStops()],
    expected: (steps) => {
      const { llm_call_count: count, metrics, message } = lastReply(steps);
      return [count, metrics, message];
    },
    then: [0, undefined, ''],
  },
  {
    name: 'a result that came after a crash stands with its call',
    settings: { hooks: 'never' },
    given: [
      ...[g.begin, g.input('hi'), g.wants(g.edit('c1')), g.started('c1'), crash],
      ...[g.ended('c1', 'lost', 'not known'), g.says('well')],
    ],
    expected: (steps, { extra }) => [
      steps.map(({ source }) => source).join(' '),
      resultsIn(steps[2] ?? assert.fail()),
      JSON.stringify(extra.resumes).includes('crashed'),
    ],
    then: [
      'system user agent agent',
      [['c1', 'outcome unknown after a crash\nnot known', 'lost']],
      true,
    ],
  },
  {
    name: 'of a batch that is cut off, the calls that ended have their results',
    settings: { hooks: 'never' },
    given: [
      ...[g.begin, g.input('hi'), g.wants(g.grep('c1'), g.grep('c2'))],
      ...[g.started('c1'), g.started('c2'), g.ended('c1')],
    ],
    expected: (steps) => resultsIn(lastReply(steps)),
    then: [['c1', 'output of c1', 'ok']],
  },
  {
    name: 'a denied call says so',
    settings: { rules: presetRules.careful, hooks: 'never' },
    given: [
      ...[g.begin, g.input('hi'), g.wants(g.edit('c1'))],
      ...[g.denies('c1'), g.says('well')],
    ],
    expected: (steps) => JSON.stringify(resultsIn(steps[2] ?? assert.fail())),
    then: '[["c1","refused by user: not this file","denied"]]',
  },
  {
    name: 'a turn that was cancelled says so',
    given: [g.begin, g.input('hi'), g.delta('half'), g.cancel],
    expected: (steps) => {
      const { message, extra } = lastReply(steps);
      return [message, extra];
    },
    then: ['half', { cut: true, turn_end: { kind: 'cancelled', cause: 'user' } }],
  },
];

for (const { name, settings = {}, given, expected, then } of examples)
  test(name, () => {
    const walker = walk(begun(settings));
    for (const one of given) walker.send(one);
    const trajectory = exportPlayed(sessionFrom(begun(settings), walker.events()));
    assert.deepEqual(trajectoryFaults(JSON.parse(JSON.stringify(trajectory))), []);
    assert.deepEqual(expected(trajectory.steps, trajectory), then);
  });

/** A trajectory with everything in it, to plant faults in. */
const sample = (): Trajectory => {
  const session = played.find(
    ({ met }) => met.has('task') && met.has('picture') && met.has('compaction'),
  );
  return JSON.parse(JSON.stringify(exportPlayed(session ?? assert.fail('none has everything'))));
};

/** The part of a document at a path; fails if there is none. */
const partAt = (value: unknown, ...path: readonly (string | number)[]): object => {
  let part = value;
  for (const key of path)
    part = typeof part === 'object' && part !== null ? Reflect.get(part, key) : undefined;
  return typeof part === 'object' && part !== null ? part : assert.fail(`nothing at ${path}`);
};

const findStep = ({ steps }: Trajectory, source: string, field = 'message'): object =>
  steps.find((one) => one.source === source && field in one) ?? assert.fail(`none has ${field}`);
const reply = (trajectory: Trajectory): object => findStep(trajectory, 'agent', 'metrics');
const request = (trajectory: Trajectory): object => findStep(trajectory, 'user');
const taskResult = ({ steps }: Trajectory): object =>
  steps
    .flatMap(({ observation }) => observation?.results ?? [])
    .find((one) => one.subagent_trajectory_ref !== undefined) ?? assert.fail('no task');
const callStep = (trajectory: Trajectory): object => findStep(trajectory, 'agent', 'tool_calls');

/** Repeats the first item of a list. */
const repeatFirst = (list: object): void => {
  if (Array.isArray(list)) list.push(list[0]);
};

type Fault = readonly [name: string, place: (trajectory: Trajectory) => object, change: object];

const whole = (trajectory: Trajectory): object => trajectory;
const first = (trajectory: Trajectory): object => partAt(trajectory, 'steps', 0);
const task = (trajectory: Trajectory): object => partAt(trajectory, 'subagent_trajectories', 0);
const picture = (source: object): object => ({ message: [{ type: 'image', source }] });

const faults: readonly Fault[] = [
  ['another version', whole, { schema_version: 'ATIF-v1.6' }],
  ['an agent without a version', (one) => partAt(one, 'agent'), { version: undefined }],
  ['an unknown field of the document', whole, { title: 'x' }],
  ['no steps', whole, { steps: [] }],
  ['step ids from 0', first, { step_id: 0 }],
  ['another source', first, { source: 'assistant' }],
  ['a time in milliseconds', first, { timestamp: 1_700_000_000_000 }],
  ['a message that is null', request, { message: null }],
  ['metrics of a user', request, { metrics: { prompt_tokens: 1 } }],
  ['arguments as text', (one) => partAt(callStep(one), 'tool_calls', 0), { arguments: '{}' }],
  [
    'a result of a call of another step',
    (one) => partAt(findStep(one, 'agent', 'observation'), 'observation', 'results', 0),
    { source_call_id: 'x' },
  ],
  ['metrics without a model call', reply, { llm_call_count: 0 }],
  ['a negative cost', (one) => partAt(one, 'final_metrics'), { total_cost_usd: -1 }],
  ['another number of steps', (one) => partAt(one, 'final_metrics'), { total_steps: 1 }],
  ['a picture of an unknown type', request, picture({ media_type: 'image/bmp', path: 'a.bmp' })],
  ['a reference to nothing', taskResult, { subagent_trajectory_ref: [{}] }],
  ['an embedded trajectory without an id', task, { trajectory_id: undefined }],
  ['a fault in an embedded trajectory', (one) => partAt(task(one), 'steps', 0), { step_id: 9 }],
];

test('the validator takes the sample, and refuses it with each fault planted in it', () => {
  assert.deepEqual(trajectoryFaults(sample()), []);
  const findFaults = (plant: (trajectory: Trajectory) => void): readonly string[] => {
    const draft = sample();
    plant(draft);
    return trajectoryFaults(JSON.parse(JSON.stringify(draft)));
  };
  for (const [name, place, change] of faults) {
    const found = findFaults((one) => void Object.assign(place(one), change));
    assert.notDeepEqual(found, [], `${name} was taken`);
  }
  const lists: readonly ((one: Trajectory) => object)[] = [
    (one) => partAt(callStep(one), 'tool_calls'),
    (one) => partAt(one, 'subagent_trajectories'),
  ];
  for (const list of lists)
    assert.notDeepEqual(
      findFaults((one) => repeatFirst(list(one))),
      [],
    );
});
