import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as restate from '@restatedev/restate-sdk';
import { agentMachine, type Header } from 'pawl/engine';
import { storySettings } from '../../test/contract/play-story.js';
import { localLive } from '../src/index.js';
import { arrive, deciding } from '../src/session-object.js';
import type { Head } from '../src/session-records.js';
import { OtherMachineError, type SessionStates } from '../src/session-states.js';
import { createToolsService } from '../src/work-services.js';

/** What a call waits for, and what it records: seen with a stand-in for the engine that answers when the test wants. */

const SESSION = 's1';
const settings = storySettings('/work');
const header = { sessionId: SESSION, createdAt: 1, settings } as Header; // what is read here
const state = agentMachine.initialState(settings);

test('watchers are told of entries when the engine has proved that it has them, not before', async () => {
  const live = localLive();
  let told = 0;
  live.subscribe(SESSION, () => {
    told += 1;
  });
  let advanced = 0;
  const states = {
    exact: async () => ({ header, seq: 0, state, upgrade: null }),
    advance: () => {
      advanced += 1;
      return true;
    },
  } as Partial<SessionStates> as SessionStates; // what is asked here
  const asked: string[] = [];
  let prove = (): void => undefined;
  const ctx = {
    key: SESSION,
    set: () => undefined,
    get: async () => ({}),
    clear: () => undefined,
    genericSend: () => assert.fail('nothing follows from this event'),
    run: async (name: string, step: () => Promise<unknown>) => {
      const result = await step();
      asked.push(name);
      return new Promise<unknown>((resolve) => {
        prove = () => resolve(result);
      });
    },
  } as unknown as restate.ObjectContext; // what is used here
  const head: Head = {
    seq: 0,
    lastAt: 1,
    tail: [],
    node: 'n1',
    kept: null,
    over: false,
    isFork: false,
    titled: true,
    decidedBy: agentMachine.version,
    inTurn: true,
  };
  const posted = [{ type: 'SettingsChanged', patch: { maxRetries: 2 } }] as const;
  const arriving = arrive(ctx, { states, live, prices: async () => null }, head, { posted, at: 2 });
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
  assert.deepEqual([asked.length, told, advanced], [1, 0, 0], 'one proof is waited for');
  prove();
  await arriving;
  assert.deepEqual([told, advanced], [1, 1]);
});

test('the beginning of a session is a recorded step: another attempt takes the header of the first', async () => {
  const world = { node: 'n1', equip: () => assert.fail('it was begun already') };
  const service = createToolsService({ world, workers: {} } as unknown as Parameters<
    typeof createToolsService
  >[0]);
  const { begin } = (service as unknown as { readonly service: Record<string, unknown> }).service;
  const recorded = { header };
  const names: string[] = [];
  const ctx = {
    run: async (name: string) => {
      names.push(name);
      return recorded;
    },
  };
  const call = begin as (context: typeof ctx, order: object) => Promise<unknown>;
  assert.equal(await call(ctx, { settings, instructions: '', sessionId: SESSION }), recorded);
  assert.deepEqual(names, ['begin']);
});

test('a call is judged with the journal of now, and only on the node of the session', async () => {
  const asked: unknown[] = [];
  const judgement = { kind: 'invalid', field: 'text', why: 'must be a string' };
  const equipment = { tools: new Map([['echo', { judge: () => judgement }]]) };
  let node = 'n1';
  const parts = {
    world: { node: 'n1', store: { session: async () => ({ seq: 7, node }) } },
    workers: { of: async (...session: unknown[]) => asked.push(session) && { equipment } },
  };
  const service = createToolsService(parts as unknown as Parameters<typeof createToolsService>[0]);
  const { judge } = (service as unknown as { readonly service: Record<string, unknown> }).service;
  const ctx = { run: (_: string, step: () => Promise<unknown>) => step() };
  const call = judge as (context: typeof ctx, request: object) => Promise<unknown>;
  const request = { sessionId: SESSION, tool: 'echo', input: {}, workspace: '/work' };
  assert.equal(await call(ctx, request), judgement);
  node = 'n2';
  await assert.rejects(call(ctx, request), /was moved to the node n2/);
  assert.deepEqual(asked, [[SESSION, 7, 'n1']]);
});

test('an input gets the refusal of a node that is too old or silent, and a report waits for it', async () => {
  const states = {
    exact: async () => {
      throw new OtherMachineError('update this node');
    },
  } as Partial<SessionStates> as SessionStates; // what is asked here
  const parts = { states, live: localLive(), prices: async () => null };
  const head = { node: 'n1', seq: 0, tail: [] } as Partial<Head> as Head; // what is read here
  const silent = Object.assign(new Promise(() => undefined), {
    orTimeout: async () => Promise.reject(new restate.TimeoutError()),
  });
  const ctx = { key: SESSION, run: async () => 'there', genericCall: () => silent };
  const arrival = { posted: [], at: 1 };
  const codes: unknown[] = [];
  for (const kind of ['input', 'event'] as const) {
    const request = { sessionId: SESSION, head, arrival, kind };
    await deciding(parts, request).catch(({ code }) => codes.push(code));
  }
  const input = arrive(ctx as unknown as restate.ObjectContext, parts, head, arrival, 'input');
  await input.catch(({ code }) => codes.push(code));
  assert.deepEqual(codes, [503, undefined, 503]);
});
