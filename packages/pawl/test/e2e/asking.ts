import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Script } from '@pawl/agent/models/scripted-model';
import type { TreeEvent } from '@pawl/ask/run/event';
import { processesWith } from '../../../../test/kit/tools/processes.js';
import { isDeep } from '../../../../test/tier.js';
import { until } from '../../../../test/until.js';
import { runInProcess } from './in-process.js';
import {
  type Ended,
  expectCode,
  makePlace,
  type Place,
  type Running,
  readRecords,
  sessionOf,
  startPawl,
} from './pawl.js';

/** Runs `pawl ask` as a user does, with a scripted model. */

export type Environment = 'quickjs' | 'python';
export const ENVIRONMENTS: readonly Environment[] = ['quickjs', 'python'];
/** What the command line is tried with: all keep the same contract, which other tests hold. */
export const TRIED = isDeep ? ENVIRONMENTS : (['quickjs'] as const);

export const program = (...lines: readonly string[]): string =>
  `\`\`\`repl\n${lines.join('\n')}\n\`\`\``;

/** The program that submits an answer. */
export const submit = (environment: Environment, expression: string): string =>
  environment === 'python'
    ? program(`answer["content"] = ${expression}`, 'answer["ready"] = True')
    : program(`answer.content = ${expression};`, 'answer.ready = true;');

/** The words for a scripted run; script and inputs lie in the workspace. */
export const prepareAsk = (
  place: Place,
  script: Script,
  inputs: Readonly<Record<string, string>> = { 'input.txt': 'abc' },
): readonly string[] => {
  writeFileSync(join(place.workspace, 'script.json'), JSON.stringify(script));
  for (const [name, text] of Object.entries(inputs))
    writeFileSync(join(place.workspace, name), text);
  return ['ask', '--context', ...Object.keys(inputs), '--model', 'scripted/script.json'];
};

const QUESTION = 'what is in it?';

/** In the process of the test. */
export const runAsk = (
  place: Place,
  words: readonly string[],
  ...more: readonly string[]
): Promise<Ended> => runInProcess(place, [...words, ...more, QUESTION]);

export const startAsk = (
  place: Place,
  words: readonly string[],
  ...more: readonly string[]
): Running => startPawl(place, [...words, ...more, QUESTION]);

/** The events of a journal, as far as they are there; the last line may be on its way. */
export const eventsIn = (place: Place, sessionId: string): readonly TreeEvent[] =>
  readFileSync(join(place.state, 'pawl', 'sessions', `${sessionId}.jsonl`), 'utf8')
    .split('\n')
    .slice(1, -1)
    .map((line) => (JSON.parse(line) as { readonly event: TreeEvent }).event); // this program wrote it

/** Calls that were answered more than once: paid twice. */
export const paidTwice = (events: readonly TreeEvent[]): readonly string[] => {
  const replied = events.flatMap((event) =>
    event.type === 'ModelReplied' ? [event.requestId] : [],
  );
  return replied.filter((requestId, index) => replied.indexOf(requestId) !== index);
};

// ---- Runs to be interrupted ----

/** How long each place to be interrupted in lasts. */
const LONG_MS = 700;

/** QuickJS has no way to wait in a program. */
const busy: Readonly<Record<Environment, string>> = {
  quickjs: `const until = Date.now() + ${LONG_MS}; while (Date.now() < until);`,
  python: `import time\ntime.sleep(${LONG_MS / 1_000})`,
};

const sum: Readonly<Record<Environment, string>> = {
  quickjs: '[one, two, three].join("+")',
  python: '"+".join([one, two, three])',
};

/**
 * A quick call and a slow one, a program, a slow reply: places to be killed in. Only a test that
 * kills in the program makes it a long one, which costs CPU time in each life of the run.
 */
export const interruptible = (environment: Environment, isLong = false): Script => ({
  replies: [
    {
      text: program('one = llm_query("quick 1")', 'two = llm_query("slow 2")', 'print(one + two)'),
    },
    { text: program('three = llm_query("quick 3")', isLong ? busy[environment] : '') },
    { delayMs: 600, text: submit(environment, sum[environment]) },
  ],
  rules: [
    { when: '^quick (\\d)', text: '<$1>', usage: { inputTokens: 1_000_000 } },
    { when: '^slow (\\d)', text: '<$1>', delayMs: LONG_MS, usage: { inputTokens: 1_000_000 } },
  ],
  facts: { prices: { input: 1, output: 0, cacheRead: 0, cacheWrite: 0 } },
});
export const ANSWER = '<1>+<2>+<3>';

export const count = (events: readonly TreeEvent[], type: TreeEvent['type']): number =>
  events.filter((event) => event.type === type).length;

/** Those since the run was opened last. */
const ofThisLife = (events: readonly TreeEvent[]): readonly TreeEvent[] =>
  events.slice(events.findLastIndex((event) => event.type === 'Resumed') + 1);

type Moment = (events: readonly TreeEvent[]) => boolean;

export const beforeAnything: Moment = (events) => events.length >= 1;
export const inSubcall: Moment = (events) => {
  const life = ofThisLife(events);
  return count(life, 'SubcallAsked') === 2 && life.at(-1)?.type !== 'CellFinished';
};
/** The last call that it makes has been answered, so that it is at work. */
export const inProgram: Moment = (events) =>
  count(events, 'CellFinished') === 1 &&
  events.at(-1)?.type === 'ModelReplied' &&
  events.at(-1)?.node !== 'n0';
export const betweenPrograms: Moment = (events) => count(events, 'CellFinished') === 2;

/** Waits until the journal shows that the moment has come. */
export const untilIn = (
  place: Place,
  running: Running,
  is: (events: readonly TreeEvent[]) => boolean,
): Promise<true> =>
  until(
    () => `the moment\n${running.stderr()}`,
    () => {
      try {
        return is(eventsIn(place, sessionOf(place))) || undefined;
      } catch {
        return undefined; // there is no journal yet
      }
    },
  );

export const nothingIsLeft = (place: Place): Promise<unknown> =>
  until('the end of all processes', () => processesWith(place.workspace).length === 0);

/** Goes on with the run, which comes to its answer as if nothing had been. */
export const goOn = async (place: Place): Promise<void> => {
  const ended = await runInProcess(place, ['ask', '--continue', '--json']);
  expectCode(ended, 0);
  const records = readRecords(ended.stdout);
  const [session, result] = [records[0], records.at(-1)];
  assert.ok(session?.type === 'session' && session.resumed);
  assert.ok(result?.type === 'result');
  assert.deepEqual([result.text, result.costUsd], [ANSWER, 3]);
  assert.deepEqual(paidTwice(eventsIn(place, sessionOf(place))), []);
  expectCode(await runInProcess(place, ['replay', sessionOf(place)]), 0);
};

export const begin = async (
  context: TestContext,
  { environment = 'quickjs', isLong = false }: { environment?: Environment; isLong?: boolean } = {},
) => {
  const place = makePlace(context);
  const words = prepareAsk(place, interruptible(environment, isLong));
  return { place, running: startAsk(place, words, '--environment', environment) };
};
