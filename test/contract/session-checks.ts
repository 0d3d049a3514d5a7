import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { scriptedModel } from '../../packages/agent/src/models/scripted-model.js';
import type { Entry, SessionInfo } from '../../packages/agent/src/ports/journal.js';
import type { Runtime, Stepped } from '../../packages/agent/src/ports/session.js';
import { traceRuntimeSession } from '../../packages/pawl/src/telemetry.js';
import { contractTools } from './contract-tools.js';
import { attend, entriesOf, MODEL_ID, storySettings } from './play-story.js';
import type { MakeRuntime } from './runtime-under-test.js';
import { event } from './story.js';

/** What every runtime promises about its sessions besides their events: forks, lists, reading, watching, refusing. */

export type SessionCheck = {
  readonly name: string;
  run(runtime: Runtime, workspace: string): Promise<void>;
};

/** Answers each text with "You said …". A text that begins with "wait" gets a first piece and no end. */
const echoModel = () =>
  scriptedModel(
    {
      replies: [],
      rules: [
        { when: '^wait', text: 'Waiting', stall: true },
        { when: '^(?<text>.*)$', text: 'You said $<text>.' },
      ],
    },
    { id: MODEL_ID },
  );

export const withRuntime = async (
  make: MakeRuntime,
  check: SessionCheck,
  workspace: string,
): Promise<void> => {
  const { runtime, stop } = await make({ model: echoModel(), tools: contractTools, hooks: null });
  try {
    await check.run(runtime, workspace);
  } finally {
    await stop();
  }
};

const begin = async (runtime: Runtime, workspace: string) => {
  const settings = storySettings(workspace);
  const id = await runtime.create({ settings, instructions: 'Be brief.' });
  return attend(runtime, id);
};

const listOf = async (runtime: Runtime): Promise<readonly SessionInfo[]> => {
  const infos: SessionInfo[] = [];
  for await (const info of runtime.list()) infos.push(info);
  return infos;
};

const typesOf = (entries: readonly Entry[]): readonly string[] =>
  entries.map((entry) => entry.event.type);

export const sessionChecks: readonly SessionCheck[] = [
  {
    name: 'send resolves with the number of the event in the journal',
    async run(runtime, workspace) {
      const session = await begin(runtime, workspace);
      const { seq } = await session.say('one');
      await session.rest();
      const [entry] = (await session.entries()).filter((one) => one.seq === seq);
      assert.equal(entry?.event.type === 'UserInput' && entry.event.text, 'one');
    },
  },
  {
    name: 'a hundred inputs at once are journaled in their order',
    async run(runtime, workspace) {
      const session = await begin(runtime, workspace);
      const texts = Array.from({ length: 100 }, (_, index) => `text ${index}`);
      const sent = await Promise.all(texts.map((text) => session.say(text)));
      await session.rest();
      assert.deepEqual(
        sent.map(({ seq }) => seq),
        sent.map(({ seq }) => seq).toSorted((a, b) => a - b),
      );
      const inputs = (await session.entries()).flatMap((entry) =>
        entry.event.type === 'UserInput' ? [entry.event.text] : [],
      );
      assert.deepEqual(inputs, texts);
    },
  },
  {
    name: 'a watcher sees each journaled event once and in order, and deltas without a number',
    async run(runtime, workspace) {
      const session = await begin(runtime, workspace);
      await session.ask('one');
      await session.ask('two');
      const journaled = session.seen.filter(({ seq }) => seq !== null);
      const entries = await session.entries();
      assert.deepEqual(
        journaled.map(({ seq, event: { type } }) => [seq, type]),
        entries.map(({ seq, event: { type } }) => [seq, type]),
      );
      const deltas = session.seen.filter(({ seq }) => seq === null);
      assert.deepEqual(
        deltas.map(({ event: one }) => (one.type === 'TextDelta' ? one.text : one.type)).join(''),
        'You said one.You said two.',
      );
    },
  },
  {
    name: 'a watcher that was removed sees nothing more, and one that throws harms nobody',
    async run(runtime, workspace) {
      const session = await begin(runtime, workspace);
      const seen: Stepped[] = [];
      const remove = runtime.watch(session.id, (stepped) => seen.push(stepped));
      runtime.watch(session.id, () => {
        throw new Error('a bug of the watcher');
      });
      await session.ask('one');
      const count = seen.length;
      assert.ok(count > 0);
      remove();
      await session.ask('two');
      assert.equal(seen.length, count);
    },
  },
  {
    name: 'read gives the journal from a number on, then what comes, until the session closes',
    async run(runtime, workspace) {
      const session = await begin(runtime, workspace);
      await session.ask('one');
      const read: Entry[] = [];
      const reading = (async () => {
        for await (const entry of runtime.read(session.id, 2)) read.push(entry);
      })();
      await session.ask('two');
      await runtime.close(session.id);
      await reading;
      assert.deepEqual(read, (await session.entries()).slice(1));
      assert.equal(read.at(-1)?.event.type, 'ShutdownRequested');
    },
  },
  {
    name: 'a fork has the entries up to its number, and neither session sees the other',
    async run(runtime, workspace) {
      const session = await begin(runtime, workspace);
      await session.ask('one');
      await session.ask('two');
      const entries = await session.entries();
      const second = entries.find(
        (entry) => entry.event.type === 'UserInput' && entry.event.text === 'two',
      );
      const at = (second?.seq ?? 0) - 1;
      const forked = await runtime.fork(session.id, at);
      assert.deepEqual(await entriesOf(runtime, forked), entries.slice(0, at));
      const { header, seq } = await runtime.state(forked);
      assert.deepEqual([header.parent, seq], [{ sessionId: session.id, seq: at }, at]);
      await session.ask('three');
      assert.equal((await runtime.state(forked)).seq, at);
    },
  },
  {
    name: 'a fork of no entry is refused',
    async run(runtime, workspace) {
      const session = await begin(runtime, workspace);
      await session.ask('one');
      await assert.rejects(runtime.fork(session.id, 1_000));
      await assert.rejects(runtime.fork('20260101-000000-00000000', 1));
    },
  },
  {
    name: 'list has all sessions, the most recently changed first, with the first words of each',
    async run(runtime, workspace) {
      const [first, second] = [await begin(runtime, workspace), await begin(runtime, workspace)];
      await first.ask('the first');
      await second.ask('the second');
      await pause(20); // the times of files have a resolution of a few ms
      await first.ask('again');
      const listed = (await listOf(runtime)).filter(({ sessionId }) =>
        [first.id, second.id].includes(sessionId),
      );
      assert.deepEqual(
        listed.map(({ sessionId, title, workspace: place }) => [sessionId, title, place]),
        [
          [first.id, 'the first', workspace],
          [second.id, 'the second', workspace],
        ],
      );
    },
  },
  {
    name: 'a closed session keeps its journal and takes no input',
    async run(runtime, workspace) {
      const session = await begin(runtime, workspace);
      await session.ask('one');
      await runtime.close(session.id);
      await assert.rejects(session.say('late'));
      const { state, seq } = await runtime.state(session.id);
      assert.equal(state.name, 'ShuttingDown');
      assert.equal((await session.entries()).length, seq);
    },
  },
  {
    name: 'of inputs sent at once, each has its own answer, and those after the end have no effect',
    async run(runtime, workspace) {
      const session = await begin(runtime, workspace);
      const wrong = { type: 'UserInput', text: 1, mode: 'steer' } as never;
      const sent = await Promise.allSettled([
        session.send({ type: 'SettingsChanged', patch: { maxRetries: 2 } }),
        session.send(wrong),
        session.send({ type: 'SettingsChanged', patch: { maxRetries: 3 } }),
        runtime.send(session.id, { type: 'ShutdownRequested' }),
        session.say('too late'),
        session.send(wrong),
      ]);
      const seqs = sent.map((one) => (one.status === 'fulfilled' ? one.value.seq : 'refused'));
      const [first, second, third, end, , last] = seqs; // the late one is refused, or has an entry and no effect
      assert.deepEqual([first, second, third, end, last], [1, 'refused', 2, 3, 'refused']);
      const types = typesOf(await session.entries());
      assert.deepEqual(types.slice(0, 3), [
        'SettingsChanged',
        'SettingsChanged',
        'ShutdownRequested',
      ]);
      assert.equal((await runtime.state(session.id)).state.name, 'ShuttingDown');
    },
  },
  {
    name: 'the steps that a watcher sees make the spans of a turn',
    async run(runtime, workspace) {
      const exporter = new InMemorySpanExporter();
      const provider = new BasicTracerProvider({
        spanProcessors: [new SimpleSpanProcessor(exporter)],
      });
      const session = await begin(runtime, workspace);
      traceRuntimeSession(runtime, session.id, { tracer: provider.getTracer('contract') });
      await session.ask('one');
      await session.say('wait');
      await session.until(event('TextDelta'));
      await runtime.close(session.id);
      await session.until(event('ShutdownRequested'));
      const spans = exporter.getFinishedSpans();
      assert.deepEqual(
        spans.map(({ name, attributes }) => [name, attributes['error.type']]),
        [
          ['chat contract', undefined],
          ['invoke_agent pawl', undefined],
          ['chat contract', 'cancelled'],
          ['invoke_agent pawl', 'interrupted'],
        ],
      );
    },
  },
  {
    name: 'a session that does not exist is refused by every method',
    async run(runtime) {
      const id = '20260101-000000-00000000';
      await assert.rejects(runtime.send(id, { type: 'CancelTurn' }));
      await assert.rejects(runtime.state(id));
      await assert.rejects(runtime.close(id));
      await assert.rejects(async () => {
        for await (const _entry of runtime.read(id)) assert.fail('an entry of no session');
      });
    },
  },
  {
    name: 'wrong settings create no session',
    async run(runtime, workspace) {
      const settings = { ...storySettings(workspace), maxRetries: -1 };
      await assert.rejects(runtime.create({ settings, instructions: '' }), /maxRetries/);
      assert.deepEqual(await listOf(runtime), []);
    },
  },
  {
    name: 'an interrupted reply is in the journal as far as it was shown',
    async run(runtime, workspace) {
      const session = await begin(runtime, workspace);
      await session.say('wait');
      await session.until(event('TextDelta'));
      await session.send({ type: 'CancelTurn' });
      await session.rest();
      const types = typesOf(await session.entries());
      assert.deepEqual(types.slice(0, 3), ['UserInput', 'TextDelta', 'CancelTurn']);
    },
  },
  {
    name: 'twenty sessions at once do not mix',
    async run(runtime, workspace) {
      const sessions = await Promise.all(
        Array.from({ length: 20 }, () => begin(runtime, workspace)),
      );
      await Promise.all(sessions.map((session, index) => session.ask(`I am ${index}`)));
      for (const [index, session] of sessions.entries()) {
        const replies = (await session.entries()).flatMap(({ event: one }) =>
          one.type === 'LlmCompleted' ? (one.message?.parts ?? []) : [],
        );
        assert.deepEqual(
          replies.map((part) => (part.type === 'text' ? part.text : part.type)),
          [`You said I am ${index}.`],
        );
      }
    },
  },
];
