import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { WireBody } from '../../../../test/servers/anthropic.js';
import { countCases } from '../../../../test/tier.js';
import { until } from '../../../../test/until.js';
import { processesOf } from './command-processes.js';
import { runInProcess } from './in-process.js';
import { expectCode, expectValid, makeServed, type Place, startPawl } from './pawl.js';
import { call, done, last, message } from './wire-words.js';

/**
 * The program is killed at random moments while it runs commands, and resumed at once. The model repeats every command
 * whose output it does not see. Each command takes effect exactly once, the model sees its real output, and nothing is
 * left at the end.
 *
 * PAWL_COUNT sets how often (3 if not set), with two kills each time. Every third run is without the sandbox.
 */

const RUNS = countCases(3);
const COMMANDS = 6;
const KILLS = 2;

/** In turn: at its end at once, busy for a while, waiting for a while. */
const workOf = (number: number): string =>
  [':', 'for ((i = 0; i < 30000; i++)); do :; done', 'sleep 0.3'][number % 3] ?? ':';
const commandOf = (number: number): string =>
  `echo begin-${number} >>log; ${workOf(number)}; echo output-${number}; echo end-${number} >>log; exit ${number % 2}`;

/** A model that goes on when it has seen the output of a command, and repeats the command otherwise. */
const repeatingModel = () => {
  let [number, calls] = [1, 0];
  return (body: WireBody) => {
    if (JSON.stringify(last(body)).includes(`output-${number}\\n`)) number += 1;
    calls += 1;
    return number > COMMANDS
      ? done
      : message(call(`call-${calls}`, 'bash', { command: commandOf(number), timeoutMs: 60_000 }));
  };
};

const logOf = ({ workspace }: Place): string => {
  const file = join(workspace, 'log');
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
};

/** It may be killed before it has made one. */
const hasSession = ({ state }: Place): boolean => {
  const folder = join(state, 'pawl', 'sessions');
  return existsSync(folder) && readdirSync(folder).some((name) => name.endsWith('.jsonl'));
};

/** Starts or resumes it, and kills it at a random moment. */
const killOnce = async (place: Place, words: readonly string[]): Promise<void> => {
  const before = logOf(place).length;
  const running = startPawl(place, words);
  let isOver = false;
  void running.ended.then(() => {
    isOver = true;
  });
  await until('a command has begun', () => isOver || logOf(place).length > before);
  await delay(Math.random() * 400);
  running.child.kill('SIGKILL');
  await running.ended;
};

const counts = { kills: 0, recovered: 0, requests: 0 };

for (let run = 1; run <= RUNS; run++) {
  test(`killed while it runs commands, and resumed at once (${run} of ${RUNS})`, async (context) => {
    const place = await makeServed(context, repeatingModel());
    const level = run % 3 === 0 ? ['--sandbox', 'off'] : [];
    for (let kill = 0; kill < KILLS; kill++) {
      const again = hasSession(place) ? ['--continue'] : [];
      await killOnce(place, [...again, '-p', 'go on', ...level]);
      counts.kills += 1;
    }
    const again = hasSession(place) ? ['--continue'] : [];
    expectCode(await runInProcess(place, [...again, '-p', 'go on', ...level]), 0);
    const numbers = Array.from({ length: COMMANDS }, (_, at) => at + 1);
    assert.equal(
      logOf(place),
      numbers.map((n) => `begin-${n}\nend-${n}\n`).join(''),
      'exactly once',
    );
    expectValid(place.server);
    const sent = JSON.stringify(place.server.requests.at(-1)?.body.messages);
    for (const number of numbers)
      assert.match(sent, new RegExp(`output-${number}\\\\n\\[exit code`));
    assert.doesNotMatch(sent, /unknown/);
    await until('nothing is left', () => processesOf(place).length === 0);
    assert.deepEqual(readdirSync(join(place.state, 'pawl', 'sandbox')), []);
    counts.recovered += sent.match(/was started again/g)?.length ?? 0;
    counts.requests += place.server.requests.length;
  });
}

test('the kills and recovered results were counted', (context) => {
  context.diagnostic(JSON.stringify(counts));
});
