/**
 * What create, list, close and an event cost where many sessions are stored: CPU of the node and of the
 * engine, over journals on disk and over the engine. The stored sessions are copies of a real one:
 * on disk all of their files; on the engine its record and its line of the list, written past the
 * services, as an engine of an earlier version has them.
 */

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import {
  bin,
  makeServed,
  type Place,
  type Running,
  start,
} from '../../packages/pawl/test/e2e/pawl.js';
import { NodeClient } from '../../test/kit/serve/node-client.js';
import { temporaryFolder } from '../../test/temporary-folder.js';
import { until } from '../../test/until.js';
import { EVERY_SHARD, findShard } from '../src/session-records.js';
import type { Engine } from '../src/start-engine.js';
import { startTestEngine } from '../test/engine-under-test.js';
import { freeFirstPort } from '../test/free-first-port.js';
import { installPawl } from '../test/installed-pawl.js';

const TOKEN = 'the-token-of-this-bench';
const TIMES = 40;
const SETTLE_MS = 1_000;

/** CPU time of a process, all threads, in ms. */
const cpuMs = (pid: number): number => {
  const tasks = `/proc/${pid}/task`;
  const used = readdirSync(tasks).map((task) =>
    Number(readFileSync(path.join(tasks, task, 'schedstat'), 'utf8').split(' ')[0]),
  );
  return used.reduce((sum, one) => sum + one, 0) / 1e6;
};

/** One node, and the engine that it may run on. */
type Served = {
  readonly place: Place;
  readonly engine: Engine | null;
  readonly client: NodeClient;
  readonly running: Running;
};

type Scope = { after(hook: () => unknown): void };

const startNode = async (place: Place, program: string, engine: Engine | null, port: number) => {
  const onEngine =
    engine === null
      ? []
      : [
          ...['--engine', engine.ingressUrl.replace('http:', 'restate:')],
          ...['--engine-admin', engine.adminUrl, '--node', 'n1', '--node-ports', String(port)],
        ];
  const keys = path.join(place.folder, 'keys.json');
  const key = { name: 'default', token: TOKEN, sessions: 1_000, requestsPerMinute: 100_000 };
  writeFileSync(keys, JSON.stringify({ keys: [key] }), { mode: 0o600 });
  const words = ['serve', ...onEngine, '--keys', keys, '--port', '0', '--folder', place.workspace];
  const running = start(place, process.execPath, [program, ...words], null);
  const address = await until(
    () => `the address: ${running.stderr()}`,
    () => /at (\S+)\. Every/.exec(running.stderr())?.[1],
  );
  return { running, client: new NodeClient(address, TOKEN) };
};

const stopNode = async ({ running }: Pick<Served, 'running'>): Promise<void> => {
  running.child.kill('SIGTERM');
  await running.ended;
};

const idFor = (number: number): string => `20200101-000000-${number.toString(16).padStart(8, '0')}`;

const copyFiles = (place: Place, id: string, count: number): void => {
  const state = path.join(place.state, 'pawl');
  for (const folder of ['sessions', 'serve/sessions'].map((name) => path.join(state, name)))
    for (const name of readdirSync(folder)) {
      if (!name.startsWith(id)) continue;
      const text = readFileSync(path.join(folder, name), 'utf8');
      for (let number = 0; number < count; number++) {
        const copy = idFor(number);
        writeFileSync(path.join(folder, name.replace(id, copy)), text.replaceAll(id, copy));
      }
    }
};

const ask = async (url: string, body: unknown): Promise<string> => {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${url}: ${response.status} ${text}`);
  return text;
};

/** The node still works: the engine asks it for the values of the session. */
const copyOnEngine = async (engine: Engine, id: string, count: number): Promise<void> => {
  const shard = findShard(id);
  const record = await ask(`${engine.ingressUrl}/SessionMetadata/${shard}/get`, { sessionId: id });
  const [info] = JSON.parse(
    await ask(`${engine.ingressUrl}/SessionIndex/${shard}/find`, { ids: [id] }),
  ) as readonly unknown[];
  for (const [service, text] of [
    ['SessionMetadata', record],
    ['SessionIndex', JSON.stringify(info)],
  ] as const) {
    const shards = new Map<string, Record<string, number[]>>();
    for (let number = 0; number < count; number++) {
      const copy = idFor(number);
      const values = shards.get(findShard(copy)) ?? {};
      values[copy] = [...Buffer.from(text.replaceAll(id, copy))];
      shards.set(findShard(copy), values);
    }
    for (const [object_key, new_state] of shards)
      await ask(`${engine.adminUrl}/services/${service}/state`, { object_key, new_state });
  }
  // without the records by key
  for (const [service, object_key] of [
    ['SessionMetadata', EVERY_SHARD],
    ['SessionsByKey', 'default'],
  ])
    await ask(`${engine.adminUrl}/services/${service}/state`, { object_key, new_state: {} });
};

/** A node with so many stored sessions, started after they were there. */
const serveWith = async (scope: Scope, isOnEngine: boolean, count: number): Promise<Served> => {
  const place = await makeServed(scope, []);
  const { engine } = isOnEngine ? await startTestEngine(scope) : { engine: null };
  const program = isOnEngine ? installPawl(temporaryFolder(scope, 'installed')) : bin;
  const port = await freeFirstPort();
  const first = await startNode(place, program, engine, port);
  const id = await first.client.create(place.workspace);
  await first.client.ask('POST', `/v1/sessions/${id}/close`);
  if (engine !== null) await copyOnEngine(engine, id, count);
  await stopNode(first);
  if (engine === null) copyFiles(place, id, count);
  return { place, engine, ...(await startNode(place, program, engine, port)) };
};

const measure = async (served: Served): Promise<readonly number[]> => {
  const { client, place, running, engine } = served;
  const pids = [running.child.pid ?? 0, ...(engine === null ? [] : [engine.pid])];
  const ids: string[] = [];
  const resting = await client.create(place.workspace);
  const acts = [
    async () => void ids.push(await client.create(place.workspace)),
    async () => void (await client.ask('GET', '/v1/sessions')),
    async () => void (await client.ask('POST', `/v1/sessions/${ids.pop()}/close`)),
    async () => void (await client.send(resting, { type: 'CancelTurn' })),
  ];
  const round = async (times: number): Promise<readonly number[]> => {
    const costs: number[] = [];
    for (const act of acts) {
      const before = pids.map(cpuMs);
      for (let time = 0; time < times; time++) await act();
      await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
      const used = pids.reduce((sum, pid, index) => sum + cpuMs(pid) - (before[index] ?? 0), 0);
      costs.push(used / times);
    }
    return costs;
  };
  await round(TIMES); // programs become fast with use
  const costs = await round(TIMES);
  const memory = pids.map(
    (pid) => /VmRSS:\s*(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1],
  );
  console.log(`resident, node${engine === null ? '' : ' and engine'}: ${memory.join(' and ')} kB`);
  return costs;
};

/** `where`: `files` or `engine` alone; otherwise both. */
export const measureLists = async (
  counts: readonly [number, number],
  where: string | undefined,
): Promise<void> => {
  for (const isOnEngine of [false, true]) {
    if (where === (isOnEngine ? 'files' : 'engine')) continue;
    const rows: (readonly number[])[] = [];
    for (const count of counts) {
      const hooks: (() => unknown)[] = [];
      const served = await serveWith({ after: (hook) => void hooks.push(hook) }, isOnEngine, count);
      const startedAt = performance.now();
      const listed = await served.client.ask('GET', '/v1/sessions');
      const ms = (performance.now() - startedAt).toFixed(0);
      console.log(
        `${isOnEngine ? 'engine' : 'files'}, ${count} stored: first list of ${listed.body.sessions?.length} after ${ms} ms`,
      );
      rows.push(await measure(served));
      await stopNode(served);
      for (const hook of hooks.reverse()) await hook();
    }
    const [few = [], many = []] = rows;
    for (const [index, name] of ['create', 'list', 'close', 'an event'].entries()) {
      const [one = 0, other = 0] = [few[index], many[index]];
      console.log(
        `  ${name}: ${one.toFixed(1)} ms of CPU, then ${other.toFixed(1)}: ${(other / one).toFixed(2)} times`,
      );
    }
  }
};
