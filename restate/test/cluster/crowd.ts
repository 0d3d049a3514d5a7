import { readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { agentMachine, type Entry, type Settings } from 'pawl/engine';
import { attend, entriesOf, storySettings } from '../../../test/contract/play-story.js';
import type { Cluster } from './cluster.js';

/** Many sessions at once, while nodes and the engine are killed; and what became of them. */

export type CrowdOptions = {
  readonly sessions: number;
  readonly turns: number;
  readonly atOnce: number;
  /** Kills, one after the other, spread over the whole run by how many turns have ended. */
  readonly kills: number;
  /** What was killed last runs for so long before the next kill, at the mean. */
  readonly everyMs: number;
  /** Each n-th kill is one of the engine. */
  readonly engineEvery: number;
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
  readonly nodeKills: number;
  readonly engineKills: number;
  readonly events: number;
  /** Texts for which a command began more than once. */
  readonly commandsTwice: readonly string[];
  /** Calls that the journal reports as lost. */
  readonly commandsLost: number;
  readonly modelCalls: number;
  /** Texts for which more model calls began than the journal asked for. */
  readonly silentCalls: readonly string[];
  /** Model calls that were lost, which the journal says. */
  readonly repliesLost: number;
  readonly seconds: number;
};

const PATIENCE_MS = 400_000;

const within = async <T>(ms: number, work: Promise<T>, what: string): Promise<T> => {
  const ending = new AbortController();
  const late = pause(ms, null, { signal: ending.signal }).then(() => {
    throw new Error(`${what} took longer than ${ms} ms`);
  });
  late.catch(() => undefined); // aborted below
  try {
    return await Promise.race([work, late]);
  } finally {
    ending.abort();
  }
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

const settingsIn = (folder: string): Settings =>
  storySettings(folder, {
    model: 'scripted/cluster',
    maxRetries: 50,
    retrySchedule: { kind: 'list', delaysMs: [100, 200, 400, 800] },
  });

type SentInput = { readonly seq: number; readonly text: string };
type Played = { readonly number: number; readonly id: string; readonly sent: readonly SentInput[] };
type Ended = Played | { readonly number: number; readonly why: string };

/** How many turns have ended, of all. */
class Progress {
  ended = 0;
  readonly #turns: number;

  constructor({ sessions, turns }: CrowdOptions) {
    this.#turns = sessions * turns;
  }

  get share(): number {
    return this.ended / this.#turns;
  }
}

const playSession = async (
  { runtime, folder }: Cluster,
  number: number,
  turns: number,
  done: Progress,
): Promise<Played> => {
  const id = await runtime.create({ settings: settingsIn(folder), instructions: 'Be brief.' });
  const session = attend(runtime, id);
  const sent: SentInput[] = [];
  for (let turn = 1; turn <= turns; turn++) {
    const text = `session ${number} turn ${turn}`;
    sent.push({ ...(await session.say(text)), text });
    await rest(session);
    done.ended += 1;
  }
  return { number, id, sent };
};

const playAll = async (
  cluster: Cluster,
  { sessions, turns, atOnce, progress }: CrowdOptions,
  done: Progress,
): Promise<readonly Ended[]> => {
  const ended: Ended[] = [];
  const numbers = Array.from({ length: sessions }, (_, index) => index + 1)[Symbol.iterator]();
  const play = async (): Promise<void> => {
    for (const number of numbers) {
      const playing = playSession(cluster, number, turns, done);
      try {
        ended.push(await within(PATIENCE_MS, playing, `session ${number}`));
        if (ended.length % 10 === 0)
          progress?.(`${ended.length} of ${sessions} sessions have ended`);
      } catch (error) {
        ended.push({ number, why: error instanceof Error ? error.message : String(error) });
        progress?.(`session ${number}: ${String(error)}`);
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, play));
  return ended;
};

const killAll = async (
  { engine, nodes }: Cluster,
  { kills, everyMs, engineEvery, progress }: CrowdOptions,
  done: Progress,
  signal: AbortSignal,
): Promise<{ readonly nodeKills: number; readonly engineKills: number }> => {
  let [nodeKills, engineKills] = [0, 0];
  for (let kill = 1; kill <= kills && !signal.aborted; kill++) {
    await pause(everyMs * (0.5 + Math.random()));
    const share = (kill - Math.random()) / (kills + 1);
    while (done.share < share && !signal.aborted) await pause(20);
    const when = `kill ${kill}, after ${(100 * done.share).toFixed(0)} % of the turns`;
    if (kill % engineEvery === 0) {
      await engine.kill();
      engineKills += 1;
      await engine.restart();
      progress?.(`${when}: the engine`);
    } else {
      const node = nodes[Math.floor(Math.random() * nodes.length)];
      await node?.kill();
      nodeKills += 1;
      await pause(Math.random() * 500);
      await node?.start();
      progress?.(`${when}: ${node?.name}`);
    }
  }
  return { nodeKills, engineKills };
};

const countLines = (file: string): ReadonlyMap<string, number> => {
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

export const runCrowd = async (cluster: Cluster, options: CrowdOptions): Promise<CrowdFigures> => {
  const startedAt = performance.now();
  const progress = new Progress(options);
  const over = new AbortController();
  const killing = killAll(cluster, options, progress, over.signal);
  const ended = await playAll(cluster, options, progress);
  over.abort();
  const { nodeKills, engineKills } = await killing;
  const stuck = ended.flatMap((one) => ('why' in one ? [`${one.number}: ${one.why}`] : []));
  const modelCalls = countLines(path.join(cluster.folder, 'model-calls'));
  const commands = countLines(path.join(cluster.folder, 'commands'));
  const [silentCalls, inputsLost]: [string[], string[]] = [[], []];
  let [events, commandsLost, repliesLost, finished] = [0, 0, 0, 0];
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
      if (event.type === 'ToolCompleted' && event.outcome.status === 'lost') commandsLost += 1;
      if (event.type === 'LlmFailed' && event.error.kind === 'unreachable') repliesLost += 1;
    }
    const requests = requestsIn(header.settings, entries);
    if (
      [...commands].some(([text, count]) => count > 1 && text.startsWith(`session ${one.number} `))
    )
      options.progress?.(
        `a command ran twice in: ${entries.map(({ event }) => JSON.stringify(event)).join(' ')}`,
      );
    for (const [key, count] of modelCalls)
      if (key.startsWith(`session ${one.number} `) && count > (requests.get(key) ?? 0))
        silentCalls.push(key);
  }
  return {
    sessions: options.sessions,
    finished,
    stuck,
    inputsLost,
    nodeKills,
    engineKills,
    events,
    commandsTwice: [...commands].filter(([, count]) => count > 1).map(([text]) => text),
    commandsLost,
    modelCalls: [...modelCalls.values()].reduce((sum, count) => sum + count, 0),
    silentCalls,
    repliesLost,
    seconds: (performance.now() - startedAt) / 1000,
  };
};
