import { defaultSettings, type Settings } from '../../packages/agent/src/machine/settings.js';
import type { State } from '../../packages/agent/src/machine/state.js';
import { scriptedModel } from '../../packages/agent/src/models/scripted-model.js';
import { presetRules } from '../../packages/agent/src/policy/presets.js';
import type { Entry } from '../../packages/agent/src/ports/journal.js';
import type { Runtime, Stepped } from '../../packages/agent/src/ports/session.js';
import { contractTools } from './contract-tools.js';
import type { MakeRuntime } from './runtime-under-test.js';
import type { Story, StorySession } from './story.js';

/** Plays a story over a runtime. */

export const MODEL_ID = 'scripted/contract';
/** A story has up to a hundred rounds, and computers that run tests are busy. */
const DEADLINE_MS = 60_000;

export const storySettings = (workspace: string, own: Partial<Settings> = {}): Settings => ({
  ...defaultSettings,
  emptyRetries: 0,
  model: MODEL_ID,
  workspace,
  hooks: 'never',
  rules: presetRules.auto,
  retrySchedule: { kind: 'list', delaysMs: [5] },
  graceMs: 1_000,
  ...own,
});

type Waiter = {
  readonly fits: (stepped: Stepped) => boolean;
  resolve(stepped: Stepped): void;
  reject(error: Error): void;
};

/** The steps of a session, for those who wait for one. */
class SeenSteps {
  readonly all: Stepped[] = [];
  readonly #waiters = new Set<Waiter>();

  see(stepped: Stepped): void {
    this.all.push(stepped);
    for (const waiter of this.#waiters) if (waiter.fits(stepped)) waiter.resolve(stepped);
  }

  async next(what: string, fits: Waiter['fits']): Promise<Stepped> {
    let timer: NodeJS.Timeout | undefined;
    let waiter: Waiter | undefined;
    try {
      return await new Promise((resolve, reject) => {
        waiter = { fits, resolve, reject };
        this.#waiters.add(waiter);
        const types = (): string => this.all.map(({ event }) => event.type).join(' ');
        timer = setTimeout(
          () => reject(new Error(`${what} did not come after: ${types()}`)),
          DEADLINE_MS,
        );
      });
    } finally {
      clearTimeout(timer);
      if (waiter !== undefined) this.#waiters.delete(waiter);
    }
  }
}

const waits = ({ name }: State): boolean =>
  name === 'WaitingForUserInput' || name === 'ShuttingDown';

/** The entries up to the last one that is known now. */
export const entriesOf = async (runtime: Runtime, id: string): Promise<readonly Entry[]> => {
  const { seq } = await runtime.state(id);
  const entries: Entry[] = [];
  if (seq === 0) return entries;
  for await (const entry of runtime.read(id)) {
    entries.push(entry);
    if (entry.seq >= seq) break;
  }
  return entries;
};

export const attend = (
  runtime: Runtime,
  id: string,
): StorySession & { readonly seen: readonly Stepped[]; leave(): void } => {
  const seen = new SeenSteps();
  const leave = runtime.watch(id, (stepped) => seen.see(stepped));
  const rest = async (): Promise<State> => {
    const coming = seen.next('the end of the turn', ({ state }) => waits(state));
    coming.catch(() => undefined); // the session may rest already
    const { seq, state } = await runtime.state(id);
    if (waits(state)) return state;
    // an engine may answer with a state from before a step that was seen already
    const last = seen.all.at(-1);
    return last !== undefined && (last.seq ?? 0) > seq && waits(last.state)
      ? last.state
      : (await coming).state;
  };
  const session: StorySession = {
    id,
    runtime,
    rest,
    send: (input) => runtime.send(id, input),
    say: (text, mode = 'steer') => runtime.send(id, { type: 'UserInput', text, mode }),
    ask: async (text) => {
      await session.say(text);
      return rest();
    },
    until: async (fits) => seen.all.find(fits) ?? (await seen.next('the step', fits)),
    entries: () => entriesOf(runtime, id),
  };
  return { ...session, seen: seen.all, leave };
};

export type Played = {
  readonly entries: readonly Entry[];
  /** The steps that a watcher saw from the session's creation on. */
  readonly seen: readonly Stepped[];
  readonly last: { readonly seq: number; readonly state: State };
};

/** A model with a price: of a free one the runtime knows what a broken reply costs. */
const PRICES = { input: 1, output: 2, cacheRead: 1, cacheWrite: 1 };

/** Plays the story in a session of its own, closes it, and returns what its journal holds. */
export const playStory = async (
  story: Story,
  make: MakeRuntime,
  workspace: string,
): Promise<Played> => {
  const { replies, facts, hooks = null, settings, stoppingPolicy = null } = story;
  const userHooks = story.userHooks?.() ?? null;
  const script = { replies, facts: { prices: PRICES, ...facts } };
  const model = scriptedModel(script, { id: MODEL_ID });
  const { runtime, stop } = await make({
    model,
    tools: contractTools,
    hooks,
    userHooks,
    stoppingPolicy,
  });
  try {
    const created = { settings: storySettings(workspace, settings), instructions: 'Be brief.' };
    const id = await runtime.create(created);
    const session = attend(runtime, id);
    await story.play(session);
    const { state } = await runtime.state(id);
    if (state.name !== 'ShuttingDown') await runtime.close(id);
    const entries = await entriesOf(runtime, id);
    const { seq, state: end } = await runtime.state(id);
    return { entries, seen: session.seen, last: { seq, state: end } };
  } finally {
    await stop();
  }
};
