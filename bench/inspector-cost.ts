/**
 * What the inspector costs the process that it runs in: CPU of an agent that journals events,
 * without an inspector, with one, and with one that a reader follows. Each in a process of its
 * own.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createRedactor } from '../packages/agent/src/secrets/redactor.js';
import { startInspector } from '../packages/inspector/src/server/inspector-server.js';
import { StoredSession } from '../test/kit/inspector/stored-session.js';
import { median } from './figures.js';
import { longEvents, SETTINGS } from './long-session.js';
import { inOwnProcess } from './own-process.js';

const SESSION = 'long';
const MODES = ['no inspector', 'idle', 'followed'] as const;
type Mode = (typeof MODES)[number];
type Cost = { readonly cpuMs: number; readonly wallMs: number; readonly events: number };
const A_SECOND = 100;
const SECONDS = 10;

/** Reads the feed and throws it away, in a process of its own. */
const READER = `fetch(process.argv[1]).then(async ({ body }) => { console.log('reading'); for await (const chunk of body) void chunk; })`;

/** An agent that journals so many events a second, and perhaps has an inspector. */
const measureAgent = async (mode: Mode): Promise<Cost> => {
  const folder = await mkdtemp(path.join(tmpdir(), 'pawl-bench-'));
  const stored = await StoredSession.create(folder, SESSION, SETTINGS);
  const [first, ...events] = longEvents(A_SECOND * (SECONDS + 2));
  if (first === undefined) throw new Error('the trace is empty');
  await stored.add([first]);
  const inspector =
    mode === 'no inspector'
      ? null
      : await startInspector({ folder, version: '1', redactor: createRedactor([]), page: '' });
  const address = inspector?.addressOf(SESSION).replace(/session\/(\w+)$/, 'data/$1/feed') ?? '';
  const reader =
    mode === 'followed'
      ? spawn(process.execPath, ['-e', READER, address], { stdio: ['ignore', 'pipe', 'inherit'] })
      : null;
  if (reader !== null) await once(reader.stdout, 'data');
  const begun = performance.now();
  let cpu = process.cpuUsage();
  let [startedMs, done, settled] = [begun, 0, 0];
  for (const event of events) {
    const dueMs = begun + (done * 1_000) / A_SECOND;
    await sleep(Math.max(0, dueMs - performance.now()));
    await stored.add([event]);
    done++;
    // The first two seconds compile.
    if (done === 2 * A_SECOND) {
      cpu = process.cpuUsage();
      startedMs = performance.now();
      settled = done;
    }
  }
  const { user, system } = process.cpuUsage(cpu);
  const wallMs = performance.now() - startedMs;
  reader?.kill();
  await inspector?.close();
  await stored.journal.close();
  await rm(folder, { recursive: true, force: true });
  return { cpuMs: (user + system) / 1_000, wallMs, events: done - settled };
};

export const costRows = async (): Promise<readonly string[]> => {
  const costs = new Map<Mode, number[]>(MODES.map((mode) => [mode, []]));
  let rate = 0;
  for (let time = 0; time < 2; time++)
    for (const mode of MODES) {
      const { cpuMs, wallMs, events } = await inOwnProcess<Cost>('bench/inspector-cost.ts', mode);
      costs.get(mode)?.push((cpuMs / wallMs) * 100);
      rate = (events / wallMs) * 1_000;
    }
  const bare = median(costs.get('no inspector') ?? []);
  return [
    `| an agent that journals ${rate.toFixed(0)} events a second | % of one core | more than without |`,
    '|---|--:|--:|',
    ...MODES.map((mode) => {
      const share = median(costs.get(mode) ?? []);
      return `| ${mode} | ${share.toFixed(1)} | ${(share - bare).toFixed(1)} |`;
    }),
  ];
};

const [, , own, mode] = process.argv;
if (own === '--own-process')
  console.log(JSON.stringify(await measureAgent(MODES.find((one) => one === mode) ?? 'idle')));
