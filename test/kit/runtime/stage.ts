import { memoryJournals } from '../../../packages/agent/src/journal/memory-store.js';
import type { StopReason } from '../../../packages/agent/src/machine/event.js';
import type { Message } from '../../../packages/agent/src/machine/message.js';
import { defaultSettings, type Settings } from '../../../packages/agent/src/machine/settings.js';
import type { State } from '../../../packages/agent/src/machine/state.js';
import type { CallTraits } from '../../../packages/agent/src/policy/judged-call.js';
import { presetRules } from '../../../packages/agent/src/policy/presets.js';
import type { Checkpoints } from '../../../packages/agent/src/ports/checkpoints.js';
import type { Hooks, UserHooks } from '../../../packages/agent/src/ports/hooks.js';
import type {
  EntryDraft,
  Journal,
  JournalStore,
} from '../../../packages/agent/src/ports/journal.js';
import type { Model, ModelPiece, ModelRequest } from '../../../packages/agent/src/ports/model.js';
import type { Stepped } from '../../../packages/agent/src/ports/session.js';
import type {
  FileMemory,
  Job,
  Jobs,
  SentCalls,
  Tool,
  ToolContext,
  ToolOutcome,
} from '../../../packages/agent/src/ports/tool.js';
import { LocalRuntime } from '../../../packages/agent/src/session/runtime.js';
import type { JsonObject } from '../../../packages/machine/src/kernel/shape.js';
import { type FakeClock, fakeClock } from '../../../packages/pawl/src/testing.js';

/** What the runtime's tests stand on: a model that answers from a list, small tools, a journal that can refuse. */

export type Answer = (request: ModelRequest, signal: AbortSignal) => AsyncIterable<ModelPiece>;

const usage = { inputTokens: 100, outputTokens: 10, cacheReadTokens: 0, cacheWriteTokens: 0 };
const prices = { input: 1, output: 10, cacheRead: 0.1, cacheWrite: 1.25 };

export const completed = (
  parts: Extract<ModelPiece, { type: 'completed' }>['parts'],
  stopReason: StopReason = 'end',
): ModelPiece => ({ type: 'completed', parts, stopReason, usage });

export const pieces = (...list: readonly ModelPiece[]): Answer =>
  async function* () {
    yield* list;
  };

/** The provider refuses the request, so it costs nothing. */
export const overloaded: Answer = pieces({
  type: 'failed',
  error: { kind: 'overloaded', message: 'full', retryable: true, retryAfterMs: null },
  usage: null,
});

export const say = (text: string): Answer => pieces(completed([{ type: 'text', text }]));

export const rawCall = (callId: string, tool: string, input: JsonObject | string = {}) =>
  ({
    type: 'call',
    callId,
    tool,
    rawInput: typeof input === 'string' ? input : JSON.stringify(input),
  }) as const;

export const callTools = (...calls: ReturnType<typeof rawCall>[]): Answer =>
  pieces(completed(calls, 'toolUse'));

/** Never ends by itself; ends without an end when it is aborted. */
export const hang = (...first: readonly ModelPiece[]): Answer =>
  async function* (_request, signal) {
    yield* first;
    await new Promise<void>((resolve) =>
      signal.addEventListener('abort', () => resolve(), { once: true }),
    );
  };

export type TestModel = Model & { readonly requests: ModelRequest[]; answers: Answer[] };

export const testModel = (...answers: Answer[]): TestModel => {
  const requests: ModelRequest[] = [];
  const model: TestModel = {
    id: 'test/one',
    facts: {
      windowTokens: 100_000,
      outputTokensMax: 1_000,
      thinking: 'no',
      tools: 'yes',
      prices,
      source: 'test',
    },
    canAbort: 'yes',
    requests,
    answers,
    stream(request, signal) {
      requests.push(request);
      const answer = model.answers.shift() ?? say('nothing left to say');
      return answer(request, signal);
    },
  };
  return model;
};

export const traits = (own: Partial<CallTraits> = {}): CallTraits => ({
  effect: 'pure',
  parallelSafe: true,
  mutating: false,
  deadlineMs: 60_000,
  ...own,
});

export const command = traits({ effect: 'opaque', parallelSafe: false, mutating: true });

export const tool = (
  name: string,
  run: (input: JsonObject, context: ToolContext) => ToolOutcome | Promise<ToolOutcome>,
  own: CallTraits = traits(),
  before?: Tool['before'],
): Tool => ({
  name,
  description: `the tool ${name}`,
  inputSchema: { type: 'object' },
  traits: own,
  judge: (input) => ({ kind: 'ok', input, facts: { argv: [], paths: [], hosts: [], shape: name } }),
  run: async (input, context) => run(input, context),
  ...(before === undefined ? {} : { before }),
});

export const ok = (text: string): ToolOutcome => ({ status: 'ok', text });

const fileMemory = (): FileMemory => new Map<string, string>();

const jobsOf = (list: Job[]): Jobs => ({
  restore: (job) => void list.push(job),
  add: (start) => {
    const job = start(`job-${list.length + 1}`);
    list.push(job);
    return job;
  },
  get: (jobId) => list.find((job) => job.jobId === jobId),
  list: () => list,
});

/** A store whose journals ask `onAppend` before they write; what that throws is the failure of the append. */
export const watchedStore = (
  store: JournalStore,
  onAppend: (drafts: readonly EntryDraft[]) => unknown,
  full: () => Error | null = () => null,
): JournalStore => {
  const watched = (journal: Journal): Journal => ({
    header: journal.header,
    get seq() {
      return journal.seq;
    },
    get full() {
      return full();
    },
    append: async (drafts) => {
      await onAppend(drafts);
      await journal.append(drafts);
    },
    read: (from) => journal.read(from),
    blobs: journal.blobs,
    frozen: () => journal.frozen(),
    close: () => journal.close(),
  });
  return {
    ...store,
    create: async (header) => watched(await store.create(header)),
    open: async (sessionId) => {
      const opened = await store.open(sessionId);
      return { ...opened, journal: watched(opened.journal) };
    },
  };
};

export type StageOptions = {
  readonly model?: TestModel;
  readonly tools?: readonly Tool[];
  readonly settings?: Partial<Settings>;
  readonly journals?: JournalStore;
  readonly clock?: FakeClock;
  readonly hooks?: Hooks;
  readonly userHooks?: UserHooks;
  readonly sentCalls?: SentCalls;
  readonly checkpoints?: Checkpoints;
  readonly close?: () => Promise<void>;
};

export const settingsOf = (own: Partial<Settings> = {}): Settings => ({
  ...defaultSettings,
  model: 'test/one',
  workspace: '/workspace',
  hooks: 'never',
  rules: presetRules.auto,
  ...own,
});

export type Stage = {
  readonly runtime: LocalRuntime;
  readonly clock: FakeClock;
  readonly model: TestModel;
  readonly jobs: Job[];
  readonly faults: Error[];
  readonly journals: JournalStore;
};

let created = 0;

/** A runtime with everything in memory. */
export const stage = (options: StageOptions = {}): Stage => {
  const {
    model = testModel(),
    tools = [],
    clock = fakeClock(),
    journals = memoryJournals(),
  } = options;
  const jobs: Job[] = [];
  const faults: Error[] = [];
  const runtime = new LocalRuntime({
    journals,
    clock,
    machine: 'test',
    equip: async () => ({
      model: () => model,
      tools,
      files: fileMemory(),
      jobs: jobsOf(jobs),
      compactionInstructions: (kept) => (kept === null ? 'summarise' : `summarise: ${kept}`),
      hooks: options.hooks ?? null,
      userHooks: options.userHooks ?? null,
      ...(options.sentCalls === undefined ? {} : { sentCalls: options.sentCalls }),
      ...(options.checkpoints === undefined ? {} : { checkpoints: options.checkpoints }),
      ...(options.close === undefined ? {} : { close: options.close }),
    }),
    newSessionId: () => {
      created += 1;
      return `session-${created}`;
    },
    random: () => 0.5,
    report: (fault) => faults.push(fault),
  });
  return { runtime, clock, model, jobs, faults, journals };
};

/** A session with a record of its steps. */
export type Play = Stage & {
  readonly id: string;
  readonly steps: Stepped[];
  state(): Promise<State>;
  say(text: string): Promise<{ readonly seq: number }>;
  /** Resolves as soon as a step, past or future, fits. */
  until(fits: (stepped: Stepped) => boolean): Promise<Stepped>;
  /** Resolves when the session next rests in W, or now if it does. */
  rest(): Promise<State>;
};

export const watchSession = (stage: Stage, id: string, steps: Stepped[] = []): Play => {
  const waiting = new Set<{
    fits: (stepped: Stepped) => boolean;
    resolve: (stepped: Stepped) => void;
  }>();
  const watcher = (stepped: Stepped): void => {
    steps.push(stepped);
    for (const waiter of waiting) {
      if (!waiter.fits(stepped)) continue;
      waiting.delete(waiter);
      waiter.resolve(stepped);
    }
  };
  stage.runtime.watch(id, watcher);
  const until: Play['until'] = (fits) => {
    const past = steps.find(fits);
    if (past !== undefined) return Promise.resolve(past);
    return new Promise((resolve) => waiting.add({ fits, resolve }));
  };
  const state = async (): Promise<State> => (await stage.runtime.state(id)).state;
  return {
    ...stage,
    id,
    steps,
    state,
    until,
    say: (text) => stage.runtime.send(id, { type: 'UserInput', text, mode: 'steer' }),
    rest: async () => {
      // waiting begins before the state is looked at, so that no rest is missed
      const later = new Promise<State>((resolve) => {
        const fits = ({ state: after }: Stepped): boolean => after.name === 'WaitingForUserInput';
        waiting.add({ fits, resolve: (stepped) => resolve(stepped.state) });
      });
      const now = await state();
      return now.name === 'WaitingForUserInput' ? now : later;
    },
  };
};

export const play = async (options: StageOptions = {}): Promise<Play> => {
  const on = stage(options);
  const id = await on.runtime.create({
    settings: settingsOf(options.settings),
    instructions: 'be brief',
  });
  return watchSession(on, id);
};

/** Lets everything that is ready run: promises and what they post, not timers. */
export const settle = async (): Promise<void> => {
  for (let round = 0; round < 10; round++) await new Promise((resolve) => setImmediate(resolve));
};

/** A life that ended in the middle: a fork at `seq` is what a crash leaves behind, to the byte. */
export const reopen = async (
  on: Play,
  seq: number,
  tools: readonly Tool[],
  model = testModel(),
) => {
  const id = await on.runtime.fork(on.id, seq);
  const later = stage({ journals: on.journals, model, tools });
  await later.runtime.open(id);
  const again = watchSession(later, id);
  await settle();
  return again;
};

/** The results that the last message of a request holds, by call. */
export const resultsOf = (messages: readonly Message[]): Readonly<Record<string, string>> => {
  const results: Record<string, string> = {};
  for (const part of messages.at(-1)?.parts ?? []) {
    if (part.type === 'result') results[part.callId] = part.text;
  }
  return results;
};

export const typesOf = (entries: readonly Pick<EntryDraft, 'event'>[]): readonly string[] =>
  entries.map(({ event }) => event.type);

/** Everything that comes, as an array. */
export const collect = async <T>(source: AsyncIterable<T>): Promise<readonly T[]> => {
  const items: T[] = [];
  for await (const item of source) items.push(item);
  return items;
};
