import { setTimeout as pause } from 'node:timers/promises';
import { agentMachine, type Entry } from 'pawl/engine';
import { attend, storySettings } from '../../test/contract/play-story.js';
import { event } from '../../test/contract/story.js';
import { SessionStore } from '../src/session/session-store.js';
import { type Cluster, startCluster } from '../test/cluster/cluster.js';

/** `npm run bench`: latencies and sizes of sessions on the engine, with three nodes on this computer. Prints figures. */

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

/** An event that changes nothing but the journal, one after the other. */
const measureEvents = async (cluster: Cluster): Promise<void> => {
  const session = await begin(cluster);
  const each: number[] = [];
  for (let index = 0; index < 200; index++)
    each.push(await timed(() => session.send({ type: 'CancelTurn' })));
  show('an event, from send to its answer', each);
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
const measureColdOpen = async ({ runtime, engine, folder }: Cluster, count: number): Promise<void> => {
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

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(0)} MB`;

const measureIdle = async (cluster: Cluster, count: number): Promise<void> => {
  const figures = async (): Promise<string> => {
    const all = await Promise.all(cluster.nodes.map((node) => node.figures()));
    return all
      .map((one) => `${megabytes(one.heapBytes)} of heap, ${one.states} states, ${one.workers} workers`)
      .join('; ');
  };
  console.log(`nodes before ${count} sessions: ${await figures()}`);
  for (let made = 0; made < count; made += 20)
    await Promise.all(
      Array.from({ length: 20 }, async (_, index) => {
        const session = await begin(cluster);
        await session.ask(`session ${made + index} turn 1`);
      }),
    );
  console.log(`right after one turn each: ${await figures()}`);
  await cluster.runtime.disconnect();
  await pause(100_000);
  console.log(`100 s later: ${await figures()}`);
};

const [events = 10_000, sessions = 1_000] = process.argv.slice(2).map(Number);
const cluster = await startCluster(3, 20);
try {
  await measureEvents(cluster);
  await measureInterrupts(cluster);
  await measureColdOpen(cluster, events);
  if (sessions > 0) await measureIdle(cluster, sessions);
} finally {
  await cluster.stop();
}
