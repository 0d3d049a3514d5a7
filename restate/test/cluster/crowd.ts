import { readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { agentMachine, type Entry, type Settings } from 'pawl/engine';
import { pick, seeded } from '../../../packages/agent/test/shell/hostile/random.js';
import { attend, entriesOf } from '../../../test/contract/play-story.js';
import { startPatience, until } from '../../../test/until.js';
import { type Cluster, type ClusterNode, clusterSettings } from './cluster.js';

/** Sessions, one after the other and several at once, until all faults have come over nodes and the engine; and what became of them. */

export type CrowdOptions = {
  readonly turns: number;
  readonly atOnce: number;
  /** How many of each kind. */
  readonly faults: Readonly<Partial<Record<Fault, number>>>;
  /** Chooses the order, the moments and the nodes of the faults. */
  readonly seed: number;
  /** Told how far it is. */
  progress?(text: string): void;
};

export type CrowdFigures = {
  readonly sessions: number;
  readonly finished: number;
  /** Sessions that did not come to rest, or whose state can't be read. */
  readonly stuck: readonly string[];
  /** Inputs that `send` has answered, and that are not in the journal at the number that it gave. */
  readonly inputsLost: readonly string[];
  /** Inputs that were sent again, since the answer was a refusal or none. */
  readonly refusals: number;
  /** Sessions that another node took over while theirs stood still. */
  readonly moved: number;
  /** Nodes that ended by themselves. */
  readonly nodesEnded: number;
  readonly events: number;
  /** Commands that began. */
  readonly commands: number;
  /** Texts for which a command began more than once. */
  readonly commandsTwice: readonly string[];
  /** What the journal says of calls, by the status of their outcome. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** Calls of which the journal says what their command did not do, or nothing; turns without an answer and without a failure. */
  readonly silent: readonly string[];
  readonly modelCalls: number;
  /** Texts for which more model calls began than the journal asked for. */
  readonly silentCalls: readonly string[];
  /** Model calls that were lost, which the journal says. */
  readonly repliesLost: number;
  readonly seconds: number;
};

/** What must be empty. */
export const wrongIn = (figures: CrowdFigures): readonly string[] => [
  ...figures.stuck,
  ...figures.inputsLost.map((text) => `lost: ${text}`),
  ...figures.commandsTwice.map((text) => `twice: ${text}`),
  ...figures.silentCalls.map((text) => `called in silence: ${text}`),
  ...figures.silent,
];

const PATIENCE_MS = 400_000;

/** Fails if the work takes too long while the machine has time for it. */
const within = async <T>(work: Promise<T>, what: string): Promise<T> => {
  const isOver = startPatience(PATIENCE_MS);
  let isEnded = false;
  const ended = work.finally(() => {
    isEnded = true;
  });
  ended.catch(() => undefined); // it is returned
  while (!isEnded && !isOver()) await pause(50);
  if (!isEnded) throw new Error(`${what} took longer than ${PATIENCE_MS} ms`);
  return ended;
};

/** Resolves when the session rests. What its watcher sees may be late, so the state is asked for now and then. */
const rest = async (session: ReturnType<typeof attend>): Promise<void> => {
  for (;;) {
    const { state } = await session.runtime.state(session.id);
    if (state.name === 'WaitingForUserInput') return;
    const seen = session.seen.length;
    const until = performance.now() + 3_000;
    while (performance.now() < until) {
      if (
        session.seen
          .slice(seen)
          .some((one) => one.seq !== null && one.state.name === 'WaitingForUserInput')
      )
        break;
      await pause(20);
    }
  }
};

type SentInput = { readonly seq: number; readonly text: string };
type Played = { readonly number: number; readonly id: string; readonly sent: readonly SentInput[] };
type Ended = Played | { readonly number: number; readonly why: string };

/** What happened meanwhile. */
class Progress {
  isOver = false;
  sessions = 0;
  turns = 0;
  refusals = 0;
  moved = 0;
  nodesEnded = 0;
  /** Sessions that are being played. */
  readonly playing = new Set<string>();

  /** Asks again when it is refused, as a client does; what it asks for counts once. */
  async insist<T>(ask: () => Promise<T>): Promise<T> {
    const isOver = startPatience(PATIENCE_MS);
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        if (isOver()) throw error;
        this.refusals += 1;
        await pause(200);
      }
    }
  }
}

const playSession = async (
  { runtime, folder }: Cluster,
  number: number,
  turns: number,
  done: Progress,
): Promise<Played> => {
  const created = { settings: clusterSettings(folder), instructions: `Be brief, ${number}.` };
  const id = await done.insist(() => runtime.create(created));
  const session = attend(runtime, id);
  const sent: SentInput[] = [];
  done.playing.add(id);
  for (let turn = 1; turn <= turns; turn++) {
    const text = `session ${number} turn ${turn}${turn % 2 === 1 ? ' shell' : ''}`;
    const input = { type: 'UserInput', text, mode: 'steer', clientRequestId: text } as const;
    sent.push({ ...(await done.insist(() => session.send(input))), text });
    await done.insist(() => rest(session));
    done.turns += 1;
  }
  done.playing.delete(id);
  session.leave();
  return { number, id, sent };
};

const playAll = async (
  cluster: Cluster,
  { turns, atOnce, progress }: CrowdOptions,
  done: Progress,
): Promise<readonly Ended[]> => {
  const ended: Ended[] = [];
  const play = async (): Promise<void> => {
    while (!done.isOver) {
      done.sessions += 1;
      const number = done.sessions;
      const playing = playSession(cluster, number, turns, done);
      try {
        ended.push(await within(playing, `session ${number}`));
      } catch (error) {
        ended.push({ number, why: error instanceof Error ? error.message : String(error) });
        progress?.(`session ${number}: ${String(error)}`);
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, play));
  return ended;
};

/** Longer than the engine takes to notice that a node answers nothing. */
const FROZEN_MS = 25_000;
const FULL_MS = 4_000;

/** Another node takes one session of a node that stands still, as an operator may ask for. */
const takeFrom = async ({ runtime, nodes }: Cluster, from: ClusterNode, done: Progress) => {
  const other = nodes.find((node) => node !== from);
  for (const id of done.playing) {
    if (other === undefined || (await runtime.whereIs(id)).node !== from.name) continue;
    await done.insist(() => runtime.move(id, other.name));
    await done.insist(() => runtime.open(id));
    done.moved += 1;
    return;
  }
};

type FaultParts = {
  readonly cluster: Cluster;
  readonly node: ClusterNode;
  readonly done: Progress;
  readonly random: () => number;
};

const fillFor = async ({ cluster }: FaultParts, disk: string): Promise<void> => {
  const free = cluster.fill(disk);
  await pause(FULL_MS);
  free();
};

const restartEngine = async ({ cluster: { engine } }: FaultParts): Promise<void> => {
  await engine.kill();
  await engine.restart();
};

const causeFault = {
  async nodeKilled({ node, random }: FaultParts) {
    await node.kill();
    await pause(random() * 500);
    await node.start();
  },
  engineKilled: restartEngine,
  async nodeFrozen({ cluster, node, done }: FaultParts) {
    node.signal('SIGSTOP');
    await Promise.all([pause(FROZEN_MS), takeFrom(cluster, node, done)]);
    node.signal('SIGCONT');
  },
  async engineFrozen({ cluster: { engine } }: FaultParts) {
    process.kill(engine.pid, 'SIGSTOP');
    await pause(FROZEN_MS);
    process.kill(engine.pid, 'SIGCONT');
  },
  nodeFull: (parts: FaultParts) => fillFor(parts, parts.node.name),
  blobsFull: (parts: FaultParts) => fillFor(parts, 'blobs'),
  async engineFull({ cluster: { fill, engine } }: FaultParts) {
    engine.takeLog();
    const free = fill('engine');
    await until('the engine notices', () => engine.takeLog().includes('No space left')).finally(
      free,
    );
  },
} as const;

/** A process ends by SIGKILL, stands still, or has no space on its disk. */
export type Fault = keyof typeof causeFault;

const causeAll = async (
  cluster: Cluster,
  { faults, seed, progress }: CrowdOptions,
  done: Progress,
): Promise<void> => {
  const random = seeded(seed);
  const planned = (Object.entries(faults) as [Fault, number][]).flatMap(([fault, count]) =>
    Array.from({ length: count }, () => ({ fault, rank: random() })),
  );
  for (const { fault } of planned.sort((one, other) => one.rank - other.rank)) {
    // some turns end between two faults, however busy the machine is
    const next = done.turns + 4 * random();
    while (done.turns < next) await pause(20);
    await pause(1_000 * random());
    const node = pick(cluster.nodes, random);
    progress?.(`${fault} ${node.name}, after ${done.turns} turns`);
    await causeFault[fault]({ cluster, node, done, random });
    for (const ended of cluster.nodes.filter(({ isRunning }) => !isRunning)) {
      done.nodesEnded += 1;
      await ended.start();
    }
  }
};

type LineCounts = ReadonlyMap<string, number>;

const countLines = (file: string): LineCounts => {
  const counts = new Map<string, number>();
  for (const line of readFileSync(file, 'utf8').split('\n'))
    if (line !== '') counts.set(line, (counts.get(line) ?? 0) + 1);
  return counts;
};

/** How many model calls the journal asked for, by the text of the turn and the purpose of the call. */
const requestsIn = (settings: Settings, entries: readonly Entry[]): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>();
  let state = agentMachine.initialState(settings);
  let text = '';
  for (const { event } of entries) {
    if (event.type === 'UserInput') text = event.text;
    const stepped = agentMachine.step(state, event);
    state = stepped.state;
    for (const action of stepped.actions) {
      if (action.type !== 'SendLlmRequest') continue;
      const key = `${text} ${action.purpose === 'user' ? 'call' : 'answer'}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
  }
  return counts;
};

/** What the journal tells of the calls and turns of a session, beside what its commands noted. */
const silentIn = (
  entries: readonly Entry[],
  began: ReadonlyMap<string, number>,
  ended: ReadonlyMap<string, number>,
): readonly string[] => {
  const wrong: string[] = [];
  const calls = new Map<string, string>();
  let [turn, isHeard] = ['', true];
  for (const { event } of [...entries, { event: { type: 'End' } } as const]) {
    if (event.type === 'UserInput' || event.type === 'End') {
      if (!isHeard) wrong.push(`without an end: ${turn}`);
      if (event.type === 'UserInput') [turn, isHeard] = [event.text, false];
    }
    if (event.type === 'LlmCompleted')
      for (const { callId } of event.calls) calls.set(callId, turn);
    const text = event.type === 'ToolCompleted' ? calls.get(event.callId) : undefined;
    // an outcome that comes after the end of its session is in the journal, and changes nothing
    if (event.type === 'ToolCompleted' && text !== undefined) {
      const { status } = event.outcome;
      calls.delete(event.callId);
      const noted = [began.get(text) ?? 0, ended.get(text) ?? 0].join();
      const isRun = status !== 'failed' || !event.outcome.text.includes('could not be begun');
      if (status === 'ok' ? noted !== '1,1' : !isRun && noted !== '0,0')
        wrong.push(`${status} of ${text}, which noted ${noted}: ${event.outcome.text}`);
    }
    if (event.type === 'ShutdownRequested') calls.clear(); // the machine says that they are unknown
    isHeard ||=
      event.type === 'LlmFailed' ||
      event.type === 'ShutdownRequested' ||
      (event.type === 'LlmCompleted' && event.stopReason === 'end');
  }
  for (const text of calls.values()) wrong.push(`a call without an outcome: ${text}`);
  return wrong;
};

export const runCrowd = async (cluster: Cluster, options: CrowdOptions): Promise<CrowdFigures> => {
  const startedAt = performance.now();
  const done = new Progress();
  const causing = causeAll(cluster, options, done).finally(() => {
    done.isOver = true;
  });
  const [ended] = await Promise.all([playAll(cluster, options, done), causing]);
  const stuck = ended.flatMap((one) => ('why' in one ? [`${one.number}: ${one.why}`] : []));
  const [modelCalls, commands, commandsEnded] = ['model-calls', 'commands', 'commands-ended'].map(
    (name) => countLines(path.join(cluster.folder, name)),
  ) as [LineCounts, LineCounts, LineCounts]; // one for each name
  const [silentCalls, inputsLost, silent]: [string[], string[], string[]] = [[], [], []];
  const outcomes: Record<string, number> = {};
  let [events, repliesLost, finished] = [0, 0, 0];
  for (const one of ended) {
    if ('why' in one) continue;
    const entries = await entriesOf(cluster.runtime, one.id);
    const { header } = await cluster.runtime.state(one.id);
    events += entries.length;
    const texts = new Map(
      entries.map(({ seq, event }) => [seq, event.type === 'UserInput' ? event.text : '']),
    );
    for (const { seq, text } of one.sent) if (texts.get(seq) !== text) inputsLost.push(text);
    const inputs = [...texts.values()].filter((text) => text !== '').length;
    if (inputs === options.turns) finished += 1;
    else stuck.push(`${one.number}: ${inputs} inputs in the journal`);
    for (const { event } of entries) {
      if (event.type === 'ToolCompleted')
        outcomes[event.outcome.status] = (outcomes[event.outcome.status] ?? 0) + 1;
      if (event.type === 'ToolCompleted' && event.outcome.status !== 'ok')
        options.progress?.(`${event.outcome.status}: ${event.outcome.text}`);
      if (event.type === 'LlmFailed' && event.error.kind === 'unreachable') repliesLost += 1;
    }
    silent.push(...silentIn(entries, commands, commandsEnded));
    const requests = requestsIn(header.settings, entries);
    for (const [key, count] of modelCalls)
      if (key.startsWith(`session ${one.number} `) && count > (requests.get(key) ?? 0))
        silentCalls.push(key);
  }
  return {
    sessions: ended.length,
    finished,
    stuck,
    inputsLost,
    refusals: done.refusals,
    moved: done.moved,
    nodesEnded: done.nodesEnded,
    events,
    commands: commands.size,
    commandsTwice: [...commands].filter(([, count]) => count > 1).map(([text]) => text),
    outcomes,
    silent,
    modelCalls: [...modelCalls.values()].reduce((sum, count) => sum + count, 0),
    silentCalls,
    repliesLost,
    seconds: (performance.now() - startedAt) / 1000,
  };
};
