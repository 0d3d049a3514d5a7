import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { randomFrom } from '../../../../test/kit/agent/mutations.js';
import type { ServerReply, WireBody } from '../../../../test/servers/anthropic.js';
import { atEnd } from '../../../../test/temporary-folder.js';
import { countCases, SEED } from '../../../../test/tier.js';
import { killSession, type LiveRow, listLive, untilListed } from './detached-stage.js';
import { runInProcess } from './in-process.js';
import { expectCode, makeServed, type Place, startPawl } from './pawl.js';
import { openWindow } from './window.js';
import { call, message, text } from './wire-words.js';

/**
 * Kills of whatever belongs to detached sessions: a process, all of them, attached terminals,
 * launchers, and the machine. PAWL_COUNT sets how many; PAWL_SEED repeats a
 * run.
 */

const SESSIONS = 3;
const KILLS = countCases(15);
const CALL_SECONDS = Math.max(0.2, KILLS / 100);

/** One after the other: first each of them once. */
const KINDS = [
  ...['process', 'launcher', 'terminal', 'all', 'machine'],
  ...['process', 'terminal', 'process', 'terminal', 'process', 'process', 'process'],
];

const textsIn = (body: WireBody): string => JSON.stringify(body.messages);

/**
 * Replies with the next command of the session that asks, by what it was asked for and what it has
 * done. The sessions work as long as the kills go on.
 */
const replies =
  (areKillsOver: () => boolean) =>
  (body: WireBody): ServerReply => {
    const [, name = ''] = /task-(\w+)/.exec(textsIn(body)) ?? [];
    if (areKillsOver()) return message(text(`task-${name} is over.`));
    const asked = body.messages.filter(({ role }) => role === 'assistant').length;
    const mark = `${name}-${asked}`;
    // what differs in each round: a session whose calls give the same results again is stopped
    const command = `echo ${mark} | tee -a effects.txt; sleep ${CALL_SECONDS}`;
    return message(call(`c-${mark}`, 'bash', { command }));
  };

const effects = (place: Place): readonly string[] =>
  existsSync(join(place.workspace, 'effects.txt'))
    ? readFileSync(join(place.workspace, 'effects.txt'), 'utf8').trim().split('\n')
    : [];

const journalOf = (place: Place, id: string): string =>
  readFileSync(join(place.state, 'pawl', 'sessions', `${id}.jsonl`), 'utf8');

const isOver = ({ status, state }: LiveRow): boolean =>
  status === 'runs' && state.startsWith('has answered');

/** Starts a session; null as the time: its launcher is not killed. */
const launch = async (place: Place, name: string, killAfterMs: number | null): Promise<void> => {
  const launcher = startPawl(place, ['-p', `task-${name}`, '--detach', '--same-folder']);
  if (killAfterMs === null) {
    expectCode(await launcher.ended, 0);
    return;
  }
  await delay(killAfterMs);
  launcher.child.kill('SIGKILL');
  await launcher.ended;
};

const killAttached = async (context: TestContext, place: Place, id: string): Promise<void> => {
  const window = openWindow(context, place, { words: ['attach', id] });
  await window.sees(/task-|bash echo/); // earlier turns are not shown
  process.kill(window.pid, 'SIGKILL');
};

const idsIn = (folder: string, end: string): readonly string[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith(end))
    .map((name) => name.slice(0, -end.length));

const liveFolder = (place: Place): string => join(place.state, 'pawl', 'detached');

/** Gives each record and lock the boot id of an earlier start of the machine. */
const changeBoot = (place: Place): void => {
  for (const [folder, end] of [
    [liveFolder(place), '.json'],
    [join(place.state, 'pawl', 'sessions'), '.lock'],
  ] as const)
    for (const id of idsIn(folder, end)) {
      const path = join(folder, `${id}${end}`);
      const text = readFileSync(path, 'utf8');
      writeFileSync(path, text.replace(/"bootId":"[^"]*"/, '"bootId":"an-earlier-boot"'));
    }
};

/** Kills the processes of sessions, and waits until the list tells each death. */
const killTold = async (
  place: Place,
  ids: readonly string[],
  afterwards: () => void,
): Promise<number> => {
  for (const id of ids) killSession(place, id);
  afterwards();
  const killedAt = performance.now();
  await untilListed(place, 'the deaths are told', (all) =>
    ids.every((id) =>
      all.some(({ sessionId, status }) => sessionId === id && /^(died|rested)$/.test(status)),
    ),
  );
  return performance.now() - killedAt;
};

test('kills of processes, terminals and launchers lose no session and double no effect', async (context) => {
  context.diagnostic(`PAWL_SEED=${SEED}`);
  const random = randomFrom(SEED);
  const below = (count: number): number => Math.floor(random() * count);
  let areKillsOver = false;
  const place = await makeServed(
    context,
    replies(() => areKillsOver),
    { PAWL_SANDBOX: 'off', PAWL_PRESET: 'auto' },
  );
  atEnd(context, () => {
    for (const id of idsIn(liveFolder(place), '.json')) killSession(place, id);
  });
  for (let index = 0; index < SESSIONS; index += 1) await launch(place, `s${index}`, null);
  const names = new Set((await listLive(place)).map(({ sessionId }) => sessionId));
  assert.equal(names.size, SESSIONS);
  const kinds: Record<string, number> = {};
  const toldMs: number[] = [];
  for (let kill = 0; kill < KILLS; kill += 1) {
    const rows = await listLive(place);
    const victim = rows[below(rows.length)];
    assert.ok(victim !== undefined);
    const { sessionId } = victim;
    const all = rows.map((row) => row.sessionId);
    const kind = KINDS[kill % KINDS.length] ?? 'process';
    kinds[kind] = (kinds[kind] ?? 0) + 1;
    if (kind === 'launcher') await launch(place, `l${kill}`, below(900));
    else if (kind === 'terminal' && victim.status === 'runs')
      await killAttached(context, place, sessionId);
    else {
      const killed = kind === 'all' || kind === 'machine' ? all : [sessionId];
      const change = (): void => (kind === 'machine' ? changeBoot(place) : undefined);
      toldMs.push(await killTold(place, killed, change));
      if (killed === all || below(2) === 0)
        expectCode(await runInProcess(place, ['resume', '--all']), 0);
    }
  }
  areKillsOver = true;
  const longest = Math.round(Math.max(...toldMs));
  context.diagnostic(`${JSON.stringify(kinds)}; the slowest death was told after ${longest} ms`);
  expectCode(await runInProcess(place, ['resume', '--all']), 0);
  const rows = await untilListed(place, 'all are over', (all) => all.every(isOver) && all);
  const ids = rows.map(({ sessionId }) => sessionId);
  for (const id of names) assert.ok(ids.includes(id), `${id} is lost`);
  const seen = effects(place);
  context.diagnostic(`${ids.length} sessions, ${seen.length} effects`);
  for (const index of Array(SESSIONS).keys()) assert.ok(seen.includes(`s${index}-0`));
  assert.deepEqual(seen, [...new Set(seen)], 'an effect was doubled');
  for (const id of ids) {
    assert.equal(journalOf(place, id).match(/"type":"UserInput"/g)?.length, 1, id);
    expectCode(await runInProcess(place, ['verify', id]), 0);
  }
});
