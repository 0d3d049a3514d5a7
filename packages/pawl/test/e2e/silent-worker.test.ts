import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { until } from '../../../../test/until.js';
import { launchPrompt, startSuccessor } from '../../src/detached/launch.js';
import { listLive } from '../../src/detached/live-records.js';
import { Stop } from '../../src/process/exit-codes.js';
import { WORKER_WORD } from '../../src/settings/flags.js';
import { makePlace, type Place } from './pawl.js';

// A process of a detached session that neither speaks nor ends. The launcher is this process.

/** The worker writes its pid, and then does nothing for ever. */
const makeSilent = (context: TestContext): Place & { readonly pidFile: string } => {
  const place = makePlace(context);
  const [pidFile, preload] = ['worker.pid', 'silent.cjs'].map((name) =>
    join(place.folder, name),
  ) as [string, string]; // as many as there are names
  writeFileSync(
    preload,
    `if (process.argv.includes('${WORKER_WORD}')) {
      require('node:fs').writeFileSync(${JSON.stringify(pidFile)}, String(process.pid));
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    }`,
  );
  const { TMPDIR: _, ...environment } = place.environment; // of one test only
  Object.assign(process.env, environment, { NODE_OPTIONS: `--require ${preload}` });
  return { ...place, pidFile };
};

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

/** Nothing is left of the start: no process, no log, no session. */
const expectNothing = async ({ pidFile, state }: ReturnType<typeof makeSilent>): Promise<void> => {
  // a slow machine may have killed it before its first line of code
  if (existsSync(pidFile)) {
    const pid = Number(readFileSync(pidFile, 'utf8'));
    await until('the end of the process', () => (isAlive(pid) ? undefined : true));
  }
  assert.deepEqual(await listLive(), []);
  const logs = readdirSync(join(state, 'pawl', 'detached')).filter((name) => name.endsWith('.log'));
  assert.deepEqual(logs, []);
};

const LIMIT_MS = 2_000;

const isStop = (words: RegExp) => (error: unknown) => {
  assert.ok(error instanceof Stop, String(error));
  assert.match(error.message, words);
  return true;
};

test('a process that says nothing is killed, and the launcher says so', async (context) => {
  const place = makeSilent(context);
  await assert.rejects(
    launchPrompt({ workspace: place.workspace }, { text: 'look', typed: 'look' }, LIMIT_MS),
    isStop(
      /^The process of the session said nothing for 2 s and was killed before it had confirmed your input\. pawl sessions --live shows whether the session is there\.$/,
    ),
  );
  await expectNothing(place);
});

test('a process that says nothing takes over no session from a terminal', async (context) => {
  const place = makeSilent(context);
  await assert.rejects(
    startSuccessor('20261126-120000-abcdef', { workspace: place.workspace }, 'look', LIMIT_MS),
    isStop(/^its process said nothing for 2 s and was killed\.$/),
  );
  await expectNothing(place);
});
