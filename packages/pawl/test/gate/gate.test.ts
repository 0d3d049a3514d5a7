import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { chooseRows } from '../../../../test/tier.js';
import { runInProcess } from '../e2e/in-process.js';
import { expectCode } from '../e2e/pawl.js';
import { gateCases, gatePresets, triedCases } from './gate-cases.js';
import {
  connectEditor,
  decisionsOf,
  expectedOf,
  faces,
  GO,
  makeStage,
  type Stage,
} from './gate-faces.js';

/** Whatever asks for an effect passes the same policy: one table of calls, through every face. */

const rows = faces.flatMap((face) =>
  (face.presets ?? gatePresets).map((preset) => ({ face, preset })),
);

for (const { face, preset } of chooseRows(rows, ({ face: { name } }) => name))
  test(`the calls of the gate's table, by ${face.name} with preset ${preset}`, async (t) => {
    const stage = makeStage(t);
    await face.run(stage, preset);
    assert.deepEqual(await decisionsOf(stage), expectedOf(face, preset, triedCases));
  });

// Only a flag and the user's own file choose `full`.

const projectFile = ({ place }: Stage, text: string): void => {
  const folder = path.join(place.workspace, '.pawl');
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, 'config.toml'), text);
};

const userFile = ({ place }: Stage): string => path.join(place.home, '.config/pawl/config.toml');

const addToUserFile = (stage: Stage, text: string): void => {
  const file = userFile(stage);
  writeFileSync(file, `${text}\n${readFileSync(file, 'utf8')}`);
};

const headlessFace = faces.find(({ name }) => name === 'headless') ?? assert.fail();

/** What the presets and rules of the tests below decide differently. */
const telling = gateCases.filter(({ name }) =>
  ['command', 'reset', 'clean', 'write-inside', 'write-outside'].includes(name),
);

test("a project's file can't choose full, and turns no question into silence", async (t) => {
  const stage = makeStage(t, telling);
  projectFile(stage, 'preset = "full"\nsandbox = "off"\n[rules]\nallow = ["git reset"]\n');
  const ran = await runInProcess(stage.place, [...GO, '--model', stage.model]);
  expectCode(ran, 0);
  assert.match(ran.stderr, /preset = full is ignored: a project may not choose it/);
  assert.deepEqual(await decisionsOf(stage), expectedOf(headlessFace, 'auto', telling));
});

test("a project's file can't say that a question is denied in silence", async (t) => {
  const stage = makeStage(t, telling);
  projectFile(stage, 'on_ask = "deny"\n');
  const ran = await runInProcess(stage.place, ['-p', 'go', '--model', stage.model]);
  expectCode(ran, 77);
  assert.match(ran.stderr, /on_ask = deny is ignored: a project may not set it/);
});

test("the user's own file chooses full, and a project can only choose what is stricter", async (t) => {
  const stage = makeStage(t, telling);
  addToUserFile(stage, 'preset = "full"');
  const ran = await runInProcess(stage.place, [...GO, '--model', stage.model]);
  expectCode(ran, 0);
  assert.match(ran.stderr, /^preset full: no sandbox; nothing is asked or denied but by your own/);
  assert.deepEqual(await decisionsOf(stage), expectedOf(headlessFace, 'full', telling));
  const strict = makeStage(t, telling);
  addToUserFile(strict, 'preset = "full"');
  projectFile(strict, 'preset = "plan"\n');
  expectCode(await runInProcess(strict.place, [...GO, '--model', strict.model]), 0);
  assert.deepEqual(await decisionsOf(strict), expectedOf(headlessFace, 'plan', telling));
});

test('a variable of the environment can not choose full, and no --sandbox contradicts it', async (t) => {
  const { place, model } = makeStage(t, telling);
  const environment = { ...place.environment, PAWL_PRESET: 'full' };
  const ran = await runInProcess({ ...place, environment }, [...GO, '--model', model]);
  expectCode(ran, 78);
  assert.match(ran.stderr, /PAWL_PRESET: it can't be full: only --preset full or preset = "full"/);
  const flags = [...GO, '--preset', 'full', '--sandbox', 'workspace', '--model', model];
  const refused = await runInProcess(place, flags);
  expectCode(refused, 2);
  assert.match(refused.stderr, /leave out --sandbox workspace/);
});

test('full holds for the session that was opened with it, and not when it is resumed', async (t) => {
  const stage = makeStage(t, telling);
  const { place, model } = stage;
  const first = await runInProcess(place, [...GO, '--json', '--preset', 'full', '--model', model]);
  expectCode(first, 0);
  const [session] = first.stdout.split('\n').map((line) => line && JSON.parse(line));
  assert.deepEqual([session.preset, session.sandbox], ['full', 'off']);
  const again = await runInProcess(place, [...GO, '--json', '--continue', '--model', model]);
  const [resumed] = again.stdout.split('\n').map((line) => line && JSON.parse(line));
  assert.deepEqual([resumed.sessionId, resumed.preset], [session.sessionId, 'auto']);
});

test("the user's own rules hold under full, and a project's do not", async (t) => {
  const { place, model } = makeStage(t, telling);
  const stage = { place, model, modelWithTask: model };
  writeFileSync(
    userFile(stage),
    `${readFileSync(userFile(stage), 'utf8')}\n[rules]\ndeny = ["git reset"]\nask = ["git clean"]\n`,
  );
  projectFile(stage, '[rules]\ndeny = ["echo"]\n');
  expectCode(await runInProcess(place, [...GO, '--preset', 'full', '--model', model]), 0);
  const expected = expectedOf(headlessFace, 'full', telling);
  assert.deepEqual(await decisionsOf(stage), { ...expected, reset: 'denied', clean: 'denied' });
});

test('an editor sees full only where it was chosen at the start, and can only leave it', async (t) => {
  const { place, model } = makeStage(t, telling);
  const ordinary = await connectEditor(place, ['--model', model]);
  const { sessionId } = await ordinary.client.newSession(place.workspace);
  await assert.rejects(
    ordinary.client.request('session/set_mode', { sessionId, modeId: 'full' }),
    /There is no preset 'full'/,
  );
  await ordinary.close();
  const trusted = await connectEditor(place, ['--preset', 'full', '--model', model]);
  const opened = await trusted.client.newSession(place.workspace);
  assert.equal(opened.modes?.currentModeId, 'full');
  const set = (modeId: string): Promise<unknown> =>
    trusted.client.request('session/set_mode', { sessionId: opened.sessionId, modeId });
  await set('careful');
  await assert.rejects(set('full'), /There is no preset 'full'/);
  await trusted.close();
});
