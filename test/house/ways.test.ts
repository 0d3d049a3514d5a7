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
  editRound: { files: 84, functions: 1014 },
  bashRound: { files: 84, functions: 1114 },
  headlessRun: { files: 119, functions: 1894 },
};

/** A few functions run only where the machine is busy, for example when a socket lingers: each ceiling has room for them. */
const TIMING_ROOM = 10; // functions

const MEASURE = fileURLToPath(new URL('measure-ways.cjs', import.meta.url));

const ranShape = array(object({ name: string(), start: number() }));

type Way = { readonly files: readonly string[]; readonly functions: number };

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

const check = (
  context: TestContext,
  way: Way,
  ceiling: { readonly files: number; readonly functions?: number },
) => {
  context.diagnostic(`${way.files.length} files, ${way.functions} functions`);
  if (process.env.WAYS_LIST === '1') context.diagnostic(way.files.join('\n'));
  assert.ok(way.files.length > 10, 'control: a way runs through some files');
  assert.ok(
    way.files.length <= ceiling.files,
    `${way.files.length} files:\n${way.files.join('\n')}`,
  );
  assert.ok(
    way.functions <= (ceiling.functions ?? Number.POSITIVE_INFINITY) + TIMING_ROOM,
    `${way.functions} functions`,
  );
};

test('from Enter in a terminal to the request', async (context) => {
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
  const moments = momentsOf(folder);
  const request = moments.find((moment) => moment.endsWith('-request.json')) ?? '';
  check(context, wayOf(folder, [request]), CEILINGS.enterToRequest);
});

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
  return { round: wayOf(folder, requests.slice(1)), run: wayOf(folder, moments) };
};

test('a round with read', async (context) => {
  const { round } = await runWithCall(context, call('read', { path: 'note.txt' }));
  check(context, round, CEILINGS.readRound);
});

test('a round with edit', async (context) => {
  const input = { path: 'note.txt', edits: [{ oldText: 'one', newText: 'two' }] };
  const { round } = await runWithCall(context, call('edit', input));
  check(context, round, CEILINGS.editRound);
});

test('a round with bash, and a whole headless run with it', async (context) => {
  const { round, run } = await runWithCall(context, call('bash', { command: 'echo hi' }));
  check(context, round, CEILINGS.bashRound);
  check(context, run, CEILINGS.headlessRun);
});
