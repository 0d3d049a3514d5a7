import assert from 'node:assert/strict';
import test from 'node:test';
import { damaged } from '@pawl/agent/journal/journal-error';
import type { Event } from '@pawl/agent/machine/event';
import type { Header } from '@pawl/agent/ports/journal';
import { countColumns } from '@pawl/terminal/paint';
import { play, settingsFrom } from '../../../../test/kit/agent/trace-player.js';
import { compareSessions, type SessionSource } from '../../src/commands/compare-sessions.js';
import { diffText } from '../../src/commands/diff.js';

/** Sessions that are written as traces, and changed as another run of the same prompt would change them. */

const TRACE = `! auto {"hooks":"never"}
> @1000 Start
> @2000 UserInput "build it"
> @3000 LlmCompleted req-1 calls bash(c1) read(c2) tokens=10+5 cost=1
> @3000 ToolStarted batch-1 c1
> @4000 ToolCompleted batch-1 c1 ok "built /project/out in 1.2s"
> @4000 ToolStarted batch-1 c2
> @5000 ToolCompleted batch-1 c2 ok "timeout 5s"
> @6000 LlmCompleted req-2 says "It is built." tokens=20+9 cost=1
> @7000 UserInput "thanks"
> @8000 LlmCompleted req-3 says "Welcome." tokens=30+3 cost=2
`;

/** Its events, with a bash that is as in the product: its effects can't be checked. */
const RUN = JSON.stringify(play(TRACE).steps.map(({ event }) => event)).replaceAll(
  '"probeable"',
  '"opaque"',
);

const WORKSPACE = '/project';

type Made = {
  readonly workspace?: string;
  readonly parent?: Header['parent'];
  readonly model?: string;
};

/** A session of the trace's events; `change` works on their JSON. */
const session = (
  sessionId: string,
  change: (json: string) => string = (json) => json,
  { workspace = WORKSPACE, parent = null, model = 'test/model' }: Made = {},
  blobs: Readonly<Record<string, string>> = {},
): SessionSource => {
  const events: readonly Event[] = JSON.parse(change(RUN));
  const entries = async function* () {
    for (const [index, event] of events.entries()) yield { seq: index + 1, event };
  };
  const settings = { ...settingsFrom('auto'), hooks: 'never' as const, workspace, model };
  const header: Header = {
    version: 1,
    sessionId,
    createdAt: 0,
    workspace,
    parent,
    machine: 'm',
    settings,
    instructions: 'i',
    tools: 't',
    prices: null,
  };
  return { header, entries: entries(), blob: async (sha256) => blobs[sha256] };
};

const tell = async (a: SessionSource, b: SessionSource, columns = 80): Promise<string> =>
  diffText({ colour: 'no', columns }, { a: a.header, b: b.header }, await compareSessions(a, b));

/** The same run on another day, in another folder, with other ids, prices and durations. */
const rerun = (json: string): string =>
  json
    .replace(/"at":(\d+)/g, (_, at) => `"at":${Number(at) * 3 + 77}`)
    .replaceAll('"c1"', '"toolu_x"')
    .replaceAll('"c2"', '"toolu_y"')
    .replaceAll('"inputTokens":10', '"inputTokens":11')
    .replaceAll('/project', '/tmp/other')
    .replaceAll('1.2s', '0.97 s');

test('another run of the same prompt is equal, though times, ids, usage, folder and durations differ', async () => {
  const compared = await compareSessions(
    session('one'),
    session('two', rerun, { workspace: '/tmp/other' }),
  );
  assert.deepEqual(
    [compared.parting, compared.fields, compared.settings],
    [{ a: null, b: null }, [], []],
  );
  assert.deepEqual([compared.durationsOnly, compared.headers], [1, ['folder']]);
  const late = (json: string): string => {
    const events: Event[] = JSON.parse(json);
    const usage = {
      inputTokens: 1,
      outputTokens: 1,
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
      costUsd: 1,
    };
    return JSON.stringify(
      events.toSpliced(4, 0, { type: 'UsageReported', at: 4_000, usageId: 'req-1', usage }),
    );
  };
  assert.equal((await compareSessions(session('one'), session('two', late))).parting.b, null);
});

test('the first event that differs is named, with what differs in it and what follows from it', async () => {
  const other = session('two', (json) => json.replace('It is built.', 'It is built\u200b.\u202e'));
  const shown = await tell(session('one'), other);
  assert.match(
    shown,
    /The same up to seq 7\. Then they part:\nA {2}seq 8 LlmCompleted, CallingLlm → Waiting/,
  );
  assert.match(
    shown,
    /message\.parts\[0\]\.text\n {4}A "It is built\."\n {4}B "It is built\\u200b\.\\u202e"/,
  );
  assert.match(
    shown,
    /From there on\nA {2}3 events · 1 new turn · 2 requests · no tools · \$3\.00/,
  );
  assert.match(shown, /last\s+turn:\s+answer; now WaitingForUserInput/);
});

test('what a file says about durations, tool input of any field name, and settings count', async () => {
  const changes: readonly [RegExp, (json: string) => string][] = [
    [/outcome\.text\n {4}A "timeout 5s"/, (json) => json.replace('timeout 5s', 'timeout 6s')],
    [/seq 5 ToolCompleted/, (json) => json.replace('built /project/out in 1.2s', 'failed in 1.2s')],
    [/input\.at/, (json) => json.replaceAll('"input":{', '"input":{"at":1,')],
  ];
  for (const [expected, change] of changes)
    assert.match(await tell(session('one'), session('two', change)), expected);
  const model = await tell(session('one'), session('two', undefined, { model: 'test/other' }));
  assert.match(model, /Their 10 events are equal, but not their settings\.$/);
  assert.match(model, /Settings at the start\n {2}model\n {4}A "test\/model"/);
});

test('a folder counts as the same in any writing; a rest before the parting is none after it', async () => {
  const inJson = (text: string): string => JSON.stringify(text).slice(1, -1);
  const made = (workspace: string, second: string, count: number) => {
    const change = (json: string): string =>
      JSON.stringify(
        JSON.parse(
          json
            .replaceAll('/project', inJson(workspace))
            .replace(' in 1.2s', inJson(`, as JSON: ${inJson(workspace)}`))
            .replace('thanks', second),
        ).slice(0, count),
      );
    return session('one', change, { workspace, model: `scripted/${workspace}/model.json` });
  };
  const compared = await compareSessions(
    made('/a "b"', 'thanks', 9),
    made('/c\\d', 'and now?', 10),
  );
  const { settings, common, rest } = compared;
  assert.deepEqual([settings, common], [[], { a: 8, b: 8 }]);
  assert.deepEqual([rest.a.ended, rest.b.ended], [null, 'answer']);
});

test('outputs that were cut are compared in full', async () => {
  const cut = (hash: string) => (json: string) =>
    json.replace('in 1.2s"', `in 1.2s","blob":"${hash}"`);
  const blobs = { h1: 'x in 1s', h2: 'x in 2s', h3: 'y in 1s' };
  const against = async (hash: string) =>
    compareSessions(session('one', cut('h1'), {}, blobs), session('two', cut(hash), {}, blobs));
  assert.equal((await against('h2')).parting.a, null);
  assert.deepEqual((await against('h3')).fields, [
    { field: 'outcome.blob', a: 'x in 1s', b: 'y in 1s' },
  ]);
});

test('a fork and its parent, a session that goes on, and damage', async () => {
  const short = (json: string): string =>
    JSON.stringify((JSON.parse(json) as readonly unknown[]).slice(0, 8));
  const parent = { sessionId: 'one', seq: 8 };
  const shown = await tell(session('one'), session('two', short, { parent }));
  assert.match(
    shown,
    /B is a fork of A: it copied A up to seq 8\.\n\nThe same up to seq 8\. There B ends, and A goes on:\nA {2}seq 9 UserInput/,
  );
  assert.match(shown, /B {2}has no further event/);
  const broken = session('two', short);
  const entries = async function* () {
    yield* broken.entries;
    throw damaged('/two.jsonl', { line: 10, seq: 8 }, 'its checksum is wrong');
  };
  const compared = await compareSessions(session('one'), { ...broken, entries: entries() });
  assert.deepEqual([compared.rest.b.damage?.kind, compared.rest.a.events], ['damaged', 2]);
});

test('every line fits the window, from 40 to 240 columns, also with wide characters in long texts', async () => {
  const wide = (end: string) => (json: string) =>
    json.replace('It is built.', `${'東京😀'.repeat(90)}${end}${'x'.repeat(400)}`);
  for (const columns of [40, 41, 80, 240]) {
    const shown = await tell(session('one', wide('😀')), session('two', wide('😁')), columns);
    for (const line of shown.split('\n'))
      assert.ok(countColumns(line) <= columns, `${columns}: ${line}`);
    assert.match(shown, /A "?….*😀.*\n {4}B "?….*😁/);
  }
  const nested = `"input":{"deep":${'['.repeat(5_000)}${']'.repeat(5_000)},`;
  const deep = (json: string): string => json.replace('"input":{', nested);
  assert.match(await tell(session('one'), session('two', deep)), /input\.deep/);
});
