import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { array, number, object, parse, string } from 'valibot';
import { expectCode, makeServed, runPawl, start } from '../../packages/pawl/test/e2e/pawl.js';
import { openReady } from '../../packages/pawl/test/e2e/window.js';
import { bundleProgram } from '../bundled-program.js';
import type { ServerReply } from '../servers/anthropic.js';

/**
 * Ways: the files in which a function runs between two moments of the real program, counted with V8's coverage. A reader
 * who follows a turn opens these files. Their ceilings are only ever lowered.
 */
const CEILINGS = {
  enterToRequest: { files: 43 },
  readRound: { files: 53 }, // of a file that is there
  editRound: { files: 74, functions: 955 },
  bashRound: { files: 84, functions: 1104 },
  headlessRun: { files: 118, functions: 1884 },
};

/** A few functions run only sometimes, for example when a socket lingers: each ceiling has room for them. */
const TIMING_ROOM = 10; // functions
/** On a busy machine more of them run: a way is as short as its shortest run. */
const RUNS_MAX = 4;

const NO_WAY: Ceiling = { files: 0 };

const MEASURE = fileURLToPath(new URL('measure-ways.cjs', import.meta.url));

const ranShape = array(object({ name: string(), start: number() }));

type Way = { readonly files: readonly string[]; readonly functions: number };
type Ceiling = { readonly files: number; readonly functions?: number };

const isWithin = (way: Way, { files, functions = Number.POSITIVE_INFINITY }: Ceiling): boolean =>
  way.files.length <= files && way.functions <= functions + TIMING_ROOM;

const bundled = bundleProgram({ after }, { file: 'packages/pawl/src/main.ts' });
let program = '';
/** Where each source begins in the program. */
let places: readonly { readonly start: number; readonly file: string }[] = [];

before(async () => {
  program = await bundled;
  const text = readFileSync(program, 'utf8');
  places = [...text.matchAll(/^ *\/\/ (packages\/\S+\.ts)$/gm)].map(({ index, 1: file = '' }) => ({
    start: index,
    file,
  }));
});

const fileAt = (start: number): string =>
  places.findLast((place) => place.start <= start)?.file ?? '';

/** The functions of a moment, without the bodies of modules: those are called like their files, or not at all at 0. */
const wayOf = (folder: string, moments: readonly string[]): Way => {
  const functions = moments.flatMap((moment) =>
    parse(ranShape, JSON.parse(readFileSync(path.join(folder, moment), 'utf8'))).filter(
      ({ name, start: at }) => !name.startsWith('packages/') && fileAt(at) !== '',
    ),
  );
  return {
    files: [...new Set(functions.map(({ start: at }) => fileAt(at)))].sort(),
    functions: new Set(functions.map(({ start: at }) => at)).size,
  };
};

const momentsOf = (folder: string): readonly string[] =>
  readdirSync(folder).sort((one, other) => Number.parseInt(one, 10) - Number.parseInt(other, 10));

const call = (name: string, input: object): ServerReply => ({
  type: 'message',
  parts: [{ type: 'call', id: `call-${name}`, name, input }],
});
const answer: ServerReply = { type: 'message', parts: [{ type: 'text', text: 'Done.' }] };

const measured = (folder: string): NodeJS.ProcessEnv => {
  mkdirSync(folder);
  return { WAYS_FOLDER: folder };
};

const check = (context: TestContext, way: Way, ceiling: Ceiling) => {
  context.diagnostic(`${way.files.length} files, ${way.functions} functions`);
  if (process.env.WAYS_LIST === '1') context.diagnostic(way.files.join('\n'));
  assert.ok(way.files.length > 10, 'control: a way runs through some files');
  assert.ok(
    isWithin(way, ceiling),
    `${way.functions} functions in ${way.files.length} files:\n${way.files.join('\n')}`,
  );
};

const enterToRequest = async (context: TestContext): Promise<Way> => {
  const place = await makeServed(context, [answer, answer]);
  expectCode(await runPawl(place, ['-p', 'before']), 0);
  const folder = path.join(place.folder, 'ways');
  const window = await openReady(context, place, {
    program: [process.execPath, '--require', MEASURE, program],
    environment: measured(folder),
  });
  await window.sees(/last here: /); // what the start still does would count as part of the way
  window.press('hi');
  await window.seesLine(/hi$/m);
  window.press('\r');
  await window.sees('Done.');
  window.press('\u0004');
  assert.equal(await window.ended, 0);
  const request = momentsOf(folder).find((moment) => moment.endsWith('-request.json')) ?? '';
  return wayOf(folder, [request]);
};

/** A headless turn whose model asks for one call: the round from the first request to the second, and the whole run. */
const runWithCall = async (context: TestContext, reply: ServerReply) => {
  const place = await makeServed(context, [reply, answer]);
  writeFileSync(path.join(place.workspace, 'note.txt'), 'one\n');
  const folder = path.join(place.folder, 'ways');
  const words = ['--require', MEASURE, program, '-p', 'do it'];
  const environment = { ...place.environment, ...measured(folder) };
  const ended = await start({ ...place, environment }, process.execPath, words).ended;
  expectCode(ended, 0);
  assert.match(ended.stdout, /Done\./);
  const moments = momentsOf(folder);
  const requests = moments.filter((moment) => moment.endsWith('-request.json'));
  assert.equal(requests.length, 2);
  return [wayOf(folder, requests.slice(1)), wayOf(folder, moments)] as const;
};

/** Measures again, at most RUNS_MAX times, until all ways are below their ceilings. */
const checkShortest = async (
  context: TestContext,
  measure: () => Promise<readonly Way[]>,
  ceilings: readonly Ceiling[],
): Promise<void> => {
  for (let run = 1; run <= RUNS_MAX; run++) {
    const ways = (await measure()).slice(0, ceilings.length);
    const areWithin = ways.every((way, at) => isWithin(way, ceilings[at] ?? NO_WAY));
    if (!areWithin && run < RUNS_MAX) continue;
    for (const [at, way] of ways.entries()) check(context, way, ceilings[at] ?? NO_WAY);
    return;
  }
};

test('from Enter in a terminal to the request', async (context) => {
  const measure = async () => [await enterToRequest(context)];
  await checkShortest(context, measure, [CEILINGS.enterToRequest]);
});

test('a round with read', async (context) => {
  const reply = call('read', { path: 'note.txt' });
  await checkShortest(context, () => runWithCall(context, reply), [CEILINGS.readRound]);
});

test('a round with edit', async (context) => {
  const edits = [{ oldText: 'one', newText: 'two' }];
  const reply = call('edit', { path: 'note.txt', edits });
  await checkShortest(context, () => runWithCall(context, reply), [CEILINGS.editRound]);
});

test('a round with bash, and a whole headless run with it', async (context) => {
  const reply = call('bash', { command: 'echo hi' });
  const ceilings = [CEILINGS.bashRound, CEILINGS.headlessRun];
  await checkShortest(context, () => runWithCall(context, reply), ceilings);
});
