import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { randomFrom } from '../../../../test/kit/agent/mutations.js';
import type { ServerReply, WireBody } from '../../../../test/servers/anthropic.js';
import { atEnd } from '../../../../test/temporary-folder.js';
import { killSession, type LiveRow, listLive, untilListed } from './detached-stage.js';
import { expectCode, makeServed, type Place, runPawl, startPawl } from './pawl.js';
import { openWindow } from './window.js';
import { call, message, text } from './wire-words.js';

/**
 * Kills of whatever belongs to detached sessions: their processes, attached terminals, launchers.
 * PAWL_DETACHED_KILLS and PAWL_DETACHED_SESSIONS make it longer; PAWL_SEED repeats a run.
 */

const SESSIONS = Number(process.env.PAWL_DETACHED_SESSIONS ?? 3);
const KILLS = Number(process.env.PAWL_DETACHED_KILLS ?? 12);
const CALLS = 6;

const textsIn = (body: WireBody): string => JSON.stringify(body.messages);

/** The next command of the session that asks, by what it was asked for and what it has done. */
const reply = (body: WireBody): ServerReply => {
  const [, name = ''] = /task-(\w+)/.exec(textsIn(body)) ?? [];
  const asked = body.messages.filter(({ role }) => role === 'assistant').length;
  if (asked >= CALLS) return message(text(`task-${name} is over.`));
  const mark = `${name}-${asked}`;
  return message(call(`c-${mark}`, 'bash', { command: `echo ${mark} >> effects.txt; sleep 0.2` }));
};

const effects = (place: Place): readonly string[] =>
  existsSync(join(place.workspace, 'effects.txt'))
    ? readFileSync(join(place.workspace, 'effects.txt'), 'utf8').trim().split('\n')
    : [];

const journalOf = (place: Place, id: string): string =>
  readFileSync(join(place.state, 'pawl', 'sessions', `${id}.jsonl`), 'utf8');

const isOver = ({ status, state }: LiveRow): boolean =>
  status === 'runs' && state.startsWith('has answered');

/** Starts a session, with a terminal that prints its id, or is killed before. */
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
  await window.sees('task-');
  process.kill(window.pid, 'SIGKILL');
};

test('kills of processes, terminals and launchers lose no session and double no effect', async (context) => {
  const seed = Number(process.env.PAWL_SEED ?? Date.now() % 1_000_000);
  context.diagnostic(`PAWL_SEED=${seed}`);
  const random = randomFrom(seed);
  const below = (count: number): number => Math.floor(random() * count);
  const place = await makeServed(context, reply, { PAWL_SANDBOX: 'off', PAWL_PRESET: 'auto' });
  atEnd(context, () => {
    for (const name of readdirSync(join(place.state, 'pawl', 'detached')))
      if (name.endsWith('.json')) killSession(place, name.slice(0, -'.json'.length));
  });
  for (let index = 0; index < SESSIONS; index += 1) await launch(place, `s${index}`, null);
  const names = new Set((await listLive(place)).map(({ sessionId }) => sessionId));
  assert.equal(names.size, SESSIONS);
  for (let kill = 0; kill < KILLS; kill += 1) {
    const rows = await listLive(place);
    const victim = rows[below(rows.length)];
    assert.ok(victim !== undefined);
    const { sessionId } = victim;
    const kind = below(4);
    if (kind === 0) await launch(place, `l${kill}`, below(600));
    else if (kind === 1 && victim.status === 'runs') await killAttached(context, place, sessionId);
    else {
      killSession(place, sessionId);
      await untilListed(
        place,
        'the death is told',
        (all) =>
          all.find((row) => row.sessionId === sessionId && /^(died|rested)$/.test(row.status)) !==
          undefined,
      );
      if (below(2) === 0) expectCode(await runPawl(place, ['resume', '--all']), 0);
    }
  }
  expectCode(await runPawl(place, ['resume', '--all']), 0);
  const rows = await untilListed(place, 'all are over', (all) => all.every(isOver) && all);
  const ids = rows.map(({ sessionId }) => sessionId);
  for (const id of names) assert.ok(ids.includes(id), `${id} is lost`);
  const seen = effects(place);
  assert.deepEqual(seen, [...new Set(seen)], 'an effect was doubled');
  for (const id of ids) {
    assert.equal(journalOf(place, id).match(/"type":"UserInput"/g)?.length, 1, id);
    expectCode(await runPawl(place, ['verify', id]), 0);
  }
});
