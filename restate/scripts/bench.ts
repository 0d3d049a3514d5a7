import { setTimeout as pause } from 'node:timers/promises';
import { agentMachine, type Entry } from 'pawl/engine';
import { attend, storySettings } from '../../test/contract/play-story.js';
import { event } from '../../test/contract/story.js';
import { SessionStore } from '../src/session-store.js';
import { type Cluster, startCluster } from '../test/cluster/cluster.js';
import { startFloor } from './engine-floor.js';
import { measureLists } from './list-costs.js';

/**
 * `npm run bench`: latencies and sizes of sessions on the engine, with three nodes on this computer. `npm run bench -- lists [COUNT [files|engine]]`:
 * the cost of create, list and close. Prints figures.
 */

const median = (values: readonly number[]): number =>
  values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN;
const highest = (values: readonly number[]): number =>
  values.toSorted((one, other) => one - other)[Math.floor(values.length * 0.9)] ?? Number.NaN;
const show = (name: string, values: readonly number[]): void =>
  console.log(
    `${name}: median ${median(values).toFixed(1)} ms, 90 % under ${highest(values).toFixed(1)} ms, ${values.length} times`,
  );

const begin = async ({ runtime, folder }: Cluster) => {
  const settings = storySettings(folder, { model: 'scripted/cluster' });
  const id = await runtime.create({ settings, instructions: 'Be brief.' });
  return attend(runtime, id);
};

const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
};

/**
 * Events that change nothing but the journal, one after the other; between them the engine's own floor, so that both are
 * measured under the same load.
 */
const measureEvents = async (cluster: Cluster): Promise<void> => {
  const floor = await startFloor(cluster.engine);
  const session = await begin(cluster);
  const [floors, events]: [number[], number[]] = [[], []];
  for (let index = 0; index < 250; index++) {
    const [one, other] = [
      await timed(() => floor.call(index)),
      await timed(() => session.send({ type: 'CancelTurn' })),
    ];
    if (index < 50) continue; // programs become fast with use
    floors.push(one);
    events.push(other);
  }
  floor.stop();
  show('the engine by itself: one call that stores a value', floors);
  show('an event, from send to its answer', events);
  const starts: number[] = [];
  for (let index = 0; index < 40; index++) {
    starts.push(await timed(() => session.say(`session short ${index}`)));
    await session.rest();
  }
  show('an input that starts a model call, from send to its answer', starts.slice(1));
};

const measureInterrupts = async (cluster: Cluster): Promise<void> => {
  const session = await begin(cluster);
  const [ofModel, ofCommand, ended]: [number[], number[], number[]] = [[], [], []];
  for (let index = 0; index < 20; index++) {
    const from = session.seen.length;
    const later = (fits: Parameters<typeof session.until>[0]) => async (): Promise<void> => {
      while (!session.seen.slice(from).some(fits)) await pause(2);
    };
    const isModel = index % 2 === 0;
    await session.say(isModel ? `session slow ${index}` : `session long ${index}`);
    await later(event(isModel ? 'TextDelta' : 'ToolStarted'))();
    if (!isModel) await pause(100);
    const startedAt = performance.now();
    (isModel ? ofModel : ofCommand).push(await timed(() => session.send({ type: 'CancelTurn' })));
    if (!isModel) {
      await later(event('ToolCompleted'))();
      ended.push(performance.now() - startedAt);
    }
    await session.rest();
  }
  show('an interrupt while the model answers, until it is applied', ofModel);
  show('an interrupt while a command runs, until it is applied', ofCommand);
  show('the same, until the command has ended and the journal has its outcome', ended);
};

/** A long session, made by events that the machine accepts at rest. */
const measureColdOpen = async (
  { runtime, engine, folder }: Cluster,
  count: number,
): Promise<void> => {
  const settings = storySettings(folder, { model: 'scripted/cluster' });
  const id = await runtime.create({ settings, instructions: 'Be brief.' });
  const patch = { maxRetries: 3 };
  const wave = Array.from({ length: 500 }, () => ({ type: 'SettingsChanged', patch }) as const);
  for (let sent = 0; sent < count; sent += wave.length)
    await Promise.all(wave.map((input) => runtime.send(id, input)));
  const cold = new SessionStore(engine.ingressUrl);
  const took: number[] = [];
  for (let index = 0; index < 3; index++) {
    took.push(
      await timed(async () => {
        const header = await cold.header(id);
        let state = agentMachine.initialState(header.settings);
        let last: Entry | null = null;
        for await (const entry of cold.entries(id, 1)) {
          state = agentMachine.step(state, entry.event).state;
          last = entry;
        }
        if (last === null || last.seq < count)
          throw new Error(`only ${last?.seq} of ${count} entries were read`);
      }),
    );
  }
  show(`a session of ${count} events, read and folded`, took);
};

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

/** Sessions that have had a turn and rest, watched by nobody. */
const openSession = async ({ runtime, folder }: Cluster, number: number): Promise<string> => {
  const settings = storySettings(folder, { model: 'scripted/cluster' });
  const id = await runtime.create({ settings, instructions: 'Be brief.' });
  await runtime.send(id, { type: 'UserInput', text: `session short ${number}`, mode: 'steer' });
  while ((await runtime.state(id)).state.name !== 'WaitingForUserInput') await pause(100);
  return id;
};

const measureIdle = async (cluster: Cluster, count: number): Promise<void> => {
  const figures = () => Promise.all(cluster.nodes.map((node) => node.figures()));
  const print = (when: string, all: Awaited<ReturnType<typeof figures>>): void => {
    const texts = all.map(
      ({ heapBytes, rssBytes, states, workers }) =>
        `${megabytes(heapBytes)} of heap (${megabytes(rssBytes)} in all), ${states} states, ${workers} workers`,
    );
    console.log(`${when}: ${texts.join('; ')}`);
  };
  const startedAt = performance.now();
  const ids = await Promise.all(
    Array.from({ length: 20 }, (_, index) => openSession(cluster, -index)),
  ); // they load what is needed
  const isEmpty = async (): Promise<boolean> =>
    (await figures()).every(({ states, workers }) => states + workers === 0);
  while (!(await isEmpty())) await pause(1_000);
  const before = await figures();
  print(`nodes before ${count} sessions`, before);
  for (let made = 0; made < count; made += 20)
    ids.push(
      ...(await Promise.all(
        Array.from({ length: 20 }, (_, index) => openSession(cluster, made + index)),
      )),
    );
  print('right after one turn each', await figures());
  const restsAt = performance.now();
  while (!(await isEmpty())) await pause(1_000);
  const after = await figures();
  print(`${((performance.now() - restsAt) / 1000).toFixed(0)} s later`, after);
  const grown = after.reduce(
    (sum, { heapBytes }, index) => sum + heapBytes - (before[index]?.heapBytes ?? 0),
    0,
  );
  console.log(`heap of all nodes for one session that rests: ${(grown / count).toFixed(0)} bytes`);
  console.log(`measured in ${((performance.now() - startedAt) / 1000).toFixed(0)} s`);
  const [first = ''] = ids;
  console.log(
    `the first session answers after ${(await timed(() => cluster.runtime.state(first))).toFixed(0)} ms`,
  );
};

const IDLE_MS = 5_000;

const measureCluster = async (events = 10_000, sessions = 1_000): Promise<void> => {
  const cluster = await startCluster(3, 20, IDLE_MS);
  try {
    await measureEvents(cluster);
    await measureInterrupts(cluster);
    if (events > 0) await measureColdOpen(cluster, events);
    if (sessions > 0) await measureIdle(cluster, sessions);
  } finally {
    await cluster.stop();
  }
};

const [first, ...others] = process.argv.slice(2);
if (first === 'lists') await measureLists([100, Number(others[0] ?? 20_000)], others[1]);
else await measureCluster(...process.argv.slice(2).map(Number));
