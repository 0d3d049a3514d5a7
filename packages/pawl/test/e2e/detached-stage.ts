import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { Replies } from '../../../../test/servers/anthropic.js';
import { atEnd } from '../../../../test/temporary-folder.js';
import { startPatience } from '../../../../test/until.js';
import type { WaitingCall } from '../../src/detached/waiting-questions.js';
import { runInProcess } from './in-process.js';
import { expectCode, makeServed, type Place } from './pawl.js';

/** Detached sessions in tests: they are started, listed, waited for, and gone after the test. */

export type LiveRow = {
  readonly sessionId: string;
  readonly status: string;
  /** Of its process, while it runs. */
  readonly pid: number | null;
  readonly state: string;
  /** Of MCP servers without what is about a call. */
  readonly questions: readonly WaitingCall[];
  readonly workspace: string;
};

export const listLive = async (place: Place): Promise<readonly LiveRow[]> => {
  const ended = await runInProcess(place, ['sessions', '--live', '--json']);
  expectCode(ended, 0);
  return ended.stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
};

/** Lists until the rows fit. */
export const untilListed = async <T>(
  place: Place,
  what: string | RegExp,
  find: (rows: readonly LiveRow[]) => T | undefined | false,
): Promise<T> => {
  const isOver = startPatience();
  for (;;) {
    const rows = await listLive(place);
    const found = find(rows);
    if (found !== undefined && found !== false) return found;
    assert.ok(!isOver(), `${what} is not in ${JSON.stringify(rows)}`);
    await delay(60); // a list costs some
  }
};

/** Waits until a session is in a state, as `status: words`. */
export const untilState = (place: Place, id: string, wanted: RegExp): Promise<LiveRow> =>
  untilListed(place, wanted, (rows) =>
    rows.find((row) => row.sessionId === id && wanted.test(`${row.status}: ${row.state}`)),
  );

/** The code of the first question that waits. */
const codeOf = async (place: Place, id: string): Promise<string> =>
  untilListed(
    place,
    'a code',
    (rows) => rows.find(({ sessionId }) => sessionId === id)?.questions.map(({ code }) => code)[0],
  );

/** Answers the first question that waits, with its code. */
export const answerShown = async (
  place: Place,
  id: string,
  ...words: readonly string[]
): ReturnType<typeof runInProcess> =>
  runInProcess(place, ['answer', id, await codeOf(place, id), ...words]);

export const liveFile = (place: Place, id: string, end: string): string =>
  join(place.state, 'pawl', 'detached', `${id}.${end}`);

/** Kills the process of a session; does nothing if it has none. */
export const killSession = (place: Place, id: string): void => {
  try {
    const record = JSON.parse(readFileSync(liveFile(place, id, 'json'), 'utf8'));
    process.kill(record.process.pid, 'SIGKILL');
  } catch {
    // its record is gone, or its process has ended
  }
};

/** Starts a session. Its process is gone after the test. */
export const detach = async (
  context: TestContext,
  place: Place,
  words: readonly string[],
): Promise<string> => {
  const ended = await runInProcess(place, ['-p', '--detach', ...words]);
  expectCode(ended, 0);
  // nobody is there to see the status line
  assert.match(ended.stderr, /It runs in .*, preset (careful|auto|plan|ci): \w/);
  const id = ended.stdout.trim();
  assert.match(id, /^\d{8}-\d{6}-\w+$/);
  atEnd(context, () => killSession(place, id));
  return id;
};

/** A place with a provider, where each command needs an answer. */
export const makeAsking = (
  context: TestContext,
  replies: Replies,
  more: Readonly<Record<string, string>> = {},
) => makeServed(context, replies, { PAWL_SANDBOX: 'off', PAWL_PRESET: 'careful', ...more });
