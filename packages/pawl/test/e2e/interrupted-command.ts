import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { AnthropicServer } from '../../../../test/servers/anthropic.js';
import { chooseRows } from '../../../../test/tier.js';
import { until } from '../../../../test/until.js';
import { processesOf } from './command-processes.js';
import { runInProcess } from './in-process.js';
import {
  type Ended,
  expectCode,
  expectValid,
  makeServed,
  type Place,
  type Running,
  startPawl,
} from './pawl.js';
import { call, done, last, message } from './wire-words.js';

/** Sessions whose program was killed while a command ran, and what the resumed session tells the model. */

export type Served = Place & { readonly server: AnthropicServer };

export const has = (place: Place, name: string): boolean => existsSync(join(place.workspace, name));
export const touch = (place: Place, name: string): void =>
  writeFileSync(join(place.workspace, name), '');

/** Runs until somebody makes the file `go`; tells that it runs with the file `runs`. */
export const WAITING =
  'echo begin >>log; echo first; touch runs; until [ -e go ]; do sleep 0.1; done; echo second';

/** Fails at once if the program ends without having run the command. */
export const untilItRuns = async (place: Served, running: Running): Promise<void> => {
  let isOver = false;
  void running.ended.then(() => {
    isOver = true;
  });
  const results = (): string => JSON.stringify(last(place.server.requests.at(-1)?.body));
  const told = (): string => `the command runs\n${results()}\n${running.stderr()}`;
  await until(told, () => has(place, 'runs') || isOver);
  assert.ok(has(place, 'runs'), told());
};

export const killed = async (running: Running): Promise<void> => {
  running.child.kill('SIGKILL');
  await running.ended;
};

/** A session whose program was killed while its first command ran. */
export const interrupted = async (
  context: TestContext,
  input: object,
  words: readonly string[] = [],
): Promise<Served> => {
  const place = await makeServed(context, [message(call('c1', 'bash', input)), done, done, done]);
  const running = startPawl(place, ['-p', 'work', ...words]);
  await untilItRuns(place, running);
  await killed(running);
  return place;
};

export const resume = (place: Place, ...words: readonly string[]): Running =>
  startPawl(place, ['--continue', '-p', 'and now?', ...words]);

/** Resumes the session in the process of the test. */
export const resumed = (place: Place, ...words: readonly string[]): Promise<Ended> =>
  runInProcess(place, ['--continue', '-p', 'and now?', ...words]);

/** The result of a call in the last message of a request. */
export const resultOf = ({ server }: Served, request: number, callId: string): string => {
  const part = last(server.requests[request]?.body).find(
    ({ tool_use_id }) => tool_use_id === callId,
  );
  return typeof part?.content === 'string' ? part.content : JSON.stringify(part?.content);
};

/** The result of the call in the request after the resume. */
export const resultIn = (served: Served): string => resultOf(served, 1, 'c1');

export const expectEnd = async (place: Served, ended: Ended): Promise<void> => {
  expectCode(ended, 0);
  expectValid(place.server);
  await until('nothing runs', () => processesOf(place).length === 0);
  assert.deepEqual(readdirSync(join(place.state, 'pawl', 'sandbox')), []);
};

export const onceIn = (place: Place): void =>
  assert.equal(readFileSync(join(place.workspace, 'log'), 'utf8'), 'begin\n', 'it ran once');

/** What commands have printed, as far as it is on disk. */
export const keptIn = ({ state }: Place): string =>
  readdirSync(join(state, 'pawl', 'sandbox'), {
    recursive: true,
    withFileTypes: true,
    encoding: 'utf8',
  })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
    .join('\n');

/** With the fence or without it; in the deep tier with both. */
export const testAtALevel = (
  title: string,
  run: (context: TestContext, words: readonly string[]) => Promise<void>,
): void => {
  for (const level of chooseRows(['workspace', 'off'], () => title))
    test(`${title} (${level})`, (context) => run(context, ['--sandbox', level]));
};
