import assert from 'node:assert/strict';
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import { attend, entriesOf } from '../../test/contract/play-story.js';
import { event } from '../../test/contract/story.js';
import { atEnd } from '../../test/temporary-folder.js';
import { SEED } from '../../test/tier.js';
import { until } from '../../test/until.js';
import { serverProgram } from '../src/start-engine.js';
import { clusterSettings, startCluster } from './cluster/cluster.js';
import { runCrowd, wrongIn } from './cluster/crowd.js';

/** Nodes and the engine are killed with SIGKILL, at chosen moments and at random ones. */

const cluster = await startCluster(3, 60, 200);
atEnd({ after: (hook) => after(hook) }, () => cluster.stop());
const { runtime, folder, nodes, engine } = cluster;

const settings = clusterSettings(folder);

const begin = async () => {
  const id = await runtime.create({ settings, instructions: 'Be brief.' });
  const { node } = await runtime.whereIs(id);
  const home = nodes.find(({ name }) => name === node);
  assert.ok(home, `${node} is no node of the test`);
  return { id, home, session: attend(runtime, id) };
};

/** How often the model or a command began with this text. The file comes with the first of them. */
const linesWith = (file: string, text: string): number => {
  const place = path.join(folder, file);
  if (!existsSync(place)) return 0;
  const lines = readFileSync(place, 'utf8').split('\n');
  return lines.filter((line) => line.startsWith(text)).length;
};

test('a command whose node is killed is reported as lost, and is not run again', async () => {
  const { id, home, session } = await begin();
  await session.say('session long');
  await session.until(event('ToolStarted'));
  while (linesWith('commands', 'session long') === 0)
    await new Promise((resolve) => setTimeout(resolve, 10));
  await home.kill();
  await home.start();
  await session.rest();
  const entries = await entriesOf(runtime, id);
  const outcomes = entries.flatMap(({ event: one }) =>
    one.type === 'ToolCompleted' ? [one.outcome.status] : [],
  );
  assert.deepEqual(outcomes, ['lost']);
  assert.equal(linesWith('commands', 'session long'), 1);
});

test('a model call whose node is killed is made again under a new id, and the journal says why', async () => {
  const { id, session } = await begin();
  await session.say('session slow');
  await session.until(event('TextDelta'));
  for (const node of nodes) await node.kill();
  for (const node of nodes) await node.start();
  const failed = await session.until(event('LlmFailed'));
  assert.match(
    failed.event.type === 'LlmFailed' ? failed.event.error.message : '',
    /node .* has stopped/,
  );
  await session.until(({ actions }) => actions.some((one) => one.type === 'SendLlmRequest'));
  await session.send({ type: 'CancelTurn' });
  await session.rest();
  const entries = await entriesOf(runtime, id);
  const failures = entries.filter(({ event: one }) => one.type === 'LlmFailed').length;
  assert.ok(linesWith('model-calls', 'session slow') <= failures + 1);
});

const later = (what: string, fits: () => boolean): Promise<boolean> => until(what, fits);

test('a node that stood still changes nothing of a session that another one took meanwhile', async () => {
  const { id, home, session } = await begin();
  await session.say('session held and moved');
  await later('it runs', () => linesWith('commands', 'session held and moved') === 1);
  home.signal('SIGSTOP');
  const other = nodes.find((node) => node !== home);
  await runtime.move(id, other?.name ?? '');
  await runtime.open(id);
  await session.say('session of the other node');
  await session.until(
    ({ event: one, state }) => one.type === 'LlmCompleted' && state.name === 'WaitingForUserInput',
  );
  const before = await entriesOf(runtime, id);
  home.signal('SIGCONT');
  writeFileSync(path.join(folder, 'release'), '');
  await later('it ends', () => linesWith('commands-ended', 'session held and moved') === 1);
  await until('the engine has nothing left', async () => (await cluster.pending()).length === 0);
  assert.deepEqual(await entriesOf(runtime, id), before);
  assert.equal(linesWith('commands', 'session held and moved'), 1);
  rmSync(path.join(folder, 'release'));
});

test('a command that ends while the engine is away is not run again when it is back', async () => {
  const { id, home, session } = await begin();
  await session.say('session held here');
  await later('it runs', () => linesWith('commands', 'session held here') === 1);
  await engine.kill();
  writeFileSync(path.join(folder, 'release'), '');
  await later('it ends', () => linesWith('commands-ended', 'session held here') === 1);
  // The node lets go of sessions that rest meanwhile. This one does not rest: the engine has not its result yet.
  const until = performance.now() + 1_000;
  while (performance.now() < until && (await home.figures()).workers > 0);
  await engine.restart();
  await session.rest();
  const outcomes = (await entriesOf(runtime, id)).flatMap(({ event: one }) =>
    one.type === 'ToolCompleted' ? [one.outcome.status] : [],
  );
  assert.deepEqual([outcomes, linesWith('commands', 'session held here')], [['ok'], 1]);
});

test('a store that takes no text is no fault of the request, and a later one succeeds', async () => {
  const blobs = path.join(folder, '..', 'blobs');
  renameSync(blobs, `${blobs}-aside`);
  writeFileSync(blobs, '');
  const created = { settings, instructions: 'Be very brief.' };
  await assert.rejects(runtime.create(created), { status: 500, message: /ENOTDIR/ });
  rmSync(blobs);
  renameSync(`${blobs}-aside`, blobs);
  await runtime.create(created);
});

test('sessions survive random kills: none is lost or stuck, nothing is repeated in silence', async () => {
  const figures = await runCrowd(cluster, {
    turns: 2,
    atOnce: 6,
    faults: { nodeKilled: 3, engineKilled: 1 },
    seed: SEED,
  });
  assert.deepEqual(wrongIn(figures), [], JSON.stringify(figures));
  // A call that decides anew in its second attempt is refused by the engine, for ever.
  assert.deepEqual(
    (await cluster.pending()).filter((one) => one.includes('Journal mismatch')),
    [],
  );
});

test('without the server of the engine its tests fail with the command that installs it', () => {
  assert.throws(
    () => serverProgram('plan9-mips'),
    /npm install --no-save @restatedev\/restate-server-plan9-mips/,
  );
});
