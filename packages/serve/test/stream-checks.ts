import assert from 'node:assert/strict';
import { isEntry, isPiece, type NodeClient } from '../../../test/kit/serve/node-client.js';
import type { HttpCheck } from './http-checks.js';
import { startTestNode } from './node-under-test.js';

/** What the streams of a node promise, and that a node which shuts down loses nothing, over any runtime. */

const MEGABYTE = 1024 * 1024;

const seqs = (entries: readonly { readonly seq: number }[]): readonly number[] =>
  entries.map(({ seq }) => seq);
const from = (first: number, last: number): readonly number[] =>
  Array.from({ length: last - first + 1 }, (_, index) => first + index);

const bufferedIn = async (client: NodeClient): Promise<number> =>
  Number(
    /^pawl_stream_buffered_bytes (\d+)$/m.exec((await client.ask('GET', '/metrics')).text)?.[1],
  );

const turnOf = async (client: NodeClient, id: string, text: string): Promise<number> => {
  const reader = await client.events(id, (await client.describe(id)).seq ?? 0);
  await client.send(id, { text });
  await reader.until('the reply', isEntry('LlmCompleted'));
  reader.close();
  return (await client.describe(id)).seq ?? 0;
};

export const streamChecks: readonly HttpCheck[] = [
  {
    name: 'a reader that was disconnected goes on after Last-Event-ID, with each entry once',
    async run(context, make) {
      const { client, workspace } = await startTestNode(context, make);
      const id = await client.create(workspace);
      const first = await client.events(id);
      await client.send(id, { text: 'slow' });
      await first.until('a piece of the reply', isPiece);
      first.close();
      const seen = seqs(first.entries);
      await turnOf(client, id, 'echo two');
      const last = await turnOf(client, id, 'echo three');
      const second = await client.events(id, seen.at(-1));
      await second.until('the last entry', ({ id: eventId }) => eventId === String(last));
      const all = [...seen, ...seqs(second.entries)]; // more than `last` if a reply of the turns before came late
      assert.deepEqual(all, from(1, all.length));
      second.close();
    },
  },
  {
    name: 'a reader that comes in the middle of a reply gets its text so far, in an event that a reader can leave out',
    async run(context, make) {
      const { client, workspace } = await startTestNode(context, make);
      const id = await client.create(workspace);
      const first = await client.events(id);
      await first.until('that it has caught up', ({ event }) => event === 'state');
      await client.send(id, { text: 'wait' });
      const isDelta = ({ event }: { readonly event: string }): boolean => event === 'delta';
      const { content: delta } = await first.until('a piece of the reply', isDelta);
      const later = await client.events(id);
      const pending = await later.until('the reply so far', ({ event }) => event === 'pending');
      assert.deepEqual(pending.content.event, delta);
      // it moves no Last-Event-ID: what is asked for next is the same with it and without it
      assert.equal(pending.id, null);
      await later.until('the entry before it', ({ id: at }) => at === String(pending.content.seq));
      assert.ok(!first.messages.some(({ event }) => event === 'pending'));
      const cancelled = await client.send(id, { type: 'CancelTurn' });
      for (const reader of [first, later]) await reader.untilRestAfter(cancelled);
      assert.deepEqual(later.entries, first.entries);
      first.close();
      later.close();
    },
  },
  {
    name: 'a slow reader costs bounded memory, holds nobody, gets every entry once, and loses its stream in the end',
    async run(context, make) {
      const streams = { bufferBytes: 128 * 1024, patienceMs: 60_000 };
      const started = await startTestNode(context, make, { streams });
      const { client, workspace } = started;
      const id = await client.create(workspace);
      const [slow, quick] = [await client.events(id), await client.events(id)];
      slow.pause();
      const text = `echo ${'x'.repeat(MEGABYTE / 2)}`;
      let last = 0;
      for (let round = 0; round < 8; round++) last = await turnOf(client, id, text);
      await quick.until('the last entry', ({ id: eventId }) => eventId === String(last));
      // 12 MB went by; what stands beside the bound is one entry of half a megabyte
      const buffered = await bufferedIn(client);
      assert.ok(buffered < 0.75 * MEGABYTE, `${buffered} bytes wait`);
      slow.resume();
      await slow.until('the last entry', ({ id: eventId }) => eventId === String(last));
      assert.deepEqual(seqs(slow.entries), from(1, last));
      assert.deepEqual(seqs(quick.entries), from(1, last));
      const { client: later } = await started.again({
        streams: { bufferBytes: 128 * 1024, patienceMs: 100 },
      });
      const stuck = await later.events(id);
      stuck.pause();
      const ended = /^pawl_streams_ended_total\{reason="tooSlow"\} 1$/m;
      const endsAt = performance.now() + 60_000;
      while (!ended.test((await later.ask('GET', '/metrics')).text)) {
        assert.ok(performance.now() < endsAt, 'the stream was not ended');
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      stuck.close();
    },
  },
  {
    name: 'a reader that takes nothing loses its stream, also with little waiting for it',
    async run(context, make) {
      const streams = { bufferBytes: 64 * MEGABYTE, patienceMs: 300, quietMs: 50 };
      const { client, workspace } = await startTestNode(context, make, { streams });
      const id = await client.create(workspace);
      const stuck = await client.events(id);
      await stuck.until('that it has caught up', ({ event }) => event === 'state');
      stuck.pause();
      const text = `echo ${'x'.repeat(MEGABYTE / 2)}`;
      for (let round = 0; round < 8; round++) await turnOf(client, id, text);
      const ended = /^pawl_streams_ended_total\{reason="tooSlow"\} 1$/m;
      const endsAt = performance.now() + 60_000;
      while (!ended.test((await client.ask('GET', '/metrics')).text)) {
        assert.ok(performance.now() < endsAt, 'the stream was not ended');
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      stuck.close();
    },
  },
  {
    name: 'many readers that come and go leave nothing behind',
    async run(context, make) {
      const { client, workspace } = await startTestNode(context, make);
      const id = await client.create(workspace);
      for (let round = 0; round < 5; round++) {
        const readers = await Promise.all(Array.from({ length: 20 }, () => client.events(id)));
        for (const reader of readers) reader.close();
      }
      const open = async () =>
        /^pawl_streams (\d+)$/m.exec((await client.ask('GET', '/metrics')).text)?.[1];
      const endsAt = performance.now() + 60_000;
      while ((await open()) !== '0') {
        assert.ok(performance.now() < endsAt, `${await open()} streams are left`);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    },
  },
  {
    name: 'a node that shuts down under load loses no accepted input, and its sessions go on after a restart',
    async run(context, make) {
      const started = await startTestNode(context, make);
      const { client, workspace, node } = started;
      const ids = await Promise.all(Array.from({ length: 12 }, () => client.create(workspace)));
      const readers = await Promise.all(ids.map((id) => client.events(id)));
      const accepted = new Map<string, number[]>(ids.map((id) => [id, []]));
      let refused = 0;
      const say = async (id: string, text: string): Promise<void> => {
        const answer = await client
          .ask('POST', `/v1/sessions/${id}/inputs`, { text })
          .catch(() => null); // cut off: unknown
        if (answer?.status === 202) accepted.get(id)?.push(answer.body.seq ?? 0);
        else if (answer !== null) {
          assert.deepEqual([answer.status, answer.headers['retry-after']], [503, '5']);
          refused += 1;
        }
      };
      const load = ids.map(async (id, index) => {
        for (let round = 0; round < 1_000 && refused < 12; round++)
          await say(id, index === 0 ? 'wait' : `slow ${round}`);
      });
      await Promise.all(readers.map((reader) => reader.until('a reply', isPiece)));
      const draining = node.drain(3_000);
      await Promise.all([draining, ...load]);
      for (const reader of readers) {
        const { content } = await reader.until('the last event', ({ event }) => event === 'end');
        assert.equal(content.reason, 'draining');
        assert.deepEqual(seqs(reader.entries), from(1, Number(content.seq)));
      }
      assert.deepEqual(started.faults, []);
      const again = await started.again();
      for (const [id, numbers] of accepted) {
        const stored = await again.client.events(id);
        // A stream of a session that runs on an engine goes on; that of a closed one ends.
        const last = Math.max(0, ...numbers);
        if (last > 0)
          await stored.until('the last input', ({ id: eventId }) => eventId === String(last));
        stored.close();
        const inputs = stored.entries.flatMap(({ seq, event }) =>
          event.type === 'UserInput' ? [seq] : [],
        );
        for (const seq of numbers) assert.ok(inputs.includes(seq), `input ${seq} of ${id} is lost`);
      }
      const [, second = ''] = ids;
      const seq = await again.client.send(second, { text: 'echo back' });
      const live = await again.client.events(second, seq);
      await live.until('the answer after the restart', isEntry('LlmCompleted'));
      live.close();
    },
  },
  {
    name: 'while it shuts down a node takes no new work, but lets running turns end',
    async run(context, make) {
      const { client, workspace, node } = await startTestNode(context, make);
      const id = await client.create(workspace);
      const reader = await client.events(id);
      await client.send(id, { text: 'wait' });
      await reader.until('a piece of the reply', isPiece);
      const draining = node.drain(20_000);
      const health = await client.ask('GET', '/health');
      assert.deepEqual([health.status, health.body.status], [503, 'draining']);
      const more = await client.ask('POST', '/v1/sessions', { workspace: { folder: workspace } });
      assert.deepEqual([more.status, more.body.error?.code], [503, 'draining']);
      const cancelled = await client.send(id, { type: 'CancelTurn' });
      await reader.untilRestAfter(cancelled);
      await draining;
      await assert.rejects(client.ask('GET', '/health'), /ECONNREFUSED|hang up|ECONNRESET/);
    },
  },
];
